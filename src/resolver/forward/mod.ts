/** Asks other resolvers. See `resolver/mod.ts`. @module */
export { Forwarder, type ForwarderOptions, type Responder, TICK_MS, Waiter } from "./forwarder.ts";
export type { AttemptFailure, Exchange, UpstreamSpec } from "./ports.ts";
export type { TtlBounds } from "./response.ts";
