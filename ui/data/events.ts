/** What others change, as the node tells it. */
import { reloadChanged } from "./collections.ts";
import { readStatus } from "./node.ts";
import { pause, readEvents } from "./stream.ts";

const AGAIN_MS = { min: 2_000, max: 60_000 };

/** Follows changes until it is told to stop. */
export function followEvents(): () => void {
  const aborter = new AbortController();
  void follow(aborter.signal);
  return () => aborter.abort();
}

async function follow(signal: AbortSignal): Promise<void> {
  let againMs = AGAIN_MS.min;
  while (!signal.aborted) {
    let isKnown = true; // What a stream begins with is what was just read.
    try {
      await readEvents("events", {}, signal, () => againMs = AGAIN_MS.min, ({ event, data }) => {
        if (event === "status") {
          if (!isKnown) void readStatus();
          isKnown = false;
        } else if (event === "change") reloadChanged(JSON.parse(data).type);
      });
    } catch {
      if (signal.aborted) return;
    }
    await pause(againMs, signal);
    againMs = Math.min(2 * againMs, AGAIN_MS.max);
  }
}
