import { LockedError } from "../auth/mod.ts";
import { type ErrorCode, SvcError } from "../errors.ts";
import { log } from "../log.ts";
import type { ErrorAnswer } from "./schemas/common.ts";

export const STATUS = {
  bad_request: 400,
  unauthorized: 401,
  otp_required: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  revision_mismatch: 412,
  invalid: 422,
  too_many_requests: 429,
  internal: 500,
  unavailable: 503,
} as const satisfies Record<ErrorCode, number>;

/** When a change that can't be made now is worth another try. */
const RETRY_SECONDS = 5;

/** A body that is refused before it is read as JSON: its status tells more than its code. */
export class BodyError extends SvcError {
  constructor(readonly status: 400 | 408 | 413 | 415, message: string) {
    super("bad_request", message);
  }
}

export interface ErrorResponse {
  readonly status: number;
  readonly body: ErrorAnswer;
  readonly headers: Readonly<Record<string, string>>;
}

/** The one place where an error becomes a response; `path` is for the log only. */
export function errorResponse(error: unknown, path: string): ErrorResponse {
  if (!(error instanceof SvcError)) {
    log.error("api request failed", { path, error });
    const body = { error: { code: "internal", message: "the service failed" } };
    return { status: STATUS.internal, body, headers: {} };
  }
  const { code, message } = error;
  return {
    status: error instanceof BodyError ? error.status : STATUS[code],
    body: { error: { code, message } },
    headers: {
      ...(error instanceof LockedError && { "Retry-After": String(error.retryAfterSeconds) }),
      // A response 401 names a way to come in (RFC 9110 §15.5.2).
      ...(STATUS[code] === 401 && { "WWW-Authenticate": "Bearer" }),
      ...(code === "unavailable" && { "Retry-After": String(RETRY_SECONDS) }),
    },
  };
}
