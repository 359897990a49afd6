import { messageOf, SvcError } from "../errors.ts";
import { download, type DownloadLimits } from "./download.ts";
import type { HttpGet } from "./ports.ts";

/**
 * Fetches a JSON text into memory; `limits.bytesMax` bounds it.
 *
 * @throws {SvcError} `unavailable`, with the host in its message.
 */
export async function fetchJson(
  get: HttpGet,
  url: URL,
  limits: DownloadLimits,
  signal: AbortSignal,
): Promise<unknown> {
  const decoder = new TextDecoder();
  let text = "";
  const onChunk = (chunk: Uint8Array) => {
    text += decoder.decode(chunk, { stream: true });
    return Promise.resolve();
  };
  try {
    await download(get, { url, validators: {}, signal, limits, onChunk });
  } catch (error) {
    throw new SvcError("unavailable", `${url.host}: ${messageOf(error)}`, { cause: error });
  }
  try {
    return JSON.parse(text + decoder.decode());
  } catch (error) {
    throw new SvcError("unavailable", `${url.host}: the answer is no JSON`, { cause: error });
  }
}
