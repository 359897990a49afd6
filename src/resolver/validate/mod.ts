/**
 * Judges what a source brings before it is anybody's: fetches the chain of trust by questions of the
 * flight's own, has signatures checked elsewhere, and writes what is proven, or says why it is not.
 * Answers that follow from proofs are given without asking. See `resolver/mod.ts`.
 * RFC 4033 to 4035, 6840, 8198, 8914, 9520. @module
 */
export { CheckQueue, type CheckThreads, WAITING_MAX } from "./check_queue.ts";
export { Validation, type ValidationOptions } from "./validation.ts";
