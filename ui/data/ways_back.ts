/** What was decided from rows of the log, and how it is taken back there. */
import { signal } from "@preact/signals";

/** Rows that offer it; of more, the oldest no longer do. */
const ROWS_MAX = 100;

type WayBack = () => Promise<void>;
const ways = signal<ReadonlyMap<string, WayBack>>(new Map());

/** How what was decided from this entry is taken back; `null`: nothing was. */
export function wayBack(entry: string): WayBack | null {
  return ways.value.get(entry) ?? null;
}

/** Offers it in the row of the entry, and returns it for the message: it is gone once it was used. */
export function offerWayBack(entry: string | null, undo: () => Promise<unknown>): WayBack {
  const back = async () => {
    await undo();
    const others = [...ways.value].filter(([, other]) => other !== back);
    if (others.length < ways.value.size) ways.value = new Map(others);
  };
  if (entry !== null) {
    const others = [...ways.value].filter(([other]) => other !== entry);
    ways.value = new Map([...others, [entry, back] as const].slice(-ROWS_MAX));
  }
  return back;
}
