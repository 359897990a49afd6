import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Correction } from "../clock/mod.ts";
import { OUTCOME_NAMES } from "../logqueue/mod.ts";
import { clientLabel, type OutcomeName, type StoredEntry } from "./entry.ts";
import { type TopRow, TopSketch } from "./top_sketch.ts";

const HOUR_MS = 3_600_000;
const HOURS_PER_DAY = 24;
/** Counts are kept for 30 days. */
export const HOURS_KEPT = 720;
/** Names that are told apart within an hour, and those kept of an hour and of a day. */
const SKETCH_CAPACITY = 1_000;
const HOUR_ROWS_MAX = 200;
const DAY_ROWS_MAX = 400;
/** Rows of an answer. */
const TOP_ROWS = 100;
/** Hours that stay in memory: the present one, and the one whose last queries are still on their way. */
const TALLIES_MAX = 2;
/** Windows whose closed hours are kept added up. */
const WINDOWS_MAX = 4;

const BLOCKED = OUTCOME_NAMES.indexOf("blocked");
const TOP_KINDS = ["names", "blocked", "clients"] as const;
type TopKind = typeof TOP_KINDS[number];
type Tops = Record<TopKind, TopSketch>;
type TopLists = Record<TopKind, TopRow[]>;

export type OutcomeCounts = Readonly<Record<OutcomeName, number>>;

/** What was asked within a number of hours, the present one among them. */
export interface LogStatistics {
  readonly total: number;
  readonly outcomes: OutcomeCounts;
  /** One an hour, the oldest first. */
  readonly series: readonly ({ readonly time: string } & OutcomeCounts)[];
  /** The most frequent first; approximate. */
  readonly top: Readonly<Record<TopKind, readonly { name: string; count: number }[]>>;
}

/** What is counted of one hour. */
interface Tally {
  readonly counts: number[];
  readonly tops: Tops;
  isSaved: boolean;
}

