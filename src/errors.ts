/** Errors that every module may throw; each ends in a place of its own. @module */

/** The stable codes of failures that a user or an API client can act on. */
export const ERROR_CODES = [
  "bad_request",
  "conflict",
  "forbidden",
  "internal",
  "invalid",
  "not_found",
  "otp_required",
  "revision_mismatch",
  "too_many_requests",
  "unauthorized",
  "unavailable",
] as const;
export type ErrorCode = typeof ERROR_CODES[number];

/** A request that can't be done. The message leads with the place and states the fact. */
export class SvcError extends Error {
  override readonly name: string = "SvcError";
  constructor(readonly code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
  }
}

/** What our own reasoning rules out; the supervisor logs, counts and restarts the isolate. */
export class InvariantError extends Error {
  override readonly name = "InvariantError";
}

/** @throws {InvariantError} Unless `condition` holds; `fact` says what should. */
export function invariant(condition: boolean, fact: string): asserts condition {
  if (!condition) throw new InvariantError(`does not hold: ${fact}`);
}

/** Throws what our own reasoning rules out: nobody but the supervisor takes it for a failure. */
export function rethrowInvariant(error: unknown): void {
  if (error instanceof InvariantError) throw error;
}

/** The message of anything thrown, for a log line or a status. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
