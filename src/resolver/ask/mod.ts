/**
 * One question to one server, whichever: how it is written, sent, told from what others send, and
 * asked again over TCP or without EDNS. `ResponseReader` says what came back, `Scrubber` writes what
 * is kept of it. See `resolver/mod.ts`. RFC 1035, 5452, 6891, 7766, 8467. @module
 */
export { Ask, type AskOwner } from "./ask.ts";
export { Asker, type AskerOptions, NOT_SENT, OPEN_MAX } from "./asker.ts";
export type {
  AskFailure,
  Exchange,
  PlainAddress,
  Remote,
  Sending,
  ServerAddress,
  ServerTransport,
} from "./ports.ts";
export { Fit, ResponseReader } from "./response.ts";
export { DENIAL_TTL, Scrubbed, Scrubber, type TtlBounds } from "./scrubber.ts";
export { Server } from "./server.ts";
