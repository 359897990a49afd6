import { type LogEntry, type LogFilter, showEntry, type StoredEntry } from "./entry.ts";
import { entryTest } from "./filter.ts";

/** Entries that one watcher is told of at a time; people read no more. */
const ENTRIES_MAX = 200;

/** New entries for one watcher. */
export interface LiveBatch {
  readonly watcher: number;
  readonly entries: readonly LogEntry[];
  /** Entries that passed, and were too many to be told of. */
  readonly skipped: number;
}

/** Tells watchers of entries as they come. */
export class LiveFeed {
  readonly #watchers = new Map<number, (entry: StoredEntry) => boolean>();
  readonly #isAnonymized: boolean;
  readonly #onBatch: (batch: LiveBatch) => void;

  constructor(isAnonymized: boolean, onBatch: (batch: LiveBatch) => void) {
    this.#isAnonymized = isAnonymized;
    this.#onBatch = onBatch;
  }

  get isWatched(): boolean {
    return this.#watchers.size > 0;
  }

  /** Tells a watcher of the entries that pass from now on. */
  watch(watcher: number, filter: LogFilter): void {
    this.#watchers.set(watcher, entryTest(filter, this.#isAnonymized));
  }

  unwatch(watcher: number): void {
    this.#watchers.delete(watcher);
  }

  /** `ids` are the numbers of the entries. */
  push(batch: readonly StoredEntry[], ids: ArrayLike<number>): void {
    for (const [watcher, passes] of this.#watchers) {
      const passed = [...batch.keys()].filter((i) => passes(batch[i]));
      if (passed.length === 0) continue;
      // The newest ones: what came before them is gone from the screen already.
      const shown = passed.slice(-ENTRIES_MAX);
      this.#onBatch({
        watcher,
        entries: shown.map((i) => ({ id: ids[i], ...showEntry(batch[i]) })),
        skipped: passed.length - shown.length,
      });
    }
  }
}
