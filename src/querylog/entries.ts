import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Correction } from "../clock/mod.ts";
import { pragma } from "./database.ts";
import { DICTIONARIES, Dictionary, type DictionaryName } from "./dictionary.ts";
import type { StoredEntry } from "./entry.ts";

/** An entry's number is its time in milliseconds, times this, and its place within that time. */
export const IDS_PER_MS = 1_024;
/** How much of the log, and of its time, is one epoch: what is gone is swept by the epoch. */
const EPOCH_PARTS = 16;
const EPOCH_ENTRIES_MIN = 1_000;
/** Work of one step: entries removed, rows of dictionaries looked at, pages given back. */
const TRIM_ENTRIES_MAX = 1_000;
const MOVED_ENTRIES_MAX = 1_000;
const SWEEP_ROWS_MAX = 1_000;
const VACUUM_PAGES_MAX = 256;
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

/** The stored entries: adds the newest, removes the oldest. The caller has a transaction open. */
export class Entries {
  readonly #db: DatabaseSync;
  readonly #options: EntriesOptions;
  readonly #dictionaries: Record<DictionaryName, Dictionary>;
  readonly #insert: StatementSync;
  readonly #removeOldest: StatementSync;
  readonly #oldest: StatementSync;
  readonly #idsBefore: StatementSync;
  readonly #idsBehind: StatementSync;
  readonly #move: StatementSync;
  readonly #version: StatementSync;
  #seenVersion: number;
  #count: number;
  #lastId: number;
  #epoch: number;
  #epochFirstId: number;
  #epochEntries = 0;
  /** Where each sweep is, and whether there is anything to sweep. */
  #sweeping: { at: number; index: number; epoch: number } | null = null;
  #sweptEpoch: number;

