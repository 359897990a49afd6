import { Conditions, type EntryTest } from "./conditions.ts";
import { type LogEntry, type LogFilter, showEntry } from "./entry.ts";
import { IDS_PER_MS } from "./segment.ts";
import type { EntryAt, EntryReader, Opened, Segments, StoredLog } from "./segments.ts";

/** Segments that are looked at in one piece of work: some milliseconds. */
const SEGMENTS_MAX = 64;
/** Most entries whose names are counted. */
const GROUPED_MAX = 100_000;

export interface LogPage {
  /** Newest first. */
  readonly entries: readonly LogEntry[];
  /** Where the next page starts; `null` where there is none. */
  readonly next: number | null;
}

/** Entries by their name. */
export interface NamePage {
  readonly names: readonly NameCount[];
  readonly next: number | null;
}

/** A name, how many entries it has, and the times of the first and the last of them. */
export interface NameCount {
  readonly name: string;
  readonly count: number;
  readonly first: string;
  readonly last: string;
}

interface Found {
  readonly opened: Opened;
  readonly index: number;
}

/** Finds entries, newest first; in pieces of work, between which others have their turn. */
export class LogSearch {
  readonly #segments: Segments;
  readonly #reader: EntryReader;
  readonly #conditions: Conditions;

  /** `isAnonymized` says that the log has but the start of each address. */
  constructor({ db, segments, reader }: StoredLog, isAnonymized: boolean) {
    this.#segments = segments;
    this.#reader = reader;
    this.#conditions = new Conditions(db, reader, isAnonymized);
  }

  /** The newest `limit` entries that pass, of those before the number `before`. */
  *find(
    filter: LogFilter,
    limit: number,
    before: number | null,
  ): Generator<undefined, LogPage> {
    const entries: LogEntry[] = [];
    let reading = null as { readonly opened: Opened; readonly entry: EntryAt } | null;
    for (const found of this.#passing(filter, before)) {
      if (found === null) {
        yield undefined;
        continue;
      }
      const { opened, index } = found;
      if (entries.length === limit) return { entries, next: entries[limit - 1].id };
      if (reading?.opened !== opened) reading = { opened, entry: this.#reader.of(opened, true) };
      const entry = reading.entry(index);
      entries.push({ id: entry.id, ...showEntry(entry) });
    }
    return { entries, next: null };
  }

  /**
   * The names of the newest entries that pass, 100,000 of them at most, each with how often it is
   * there; the one that was asked for last comes first. `before` is a number of the former page.
   */
  *names(
    filter: LogFilter,
    limit: number,
    before: number | null,
  ): Generator<undefined, NamePage> {
    // In the order of each one's newest entry, which is met first.
    const found = new Map<number, { count: number; first: number; readonly last: number }>();
    let looked = 0;
    for (const entry of this.#passing(filter, null)) {
      if (entry === null) {
        yield undefined;
        continue;
      }
      const { opened: { columns, lists }, index } = entry;
      if (looked++ === GROUPED_MAX) break;
      const name = lists.names[columns.places("names")[index]];
      const id = columns.ids[index];
      const known = found.get(name);
      if (known === undefined) found.set(name, { count: 1, first: id, last: id });
      else [known.count, known.first] = [known.count + 1, id];
    }
    const rest = [...found].filter(([, { last }]) => before === null || last < before);
    const page = rest.slice(0, limit);
    return {
      names: page.map(([name, { count, first, last }]) => ({
        name: this.#reader.text("names", name),
        count,
        first: timeOf(first),
        last: timeOf(last),
      })),
      next: rest.length > limit ? page[page.length - 1][1].last : null,
    };
  }

  /** The entries that pass, newest first; `null` now and then, for others to have their turn. */
  *#passing(filter: LogFilter, before: number | null): Generator<Found | null> {
    const wanted = this.#conditions.of(filter);
    if (wanted === null) return;
    const [from, end] = rangeOf(filter, before);
    let looked = 0;
    for (const part of this.#segments.newestFirst(from, end)) {
      if (++looked % SEGMENTS_MAX === 0) yield null;
      const passes = wanted.in(part);
      if (passes === null) continue;
      const opened = part.open();
      const { columns, start, stop } = opened;
      const test: EntryTest = passes(columns);
      for (let index = stop - 1; index >= start; index--) {
        if (test(index)) yield { opened, index };
      }
    }
  }
}

/** The numbers of entries that the filter's times and numbers let pass: from, and up to without. */
function rangeOf(
  { sinceMs = -1, untilMs = Infinity, afterId = -1 }: LogFilter,
  before: number | null,
): readonly [number, number] {
  const from = Math.max(0, (Math.floor(sinceMs) + 1) * IDS_PER_MS, afterId + 1);
  const end = Math.min(
    before ?? Number.MAX_SAFE_INTEGER,
    Math.max(0, Math.ceil(untilMs)) * IDS_PER_MS,
    Number.MAX_SAFE_INTEGER,
  );
  return [from, end];
}

export function timeOf(id: number): string {
  return new Date(Math.floor(id / IDS_PER_MS)).toISOString();
}
