import { messageOf, SvcError } from "../errors.ts";
import { type DownloadLimits, readBody, REDIRECT_STATUSES, within } from "./download.ts";
import type { HttpAsk } from "./ports.ts";

/** One request to an API. */
export interface TextQuestion {
  readonly method: "GET" | "POST" | "DELETE";
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  readonly limits: DownloadLimits;
  readonly signal: AbortSignal;
}

/** What came back, whatever its status. */
export interface TextAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** Of the body, unpacked. */
  readonly lengthBytes: number;
}

/** Most that an error repeats of a path. */
const SHOWN_LENGTH_MAX = 64;

/**
 * Asks an API once, within bounds of time and size. A redirect is not followed: what goes with the
 * request is for this address alone. `limits.totalTimeoutMs` is for whoever gives the signal.
 *
 * @throws {SvcError} `unavailable`, without a whole answer.
 */
export async function askText(ask: HttpAsk, question: TextQuestion): Promise<TextAnswer> {
  const { method, url, headers, body, limits } = question;
  const hop = new AbortController();
  const signal = AbortSignal.any([question.signal, hop.signal]);
  try {
    const request = {
      method,
      headers: { "accept-encoding": "gzip, deflate", "user-agent": "svc", ...headers },
      signal,
      ...(body !== undefined && { body }),
    };
    const late = `no answer in ${limits.headTimeoutMs / 1_000} s`;
    const response = await within(ask(url, request), limits.headTimeoutMs, late, signal);
    const { status } = response;
    if (REDIRECT_STATUSES.has(status)) throw redirected(url, response.headers.location);
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
    return { status, headers: response.headers, text, lengthBytes };
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