/** Counts by the hour, in memory and in the file. */
export class Statistics {
  readonly #read: StatementSync;
  readonly #readSome: StatementSync;
  readonly #write: StatementSync;
  readonly #readDay: StatementSync;
  readonly #writeDay: StatementSync;
  readonly #db: DatabaseSync;
  /** By hours since 1970. */
  readonly #tallies = new Map<number, Tally>();
  /** Tops of closed hours, by their first and last one. */
  readonly #windows = new Map<string, TopLists>();

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#read = db.prepare("SELECT counts, top FROM hours WHERE hour = ?");
    this.#readSome = db.prepare(
      "SELECT hour, counts, top FROM hours WHERE hour >= ? AND hour <= ?",
    );
    this.#write = db.prepare("INSERT OR REPLACE INTO hours VALUES (?, ?, ?)");
    this.#readDay = db.prepare("SELECT top FROM days WHERE day = ?");
    this.#writeDay = db.prepare("INSERT OR REPLACE INTO days VALUES (?, ?)");
  }

  /** Counts an entry. */
  add(entry: StoredEntry): void {
    const { counts, tops } = this.#tally(Math.floor(entry.timeMs / HOUR_MS));
    counts[entry.outcome]++;
    tops.names.add(entry.name);
    if (entry.outcome === BLOCKED) tops.blocked.add(entry.name);
    const client = clientLabel(entry.client);
    if (client !== "") tops.clients.add(client);
  }

  /** Counts queries of which nothing is known but the outcome: the log had no room for them. */
  addDropped(dropped: readonly number[], nowMs: number): void {
    if (dropped.every((count) => count === 0)) return;
    const { counts } = this.#tally(Math.floor(nowMs / HOUR_MS));
    for (let i = 0; i < counts.length; i++) counts[i] += dropped[i] ?? 0;
  }

  /**
   * Writes what was counted since the last time, and forgets what is past 30 days; `null`: nothing
   * is, as nobody knows the time.
   */
  save(nowMs: number | null): void {
    for (const [hour, tally] of this.#tallies) this.#saveTally(hour, tally);
    const hours = [...this.#tallies.keys()].sort((a, b) => b - a);
    for (const hour of hours.slice(TALLIES_MAX)) {
      this.#tallies.delete(hour);
      this.#windows.clear();
    }
    if (nowMs === null) return;
    const now = Math.floor(nowMs / HOUR_MS);
    this.#db.prepare("DELETE FROM hours WHERE hour <= ?").run(now - HOURS_KEPT);
    this.#db.prepare("DELETE FROM days WHERE day < ?").run(dayOf(now - HOURS_KEPT));
  }

  /** What was counted in the last `hours`, which may be 1 to 720, this one among them. */
  report(hours: number, nowMs: number): LogStatistics {
    const last = Math.floor(nowMs / HOUR_MS);
    const first = last - hours + 1;
    const counts = new Map(
      this.#rows(first, last).map(({ hour, counts }) => [hour, JSON.parse(counts) as number[]]),
    );
    for (const [hour, tally] of this.#tallies) counts.set(hour, tally.counts);
    const none = OUTCOME_NAMES.map(() => 0);
    const sums = [...none];
    const series = Array.from({ length: hours }, (_, i) => {
      const row = counts.get(first + i) ?? none;
      for (let outcome = 0; outcome < sums.length; outcome++) sums[outcome] += row[outcome] ?? 0;
      return { time: new Date((first + i) * HOUR_MS).toISOString(), ...byName(row) };
    });
    const top = this.#tops(first, last);
    return {
      total: sums.reduce((sum, count) => sum + count, 0),
      outcomes: byName(sums),
      series,
      top: {
        names: top.names.map(([name, count]) => ({ name, count })),
        blocked: top.blocked.map(([name, count]) => ({ name, count })),
        clients: top.clients.map(([name, count]) => ({ name, count })),
      },
    };
  }

  /** Moves what was counted in the hours that a correction is about. */
  move({ fromMs, shiftMs }: Correction): void {
    for (const [hour, tally] of this.#tallies) this.#saveTally(hour, tally);
    // An hour that time went on from has counts from before; one that lies ahead has none.
    const from = Math.floor(fromMs / HOUR_MS) + (shiftMs > 0 ? 1 : 0);
    const shift = Math.round(shiftMs / HOUR_MS);
    const rows = shift === 0 ? [] : this.#rows(from, Number.MAX_SAFE_INTEGER);
    for (const { hour } of rows) this.#db.prepare("DELETE FROM hours WHERE hour = ?").run(hour);
    this.#tallies.clear();
    this.#windows.clear();
    for (const { hour, counts, top } of rows) {
      const tally = this.#readTally(hour + shift);
      for (const [i, count] of (JSON.parse(counts) as number[]).entries()) tally.counts[i] += count;
      const lists = JSON.parse(top) as TopLists;
      for (const kind of TOP_KINDS) tally.tops[kind].merge(lists[kind]);
      this.#saveTally(hour + shift, tally);
    }
    this.#db.prepare("DELETE FROM days WHERE day >= ?").run(dayOf(Math.min(from, from + shift)));
  }

  /** Has everything in memory written again: a transaction was undone. */
  undo(): void {
    for (const tally of this.#tallies.values()) tally.isSaved = false;
  }

  #tally(hour: number): Tally {
    const known = this.#tallies.get(hour);
    if (known !== undefined) {
      known.isSaved = false;
      return known;
    }
    const tally = this.#readTally(hour);
    this.#tallies.set(hour, tally);
    // What was added up had another present hour.
    this.#windows.clear();
    return tally;
  }

  #readTally(hour: number): Tally {
    const row = this.#read.get(hour) as { counts: string; top: string } | undefined;
    const top = row === undefined ? null : JSON.parse(row.top) as TopLists;
    return {
      counts: row === undefined ? OUTCOME_NAMES.map(() => 0) : JSON.parse(row.counts),
      tops: sketches(SKETCH_CAPACITY, top),
      isSaved: false,
    };
  }

  #saveTally(hour: number, tally: Tally): void {
    if (tally.isSaved) return;
    const top = listsOf(tally.tops, HOUR_ROWS_MAX);
    this.#write.run(hour, JSON.stringify(tally.counts), JSON.stringify(top));
    tally.isSaved = true;
  }

  #rows(first: number, last: number): { hour: number; counts: string; top: string }[] {
    return this.#readSome.all(first, last) as { hour: number; counts: string; top: string }[];
  }

  /** The tops of some hours: whole days as days, what is left by the hour. */
  #tops(first: number, last: number): TopLists {
    const closed = this.#closedTops(first, last);
    const sum = sketches(DAY_ROWS_MAX, closed);
    for (const [hour, { tops }] of this.#tallies) {
      if (hour < first || hour > last) continue;
      for (const kind of TOP_KINDS) sum[kind].merge(tops[kind].top(SKETCH_CAPACITY));
    }
    return listsOf(sum, TOP_ROWS);
  }

  /** The same of the hours that are not in memory, kept until another hour begins. */
  #closedTops(first: number, last: number): TopLists {
    const key = `${first} ${last}`;
    const known = this.#windows.get(key);
    if (known !== undefined) return known;
    const sum = sketches(DAY_ROWS_MAX);
    const add = (lists: TopLists) => {
      for (const kind of TOP_KINDS) sum[kind].merge(lists[kind]);
    };
    const addHours = (from: number, to: number) => {
      for (const { hour, top } of this.#rows(from, to)) {
        if (!this.#tallies.has(hour)) add(JSON.parse(top));
      }
    };
    const oldestOpen = Math.min(last, ...this.#tallies.keys());
    for (let hour = first; hour <= last;) {
      const day = dayOf(hour);
      const end = Math.min(last, (day + 1) * HOURS_PER_DAY - 1);
      const isWhole = hour === day * HOURS_PER_DAY && end < oldestOpen &&
        end === (day + 1) * HOURS_PER_DAY - 1;
      if (isWhole) add(this.#dayTops(day));
      else addHours(hour, end);
      hour = end + 1;
    }
    const lists = listsOf(sum, DAY_ROWS_MAX);
    if (this.#windows.size >= WINDOWS_MAX) this.#windows.clear();
    this.#windows.set(key, lists);
    return lists;
  }

  /** The tops of a day that is over; added up once. */
  #dayTops(day: number): TopLists {
    const row = this.#readDay.get(day) as { top: string } | undefined;
    if (row !== undefined) return JSON.parse(row.top);
    const sum = sketches(DAY_ROWS_MAX);
    for (const { top } of this.#rows(day * HOURS_PER_DAY, (day + 1) * HOURS_PER_DAY - 1)) {
      const lists = JSON.parse(top) as TopLists;
      for (const kind of TOP_KINDS) sum[kind].merge(lists[kind]);
    }
    const lists = listsOf(sum, DAY_ROWS_MAX);
    this.#writeDay.run(day, JSON.stringify(lists));
    return lists;
  }
}

function sketches(capacity: number, rows: TopLists | null = null): Tops {
  const of = (kind: TopKind) => new TopSketch(capacity, rows?.[kind] ?? []);
  return { names: of("names"), blocked: of("blocked"), clients: of("clients") };
}

function listsOf(tops: Tops, n: number): TopLists {
  return { names: tops.names.top(n), blocked: tops.blocked.top(n), clients: tops.clients.top(n) };
}

function dayOf(hour: number): number {
  return Math.floor(hour / HOURS_PER_DAY);
}

function byName(counts: readonly number[]): OutcomeCounts {
  return Object.fromEntries(
    OUTCOME_NAMES.map((name, i) => [name, counts[i] ?? 0]),
  ) as OutcomeCounts;
}
