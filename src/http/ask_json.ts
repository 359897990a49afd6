import { SvcError } from "../errors.ts";
import { askText } from "./ask_text.ts";
import type { DownloadLimits } from "./download.ts";
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

/**
 * Asks a JSON API once; see `askText`.
 *
 * @throws {SvcError} `unavailable`, without an answer that is JSON or nothing.
 */
export async function askJson(ask: HttpAsk, question: JsonQuestion): Promise<JsonAnswer> {
  const { body, headers, ...rest } = question;
  const { status, headers: { "content-type": type }, text, lengthBytes } = await askText(ask, {
    ...rest,
    headers: {
      accept: "application/json",
      ...(body !== undefined && { "content-type": "application/json" }),
      ...headers,
    },
    ...(body !== undefined && { body: new TextEncoder().encode(JSON.stringify(body)) }),
  });
  return { status, json: parse(text, status, type), lengthBytes };
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
