/** Asks other resolvers. See `resolver/mod.ts`. @module */
export { type Responder, Waiter } from "./flight.ts";
export { Forwarder, type ForwarderOptions, TICK_MS } from "./forwarder.ts";
export type { AttemptFailure, Exchange, UpstreamSpec } from "./ports.ts";
export type { TtlBounds } from "./response.ts";
