/** What others change, as the node tells it. */
import { reloadAll, reloadChanged } from "./collections.ts";
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
  let hasMissed = false;
  while (!signal.aborted) {
    let isKnown = !hasMissed; // What the first stream begins with is what was just read.
    const onOpen = () => {
      againMs = AGAIN_MS.min;
      if (hasMissed) void reloadAll(); // Nobody has told what was changed meanwhile.
    };
    try {
      await readEvents("events", {}, signal, onOpen, ({ event, data }) => {
        if (event === "status") {
          if (!isKnown) void readStatus();
          isKnown = false;
        } else if (event === "change") reloadChanged(JSON.parse(data).type);
      });
    } catch {
      if (signal.aborted) return;
    }
    hasMissed = true;
    await pause(againMs, signal);
    againMs = Math.min(2 * againMs, AGAIN_MS.max);
  }
}
