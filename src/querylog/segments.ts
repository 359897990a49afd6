import type { DatabaseSync, StatementSync } from "node:sqlite";
import { invariant } from "../errors.ts";
import { DICTIONARIES, type DictionaryName } from "./dictionary.ts";
import { kindFacts, type StoredEntry } from "./entry.ts";
import { OldEntries } from "./old_entries.ts";
import {
  Columns,
  IDS_PER_MS,
  type Lists,
  type Numbers,
  readList,
  type SegmentHead,
  type SegmentRow,
} from "./segment.ts";

/** A stored entry with its number. */
export interface NumberedEntry extends StoredEntry {
  readonly id: number;
}

/** Gives an entry by its place. */
export type EntryAt = (index: number) => NumberedEntry;

/** A segment with all that belongs to it. */
export interface Opened {
  readonly columns: Columns;
  readonly lists: Lists;
}

/** Entries of one segment that were asked for. Nobody may write before it is opened. */
export interface Part {
  readonly outcomes: number;
  /** The numbers of its texts of a kind: little is read for that. */
  list(name: DictionaryName): Numbers;
  /** Its entries, and which of them were asked for: from, and up to without. */
  open(): Opened & { readonly start: number; readonly stop: number };
}

/**
 * The entries in the file: rows of some thousand, in their order, none over another. Of what lies
 * before the floor nothing is told: it waits to be cut off.
 */
export class Segments {
  /** What is yet to be put into segments. */
  readonly old: OldEntries;
  readonly #at: StatementSync;
  readonly #behind: StatementSync;
  readonly #all: StatementSync;
  /** Of one dictionary each. */
  readonly #lists: readonly StatementSync[];
  readonly #insert: StatementSync;
  readonly #remove: StatementSync;
  readonly #floor: StatementSync;
  readonly #setFloor: StatementSync;
  readonly #sum: StatementSync;

  constructor(db: DatabaseSync) {
    this.old = new OldEntries(db);
    const head = "SELECT first, last, count, outcomes, width FROM segments";
    this.#at = db.prepare(`${head} WHERE first <= ? ORDER BY first DESC LIMIT 1`);
    this.#behind = db.prepare(`${head} WHERE first > ? ORDER BY first LIMIT 1`);
    const lists = DICTIONARIES.join(", ");
    this.#all = db.prepare(`SELECT ${lists}, columns FROM segments WHERE first = ?`);
    this.#lists = DICTIONARIES.map((name) =>
      db.prepare(`SELECT ${name} AS list FROM segments WHERE first = ?`)
    );
    this.#insert = db.prepare(
      `INSERT INTO segments (first, last, count, outcomes, width, ${lists}, columns) ` +
        `VALUES (?, ?, ?, ?, ?, ${DICTIONARIES.map(() => "?").join(", ")}, ?)`,
    );
    this.#remove = db.prepare("DELETE FROM segments WHERE first = ?");
    this.#floor = db.prepare("SELECT id FROM floor");
    this.#setFloor = db.prepare("UPDATE floor SET id = ?");
    this.#sum = db.prepare("SELECT coalesce(sum(count), 0) AS count FROM segments");
  }

  /** Entries from this number on are there. */
  get floor(): number {
    return Number(this.#floor.get()?.id ?? 0);
  }

  set floor(id: number) {
    this.#setFloor.run(id);
  }

  /** How many entries there are. */
  count(): number {
    const { floor } = this;
    const oldest = this.from(floor);
    const hidden = oldest === null || oldest.first >= floor
      ? 0
      : this.open(oldest).columns.indexOf(floor);
    return Number(this.#sum.get()?.count) - hidden;
  }

  /** The newest segment that begins with this number or before. */
  at(id: number): SegmentHead | null {
    return this.#at.get(id) as unknown as SegmentHead ?? null;
  }

  /** The segment with this number, or else the next one. */
  from(id: number): SegmentHead | null {
    const at = this.at(id);
    if (at !== null && at.last >= id) return at;
    return this.#behind.get(id) as unknown as SegmentHead ?? null;
  }

  /** @throws {DamagedSegment} */
  open(segment: SegmentHead): Opened {
    const row = this.#all.get(segment.first) as Record<string, Uint8Array> | undefined;
    invariant(row !== undefined, "a segment is there while it is looked at");
    const lists = Object.fromEntries(
      DICTIONARIES.map((name) => [name, readList(segment, row[name])]),
    ) as Lists;
    return { columns: new Columns(segment, row.columns, lists), lists };
  }

  insert({ first, last, count, outcomes, width, lists, columns }: SegmentRow): void {
    this.#insert.run(first, last, count, outcomes, width, ...lists, columns);
  }

  remove({ first }: SegmentHead): void {
    this.#remove.run(first);
  }

  /** The number of the oldest entry; `null` where there is none. */
  oldest(): number | null {
    return this.next(0);
  }

  /** The number of the newest one, also where all are removed. */
  newest(): number | null {
    const newest = Math.max(this.at(Number.MAX_SAFE_INTEGER)?.last ?? 0, this.old.newest());
    return newest === 0 ? null : newest;
  }

  /** The number of the first entry from `id` on; `null` where there is none. */
  next(id: number): number | null {
    const from = Math.max(id, this.floor);
    const segment = this.from(from);
    if (segment === null || segment.first >= from) return segment?.first ?? null;
    const { ids } = this.open(segment).columns;
    return ids.find((one) => one >= from) ?? null;
  }

  /** Entries from a number up to another without it, the newest part first; others may write between. */
  *newestFirst(from: number, end: number): Generator<Part> {
    const start = Math.max(from, this.floor);
    for (let at = end; at > start;) {
      const segment = this.at(at - 1);
      if (segment === null || segment.last < start) return;
      yield this.#part(segment, start, at);
      at = segment.first;
    }
  }

  /** The same, the oldest part first. */
  *oldestFirst(from: number, end: number): Generator<Part> {
    for (let at = Math.max(from, this.floor); at < end;) {
      const segment = this.from(at);
      if (segment === null || segment.first >= end) return;
      yield this.#part(segment, at, end);
      at = segment.last + 1;
    }
  }

  #part(segment: SegmentHead, from: number, end: number): Part {
    return {
      outcomes: segment.outcomes,
      list: (name) => {
        const row = this.#lists[DICTIONARIES.indexOf(name)].get(segment.first);
        invariant(row !== undefined, "a segment is there while it is looked at");
        return readList(segment, row.list as Uint8Array);
      },
      open: () => {
        const opened = this.open(segment);
        const { columns } = opened;
        return { ...opened, start: columns.indexOf(from), stop: columns.indexOf(end) };
      },
    };
  }
}

