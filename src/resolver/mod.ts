/**
 * What happens to a query between two packets: `readQuery` makes numbers of it, `Pipeline` answers
 * what it can at once; the rest waits in `Flights` (`flights/`) for what a `Source` brings, `Forwarder`
 * (`forward/`) from upstreams, which it asks through the `Asker` (`ask/`); `Validation` (`validate/`)
 * judges that first where it is to be proven; `Resolver` writes every response, and the transport's
 * `Responder` sends it. All I/O comes in as ports.
 * Scope: none. RFC 1035, 2308, 5452, 6147, 6891, 7050, 8482, 8767, 8914, 9520, 9619. @module
 */
export { clientIdOf, readClientId } from "./client_id.ts";
export { COOKIE_SECRET_BYTES } from "./cookies.ts";
export { Pipeline, type PipelineOptions } from "./pipeline.ts";
export { Verdict } from "./verdict.ts";
export { Outcome } from "./outcome.ts";
export { QueryLog } from "./query_log.ts";
export { TurnClock } from "./turn_clock.ts";
export { Dns64 } from "./dns64.ts";
export { Dns64Names } from "./dns64_names.ts";
export { RebindingProtection } from "./rebinding.ts";
export {
  ClientAddress,
  DnssecState,
  keyHasher,
  Query,
  Read,
  readQuery,
  Transport,
} from "./query.ts";
export { subnetOption, Subnets } from "./subnets.ts";
export { RateLimiter, type RateLimitOptions } from "./rate_limit.ts";
export { Reply, streamReply } from "./reply.ts";
export { Trace, type TraceEvent, type TraceNote, type TraceStep } from "./trace.ts";
export { type Found, Lookups } from "./lookups.ts";
export { type AskHow, type OwnAnswer, OwnQuestions } from "./own_questions.ts";
export { Resolver, type ResolverOptions } from "./resolver.ts";
export {
  Asker,
  type AskerOptions,
  type Exchange,
  OPEN_MAX,
  type PlainAddress,
  type Remote,
  type Sending,
  type TtlBounds,
} from "./ask/mod.ts";
export {
  BeginLine,
  ClientWaits,
  Flights,
  type FlightsOptions,
  KeptMessages,
  type Responder,
  TICK_MS,
  type Waiter,
} from "./flights/mod.ts";
export { SplitSource } from "./split_source.ts";
export {
  Forwarder,
  type ForwarderOptions,
  type StrategyOptions,
  upstreamsFor,
  type UpstreamSpec,
} from "./forward/mod.ts";
