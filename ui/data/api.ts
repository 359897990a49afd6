import { signal } from "@preact/signals";
import { takeBegun } from "./begun.ts";
import { nodeClock } from "./clock.ts";
import { apiPath, type Params } from "./paths.ts";

/** Longest wait for an answer, where nothing else is said. */
const ANSWER_MS_MAX = 30_000;
/** Polls that fail in a row before the page says that nobody answers. */
const FAILURES_UNTIL_AWAY = 2;

/** What is wrong with a field of what was sent. */
export interface FieldProblem {
  readonly path: string;
  readonly message: string;
}

/** What the API answered in place of what was asked for. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly details: readonly FieldProblem[] = [],
    readonly retryAfterS: number | null = null,
  ) {
    super(message);
  }
}

/** Nobody answered at all. */
export class AwayError extends Error {
  override readonly name = "AwayError";
}

/** An admin token, kept in memory alone. */
export const token = signal<string | null>(null);
/** Somebody who was signed in no longer is; whoever waits for `signedInAgain` goes on then. */
export const sessionOver = signal(false);
/** Since when nobody answers; `null`: somebody does. */
export const awaySince = signal<Date | null>(null);

let failures = 0;
let firstFailure: Date | null = null;
let waiting: (() => void)[] = [];

/** Whether a 401 is the end of a session rather than the answer to a sign-in. */
let hasSession = false;

export function sessionBegins(): void {
  hasSession = true;
  sessionOver.value = false;
  const went = waiting;
  waiting = [];
  for (const go of went) go();
}

export function sessionEnds(): void {
  hasSession = false;
}

function answered(): void {
  failures = 0;
  firstFailure = null;
  awaySince.value = null;
}

function unanswered(): void {
  firstFailure ??= nodeClock.now();
  if (++failures >= FAILURES_UNTIL_AWAY) awaySince.value = firstFailure;
}

export interface Options {
  readonly params?: Params;
  readonly body?: unknown;
  readonly ifMatch?: number;
  readonly signal?: AbortSignal;
  /** Longest wait for the answer; `null`: it is a stream, and lasts. */
  readonly timeoutMs?: number | null;
  /** A 401 is an answer like others: to a sign-in, or to the question who one is. */
  readonly takes401?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends a request; the one place that does. */
export async function send(method: string, path: string, options: Options = {}): Promise<Response> {
  const { params, body, ifMatch, signal: given, takes401 = false } = options;
  const { timeoutMs = ANSWER_MS_MAX } = options;
  const headers: Record<string, string> = { ...options.headers };
  const url = apiPath(path, params);
  if (body !== undefined) headers["content-type"] = "application/json";
  if (ifMatch !== undefined) headers["if-match"] = String(ifMatch);
  for (;;) {
    if (token.value !== null) headers.authorization = `Bearer ${token.value}`;
    // Each try has its own time: between two of them somebody may have signed in at leisure.
    const ends = [
      ...(given === undefined ? [] : [given]),
      ...(timeoutMs === null ? [] : [AbortSignal.timeout(timeoutMs)]),
    ];
    let response: Response;
    try {
      const begun = method === "GET" && token.value === null ? takeBegun(url) : undefined;
      const sentMs = begun?.sentMs ?? Date.now();
      response = await (begun?.response ?? fetch(url, {
        method,
        headers,
        signal: AbortSignal.any(ends),
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }));
      nodeClock.learn(response.headers.get("date"), sentMs);
      given?.throwIfAborted();
    } catch (error) {
      if (given?.aborted) throw error;
      unanswered();
      throw new AwayError(String(error));
    }
    answered();
    if (response.ok) return response;
    if (response.status === 401 && hasSession && !takes401) {
      void response.body?.cancel();
      sessionOver.value = true;
      await new Promise<void>((resolve) => waiting.push(resolve));
      continue; // With the new session; nothing that was typed is lost.
    }
    throw await errorOf(response);
  }
}

async function errorOf(response: Response): Promise<ApiError> {
  const retry = Number(response.headers.get("retry-after"));
  const retryAfterS = retry > 0 ? retry : null;
  try {
    const { error: { code, message, details } } = await response.json();
    return new ApiError(response.status, code, message, details ?? [], retryAfterS);
  } catch {
    return new ApiError(response.status, "", response.statusText, [], retryAfterS);
  }
}

/** Sends a request and reads its answer. */
export async function call<T>(method: string, path: string, options: Options = {}): Promise<T> {
  const response = await send(method, path, options);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

export function get<T>(path: string, params: Params = {}, signal?: AbortSignal): Promise<T> {
  return call<T>("GET", path, { params, ...(signal !== undefined && { signal }) });
}
