import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Correction } from "../clock/mod.ts";
import { pragma } from "./database.ts";
import { DICTIONARIES, Dictionary } from "./dictionary.ts";
import type { StoredEntry, TakenEntry } from "./entry.ts";
import {
  IDS_PER_MS,
  SEGMENT_ENTRIES,
  type SegmentEntry,
  type SegmentHead,
  SegmentWriter,
} from "./segment.ts";
import type { Opened, Segments, StoredLog } from "./segments.ts";

/**
 * A segment is put together with what comes as long as it has at most this many times as many
 * entries: each entry is written some few times, and of short segments there are few.
 */
const MERGE_FACTOR = 2;
/** How much of the log, and of its time, is one epoch: what is gone is swept by the epoch. */
const EPOCH_PARTS = 8;
const EPOCH_ENTRIES_MIN = 1_000;
/** Work of one step: segments removed, rows of dictionaries looked at, pages given back. */
const TRIM_SEGMENTS_MAX = 8;
const SWEEP_ROWS_MAX = 1_000;
const VACUUM_PAGES_MAX = 256;
/** What is removed of a segment is cut off once it is this part of it, or after this time. */
const CUT_PART = 1 / 8;
const CUT_MS = 3_600_000;
/** Free pages are used again; more than this, and an eighth of the file, go back to the system. */
const FREE_PAGES_MAX = 1_024;
const FREE_PART_MAX = 1 / 8;

export interface EntriesOptions {
  readonly maxEntries: number;
  readonly retentionMs: number;
}

/** The entry that a correction moved last: its former number, and its new one. */
export interface Moved {
  readonly from: number;
  readonly to: number;
}

/** Of entries of which nothing but the texts is known. */
const NO_TEXTS = DICTIONARIES.map(() => null);

/** Takes an entry by its number and, in the order of dictionaries, those of its texts. */
type Visit = (
  id: number,
  durationUs: number,
  outcome: number,
  numbers: ArrayLike<number>,
) => void;

/** The stored entries: adds the newest, removes the oldest. The caller has a transaction open. */
export class Entries {
  readonly #db: DatabaseSync;
  readonly #options: EntriesOptions;
  /** In their order. */
  readonly #dictionaries: readonly Dictionary[];
  readonly #segments: Segments;
  readonly #writer = new SegmentWriter();
  /** Of the texts of the entry that is being added. */
  readonly #numbers = new Float64Array(DICTIONARIES.length);
  readonly #version: StatementSync;
  readonly #newestEpoch: StatementSync;
  readonly #oldestEpoch: StatementSync;
  readonly #addEpoch: StatementSync;
  readonly #retire: StatementSync;
  #seenVersion: number;
  #count = 0;
  #lastId = 0;
  #cutAtMs = -Infinity;
  #epoch: number;
  #epochFirstId: number;
  #epochEntries = 0;
  /** Where each sweep is, and whether there is anything to sweep. */
  #sweeping: { at: number; index: number; epoch: number } | null = null;
  #sweptEpoch: number;

