/**
 * What happens to a query between two packets: `readQuery` makes numbers of it, `Pipeline` answers
 * what it can at once, `Forwarder` asks upstreams for the rest. All I/O comes in as ports.
 * Scope: none. RFC 1035, 2308, 5452, 6891, 8482, 8767, 8914, 9520, 9619. @module
 */
export { clientIdOf, readClientId } from "./client_id.ts";
export { COOKIE_SECRET_BYTES } from "./cookies.ts";
export { Pipeline, type PipelineOptions, Verdict } from "./pipeline.ts";
export { Outcome } from "./outcome.ts";
export { QueryLog } from "./query_log.ts";
export { type Clocks, TurnClock } from "./turn_clock.ts";
export { RebindingProtection } from "./rebinding.ts";
export { ClientAddress, DnssecState, Query, Read, readQuery, Transport } from "./query.ts";
export { RateLimiter, type RateLimitOptions } from "./rate_limit.ts";
export { Reply, streamReply } from "./reply.ts";
export { type FailureCode, ResolveFailure } from "./failure.ts";
export { type Responder, Waiter } from "./flights/waiter.ts";
export { type Found, Lookups } from "./lookups.ts";
export { Resolver, type ResolverOptions } from "./resolver.ts";
export {
  type AttemptFailure,
  type Exchange,
  Forwarder,
  type ForwarderOptions,
  OPEN_MAX,
  type Sending,
  TICK_MS,
  type TtlBounds,
  type UpstreamSpec,
  type UpstreamTransport,
} from "./forward/mod.ts";
