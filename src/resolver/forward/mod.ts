/** Has other resolvers answer: a `Source`. See `resolver/mod.ts`. @module */
export { Forwarder, type ForwarderOptions } from "./forwarder.ts";
export type { Routes } from "./routes.ts";
export type { StrategyOptions } from "./strategy.ts";
export { upstreamsFor, type UpstreamSpec } from "./upstream.ts";
