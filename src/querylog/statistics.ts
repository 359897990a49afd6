import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Correction } from "../clock/mod.ts";
import { OUTCOME_NAMES, TEXT_SEPARATOR } from "../logqueue/mod.ts";
import { clientKey, type OutcomeName, type StoredEntry } from "./entry.ts";
import { type Latency, LATENCY_COUNTS, latencyBucket, latencyOf } from "./latency.ts";
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
const FAILED = OUTCOME_NAMES.indexOf("failed");
/** Behind an upstream's queries and failures are the counts of times. */
export const UPSTREAM_LATENCY_AT = 2;
const TOP_KINDS = ["names", "blocked", "clients", "blocked_clients", "lists"] as const;
/** Behind the counts by outcome are those of times to answers. */
const LATENCY_AT = OUTCOME_NAMES.length;
type TopKind = typeof TOP_KINDS[number];
type Tops = Record<TopKind, TopSketch>;
/** What an earlier version wrote lacks some. */
type StoredTops = Partial<Record<TopKind, TopRow[]>>;
/** Address, queries, failures, counts of times. */
type UpstreamRow = readonly [address: string, ...counts: number[]];
type TopLists = Record<TopKind, TopRow[]>;

export type OutcomeCounts = Readonly<Record<OutcomeName, number>>;

/** What was asked within a number of hours, the present one among them. */
export interface LogStatistics extends Totals {
  /** One a step, the oldest first. */
  readonly series: readonly (
    { readonly time: string; readonly latency: Latency } & OutcomeCounts
  )[];
  /** The same number of hours before; `null` where they are not all kept. */
  readonly previous: Totals | null;
  /** The most frequent first; approximate. */
  readonly top: Readonly<Record<TopKind, readonly { name: string; count: number }[]>>;
  readonly upstreams: readonly UpstreamSeries[];
}

/** What was asked within some time. */
export interface Totals {
  readonly total: number;
  readonly outcomes: OutcomeCounts;
  readonly latency: Latency;
}

/** What an upstream answered, step by step. */
export interface UpstreamSeries {
  readonly address: string;
  readonly series: readonly {
    readonly time: string;
    readonly queries: number;
    /** Of them, those that failed. */
    readonly failures: number;
    readonly p50_ms: number | null;
    readonly p95_ms: number | null;
  }[];
}