  constructor(db: DatabaseSync, options: EntriesOptions) {
    this.#db = db;
    this.#options = options;
    this.#dictionaries = Object.fromEntries(
      DICTIONARIES.map((name) => [name, new Dictionary(db, name)]),
    ) as Record<DictionaryName, Dictionary>;
    this.#insert = db.prepare("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
    this.#removeOldest = db.prepare(
      "DELETE FROM entries WHERE id < ? AND id IN (SELECT id FROM entries ORDER BY id LIMIT ?)",
    );
    this.#oldest = db.prepare("SELECT min(id) AS id FROM entries");
    this.#idsBefore = db.prepare(
      "SELECT id FROM entries WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT ?",
    );
    this.#idsBehind = db.prepare("SELECT id FROM entries WHERE id > ? ORDER BY id LIMIT ?");
    this.#move = db.prepare("UPDATE entries SET id = ? WHERE id = ?");
    this.#version = db.prepare("PRAGMA data_version");
    this.#seenVersion = Number(this.#version.get()?.data_version);
    this.#count = one(db, "SELECT count(*) FROM entries");
    this.#lastId = one(db, "SELECT coalesce(max(id), 0) FROM entries");
    const epoch = db.prepare("SELECT epoch, first FROM epochs ORDER BY epoch DESC LIMIT 1").get() as
      | { epoch: number; first: number }
      | undefined;
    this.#epoch = epoch?.epoch ?? 0;
    this.#epochFirstId = epoch?.first ?? 0;
    this.#epochEntries = one(db, `SELECT count(*) FROM entries WHERE id >= ${this.#epochFirstId}`);
    this.#sweptEpoch = one(db, "SELECT coalesce(min(epoch), 0) FROM epochs");
  }

  /** Entries there are. */
  get count(): number {
    return this.#count;
  }

  /** The time of the newest one; `null` where there is none. */
  get newestMs(): number | null {
    return this.#count === 0 ? null : Math.floor(this.#lastId / IDS_PER_MS);
  }

  /** Adds entries in the order given; returns their numbers. */
  add(entries: readonly StoredEntry[]): number[] {
    this.#seeOthers();
    const ids: number[] = [];
    const { names, clients, kinds, rules, answers } = this.#dictionaries;
    for (const entry of entries) {
      const id = Math.max(Math.floor(entry.timeMs) * IDS_PER_MS, this.#lastId + 1);
      const epoch = this.#epochFor(id);
      this.#insert.run(
        id,
        names.idOf(entry.name, epoch),
        clients.idOf(entry.client, epoch),
        entry.outcome,
        kinds.idOf(entry.kind, epoch),
        entry.rule === "" ? null : rules.idOf(entry.rule, epoch),
        entry.answers === "" ? null : answers.idOf(entry.answers, epoch),
        entry.durationUs,
      );
      ids.push(id);
      this.#lastId = id;
      this.#count++;
      this.#epochEntries++;
    }
    return ids;
  }

  /**
   * Removes a step's worth of what is too old or too many; says whether there is more to do. `null`:
   * nothing is too old, as nobody knows the time.
   */
  trim(nowMs: number | null): boolean {
    const { maxEntries, retentionMs } = this.#options;
    const expiredId = Math.max(0, (nowMs ?? 0) - retentionMs) * IDS_PER_MS;
    const excess = Math.min(this.#count - maxEntries, TRIM_ENTRIES_MAX);
    const changed = excess > 0
      ? this.#removeOldest.run(Number.MAX_SAFE_INTEGER, excess)
      : this.#removeOldest.run(expiredId, TRIM_ENTRIES_MAX);
    const removed = Number(changed.changes);
    this.#count -= removed;
    // Of an empty log nothing is to be left, however few will come.
    if (removed > 0 && this.#count === 0) this.#beginEpoch(this.#lastId + 1);
    this.#retireEpochs();
    const isMore = removed === TRIM_ENTRIES_MAX || this.#count > maxEntries;
    return this.#sweep() || isMore;
  }

  /**
   * Moves a step's worth of the entries that a correction is about, from where `last` was returned;
   * returns `null` when it is done. Their order stays, and none is added or removed meanwhile.
   */
  move({ fromMs, shiftMs }: Correction, last: Moved | null): Moved | null {
    const fromId = Math.floor(fromMs) * IDS_PER_MS;
    const shift = Math.round(shiftMs) * IDS_PER_MS;
    const isLater = shift > 0;
    let { from, to } = last ??
      (isLater
        ? { from: Number.MAX_SAFE_INTEGER, to: 0 }
        : { from: fromId - 1, to: this.#newestBefore(fromId) });
    // Away from those that are yet to be moved, so that none meets another.
    const rows = isLater
      ? this.#idsBefore.all(fromId, from, MOVED_ENTRIES_MAX)
      : this.#idsBehind.all(from, MOVED_ENTRIES_MAX);
    for (const { id } of rows) {
      from = Number(id);
      to = isLater ? from + shift : Math.max(from + shift, to + 1);
      if (to !== from) this.#move.run(to, from);
    }
    if (rows.length === MOVED_ENTRIES_MAX) return { from, to };
    this.#lastId = one(this.#db, "SELECT coalesce(max(id), 0) FROM entries");
    // None of these epochs ends before all that was moved is gone.
    this.#db.prepare("UPDATE epochs SET first = ? WHERE first > ?").run(this.#lastId + 1, fromId);
    this.#beginEpoch(this.#lastId + 1);
    return null;
  }

  #newestBefore(id: number): number {
    return one(this.#db, `SELECT coalesce(max(id), 0) FROM entries WHERE id < ${id}`);
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
    for (const dictionary of Object.values(this.#dictionaries)) dictionary.forget();
    this.#count = one(this.#db, "SELECT count(*) FROM entries");
    this.#lastId = one(this.#db, "SELECT coalesce(max(id), 0) FROM entries");
    this.#sweeping = null;
    const epoch = this.#db.prepare("SELECT coalesce(max(epoch), 0) AS epoch FROM epochs").get();
    // One that was begun and undone is begun again.
    if (Number(epoch?.epoch) < this.#epoch) this.#epochEntries = Infinity;
    this.#epoch = Number(epoch?.epoch);
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
    this.#db.prepare("INSERT INTO epochs VALUES (?, ?)").run(this.#epoch, firstId);
    return this.#epoch;
  }

  /** Drops the epochs whose entries are all gone; what only they used can be swept then. */
  #retireEpochs(): void {
    const oldest = Number(this.#oldest.get()?.id ?? this.#lastId + 1);
    this.#db.prepare(
      "DELETE FROM epochs WHERE epoch < (SELECT max(epoch) FROM epochs WHERE first <= ?)",
    ).run(oldest);
  }

  /** Looks through a piece of one dictionary for texts that nothing uses; `true` while it goes on. */
  #sweep(): boolean {
    if (this.#sweeping === null) {
      const epoch = one(this.#db, "SELECT coalesce(min(epoch), 0) FROM epochs");
      if (epoch <= this.#sweptEpoch) return false;
      this.#sweeping = { at: 0, index: 0, epoch };
    }
    const { at, index, epoch } = this.#sweeping;
    const dictionary = this.#dictionaries[DICTIONARIES[index]];
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

function one(db: DatabaseSync, sql: string): number {
  return Number(Object.values(db.prepare(sql).get() ?? { value: 0 })[0]);
}
