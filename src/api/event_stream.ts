/** Server-sent events, as fast as whoever reads them takes them. */
import type { Streamed } from "./endpoint.ts";

export const EVENT_STREAM = "text/event-stream";

/** A proxy, and the server's own limit, close what is silent for longer. */
const HEARTBEAT_MS = 15_000;
/** A reader has to come again after this, and show again who it is. */
const STREAM_MS_MAX = 3_600_000;

const encoder = new TextEncoder();

export interface EventStreamSource {
  /** The events that wait, as text; empty where none do. */
  readonly take: () => string;
  /** Nobody reads any more. */
  readonly onClose: () => void;
}

/** A stream of events, and what its source tells it. */
export interface EventStream {
  readonly streamed: Streamed;
  /** There is something to take. */
  wake(): void;
  /** Nothing more will come. */
  end(): void;
}

/** Begins a stream; events wait with their source until the reader has taken those before. */
export function eventStream({ take, onClose }: EventStreamSource): EventStream {
  let isOver = false;
  let isClosed = false;
  let isGreeted = false;
  let stir: (() => void) | null = null;
  let heartbeat: ReturnType<typeof setTimeout> | undefined;
  const wake = () => stir?.();
  const end = () => {
    isOver = true;
    wake();
  };
  let life: ReturnType<typeof setTimeout> | undefined;
  const close = () => {
    if (isClosed) return;
    isClosed = true;
    end();
    clearTimeout(heartbeat);
    clearTimeout(life);
    onClose();
  };
  /** Resolves when there is something to send: news, the end, or a sign of life. */
  const something = () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    stir = resolve;
    clearTimeout(heartbeat);
    heartbeat = setTimeout(resolve, HEARTBEAT_MS);
    return promise;
  };
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      life ??= setTimeout(end, STREAM_MS_MAX);
      let text = take();
      // At once: whoever watches knows that it does.
      if (isGreeted && text === "" && !isOver) {
        await something();
        if (isClosed) return; // The reader has left meanwhile.
        text = take();
      }
      isGreeted = true;
      if (isOver && text === "") {
        close();
        return controller.close();
      }
      controller.enqueue(encoder.encode(text === "" ? ":\n\n" : text));
    },
    cancel: close,
  }, { highWaterMark: 0 });
  return { streamed: { type: EVENT_STREAM, body }, wake, end };
}