/** What is counted of one hour. */
interface Tally {
  readonly counts: number[];
  readonly tops: Tops;
  readonly upstreams: Map<string, number[]>;
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
  }

  /** Counts an entry. */
  add(entry: StoredEntry): void {
    const { counts, tops, upstreams } = this.#tally(Math.floor(entry.timeMs / HOUR_MS));
    counts[entry.outcome]++;
    const bucket = latencyBucket(entry.durationUs);
    counts[LATENCY_AT + bucket]++;
    tops.names.add(entry.name);
    const client = clientKey(entry.client, this.#isAnonymized);
    if (client !== "") tops.clients.add(client);
    if (entry.outcome === BLOCKED) {
      tops.blocked.add(entry.name);
      if (client !== "") tops.blocked_clients.add(client);
      const list = entry.rule.split(TEXT_SEPARATOR, 1)[0];
      if (list !== "") tops.lists.add(list);
    }
    const [, rcode, , , , address] = entry.kind.split(TEXT_SEPARATOR);
    if (address === "") return;
    let upstream = upstreams.get(address);
    if (upstream === undefined) upstreams.set(address, upstream = noUpstreamCounts());
    upstream[0]++;
    if (entry.outcome === FAILED || rcode === "SERVFAIL") upstream[1]++;
    upstream[UPSTREAM_LATENCY_AT + bucket]++;
  }

  /** Counts queries of which nothing is known but the outcome: the log had no room for them. */
  addDropped(dropped: readonly number[], nowMs: number): void {
    if (dropped.every((count) => count === 0)) return;
    const { counts } = this.#tally(Math.floor(nowMs / HOUR_MS));
    for (let i = 0; i < LATENCY_AT; i++) counts[i] += dropped[i] ?? 0;
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
      top: topsOf(sketches(TOP_ROWS, this.#tops(first, last))),
      upstreams: upstreamsOf(upstreams, timesMs),
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
    const top = row === undefined ? null : JSON.parse(row.top) as StoredTops;
    const { counts, upstreams } = parseCounts(row?.counts ?? "[]");
    return {
      counts: noCounts().map((_, i) => counts[i] ?? 0),
      tops: sketches(SKETCH_CAPACITY, top),
      upstreams: new Map(upstreams.map(([address, ...more]) => [address, more])),
      isSaved: false,
    };
  }

  #saveTally(hour: number, tally: Tally): void {
    if (tally.isSaved) return;
    const upstreams = Array.from(tally.upstreams, ([address, counts]) => [address, ...counts]);
    const top = listsOf(tally.tops, HOUR_ROWS_MAX);
    this.#write.run(hour, JSON.stringify([...tally.counts, upstreams]), JSON.stringify(top));
    tally.isSaved = true;
  }

  #countsRows(first: number, last: number): CountsRow[] {
    return this.#readCounts.all(first, last) as unknown as CountsRow[];
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

/** A value for each kind of top. */
function ofKinds<T>(make: (kind: TopKind) => T): Record<TopKind, T> {
  return Object.fromEntries(TOP_KINDS.map((kind) => [kind, make(kind)])) as Record<TopKind, T>;
}

export function sketches(capacity: number, rows: StoredTops | null = null): Tops {
  return ofKinds((kind) => new TopSketch(capacity, rows?.[kind] ?? []));
}

function listsOf(tops: Tops, n: number): TopLists {
  return ofKinds((kind) => tops[kind].top(n));
}

/** The rows of an answer. */
export function topsOf(tops: Tops): LogStatistics["top"] {
  return ofKinds((kind) => tops[kind].top(TOP_ROWS).map(([name, count]) => ({ name, count })));
}

/** Counts by outcome, and of times to answers. */
export function noCounts(): number[] {
  return Array.from({ length: LATENCY_AT + LATENCY_COUNTS }, () => 0);
}

export function noUpstreamCounts(): number[] {
  return Array.from({ length: UPSTREAM_LATENCY_AT + LATENCY_COUNTS }, () => 0);
}

export function addTo(sums: number[], counts: readonly number[]): void {
  for (let i = 0; i < sums.length; i++) sums[i] += counts[i] ?? 0;
}

export function totalsOf(sums: readonly number[]): Totals {
  const outcomes = sums.slice(0, LATENCY_AT);
  return {
    total: outcomes.reduce((sum, count) => sum + count, 0),
    outcomes: byName(outcomes),
    latency: latencyOf(sums, LATENCY_AT),
  };
}

/** A row of the series. */
export function stepOf(timeMs: number, counts: readonly number[]): LogStatistics["series"][number] {
  const time = new Date(timeMs).toISOString();
  return { time, ...byName(counts), latency: latencyOf(counts, LATENCY_AT) };
}

/** The series of upstreams, the one that answered most first. */
export function upstreamsOf(
  found: ReadonlyMap<string, ReadonlyMap<number, readonly number[]>>,
  timesMs: readonly number[],
): UpstreamSeries[] {
  const none = noUpstreamCounts();
  const all = Array.from(found, ([address, byTime]) => ({
    address,
    series: timesMs.map((timeMs) => {
      const counts = byTime.get(timeMs) ?? none;
      const { p50_ms, p95_ms } = latencyOf(counts, UPSTREAM_LATENCY_AT);
      const time = new Date(timeMs).toISOString();
      return { time, queries: counts[0], failures: counts[1], p50_ms, p95_ms };
    }),
  }));
  const queriesOf = ({ series }: UpstreamSeries) =>
    series.reduce((sum, one) => sum + one.queries, 0);
  return all.sort((a, b) => queriesOf(b) - queriesOf(a) || (a.address < b.address ? -1 : 1));
}

function dayOf(hour: number): number {
  return Math.floor(hour / HOURS_PER_DAY);
}

function byName(counts: readonly number[]): OutcomeCounts {
  return Object.fromEntries(
    OUTCOME_NAMES.map((name, i) => [name, counts[i] ?? 0]),
  ) as OutcomeCounts;
}
