import { pipeline, Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from "node:zlib";
import { isLoopbackHost } from "../addr/mod.ts";
import { messageOf, SvcError } from "../errors.ts";
import { findListUrlProblem } from "../model/mod.ts";
import { checkContentType } from "./content_type.ts";
import type { HttpGet, HttpResponse } from "./ports.ts";

/** How long and how much a download may take. */
export interface DownloadLimits {
  /** From the start of a request to the end of the response's head, connecting included. */
  readonly headTimeoutMs: number;
  /** Between two pieces of the body. */
  readonly idleTimeoutMs: number;
  /** Least bytes of the body, on the wire, in each such time; at any rate, if left out. */
  readonly pace?: { readonly bytesMin: number; readonly timeMs: number };
  /** All of it, redirects included. */
  readonly totalTimeoutMs: number;
  /** Bytes of the body, on the wire and unpacked alike. */
  readonly bytesMax: number;
}

/** Most redirects followed for one text. */
export const REDIRECTS_MAX = 5;
export const REDIRECT_STATUSES = new Set([301, 302, 303, 307, 308]);
/** Longest validator (`ETag`, `Last-Modified`) that is kept and sent back. */
const VALIDATOR_LENGTH_MAX = 1024;

/** What a server gives to ask later whether the text has changed (RFC 9110 §8.8). */
export interface Validators {
  readonly etag?: string | undefined;
  readonly lastModified?: string | undefined;
}

export interface DownloadRequest {
  readonly url: URL;
  /** Those of the copy at hand; none asks for the text in any case. */
  readonly validators: Validators;
  readonly signal: AbortSignal;
  readonly limits: DownloadLimits;
  /** Takes the unpacked text piece by piece; what it throws ends the download. */
  readonly onChunk: (chunk: Uint8Array) => Promise<void>;
  /** Hears how many bytes have come, as on the wire, and of how many, if the server says so. */
  readonly onReceived?: (bytes: number, totalBytes: number | null) => void;
}

/** `validators` are those of the new text; a text that is not modified keeps its own. */
export type Downloaded =
  | { readonly kind: "not_modified" }
  | { readonly kind: "text"; readonly validators: Validators };

/**
 * Fetches one text: follows redirects, unpacks the content encoding, bounds time and size. Whoever
 * asks must throw away what `onChunk` got when this fails.
 *
 * @throws {SvcError} For anything but a whole 200 or a 304, and for what `onChunk` throws as is.
 */
export async function download(get: HttpGet, request: DownloadRequest): Promise<Downloaded> {
  const { limits, signal } = request;
  const total = new AbortController();
  const timer = setTimeout(
    () => total.abort(new SvcError("unavailable", `not done in ${seconds(limits.totalTimeoutMs)}`)),
    limits.totalTimeoutMs,
  );
  try {
    const whole = { ...request, signal: AbortSignal.any([signal, total.signal]) };
    return await followed(request.url, (url) => fetchOnce(get, url, whole));
  } finally {
    clearTimeout(timer);
  }
}

/** Does `ask` for each URL that the one before leads to, until there is an outcome. */
async function followed<T>(start: URL, ask: (url: URL) => Promise<T | URL>): Promise<T> {
  let url = start;
  for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects++) {
    const outcome = await ask(url);
    if (!(outcome instanceof URL)) return outcome;
    url = outcome;
  }
  throw new SvcError("unavailable", `more than ${REDIRECTS_MAX} redirects`);
}

/**
 * Asks how many bytes a text has, without fetching it; `null` where the server does not say.
 *
 * @throws {SvcError} For anything but a 200.
 */
