/**
 * Finds answers from the root down: a `Source`. `Iteration` asks the servers of one zone after the
 * other for one flight, `Delegations` holds which zones are where, `NameServers` how servers are, and
 * `limits.ts` every bound. See `resolver/mod.ts`.
 * RFC 1034, 2181, 5452, 6303, 6672, 6761, 8020, 8109, 9156, 9520. @module
 */
export { DELEGATIONS_BYTES, DELEGATIONS_BYTES_MIN } from "./limits.ts";
export { builtInHints, type Hint, parseHints } from "./hints.ts";
export type { DeniesName } from "./means.ts";
export { type RecursionOptions, Recursor, type RecursorOptions } from "./recursor.ts";
