import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Correction } from "../clock/mod.ts";
import { OUTCOME_NAMES } from "../logqueue/mod.ts";
import { clientKey, type StoredEntry } from "./entry.ts";
import type { LocalDays } from "./local_days.ts";
import { addRow, countEntry, countOf, LATENCY_AT, type MinuteRow, noCounts } from "./minutes.ts";
import { IDS_PER_MS } from "./segment.ts";
import type { StoredLog } from "./segments.ts";
import { addTo, entryOf } from "./statistics.ts";
import { keepMost, type Sharers } from "./sharers.ts";
import { type TopRow, TopSketch } from "./top_sketch.ts";

/** A year by day, the present day among them. */
export const DAYS_KEPT = 366;
/** Clients of a day that are told apart: those that ask most. */
const CLIENTS_MAX = 200;
/** Days that stay in memory: the present one, and the one whose last queries are still on their way. */
const OPEN_MAX = 2;
const TOP_MAX = 400;
const BLOCKED = OUTCOME_NAMES.indexOf("blocked");
/** The number of no client: its rows are of all queries. */
const ALL = 0;

/** What is counted of one day. */
interface Day {
  readonly all: number[];
  readonly clients: Map<string, number[]>;
  isSaved: boolean;
}

export interface DayCounts {
  readonly series: ReadonlyMap<number, readonly number[]>;
  readonly clients: readonly TopRow[];
  readonly blockedClients: readonly TopRow[];
}

interface Row {
  readonly client: number;
  readonly day: number;
  readonly counts: string;
}

/**
 * Counts by the day, of all and of each client, for a year: numbers alone, no name that anybody asked
 * for. They are there as long as that, whatever becomes of entries.
 */
export class ClientDays {
  readonly #db: DatabaseSync;
  readonly #log: StoredLog;
  readonly #sharers: Sharers;
  readonly #days: LocalDays;
  readonly #isAnonymized: boolean;
  readonly #readDay: StatementSync;
  readonly #read: StatementSync;
  readonly #write: StatementSync;
  readonly #open = new Map<number, Day>();

