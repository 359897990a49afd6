/** The query log as a page shows it: searched in pages, and followed as it comes. */
import { computed, signal } from "@preact/signals";
import { ApiError, get } from "./api.ts";
import { pause, readEvents } from "./stream.ts";
import type { Entry, EntryPage } from "./types.ts";

/** Entries that a page of the log has; older ones are asked for when they come in sight. */
const PAGE_ENTRIES = 200;
/** Most entries that are kept while the log runs. */
export const RING_MAX = 5_000;
const BATCH_MS = 100;
/** How often the log is read where no stream is to be had. */
const POLL_MS = 3_000;
const AGAIN_MS_MAX = 30_000;

export type LogFilter = Readonly<Record<string, string | null>>;

/** How the running log comes. */
export type Way = "off" | "opening" | "stream" | "poll";

/** One key an entry: it may come by the stream and by a search. */
export function keyOf({ id }: Entry): string {
  return id;
}

/** Doubles are of the last moments: what was asked for lately is looked through, not all of it. */
function knownOf(entries: readonly Entry[]): Set<string> {
  return new Set(entries.slice(0, 2 * PAGE_ENTRIES).map(keyOf));
}

export class Log {
  readonly entries = signal<readonly Entry[]>([]);
  readonly next = signal<string | null>(null);
  readonly isLoading = signal(false);
  readonly error = signal<unknown>(null);
  readonly way = signal<Way>("off");
  /** Entries that came and wait, for somebody is reading. */
  readonly waiting = signal<readonly Entry[]>([]);
  readonly skipped = signal(0);
  readonly isHeld = signal(false);
  readonly isEmpty = computed(() =>
    !this.isLoading.value && this.error.value === null && this.entries.value.length === 0
  );
  #filter: LogFilter = {};
  #search: AbortController | null = null;
  #watch: AbortController | null = null;
  #batch: Entry[] = [];
  /** Where to go on below what waits: more came than was read, and what is shown is too old. */
  #hole: string | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Searches anew; a search under way is given up. */
  async load(filter: LogFilter): Promise<void> {
    this.#search?.abort();
    const { signal: aborted } = this.#search = new AbortController();
    this.#filter = filter;
    this.isLoading.value = true;
    this.error.value = null;
    try {
      const page = await get<EntryPage>("querylog", { ...filter, limit: PAGE_ENTRIES }, aborted);
      if (aborted.aborted) return;
      this.entries.value = page.entries;
      this.next.value = page.next;
      this.waiting.value = [];
      this.#hole = null;
    } catch (error) {
      if (aborted.aborted) return;
      this.error.value = error;
      this.entries.value = [];
      this.next.value = null;
    }
    this.isLoading.value = false;
  }

  /** Goes on with older entries. */
  async more(): Promise<void> {
    if (this.isLoading.value || this.next.value === null) return;
    const { signal: aborted } = this.#search = new AbortController();
    this.isLoading.value = true;
    try {
      const params = { ...this.#filter, limit: PAGE_ENTRIES, next: this.next.value };
      const page = await get<EntryPage>("querylog", params, aborted);
      if (aborted.aborted) return;
      this.entries.value = [...this.entries.value, ...page.entries];
      this.next.value = page.next;
    } catch (error) {
      if (aborted.aborted) return;
      this.error.value = error;
    }
    this.isLoading.value = false;
  }

  /** Follows what passes the filter, in a visible page, until `stop`. */
  follow(filter: LogFilter): void {
    this.stop();
    const aborter = this.#watch = new AbortController();
    void this.#follow(filter, aborter.signal);
  }

  stop(): void {
    this.#watch?.abort();
    this.#watch = null;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#batch = [];
    this.way.value = "off";
  }

  close(): void {
    this.stop();
    this.#search?.abort();
  }

  /** Shows what has waited. */
  release(): void {
    const waited = this.waiting.value;
    this.waiting.value = [];
    if (this.#hole !== null) {
      this.entries.value = [];
      this.next.value = this.#hole;
      this.#hole = null;
    }
    this.#show(waited);
  }

  async #follow(filter: LogFilter, aborted: AbortSignal): Promise<void> {
    let againMs = 1_000;
    this.way.value = "opening";
    while (!aborted.aborted) {
      try {
        await readEvents("querylog/stream", filter, aborted, () => {
          this.way.value = "stream";
          againMs = 1_000;
          void this.#catchUp(filter, aborted);
        }, ({ event, data, id }) => {
          if (event === "skipped") this.skipped.value += Number(data);
          else this.#take({ ...JSON.parse(data), ...(id !== null && { id }) });
        });
      } catch (error) {
        if (aborted.aborted) return;
        if (error instanceof ApiError && error.status === 503) {
          this.way.value = "poll";
          await this.#catchUp(filter, aborted);
          await pause(POLL_MS, aborted);
          continue;
        }
      }
      if (aborted.aborted) return;
      this.way.value = "opening";
      await pause(againMs, aborted);
      againMs = Math.min(2 * againMs, AGAIN_MS_MAX);
    }
  }

  /** Reads what came since the newest that is here; doubles are dropped when it is shown. */
  async #catchUp(filter: LogFilter, aborted: AbortSignal): Promise<void> {
    const newest = (this.waiting.value[0] ?? this.entries.value[0])?.time ?? null;
    const since = newest ?? filter.since ?? null;
    try {
      const page = await get<EntryPage>(
        "querylog",
        { ...filter, since, limit: PAGE_ENTRIES },
        aborted,
      );
      if (newest !== null && page.next !== null) {
        // Shown above the others, it would look as if nothing was between.
        this.waiting.value = page.entries;
        this.#hole = page.next;
        if (!this.isHeld.value) this.release();
        return;
      }
      for (const entry of page.entries.toReversed()) this.#take(entry);
    } catch {
      // The stream goes on, or the next try says why not.
    }
  }

  #take(entry: Entry): void {
    this.#batch.push(entry);
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      const batch = this.#batch.reverse();
      this.#batch = [];
      if (!this.isHeld.value) return this.#show(batch);
      // What is shown already does not wait.
      const known = knownOf(this.entries.value);
      const fresh = batch.filter((entry) => !known.has(keyOf(entry)));
      this.waiting.value = this.#joined(fresh, this.waiting.value);
    }, BATCH_MS);
  }

  #show(entries: readonly Entry[]): void {
    if (entries.length === 0) return;
    const shown = this.#joined(entries, this.entries.value);
    if (shown.length === RING_MAX) this.next.value = null; // What is older was let go.
    this.entries.value = shown;
  }

  /** The newer before the others, each once; what is too old goes. */
  #joined(newer: readonly Entry[], older: readonly Entry[]): Entry[] {
    const known = knownOf(older);
    const fresh = newer.filter((entry) => {
      const key = keyOf(entry);
      return !known.has(key) && known.add(key);
    });
    return [...fresh, ...older].slice(0, RING_MAX);
  }
}