  constructor({ db, segments }: StoredLog, options: EntriesOptions) {
    this.#db = db;
    this.#options = options;
    this.#dictionaries = DICTIONARIES.map((name) => new Dictionary(db, name));
    this.#segments = segments;
    this.#version = db.prepare("PRAGMA data_version");
    this.#newestEpoch = db.prepare("SELECT epoch, first FROM epochs ORDER BY epoch DESC LIMIT 1");
    this.#oldestEpoch = db.prepare("SELECT coalesce(min(epoch), 0) AS epoch FROM epochs");
    this.#addEpoch = db.prepare("INSERT INTO epochs VALUES (?, ?)");
    this.#retire = db.prepare(
      "DELETE FROM epochs WHERE epoch < (SELECT max(epoch) FROM epochs WHERE first <= ?)",
    );
    this.#seenVersion = Number(this.#version.get()?.data_version);
    this.#recount();
    const newest = this.#newestEpoch.get();
    this.#epoch = Number(newest?.epoch ?? 0);
    this.#epochFirstId = Number(newest?.first ?? 0);
    const entries = db.prepare("SELECT coalesce(sum(count), 0) AS n FROM segments WHERE last >= ?");
    this.#epochEntries = Number(entries.get(this.#epochFirstId)?.n);
    this.#sweptEpoch = this.#oldest();
  }

  /** Entries there are. */
  get count(): number {
    return this.#count;
  }

  /** The time of the newest one; `null` where there is none. */
  get newestMs(): number | null {
    return this.#lastId === 0 ? null : Math.floor(this.#lastId / IDS_PER_MS);
  }

  /** Adds entries in the order given; returns their numbers. */
  add(entries: readonly (StoredEntry & Partial<TakenEntry>)[]): Float64Array {
    this.#seeOthers();
    this.#resume(entries.length);
    const ids = new Float64Array(entries.length);
    const numbers = this.#numbers;
    const [names, clients, kinds, rules, answers] = this.#dictionaries;
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i];
      const id = Math.max(Math.floor(entry.timeMs) * IDS_PER_MS, this.#lastId + 1);
      const epoch = this.#epochFor(id);
      const { texts = NO_TEXTS } = entry;
      numbers[0] = names.idOf(entry.name, epoch, texts[0]);
      numbers[1] = clients.idOf(entry.client, epoch, texts[1]);
      numbers[2] = kinds.idOf(entry.kind, epoch, texts[2]);
      numbers[3] = entry.rule === "" ? 0 : rules.idOf(entry.rule, epoch, texts[3]);
      numbers[4] = entry.answers === "" ? 0 : answers.idOf(entry.answers, epoch, texts[4]);
      this.#put(id, entry.durationUs, entry.outcome, numbers);
      ids[i] = id;
      this.#lastId = id;
      this.#count++;
      this.#epochEntries++;
    }
    this.#flush();
    return ids;
  }

  /** Takes the newest segments up again that what comes is to be put together with. */
  #resume(coming: number): void {
    const taken: SegmentHead[] = [];
    let count = coming;
    for (let end = Number.MAX_SAFE_INTEGER;;) {
      const segment = this.#segments.at(end - 1);
      if (segment === null || segment.count > MERGE_FACTOR * count) break;
      const sum = taken.reduce((all, one) => all + one.count, segment.count);
      if (sum >= SEGMENT_ENTRIES) break;
      taken.push(segment);
      count += segment.count;
      end = segment.first;
    }
    for (const segment of taken.reverse()) {
      this.#each(this.#segments.open(segment), this.#put);
      this.#segments.remove(segment);
    }
  }

  readonly #put: Visit = (id, durationUs, outcome, numbers) => {
    if (!this.#writer.takes(id)) this.#flush();
    this.#writer.add(id, durationUs, outcome, numbers);
  };

  #flush(): void {
    if (this.#writer.count > 0) this.#segments.insert(this.#writer.take());
  }

  /** Visits what is there of a segment, the oldest first; `numbers` are filled anew for each. */
  #each({ columns, lists }: Opened, visit: Visit): void {
    const texts = DICTIONARIES.map((name) => ({ places: columns.places(name), list: lists[name] }));
    const { ids, durations, outcomes, count } = columns;
    const numbers = this.#numbers;
    for (let i = columns.indexOf(this.#segments.floor); i < count; i++) {
      for (let n = 0; n < texts.length; n++) numbers[n] = texts[n].list[texts[n].places[i]];
      visit(ids[i], durations[i], outcomes[i], numbers);
    }
  }

  /**
   * Removes a step's worth of what is too old or too many; says whether there is more to do. `null`:
   * nothing is too old, as nobody knows the time.
   */
  trim(nowMs: number | null): boolean {
    this.#seeOthers();
    const { retentionMs } = this.#options;
    const wasThere = this.#count > 0;
    let isMore = this.#takeOld();
    const expiredId = Math.max(0, (nowMs ?? 0) - retentionMs) * IDS_PER_MS;
    isMore = this.#removeOldest(expiredId, nowMs ?? 0) || isMore;
    // Of an empty log nothing is to be left, however few will come.
    if (wasThere && this.#count === 0) this.#beginEpoch(this.#lastId + 1);
    this.#retireEpochs();
    return this.#sweep() || isMore;
  }

  /** Removes a step's worth of the oldest entries; says whether there is more to do. */
  #removeOldest(expiredId: number, nowMs: number): boolean {
    for (let i = 0; i < TRIM_SEGMENTS_MAX; i++) {
      const { floor } = this.#segments;
      const excess = this.#count - this.#options.maxEntries;
      const oldest = this.#segments.from(floor);
      if (oldest === null) return false;
      // A clock that was set leaves nothing in the file for longer.
      const isCutDue = Math.abs(nowMs - this.#cutAtMs) >= CUT_MS;
      const isSome = excess > 0 || Math.max(oldest.first, floor) < expiredId;
      if (!isSome && !(isCutDue && oldest.first < floor)) return false;
      const opened = this.#segments.open(oldest);
      const { columns } = opened;
      const start = columns.indexOf(floor);
      const stop = Math.min(
        columns.count,
        Math.max(columns.indexOf(expiredId), start + Math.max(0, excess)),
      );
      this.#count -= stop - start;
      if (stop === columns.count) {
        this.#segments.remove(oldest);
        continue;
      }
      this.#segments.floor = columns.ids[stop];
      if (stop >= CUT_PART * columns.count || isCutDue) {
        this.#cut(oldest, opened);
        this.#cutAtMs = nowMs;
      }
      return false;
    }
    return true;
  }

  /** Takes what lies before the floor out of the file. */
  #cut(segment: SegmentHead, opened: Opened): void {
    this.#each(opened, this.#put);
    this.#segments.remove(segment);
    this.#flush();
  }

  /** Says whether there is something that an earlier program wrote and nobody finds yet. */
  get isPartial(): boolean {
    return this.#segments.old.newest() > 0;
  }

  /** Moves a step's worth of what an earlier program wrote to where entries are now. */
  #takeOld(): boolean {
    const taken = this.#segments.old.take(SEGMENT_ENTRIES);
    const { floor } = this.#segments;
    const isFull = this.#count >= this.#options.maxEntries;
    const rows = isFull ? [] : taken.filter(({ id }) => id >= floor); // What is below is removed.
    if (rows.length > 0) {
      this.#merge(rows);
      this.#count += rows.length;
    }
    return taken.length > 0;
  }

  /** Puts rows where they belong, among what is there of their time. */
  #merge(rows: readonly SegmentEntry[]): void {
    let all = [...rows];
    let [first, last] = [all[0].id, all[all.length - 1].id];
    for (;;) {
      const segment = this.#segments.from(first);
      if (segment === null || segment.first > last) break;
      this.#each(this.#segments.open(segment), (id, durationUs, outcome, numbers) => {
        all.push({ id, durationUs, outcome, numbers: Float64Array.from(numbers) });
      });
      this.#segments.remove(segment);
      all.sort((a, b) => a.id - b.id);
      // None has the number of another.
      let before = -1;
      all = all.map((row) => ({ ...row, id: before = Math.max(row.id, before + 1) }));
      [first, last] = [all[0].id, before];
    }
    for (const { id, durationUs, outcome, numbers } of all) {
      this.#put(id, durationUs, outcome, numbers);
    }
    this.#flush();
    this.#lastId = Math.max(this.#lastId, last);
  }

  /**
   * Moves a step's worth of the entries that a correction is about, from where `last` was returned;
   * returns `null` when it is done. Their order stays, and none is added or removed meanwhile.
   */
  move({ fromMs, shiftMs }: Correction, last: Moved | null): Moved | null {
    const fromId = Math.floor(fromMs) * IDS_PER_MS;
    const shift = Math.round(shiftMs) * IDS_PER_MS;
    if (last === null) {
      while (this.#takeOld());
      this.#dropFloor();
    }
    const isLater = shift > 0;
    const { from, to } = last ??
      (isLater
        ? { from: Number.MAX_SAFE_INTEGER, to: 0 }
        : { from: fromId - 1, to: this.#newestBefore(fromId) });
    // Away from those that are yet to be moved, so that none meets another.
    const segment = isLater ? this.#segments.at(from - 1) : this.#segments.from(from + 1);
    if (segment !== null && segment.last >= fromId) {
      let before = to;
      const opened = this.#segments.open(segment);
      this.#segments.remove(segment);
      this.#each(opened, (id, ...rest) => {
        if (id >= fromId) before = isLater ? id + shift : Math.max(id + shift, before + 1);
        this.#put(id < fromId ? id : before, ...rest);
      });
      this.#flush();
      return { from: isLater ? segment.first : segment.last, to: before };
    }
    this.#recount();
    // None of these epochs ends before all that was moved is gone.
    this.#db.prepare("UPDATE epochs SET first = ? WHERE first > ?").run(this.#lastId + 1, fromId);
    this.#beginEpoch(this.#lastId + 1);
    return null;
  }

  /** Takes what is removed already out of the file: numbers are about to change. */
  #dropFloor(): void {
    const { floor } = this.#segments;
    const oldest = this.#segments.from(floor);
    if (oldest !== null && oldest.first < floor) {
      this.#cut(oldest, this.#segments.open(oldest));
    }
    this.#segments.floor = 0;
  }

  #newestBefore(id: number): number {
    const segment = this.#segments.at(id - 1);
    if (segment === null || segment.last < id) return segment?.last ?? 0;
    const { columns } = this.#segments.open(segment);
    return columns.ids[columns.indexOf(id) - 1];
  }

  /** Gives a step's worth of free pages back to the system; outside of any transaction. */
  vacuum(): void {
    const free = pragma(this.#db, "freelist_count");
    const most = Math.max(FREE_PAGES_MAX, pragma(this.#db, "page_count") * FREE_PART_MAX);
    if (free <= most) return;
    // Each page is a step of the statement, and `exec` would take only the first.
    this.#db.prepare(`PRAGMA incremental_vacuum(${VACUUM_PAGES_MAX})`).all();
  }

  /** Forgets what an undone transaction, or a table before others wrote to it, told it. */
  undo(): void {
    for (const dictionary of this.#dictionaries) dictionary.forget();
    this.#writer.clear();
    this.#recount();
    this.#sweeping = null;
    const epoch = Number(this.#newestEpoch.get()?.epoch ?? 0);
    // One that was begun and undone is begun again.
    if (epoch < this.#epoch) this.#epochEntries = Infinity;
    this.#epoch = epoch;
  }

  #recount(): void {
    this.#count = this.#segments.count();
    this.#lastId = this.#segments.newest() ?? 0;
  }

  /** Takes note of what another process has written: at an upgrade there are two for a moment. */
  #seeOthers(): void {
    const version = Number(this.#version.get()?.data_version);
    if (version !== this.#seenVersion) this.undo();
    this.#seenVersion = version;
  }

  /** The epoch of an entry; a new one where the present one is full or long. */
  #epochFor(id: number): number {
    const { maxEntries, retentionMs } = this.#options;
    const entriesMax = Math.max(EPOCH_ENTRIES_MIN, Math.floor(maxEntries / EPOCH_PARTS));
    const idsMax = retentionMs / EPOCH_PARTS * IDS_PER_MS;
    const isOver = this.#epochEntries >= entriesMax || id - this.#epochFirstId >= idsMax;
    if (this.#epoch > 0 && !isOver) return this.#epoch;
    return this.#beginEpoch(id);
  }

  #beginEpoch(firstId: number): number {
    this.#epoch++;
    this.#epochFirstId = firstId;
    this.#epochEntries = 0;
    this.#addEpoch.run(this.#epoch, firstId);
    return this.#epoch;
  }

  /** Drops the epochs whose entries are all gone; what only they used can be swept then. */
  #retireEpochs(): void {
    const oldest = this.#segments.old.oldest() ?? this.#segments.oldest() ?? this.#lastId + 1;
    this.#retire.run(oldest);
  }

  /** The oldest epoch that has an entry; 0: there is none. */
  #oldest(): number {
    return Number(this.#oldestEpoch.get()?.epoch);
  }

  /** Looks through a piece of one dictionary for texts that nothing uses; `true` while it goes on. */
  #sweep(): boolean {
    if (this.#sweeping === null) {
      const epoch = this.#oldest();
      if (epoch <= this.#sweptEpoch) return false;
      this.#sweeping = { at: 0, index: 0, epoch };
    }
    const { at, index, epoch } = this.#sweeping;
    const dictionary = this.#dictionaries[index];
    const next = dictionary.sweep(at, SWEEP_ROWS_MAX, epoch);
    if (next > 0) this.#sweeping.at = next;
    else if (index + 1 < DICTIONARIES.length) this.#sweeping = { at: 0, index: index + 1, epoch };
    else {
      this.#sweeping = null;
      this.#sweptEpoch = epoch;
    }
    return true; // Another epoch may have ended meanwhile.
  }
}