export async function askLength(
  get: HttpGet,
  start: URL,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<number | null> {
  return await followed(start, async (url) => {
    const hop = new AbortController();
    try {
      const bounded = AbortSignal.any([signal, hop.signal]);
      // Packed, the length would be another one.
      const headers = { "accept-encoding": "identity", "user-agent": "svc" };
      const asked = get(url, { method: "HEAD", headers, signal: bounded });
      const late = `no answer in ${seconds(timeoutMs)}`;
      const response = await within(asked, timeoutMs, late, bounded);
      if (REDIRECT_STATUSES.has(response.status)) return redirectTarget(url, response);
      if (response.status !== 200) {
        throw new SvcError("unavailable", `the server answered ${response.status}`);
      }
      checkContentType(response.headers["content-type"]);
      return response.headers["content-encoding"] === undefined ? statedLength(response) : null;
    } finally {
      hop.abort(); // Closes the connection.
    }
  });
}

/** Bytes of the body as its head tells; `null` where it does not. */
function statedLength({ headers }: HttpResponse): number | null {
  const length = headers["content-length"] ?? "";
  return /^\d{1,15}$/.test(length) ? Number(length) : null;
}

/** One request: the text is handed on, or it is the URL to go to instead. */
async function fetchOnce(
  get: HttpGet,
  url: URL,
  request: DownloadRequest,
): Promise<Downloaded | URL> {
  const { limits, validators } = request;
  const hop = new AbortController();
  const signal = AbortSignal.any([request.signal, hop.signal]);
  try {
    const late = `no answer in ${seconds(limits.headTimeoutMs)}`;
    const headers = requestHeaders(validators);
    const response = await within(
      get(url, { headers, signal }),
      limits.headTimeoutMs,
      late,
      signal,
    );
    if (REDIRECT_STATUSES.has(response.status)) return redirectTarget(url, response);
    const conditional = validators.etag !== undefined || validators.lastModified !== undefined;
    if (response.status === 304 && conditional) return { kind: "not_modified" };
    if (response.status !== 200) {
      throw new SvcError("unavailable", `the server answered ${response.status}`);
    }
    checkContentType(response.headers["content-type"]);
    await readBody(response, signal, request);
    return { kind: "text", validators: responseValidators(response) };
  } catch (error) {
    // An aborted connection says "aborted" in many words; the reason says why.
    if (request.signal.aborted) throw request.signal.reason;
    if (error instanceof SvcError) throw error;
    throw new SvcError("unavailable", messageOf(error), { cause: error });
  } finally {
    hop.abort(); // Closes the connection, whatever is left on it.
  }
}

function requestHeaders({ etag, lastModified }: Validators): Record<string, string> {
  return {
    "accept": "text/plain, */*;q=0.5",
    "accept-encoding": "gzip, deflate, br",
    "user-agent": "svc",
    ...(etag === undefined ? {} : { "if-none-match": etag }),
    ...(lastModified === undefined ? {} : { "if-modified-since": lastModified }),
  };
}

function responseValidators({ headers }: HttpResponse): Validators {
  const fitting = (text: string | undefined) =>
    text !== undefined && text.length <= VALIDATOR_LENGTH_MAX ? text : undefined;
  return { etag: fitting(headers["etag"]), lastModified: fitting(headers["last-modified"]) };
}

/** @throws {SvcError} If the redirect names no URL, or one that this one must not lead to. */
function redirectTarget(from: URL, { status, headers }: HttpResponse): URL {
  const location = headers["location"];
  const target = location === undefined ? null : URL.parse(location, from);
  if (target === null) throw new SvcError("unavailable", `a ${status} without a place to go to`);
  const problem = findListUrlProblem(target.href);
  if (problem !== null) {
    throw new SvcError("invalid", `a redirect to ${target.host} is refused: ${problem}`);
  }
  // Another machine's answer must not make us ask this machine's own plain services.
  if (target.protocol === "http:" && !isLoopbackHost(from.hostname)) {
    throw new SvcError("invalid", `a redirect to http on ${target.host} is refused`);
  }
  return target;
}

/**
 * Hands the unpacked body on, piece by piece and within the limits.
 *
 * @throws {SvcError} When it is too large, too slow or breaks off.
 */
export async function readBody(
  response: HttpResponse,
  signal: AbortSignal,
  { limits, onChunk, onReceived }: Pick<DownloadRequest, "limits" | "onChunk" | "onReceived">,
): Promise<void> {
  const packed = measured(response, signal, limits, onReceived);
  let sizeBytes = 0;
  for await (const chunk of unpacked(packed, response.headers["content-encoding"])) {
    sizeBytes += chunk.length;
    if (sizeBytes > limits.bytesMax) throw tooLarge(limits);
    await onChunk(chunk);
  }
}

function tooLarge({ bytesMax }: DownloadLimits): SvcError {
  return new SvcError("invalid", `it is larger than ${bytesMax} bytes`);
}

/** The body as on the wire, each piece in time, bounded, and as long as its length says. */
async function* measured(
  response: HttpResponse,
  signal: AbortSignal,
  limits: DownloadLimits,
  onReceived: DownloadRequest["onReceived"],
): AsyncGenerator<Uint8Array> {
  const stated = statedLength(response);
  if (stated !== null && stated > limits.bytesMax) throw tooLarge(limits);
  const late = `no more data in ${seconds(limits.idleTimeoutMs)}`;
  const pieces = response.body[Symbol.asyncIterator]();
  let sizeBytes = 0;
  const pace = new Pace(limits.pace);
  const bounded = AbortSignal.any([signal, pace.signal]);
  try {
    for (;;) {
      const next = await within(pieces.next(), limits.idleTimeoutMs, late, bounded);
      if (next.done === true) break;
      sizeBytes += next.value.length;
      if (sizeBytes > limits.bytesMax) throw tooLarge(limits);
      pace.sizeBytes = sizeBytes;
      onReceived?.(sizeBytes, stated);
      yield next.value;
    }
  } finally {
    pace.stop();
  }
  if (stated !== null && sizeBytes !== stated) {
    throw new SvcError("unavailable", `cut off: ${sizeBytes} of ${stated} bytes came`);
  }
}

/** Ends a body that keeps coming, but so slowly that it holds up others. */
class Pace {
  readonly #slow = new AbortController();
  readonly #timer: ReturnType<typeof setInterval> | undefined;
  sizeBytes = 0;

  constructor(pace: DownloadLimits["pace"]) {
    if (pace === undefined) return;
    let before = 0;
    this.#timer = setInterval(() => {
      const bytes = this.sizeBytes - before;
      before = this.sizeBytes;
      if (bytes >= pace.bytesMin) return;
      const message = `too slow: ${bytes} bytes in ${seconds(pace.timeMs)}`;
      this.#slow.abort(new SvcError("unavailable", message));
    }, pace.timeMs);
  }

  get signal(): AbortSignal {
    return this.#slow.signal;
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

/** Undoes a content encoding (RFC 9110 §8.4.1), a small piece at a time: bombs burst on the bound. */
async function* unpacked(
  packed: AsyncGenerator<Uint8Array>,
  encoding = "identity",
): AsyncGenerator<Uint8Array> {
  const name = encoding.trim().toLowerCase();
  if (name === "identity" || name === "") return yield* packed;
  const first = await packed.next();
  if (first.done === true) return;
  const unpack = unpacker(name, first.value);
  if (unpack === null) {
    throw new SvcError("unavailable", `the content encoding ${JSON.stringify(name)} is unknown`);
  }
  // `pipeline` destroys `unpack` with the error of either side, and the loop throws it.
  pipeline(Readable.from(again(first.value, packed)), unpack, () => undefined);
  yield* unpack as AsyncIterable<Uint8Array>;
}

async function* again(
  first: Uint8Array,
  rest: AsyncGenerator<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  yield first;
  yield* rest;
}

function unpacker(name: string, first: Uint8Array) {
  switch (name) {
    case "gzip":
    case "x-gzip":
      return createGunzip();
    case "deflate":
      // Some servers leave out the zlib header, whose low four bits are 8 (RFC 1950 §2.2).
      return (first[0] & 0x0f) === 8 ? createInflate() : createInflateRaw();
    case "br":
      return createBrotliDecompress();
    default:
      return null;
  }
}

/** @throws {SvcError} With `lateMessage` if `work` takes too long; the signal's reason on abort. */
export async function within<T>(
  work: Promise<T>,
  timeoutMs: number,
  lateMessage: string,
  signal: AbortSignal,
): Promise<T> {
  const stop = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => stop.reject(new SvcError("unavailable", lateMessage)),
    timeoutMs,
  );
  const onAbort = () => stop.reject(signal.reason);
  signal.addEventListener("abort", onAbort);
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([work, stop.promise]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}

function seconds(durationMs: number): string {
  return `${durationMs / 1000} s`;
}
