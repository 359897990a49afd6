/** Asks other resolvers. See `resolver/mod.ts`. @module */
export { FLIGHTS_MAX } from "./flight_table.ts";
export { Forwarder, type ForwarderOptions, OPEN_MAX, TICK_MS } from "./forwarder.ts";
export type {
  AttemptFailure,
  Exchange,
  Sending,
  UpstreamSpec,
  UpstreamTransport,
} from "./ports.ts";
export type { TtlBounds } from "./scrubber.ts";
