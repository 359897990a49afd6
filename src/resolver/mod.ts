/**
 * What happens to a query between two packets: `readQuery` makes numbers of it, `Pipeline` answers
 * what it can at once, `Forwarder` asks upstreams for the rest. All I/O comes in as ports.
 * Scope: none. RFC 1035, 2308, 5452, 6891, 8482, 8767, 8914, 9520, 9619. @module
 */
export { Pipeline, type PipelineOptions, Verdict } from "./pipeline.ts";
export { ClientAddress, Query, Read, readQuery, Transport } from "./query.ts";
export { Reply, streamReply } from "./reply.ts";
export { Resolver } from "./resolver.ts";
export {
  type AttemptFailure,
  type Exchange,
  Forwarder,
  type ForwarderOptions,
  type Responder,
  TICK_MS,
  type TtlBounds,
  type UpstreamSpec,
  Waiter,
} from "./forward/mod.ts";
