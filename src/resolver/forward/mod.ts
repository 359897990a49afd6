/** Asks other resolvers. See `resolver/mod.ts`. @module */
export { type Responder, Waiter } from "./flight.ts";
export { FLIGHTS_MAX } from "./flight_table.ts";
export { Forwarder, type ForwarderOptions, TICK_MS } from "./forwarder.ts";
export type { AttemptFailure, Exchange, UpstreamSpec, UpstreamTransport } from "./ports.ts";
export type { TtlBounds } from "./response.ts";