  constructor(log: StoredLog, sharers: Sharers, days: LocalDays, isAnonymized: boolean) {
    const { db } = log;
    this.#db = db;
    this.#log = log;
    this.#sharers = sharers;
    this.#days = days;
    this.#isAnonymized = isAnonymized;
    this.#readDay = db.prepare("SELECT client, day, counts FROM client_days WHERE day = ?");
    this.#read = db.prepare(
      "SELECT client, day, counts FROM client_days WHERE client = ? AND day BETWEEN ? AND ?",
    );
    this.#write = db.prepare("INSERT OR REPLACE INTO client_days VALUES (?, ?, ?)");
  }

  add(entry: StoredEntry): void {
    const { all, clients } = this.#day(this.#days.dayOf(entry.timeMs));
    const own = entryOf(clients, entry.client, noCounts);
    countEntry(entry, all, null);
    countEntry(entry, own, null);
    keepMost(clients, CLIENTS_MAX, countOf);
  }

  /** Counts queries of which nothing is known but the outcome. */
  addDropped(dropped: readonly number[], nowMs: number): void {
    if (dropped.every((count) => count === 0)) return;
    addTo(this.#day(this.#days.dayOf(nowMs)).all, dropped.slice(0, LATENCY_AT));
  }

  #day(day: number): Day {
    let found = this.#open.get(day);
    if (found === undefined) this.#open.set(day, found = this.#load(day));
    found.isSaved = false;
    return found;
  }

  #load(day: number): Day {
    const loaded = newDay();
    for (const { client, counts } of this.#readDay.all(day) as unknown as Row[]) {
      if (client === ALL) addRow(loaded.all, rowOf(counts));
      else loaded.clients.set(this.#sharers.textOf(client), countsOf(counts));
    }
    return loaded;
  }

  /** Writes what was counted, and forgets what is past a year; `null`: nothing is. */
  save(nowMs: number | null): void {
    for (const [day, found] of this.#open) this.#saveDay(day, found);
    const days = [...this.#open.keys()].sort((a, b) => b - a);
    for (const day of days.slice(OPEN_MAX)) this.#open.delete(day);
    if (nowMs === null) return;
    this.#db.prepare("DELETE FROM client_days WHERE day <= ?")
      .run(this.#days.dayOf(nowMs) - DAYS_KEPT);
  }

  #saveDay(day: number, found: Day): void {
    if (found.isSaved) return;
    keepMost(found.clients, CLIENTS_MAX, countOf);
    this.#write.run(ALL, day, textOf(found.all));
    for (const [text, counts] of found.clients) {
      this.#write.run(this.#sharers.idOf(text), day, textOf(counts));
    }
    found.isSaved = true;
  }

  /** Counts of some days: of all, or of the clients that pass; and who asked most of these. */
  find(first: number, last: number, test: ((client: string) => boolean) | null): DayCounts {
    const series = new Map<number, number[]>();
    const [clients, blocked] = [new TopSketch(TOP_MAX), new TopSketch(TOP_MAX)];
    const add = (day: number, client: string | null, counts: readonly number[]) => {
      if (client === null || test !== null) {
        const sums = series.get(day) ?? noCounts();
        addTo(sums, counts);
        series.set(day, sums);
      }
      const key = client === null ? "" : clientKey(client, this.#isAnonymized);
      if (key === "") return;
      clients.add(key, countOf(counts));
      if (counts[BLOCKED] > 0) blocked.add(key, counts[BLOCKED]);
    };
    const sharers = this.#sharers.matching(test ?? (() => true));
    const read = (id: number, text: string | null) => {
      for (const { day, counts } of this.#read.all(id, first, last) as unknown as Row[]) {
        if (!this.#open.has(day)) add(day, text, countsOf(counts));
      }
    };
    if (test === null) read(ALL, null);
    for (const { id, text } of sharers) read(id, text);
    for (const [day, { all, clients: own }] of this.#open) {
      if (day < first || day > last) continue;
      if (test === null) add(day, null, all);
      for (const [text, counts] of own) if (test === null || test(text)) add(day, text, counts);
    }
    return { series, clients: clients.top(TOP_MAX), blockedClients: blocked.top(TOP_MAX) };
  }

  /** Moves what was counted in the days that a correction is about, before its entries are moved. */
  move({ fromMs, shiftMs }: Correction): void {
    for (const [day, found] of this.#open) this.#saveDay(day, found);
    this.#open.clear();
    const from = this.#days.dayOf(fromMs);
    const shift = this.#days.dayOf(fromMs + shiftMs) - from;
    if (shift === 0) return;
    // A day that time went on from has counts from before; one that lies ahead has none.
    const first = from + (shift > 0 ? 1 : 0);
    const rows = this.#db.prepare("SELECT client, day, counts FROM client_days WHERE day >= ?")
      .all(first) as unknown as Row[];
    this.#db.prepare("DELETE FROM client_days WHERE day >= ?").run(first);
    for (const { client, day, counts } of rows) this.#addTo(client, day + shift, countsOf(counts));
    if (shift > 0) this.#moveWithin(from, { fromMs, shiftMs });
  }

  /** Moves what the log still has of a part of a day. */
  #moveWithin(day: number, { fromMs, shiftMs }: Correction): void {
    const [start, end] = [fromMs, this.#days.startMs(day + 1)].map((timeMs) =>
      Math.floor(timeMs) * IDS_PER_MS
    );
    const moved = new Map<number, Day>();
    for (const part of this.#log.segments.oldestFirst(start, end)) {
      for (const entry of this.#log.reader.counted(part)) {
        const to = this.#days.dayOf(entry.timeMs + shiftMs);
        if (to === day) continue;
        const { all, clients } = entryOf(moved, to, newDay);
        const own = entryOf(clients, entry.client, noCounts);
        for (const counts of [all, own]) countEntry(entry, counts, null);
      }
    }
    for (const [to, { all, clients }] of moved) {
      const move = (client: number, counts: readonly number[]) => {
        this.#addTo(client, day, counts.map((one) => -one));
        this.#addTo(client, to, counts);
      };
      move(ALL, all);
      for (const [text, counts] of clients) move(this.#sharers.idOf(text), counts);
    }
  }

  #addTo(client: number, day: number, counts: readonly number[]): void {
    const [known] = this.#read.all(client, day, day) as unknown as Row[];
    const sums = known === undefined ? noCounts() : countsOf(known.counts);
    addTo(sums, counts);
    // Of a client that was not told apart there is nothing to take.
    this.#write.run(client, day, textOf(sums.map((count) => Math.max(0, count))));
  }

  /** Has everything in memory written again: a transaction was undone. */
  undo(): void {
    for (const day of this.#open.values()) day.isSaved = false;
  }
}

function newDay(): Day {
  return { all: noCounts(), clients: new Map(), isSaved: true };
}

/** What is not 0 of some counts, as pairs of a place and the count behind a number of no meaning. */
function textOf(counts: readonly number[]): string {
  return JSON.stringify([0, ...counts.flatMap((count, at) => count > 0 ? [at, count] : [])]);
}

function rowOf(text: string): MinuteRow {
  return JSON.parse(text);
}

function countsOf(text: string): number[] {
  const counts = noCounts();
  addRow(counts, rowOf(text));
  return counts;
}
