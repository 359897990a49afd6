import { messageOf, SvcError } from "../errors.ts";
import { type DownloadLimits, readBody, REDIRECT_STATUSES, within } from "./download.ts";
import { isPage } from "./content_type.ts";
import type { HttpAsk } from "./ports.ts";

/** One request to a JSON API. */
export interface JsonQuestion {
  readonly method: "GET" | "POST" | "DELETE";
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** Sent as JSON; left out: there is no body. */
  readonly body?: unknown;
  readonly limits: DownloadLimits;
  readonly signal: AbortSignal;
}

/** What came back, whatever its status. */
export interface JsonAnswer {
  readonly status: number;
  /** `undefined`: there is no body, or, where it is a refusal, none that is JSON. */
  readonly json: unknown;
  /** Of the body, unpacked. */
  readonly lengthBytes: number;
}

/** Most that an error repeats of a path. */
const SHOWN_LENGTH_MAX = 64;

const encoder = new TextEncoder();

/**
 * Asks a JSON API once, within bounds of time and size. A redirect is not followed: what goes with
 * the request is for this address alone. `limits.totalTimeoutMs` is for whoever gives the signal.
 *
 * @throws {SvcError} `unavailable`, without an answer that is JSON or nothing.
 */
export async function askJson(ask: HttpAsk, question: JsonQuestion): Promise<JsonAnswer> {
  const { method, url, headers, body, limits } = question;
  const hop = new AbortController();
  const signal = AbortSignal.any([question.signal, hop.signal]);
  try {
    const request = {
      method,
      headers: {
        "accept": "application/json",
        "accept-encoding": "gzip, deflate",
        "user-agent": "svc",
        ...(body !== undefined && { "content-type": "application/json" }),
        ...headers,
      },
      signal,
      ...(body !== undefined && { body: encoder.encode(JSON.stringify(body)) }),
    };
    const late = `no answer in ${limits.headTimeoutMs / 1_000} s`;
    const response = await within(ask(url, request), limits.headTimeoutMs, late, signal);
    const { status, headers: { location, "content-type": type } } = response;
    if (REDIRECT_STATUSES.has(status)) throw redirected(url, location);
    const decoder = new TextDecoder();
    let [text, lengthBytes] = ["", 0];
    await readBody(response, signal, {
      limits,
      onChunk: (chunk) => {
        text += decoder.decode(chunk, { stream: true });
        lengthBytes += chunk.length;
        return Promise.resolve();
      },
    });
    text += decoder.decode();
    return { status, json: parse(text, status, type), lengthBytes };
  } catch (error) {
    if (question.signal.aborted) throw question.signal.reason;
    if (error instanceof SvcError) throw error;
    throw new SvcError("unavailable", messageOf(error), { cause: error });
  } finally {
    hop.abort(); // Closes the connection, whatever is left on it.
  }
}

function redirected(from: URL, location: string | undefined): SvcError {
  const target = location === undefined ? null : URL.parse(location, from);
  const isElsewhere = target !== null && target.origin !== from.origin;
  const where = target === null
    ? ""
    : ` to ${isElsewhere ? target.origin : target.pathname.slice(0, SHOWN_LENGTH_MAX)}`;
  const mend = isElsewhere ? ": give that address" : "";
  return new SvcError("unavailable", `it redirects${where}, which is not followed${mend}`);
}

function parse(text: string, status: number, type: string | undefined): unknown {
  if (text.trim() === "") return undefined;
  try {
    return JSON.parse(text);
  } catch (cause) {
    if (status >= 400) return undefined;
    const what = isPage(type) || /^\s*<(?:!doctype|html)/i.test(text)
      ? "with an HTML page, not with JSON"
      : "with what is no JSON";
    throw new SvcError("unavailable", `it answers ${status} ${what}`, { cause });
  }
}
