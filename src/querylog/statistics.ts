import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Correction } from "../clock/mod.ts";
import { textHash } from "./byte_texts.ts";
import { clientKey, kindFacts, type StoredEntry } from "./entry.ts";
import { type LogStatistics, stepOf, totalsOf, upstreamsOf } from "./log_statistics.ts";
import {
  addRow,
  countEntry,
  countOf,
  countOfRow,
  LATENCY_AT,
  MINUTE_MS,
  type MinuteRows,
  Minutes,
  noCounts,
  noUpstreamCounts,
} from "./minutes.ts";
import type { TopRow } from "./top_sketch.ts";
import {
  countTops,
  listsOf,
  ofKinds,
  sketches,
  type StoredTops,
  TOP_KINDS,
  TOP_ROWS,
  type TopLists,
  type Tops,
  topsOf,
} from "./tops.ts";

const HOUR_MS = 3_600_000;
const HOURS_PER_DAY = 24;
/** Counts are kept for 30 days. */
export const HOURS_KEPT = 720;
/** Counts by the minute are kept for 14 days, and the hour that such a time begins in. */
const MINUTE_HOURS_KEPT = 337;
/** Names that are told apart within an hour, and those kept of an hour and of a day. */
const SKETCH_CAPACITY = 1_000;
const HOUR_ROWS_MAX = 200;
const DAY_ROWS_MAX = 400;
/** Hours that stay in memory: the present one, and the one whose last queries are still on their way. */
const TALLIES_MAX = 2;
/** Windows whose closed hours are kept added up. */
const WINDOWS_MAX = 4;

/** Address, queries, failures, counts of times. */
type UpstreamRow = readonly [address: string, ...counts: number[]];

/** Counts of a window, step by step. */
export interface StepCounts {
  readonly series: ReadonlyMap<number, readonly number[]>;
  readonly upstreams: ReadonlyMap<string, ReadonlyMap<number, readonly number[]>>;
  /** The sum of the same time before. */
  readonly previous: readonly number[];
  /** Queries of the window's first hour, where it begins within one. */
  readonly part: number;
}

/** What is counted of one hour. */
interface Tally {
  readonly counts: number[];
  readonly tops: Tops;
  readonly upstreams: Map<string, number[]>;
  /** `null`: not known; another version counted, or a clock was set. */
  minutes: Minutes | null;
  isSaved: boolean;
}

/** Counts by the hour, in memory and in the file. */
export class Statistics {
  readonly #read: StatementSync;
  readonly #readSome: StatementSync;
  readonly #readCounts: StatementSync;
  readonly #write: StatementSync;
  readonly #readDay: StatementSync;
  readonly #writeDay: StatementSync;
  readonly #readMinutes: StatementSync;
  readonly #writeMinutes: StatementSync;
  readonly #db: DatabaseSync;
  readonly #isAnonymized: boolean;
  /** By hours since 1970. */
  readonly #tallies = new Map<number, Tally>();
  /** Tops of closed hours, by their first and last one. */
  readonly #windows = new Map<string, TopLists>();

