import { SvcError } from "../errors.ts";

/** Longest event that is read: no entry of the log comes near. */
const EVENT_LENGTH_MAX = 1024 * 1024;

/** A server-sent event. */
export interface ServerEvent {
  readonly event: string;
  readonly data: string;
  readonly id: string | null;
}

/**
 * Hands events on until the stream ends; `onSign` is called for whatever comes.
 *
 * @throws {SvcError} `unavailable`, for an event without an end.
 */
export async function readEvents(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  onEvent: (event: ServerEvent) => void,
  onSign: () => void,
): Promise<void> {
  let kept = "";
  for await (const text of body.pipeThrough(new TextDecoderStream())) {
    onSign();
    const blocks = (kept + text).split("\n\n");
    kept = blocks.pop() ?? "";
    if (kept.length > EVENT_LENGTH_MAX) {
      throw new SvcError("unavailable", `an event is longer than ${EVENT_LENGTH_MAX} characters`);
    }
    for (const block of blocks) {
      const event = readEvent(block);
      if (event !== null) onEvent(event);
    }
  }
}

/** `null` for a sign of life. */
function readEvent(block: string): ServerEvent | null {
  const fields = new Map(
    block.split("\n").map((line): [string, string] => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, "")];
    }),
  );
  const data = fields.get("data");
  if (data === undefined) return null;
  return { event: fields.get("event") ?? "message", data, id: fields.get("id") ?? null };
}
