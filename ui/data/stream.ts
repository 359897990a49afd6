/** Server-sent events by `fetch`, which tells status codes and takes a token. */
import { send } from "./api.ts";

export interface ServerEvent {
  readonly event: string;
  readonly data: string;
  readonly id: string | null;
}

/** Longest silence of a stream: the node gives a sign of life each 15 seconds. */
const SILENCE_MS_MAX = 40_000;

/**
 * Hands events on until the stream ends or falls silent.
 *
 * @throws {ApiError} 503, where too many watch.
 */
export async function readEvents(
  path: string,
  params: Readonly<Record<string, string | null>>,
  signal: AbortSignal,
  onOpen: () => void,
  onEvent: (event: ServerEvent) => void,
): Promise<void> {
  const silence = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const isHeard = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silence.abort(), SILENCE_MS_MAX);
  };
  isHeard();
  try {
    const ends = AbortSignal.any([signal, silence.signal]);
    const { body } = await send("GET", path, { params, signal: ends, timeoutMs: null });
    onOpen();
    await readBody(body!, isHeard, onEvent);
  } finally {
    clearTimeout(timer);
  }
}

async function readBody(
  body: NonNullable<Response["body"]>,
  isHeard: () => void,
  onEvent: (event: ServerEvent) => void,
): Promise<void> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let kept = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    isHeard();
    const blocks = (kept + value).split("\n\n");
    kept = blocks.pop() ?? "";
    for (const block of blocks) {
      const fields = new Map(
        block.split("\n").map((line): [string, string] => {
          const colon = line.indexOf(":");
          return [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, "")];
        }),
      );
      const data = fields.get("data");
      if (data === undefined) continue; // A sign of life.
      onEvent({ event: fields.get("event") ?? "message", data, id: fields.get("id") ?? null });
    }
  }
}

export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    }, { once: true });
  });
}
