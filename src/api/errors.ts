import { LockedError } from "../auth/mod.ts";
import { type ErrorCode, SvcError } from "../errors.ts";
import { log } from "../log.ts";
import { describeProblems, type SpecProblem, type SpecProblems } from "../model/mod.ts";
import type { ErrorAnswer, Shown } from "./schemas/common.ts";

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

/** When what can't be done now is worth another try, in seconds; who is locked out is told. */
const RETRY_SECONDS: Readonly<Partial<Record<ErrorCode, number>>> = {
  too_many_requests: 300,
  unavailable: 5,
};

/** A body that is refused before it is read as JSON: its status tells more than its code. */
export class BodyError extends SvcError {
  constructor(readonly status: 400 | 408 | 413 | 415, message: string) {
    super("bad_request", message);
  }
}

/** What was sent is refused for all of these reasons. */
export class ProblemsError extends SvcError {
  /** `whole` names what was sent, where a problem is about all of it. */
  constructor(code: ErrorCode, readonly problems: SpecProblems, whole: string) {
    super(code, describeProblems(problems, whole));
  }
}

/** All that is wrong with a value; what was refused behind the schemas says it in its message. */
function detailsOf(error: SvcError): readonly SpecProblem[] | undefined {
  if (error.code !== "invalid") return undefined;
  if (error instanceof ProblemsError) return error.problems;
  const [, path, message] = /^([\w.[\]]+): ([^]*)$/.exec(error.message) ?? [];
  return [path === undefined ? { path: "", message: error.message } : { path, message }];
}

export interface ErrorResponse {
  readonly status: number;
  readonly body: Shown<ErrorAnswer>;
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
  const details = detailsOf(error);
  const retrySeconds = error instanceof LockedError ? error.retryAfterSeconds : RETRY_SECONDS[code];
  return {
    status: error instanceof BodyError ? error.status : STATUS[code],
    body: { error: { code, message, ...(details !== undefined && { details }) } },
    headers: {
      ...(retrySeconds !== undefined && { "Retry-After": String(retrySeconds) }),
      // A response 401 names a way to come in (RFC 9110 §15.5.2).
      ...(STATUS[code] === 401 && { "WWW-Authenticate": "Bearer" }),
    },
  };
}