  /** `isAnonymized` says that the log has but the start of each address. */
  constructor(db: DatabaseSync, isAnonymized = false) {
    this.#db = db;
    this.#isAnonymized = isAnonymized;
    this.#read = db.prepare("SELECT counts, top FROM hours WHERE hour = ?");
    this.#readSome = db.prepare(
      "SELECT hour, counts, top FROM hours WHERE hour >= ? AND hour <= ?",
    );
    this.#readCounts = db.prepare("SELECT hour, counts FROM hours WHERE hour >= ? AND hour <= ?");
    this.#write = db.prepare("INSERT OR REPLACE INTO hours VALUES (?, ?, ?)");
    this.#readDay = db.prepare("SELECT top FROM days WHERE day = ?");
    this.#writeDay = db.prepare("INSERT OR REPLACE INTO days VALUES (?, ?)");
    this.#readMinutes = db.prepare(
      "SELECT hour, counts FROM minutes WHERE hour >= ? AND hour <= ?",
    );
    this.#writeMinutes = db.prepare("INSERT OR REPLACE INTO minutes VALUES (?, ?)");
  }

  /** Counts an entry; see `textHash`. */
  add(entry: StoredEntry, nameHash = textHash(entry.name)): void {
    const { counts, tops, upstreams, minutes } = this.#tally(hourOf(entry.timeMs));
    const { upstream } = kindFacts(entry.kind);
    countEntry(
      entry,
      counts,
      upstream === "" ? null : entryOf(upstreams, upstream, noUpstreamCounts),
    );
    minutes?.add(entry);
    countTops(tops, entry, clientKey(entry.client, this.#isAnonymized), nameHash);
  }

  /** Counts queries of which nothing is known but the outcome: the log had no room for them. */
  addDropped(dropped: readonly number[], nowMs: number): void {
    if (dropped.every((count) => count === 0)) return;
    const { counts, minutes } = this.#tally(hourOf(nowMs));
    const minute = minutes?.of(minuteOf(nowMs));
    for (let i = 0; i < LATENCY_AT; i++) {
      counts[i] += dropped[i] ?? 0;
      if (minute !== undefined) minute[i] += dropped[i] ?? 0;
    }
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
    const now = hourOf(nowMs);
    this.#db.prepare("DELETE FROM hours WHERE hour <= ?").run(now - HOURS_KEPT);
    this.#db.prepare("DELETE FROM minutes WHERE hour < ?").run(now - MINUTE_HOURS_KEPT);
    this.#db.prepare("DELETE FROM days WHERE day < ?").run(dayOf(now - HOURS_KEPT));
  }

  /** What was counted in the last `hours`, which may be 1 to 720, this one among them. */
  report(hours: number, nowMs: number): LogStatistics {
    const last = hourOf(nowMs);
    const first = last - hours + 1;
    const counts = new Map<number, readonly number[]>();
    const upstreams = new Map<string, Map<number, readonly number[]>>();
    const addUpstream = (hour: number, address: string, more: readonly number[]) => {
      const byTime = upstreams.get(address) ?? new Map();
      upstreams.set(address, byTime.set(hour * HOUR_MS, more));
    };
    for (const { hour, counts: text } of this.#countsRows(first - hours, last)) {
      if (this.#tallies.has(hour)) continue;
      const stored = parseCounts(text);
      counts.set(hour, stored.counts);
      if (hour < first) continue;
      for (const [address, ...more] of stored.upstreams) addUpstream(hour, address, more);
    }
    for (const [hour, tally] of this.#tallies) {
      counts.set(hour, tally.counts);
      if (hour < first || hour > last) continue;
      for (const [address, more] of tally.upstreams) addUpstream(hour, address, more);
    }
    const timesMs = Array.from({ length: hours }, (_, i) => (first + i) * HOUR_MS);
    const sumFrom = (start: number) => {
      const sums = noCounts();
      for (let hour = start; hour < start + hours; hour++) addTo(sums, counts.get(hour) ?? []);
      return totalsOf(sums);
    };
    return {
      ...sumFrom(first),
      series: timesMs.map((timeMs) => stepOf(timeMs, counts.get(timeMs / HOUR_MS) ?? [])),
      previous: 2 * hours > HOURS_KEPT ? null : sumFrom(first - hours),
      top: topsOf(sketches(TOP_ROWS, this.tops(first, last))),
      upstreams: upstreamsOf(upstreams, timesMs),
    };
  }

  /**
   * Counts of a window by steps of whole minutes. It lasts whole hours, and begins and ends with a
   * step; what `withoutMinutes` names is to be filled before.
   */
  steps(startMs: number, endMs: number, stepMs: number): StepCounts {
    const series = new Map<number, number[]>();
    const upstreams = new Map<string, Map<number, number[]>>();
    const previous = noCounts();
    const begin = startMs - (endMs - startMs);
    const partEndMs = Math.ceil(startMs / HOUR_MS) * HOUR_MS;
    let part = 0;
    const stepAt = (timeMs: number) => Math.floor(timeMs / stepMs) * stepMs;
    for (const [hour, { all, upstreams: byAddress }] of this.#minutesOf(startMs, endMs - 1)) {
      const timeOf = (minute: number) => hour * HOUR_MS + minute * MINUTE_MS;
      for (const row of all) {
        const timeMs = timeOf(row[0]);
        if (timeMs < startMs) addRow(previous, row);
        else if (timeMs < endMs) {
          addRow(entryOf(series, stepAt(timeMs), noCounts), row);
          if (timeMs < partEndMs) part += countOfRow(row);
        }
      }
      for (const [address, rows] of Object.entries(byAddress)) {
        const byTime = entryOf(upstreams, address, () => new Map<number, number[]>());
        for (const row of rows) {
          const timeMs = timeOf(row[0]);
          if (timeMs < startMs || timeMs >= endMs) continue;
          addRow(entryOf(byTime, stepAt(timeMs), noUpstreamCounts), row);
        }
      }
    }
    for (const [hour, { all }] of this.#minutesOf(begin, partEndMs > startMs ? begin : begin - 1)) {
      for (const row of all) {
        if (hour * HOUR_MS + row[0] * MINUTE_MS >= begin) addRow(previous, row);
      }
    }
    const first = Math.ceil(begin / HOUR_MS);
    const last = hourOf(startMs) - 1;
    for (const { hour, counts } of this.#countsRows(first, last)) {
      if (!this.#tallies.has(hour)) addTo(previous, parseCounts(counts).counts);
    }
    for (const [hour, { counts }] of this.#tallies) {
      if (hour >= first && hour <= last) addTo(previous, counts);
    }
    for (const [address, byTime] of upstreams) if (byTime.size === 0) upstreams.delete(address);
    return { series, upstreams, previous, part };
  }

  /** Hours whose minutes `steps` needs and nobody counted: the log may still tell. */
  withoutMinutes(startMs: number, endMs: number): number[] {
    const [first, last] = [hourOf(startMs), hourOf(endMs - 1)];
    const begin = hourOf(startMs - (endMs - startMs));
    const rows = this.#db.prepare(
      "SELECT hour FROM hours WHERE (hour BETWEEN ? AND ? OR hour = ?) " +
        "AND hour NOT IN (SELECT hour FROM minutes)",
    ).all(first, last, begin);
    const stored = rows.map(({ hour }) => Number(hour)).filter((hour) => !this.#tallies.has(hour));
    const open = [...this.#tallies].filter(([hour, { minutes }]) =>
      minutes === null && (hour >= first && hour <= last || hour === begin)
    );
    return [...stored, ...open.map(([hour]) => hour)];
  }

  /** Takes over the minutes of an hour, as the log has them. */
  fill(hour: number, minutes: Minutes): void {
    const tally = this.#tallies.get(hour);
    if (tally === undefined) this.#writeMinutes.run(hour, JSON.stringify(minutes.rows()));
    else {
      tally.minutes = minutes;
      tally.isSaved = false;
    }
  }

  /** The tops of an hour, of so many of its queries as if these were like all of them. */
  shareOf(hour: number, queries: number): TopLists {
    const { counts, tops } = this.#tallies.get(hour) ?? this.#readTally(hour);
    const share = Math.min(1, queries / Math.max(1, countOf(counts)));
    return ofKinds((kind) =>
      tops[kind].top(HOUR_ROWS_MAX).map((
        [name, count],
      ): TopRow => [name, Math.round(count * share)])
        .filter(([, count]) => count > 0)
    );
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
      const stored = parseCounts(counts);
      addTo(tally.counts, stored.counts);
      const lists = JSON.parse(top) as StoredTops;
      for (const kind of TOP_KINDS) tally.tops[kind].merge(lists[kind] ?? []);
      for (const [address, ...more] of stored.upstreams) {
        const sum = tally.upstreams.get(address) ?? noUpstreamCounts();
        tally.upstreams.set(address, sum.map((count, i) => count + (more[i] ?? 0)));
      }
      this.#saveTally(hour + shift, tally);
    }
    this.#db.prepare("DELETE FROM days WHERE day >= ?").run(dayOf(Math.min(from, from + shift)));
    this.forgetMinutes({ fromMs, shiftMs });
  }

  /** Minutes that a correction is about are counted anew, of the log's entries, when all are moved. */
  forgetMinutes({ fromMs, shiftMs }: Correction): void {
    const from = Math.min(hourOf(fromMs), hourOf(fromMs + shiftMs));
    this.#db.prepare("DELETE FROM minutes WHERE hour >= ?").run(from);
    for (const [hour, tally] of this.#tallies) if (hour >= from) tally.minutes = null;
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
    const [minutes] = this.#readMinutes.all(hour, hour) as { counts: string }[];
    const top = row === undefined ? null : JSON.parse(row.top) as StoredTops;
    const { counts, upstreams } = parseCounts(row?.counts ?? "[]");
    return {
      counts: noCounts().map((_, i) => counts[i] ?? 0),
      tops: sketches(SKETCH_CAPACITY, top),
      upstreams: new Map(upstreams.map(([address, ...more]) => [address, more])),
      minutes: minutes !== undefined
        ? new Minutes(JSON.parse(minutes.counts) as MinuteRows)
        : row === undefined
        ? new Minutes()
        : null,
      isSaved: false,
    };
  }

  #saveTally(hour: number, tally: Tally): void {
    if (tally.isSaved) return;
    const upstreams = Array.from(tally.upstreams, ([address, counts]) => [address, ...counts]);
    const top = listsOf(tally.tops, HOUR_ROWS_MAX);
    this.#write.run(hour, JSON.stringify([...tally.counts, upstreams]), JSON.stringify(top));
    if (tally.minutes !== null) this.#writeMinutes.run(hour, JSON.stringify(tally.minutes.rows()));
    tally.isSaved = true;
  }

  #countsRows(first: number, last: number): CountsRow[] {
    return this.#readCounts.all(first, last) as unknown as CountsRow[];
  }

  #rows(first: number, last: number): { hour: number; counts: string; top: string }[] {
    return this.#readSome.all(first, last) as { hour: number; counts: string; top: string }[];
  }

  /** The minutes of the hours of a time; those of an hour that is not known are left out. */
  *#minutesOf(fromMs: number, toMs: number): Generator<[hour: number, rows: MinuteRows]> {
    const [first, last] = [hourOf(fromMs), hourOf(toMs)];
    const stored = fromMs > toMs ? [] : this.#readMinutes.all(first, last);
    for (const { hour, counts } of stored as unknown as CountsRow[]) {
      if (!this.#tallies.has(hour)) yield [hour, JSON.parse(counts)];
    }
    for (const [hour, { minutes }] of this.#tallies) {
      if (minutes !== null && fromMs <= toMs && hour >= first && hour <= last) {
        yield [hour, minutes.rows()];
      }
    }
  }

  /** The tops of some hours: whole days as days, what is left by the hour; with more added to them. */
  tops(first: number, last: number, more: TopLists | null = null): TopLists {
    const sum = sketches(DAY_ROWS_MAX, this.#closedTops(first, last));
    if (more !== null) { for (const kind of TOP_KINDS) sum[kind].merge(more[kind]); }
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
    const add = (lists: StoredTops) => {
      for (const kind of TOP_KINDS) sum[kind].merge(lists[kind] ?? []);
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
  #dayTops(day: number): StoredTops {
    const row = this.#readDay.get(day) as { top: string } | undefined;
    if (row !== undefined) return JSON.parse(row.top);
    const sum = sketches(DAY_ROWS_MAX);
    for (const { top } of this.#rows(day * HOURS_PER_DAY, (day + 1) * HOURS_PER_DAY - 1)) {
      const lists = JSON.parse(top) as StoredTops;
      for (const kind of TOP_KINDS) sum[kind].merge(lists[kind] ?? []);
    }
    const lists = listsOf(sum, DAY_ROWS_MAX);
    this.#writeDay.run(day, JSON.stringify(lists));
    return lists;
  }
}

interface CountsRow {
  readonly hour: number;
  readonly counts: string;
}

/** What is stored of an hour: counts, and, from this version on, those of upstreams as the last. */
function parseCounts(text: string) {
  const stored = JSON.parse(text) as (number | readonly UpstreamRow[])[];
  return {
    counts: stored.filter((count) => typeof count === "number"),
    upstreams: stored.flatMap((part) => typeof part === "number" ? [] : part),
  };
}

export function addTo(sums: number[], counts: readonly number[]): void {
  for (let i = 0; i < sums.length; i++) sums[i] += counts[i] ?? 0;
}

export function entryOf<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) map.set(key, value = make());
  return value;
}

function hourOf(timeMs: number): number {
  return Math.floor(timeMs / HOUR_MS);
}

function minuteOf(timeMs: number): number {
  return Math.floor(timeMs % HOUR_MS / MINUTE_MS);
}

function dayOf(hour: number): number {
  return Math.floor(hour / HOURS_PER_DAY);
}