/** The entries in the file, and who reads them. */
export interface StoredLog {
  readonly db: DatabaseSync;
  readonly segments: Segments;
  readonly reader: EntryReader;
}

export function storedLog(db: DatabaseSync): StoredLog {
  return { db, segments: new Segments(db), reader: new EntryReader(db) };
}

/** Reads the texts of entries; what it has read of one part serves for all of that. */
export class EntryReader {
  readonly #find: Record<DictionaryName, StatementSync>;

  constructor(db: DatabaseSync) {
    const find = (name: DictionaryName) => db.prepare(`SELECT text FROM ${name} WHERE id = ?`);
    this.#find = Object.fromEntries(
      DICTIONARIES.map((name) => [name, find(name)]),
    ) as Record<DictionaryName, StatementSync>;
  }

  /** The text with a number, "" for 0. */
  text(name: DictionaryName, number: number): string {
    return number === 0 ? "" : String(this.#find[name].get(number)?.text ?? "");
  }

  /** Those entries of a part that are counted, the oldest first, without their answers. */
  *counted(part: Part): Generator<NumberedEntry> {
    const opened = part.open();
    const { start, stop } = opened;
    const entryAt = this.of(opened, false);
    for (let i = start; i < stop; i++) {
      const entry = entryAt(i);
      if (kindFacts(entry.kind).isCounted) yield entry;
    }
  }

  /** Gives entries of a segment by their place in it. */
  of({ lists, columns }: Opened, hasAnswers: boolean): EntryAt {
    const textsOf = (name: DictionaryName) => {
      const places = columns.places(name);
      const texts: (string | undefined)[] = [];
      return (index: number) =>
        texts[places[index]] ??= this.text(name, lists[name][places[index]]);
    };
    const [names, clients, kinds, rules, answers] = DICTIONARIES.map(textsOf);
    return (index) => ({
      id: columns.ids[index],
      timeMs: Math.floor(columns.ids[index] / IDS_PER_MS),
      durationUs: columns.durations[index],
      outcome: columns.outcomes[index],
      name: names(index),
      client: clients(index),
      kind: kinds(index),
      rule: rules(index),
      answers: hasAnswers ? answers(index) : "",
    });
  }
}
