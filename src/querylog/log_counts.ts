import type { DatabaseSync } from "node:sqlite";
import { OUTCOME_NAMES, TEXT_SEPARATOR } from "../logqueue/mod.ts";
import { clientSteps, countDays, type Shares } from "./client_counts.ts";
import type { Condition, Conditions } from "./conditions.ts";
import { IDS_PER_MS } from "./entries.ts";
import { clientKey, COUNTED_SQL } from "./entry.ts";
import type { HourSeries } from "./client_hours.ts";
import { clientNumber, subjectTest } from "./filter.ts";
import { latencyBucketSql } from "./latency.ts";
import { DAY_MS } from "./local_days.ts";
import { timeOf } from "./search.ts";
import { type LogStatistics, stepOf, totalsOf, upstreamsOf } from "./log_statistics.ts";
import { LATENCY_AT, MINUTE_MS, Minutes, noCounts, UPSTREAM_LATENCY_AT } from "./minutes.ts";
import { addTo, HOURS_KEPT, type Statistics, type StepCounts } from "./statistics.ts";
import {
  listsOf,
  sketches,
  TOP_KINDS,
  TOP_ROWS,
  type TopLists,
  type Tops,
  topsOf,
} from "./tops.ts";

/** Entries of one step of the work: some tens of milliseconds, behind which others have their turn. */
const SLICE_ENTRIES = 20_000;
/** Addresses of one answer, and those that are put together between two turns of others. */
const SEEN_MAX = 10_000;
const SEEN_SLICE = 1_000;
/** Clients that are kept counted until the next hour begins. */
const SEEN_KEPT_MAX = 20_000;
/** Names and clients that are told apart. */
const SKETCH_CAPACITY = 2_000;
/** A window that begins within an hour has its tops of so many entries counted; of more, a share. */
const PART_ENTRIES_MAX = 50_000;
/** Windows for whom that is kept. */
const PARTS_MAX = 4;
const HOUR_MS = 3_600_000;
const BLOCKED = OUTCOME_NAMES.indexOf("blocked");
const FAILED = OUTCOME_NAMES.indexOf("failed");

/** Which entries are counted, and by how long a step. */
export interface CountsQuery {
  readonly hours: number;
  readonly stepMs: number;
  /** Addresses, networks, client IDs or names. */
  readonly clients?: readonly string[];
  readonly group?: string;
}

/** Which clients' queries are counted by the hour, each by its keys as of `clientNumber`. */
export interface SeriesQuery {
  readonly clients: readonly (readonly string[])[];
  /** The present one among them. */
  readonly hours: number;
}

/** An address that asked; what is counted is of the hours asked for, its first query of the log. */
export interface SeenAddress {
  readonly address: string;
  readonly first_seen: string;
  readonly last_seen: string;
  readonly queries: number;
  readonly blocked: number;
}

interface SeenIds {
  readonly first: number;
  readonly last: number;
  readonly queries: number;
  readonly blocked: number;
}

/** What was counted of a client; `null`: not looked up yet. */
interface SeenRow {
  address: string | null;
  first: number | null;
  readonly last: number;
  readonly queries: number;
  readonly blocked: number;
}

interface SeenSoFar {
  readonly startMs: number;
  /** The number of the entry to go on with. */
  next: number;
  readonly byClient: Map<number, SeenRow>;
}

interface Slice {
  /** Numbers of entries: from, and up to without. */
  readonly from: number;
  readonly end: number;
  /** The table of entries, by the index that leads to those that are wanted. */
  readonly source: string;
}

interface Window {
  readonly startMs: number;
  readonly endMs: number;
  readonly stepMs: number;
  readonly hours: number;
}

type Steps = Pick<StepCounts, "series" | "upstreams" | "previous">;

interface CountRow {
  readonly step: number;
  readonly outcome: number;
  readonly bucket: number;
  readonly count: number;
}

/** Counts by short steps, and, of what the log still has, for some clients. */
export class LogCounts {
  readonly #db: DatabaseSync;
  readonly #conditions: Conditions;
  readonly #statistics: Statistics;
  /** Tops of what is counted of a window's first hour, by its beginning and the number of queries. */
  readonly #parts = new Map<string, TopLists>();
  /** Kept for the hours that were asked for last. */
  #seen: SeenSoFar | null = null;
  readonly #shares: Shares;
  readonly #isAnonymized: boolean;
  readonly #sliceEntries: number;

  /** `isAnonymized` says that the log has but the start of each address. */
  constructor(
    db: DatabaseSync,
    conditions: Conditions,
    statistics: Statistics,
    shares: Shares,
    isAnonymized: boolean,
    sliceEntries = SLICE_ENTRIES,
  ) {
    this.#db = db;
    this.#statistics = statistics;
    this.#shares = shares;
    this.#sliceEntries = sliceEntries;
    this.#conditions = conditions;
    this.#isAnonymized = isAnonymized;
  }

  /** Counts in pieces of work: whoever runs it may do something else between two of them. */
  *count(query: CountsQuery, nowMs: number): Generator<undefined, LogStatistics> {
    const { hours, stepMs, clients, group } = query;
    const endMs = (Math.floor(nowMs / stepMs) + 1) * stepMs;
    const startMs = endMs - hours * HOUR_MS;
    const window = { startMs, endMs, stepMs, hours };
    const test = subjectTest(query, this.#isAnonymized);
    if (stepMs === DAY_MS) {
      return yield* countDays(
        this.#shares,
        this.#statistics,
        { hours, test },
        this.#isAnonymized,
        nowMs,
      );
    }
    if (test === null) return yield* this.#countAll(window);
    const steps = yield* clientSteps(this.#shares.hours, test, this.#isAnonymized, window);
    const conditions = steps.part === 0 ? null : this.#conditions.of({
      ...(clients !== undefined && { clients }),
      ...(group !== undefined && { group }),
    });
    if (conditions !== null) {
      const first = Math.ceil(startMs / HOUR_MS);
      const part = yield* this.#clientPart(startMs, first * HOUR_MS, conditions);
      for (const kind of TOP_KINDS) steps.tops[kind].merge(part[kind]);
    }
    return report(window, steps, topsOf(steps.tops));
  }

  /** The tops of clients within a part of an hour, of the log's entries. */
  *#clientPart(
    startMs: number,
    endMs: number,
    conditions: readonly Condition[],
  ): Generator<undefined, TopLists> {
    const [from, end] = [startMs, endMs].map((timeMs) => timeMs * IDS_PER_MS);
    const source = this.#conditions.source(conditions, `e.id >= ${from} AND e.id < ${end}`);
    const where = [COUNTED_SQL, ...conditions.map(({ sql }) => sql)];
    const [tops, names] = [sketches(SKETCH_CAPACITY), sketches(SKETCH_CAPACITY)];
    for (const slice of this.#slices(from, end, source)) {
      this.#countTops(slice, where, tops, names);
      yield undefined;
    }
    return listsOf(this.#named(tops, names), SKETCH_CAPACITY);
  }

  /** The same for all, of what is kept by the minute. */
  *#countAll(window: Window): Generator<undefined, LogStatistics> {
    const { startMs, endMs, stepMs } = window;
    for (const hour of this.#statistics.withoutMinutes(startMs, endMs)) yield* this.#fill(hour);
    const steps = this.#statistics.steps(startMs, endMs, stepMs);
    const first = Math.ceil(startMs / HOUR_MS);
    const part = steps.part === 0 ? null : yield* this.#part(startMs, first, steps.part);
    const tops = this.#statistics.tops(first, Math.floor((endMs - 1) / HOUR_MS), part);
    return report(window, steps, topsOf(sketches(TOP_ROWS, tops)));
  }

  /** Counts the minutes of an hour that nobody counted; nothing comes between the last look and that. */
  *#fill(hour: number): Generator<undefined, void> {
    const minutes = new Minutes();
    let isFirst = true;
    const [from, end] = [hour, hour + 1].map((one) => one * HOUR_MS * IDS_PER_MS);
    for (const slice of this.#slices(from, end)) {
      if (!isFirst) yield undefined;
      isFirst = false;
      const minuteOf = ({ step }: CountRow) => step % (HOUR_MS / MINUTE_MS);
      for (const row of this.#counts(slice, [COUNTED_SQL], MINUTE_MS)) {
        const counts = minutes.of(minuteOf(row));
        counts[row.outcome] += row.count;
        counts[LATENCY_AT + row.bucket] += row.count;
      }
      this.#countUpstreams(slice, [COUNTED_SQL], (row, address, isFailure) => {
        addUpstreamRow(minutes.ofUpstream(minuteOf(row), address), row, isFailure);
      }, MINUTE_MS);
    }
    this.#statistics.fill(hour, minutes);
  }

  /** The tops of a window's part of its first hour, which ends with the hour `end`. */
  *#part(startMs: number, end: number, queries: number): Generator<undefined, TopLists> {
    const key = `${startMs} ${queries}`;
    const known = this.#parts.get(key);
    if (known !== undefined) return known;
    const oldest = Number(
      this.#db.prepare("SELECT min(id) AS id FROM entries").get()?.id ?? Infinity,
    );
    if (queries > PART_ENTRIES_MAX || oldest >= startMs * IDS_PER_MS) {
      return this.#statistics.shareOf(end - 1, queries);
    }
    const tops = sketches(SKETCH_CAPACITY);
    const names = sketches(SKETCH_CAPACITY);
    for (const slice of this.#slices(startMs * IDS_PER_MS, end * HOUR_MS * IDS_PER_MS)) {
      this.#countTops(slice, [COUNTED_SQL], tops, names);
      yield undefined;
    }
    const found = listsOf(this.#named(tops, names), SKETCH_CAPACITY);
    if (this.#parts.size >= PARTS_MAX) this.#parts.clear();
    this.#parts.set(key, found);
    return found;
  }

  /** Queries of some clients by the hour; in pieces of work, of what was counted as they came. */
  series({ clients, hours }: SeriesQuery, nowMs: number): Generator<undefined, HourSeries> {
    const last = Math.floor(nowMs / HOUR_MS);
    const numberOf = clientNumber(clients);
    return this.#shares.hours.series(numberOf, clients.length, last - hours + 1, last);
  }

  /** The addresses that asked in the last hours, the one that asked last first; in pieces of work. */
  *seen(hours: number, nowMs: number): Generator<undefined, readonly SeenAddress[]> {
    const startMs = (Math.floor(nowMs / HOUR_MS) - hours + 1) * HOUR_MS;
    const { byClient } = yield* this.#countSeen(startMs, nowMs + HOUR_MS);
    const found = new Map<string, SeenIds>();
    // An address may have been another client then: of another group, or without a name.
    const oldest = this.#db.prepare(
      "SELECT min((SELECT min(id) FROM entries WHERE client = c.id)) AS first " +
        "FROM clients c WHERE text >= ? AND text < ?",
    );
    for (const [i, [client, row]] of [...byClient].entries()) {
      if (i % SEEN_SLICE === SEEN_SLICE - 1) yield undefined;
      row.address ??= this.#text("clients", client).split(TEXT_SEPARATOR, 1)[0];
      if (row.address === "") continue;
      const start = row.address + TEXT_SEPARATOR;
      row.first ??= Number(oldest.get(start, `${start}\u{10ffff}`)?.first ?? row.last);
      const { address, first, last, queries, blocked } = row;
      const known = found.get(address) ?? { first, last, queries: 0, blocked: 0 };
      found.set(address, {
        first: Math.min(known.first, first),
        last: Math.max(known.last, last),
        queries: known.queries + queries,
        blocked: known.blocked + blocked,
      });
    }
    if (byClient.size > SEEN_KEPT_MAX) this.#seen = null;
    return [...found].sort(([, a], [, b]) => b.last - a.last).slice(0, SEEN_MAX)
      .map(([address, { first, last, queries, blocked }]) => ({
        address,
        first_seen: timeOf(first),
        last_seen: timeOf(last),
        queries,
        blocked,
      }));
  }

  /** Counts clients from a time on; of those counted before, what has come since. */
  *#countSeen(startMs: number, endMs: number): Generator<undefined, SeenSoFar> {
    if (this.#seen?.startMs !== startMs) {
      this.#seen = { startMs, next: startMs * IDS_PER_MS, byClient: new Map() };
    }
    const seen = this.#seen;
    const columns = `e.client, count(*) AS count, sum(e.outcome = ${BLOCKED}) AS blocked, ` +
      "max(e.id) AS last";
    type Row = { client: number; count: number; blocked: number; last: number };
    for (const slice of this.#slices(seen.next, endMs * IDS_PER_MS)) {
      for (
        const { client, count, blocked, last } of this.#all<Row>(columns, slice, [], "GROUP BY 1")
      ) {
        const known = seen.byClient.get(client);
        seen.byClient.set(client, {
          address: known?.address ?? null,
          first: known?.first ?? null,
          last,
          queries: (known?.queries ?? 0) + count,
          blocked: (known?.blocked ?? 0) + blocked,
        });
        seen.next = Math.max(seen.next, last + 1);
      }
      yield undefined;
    }
    return seen;
  }

  /** Forgets what was counted: entries got other numbers. */
  forget(): void {
    this.#seen = null;
    this.#parts.clear();
  }

  /** Spans of numbers with at most so many entries, the oldest first. */
  *#slices(
    from: number,
    end: number,
    source = "entries e NOT INDEXED",
  ): Generator<Slice> {
    const behind = this.#db.prepare(
      "SELECT id FROM entries WHERE id >= ? ORDER BY id LIMIT 1 OFFSET ?",
    );
    for (from = Math.max(0, from); from < end;) {
      const next = Math.min(end, Number(behind.get(from, this.#sliceEntries)?.id ?? end));
      yield { from, end: next, source };
      from = next;
    }
  }

  #all<R>(columns: string, slice: Slice, where: readonly string[], rest: string): R[] {
    const { from, end, source } = slice;
    const all = [`e.id >= ${from} AND e.id < ${end}`, ...where].join(" AND ");
    const sql = `SELECT ${columns} FROM ${source} WHERE ${all} ${rest}`;
    return this.#db.prepare(sql).all() as unknown as R[];
  }

  #counts(slice: Slice, where: readonly string[], stepMs: number): CountRow[] {
    const step = `e.id / ${stepMs * IDS_PER_MS}`;
    const columns = `${step} AS step, e.outcome, ${latencyBucketSql("e.duration")} AS bucket, ` +
      "count(*) AS count";
    return this.#all(columns, slice, where, "GROUP BY 1, 2, 3");
  }

  /** Adds to tops; to those of `names` by the numbers of names. */
  #countTops(slice: Slice, where: readonly string[], tops: Tops, names: Tops): void {
    this.#countNames(slice, where, names);
    this.#countClients(slice, where, tops);
    this.#countLists(slice, where, tops);
  }

  /** Tops with names in place of their numbers. */
  #named(tops: Tops, names: Tops): Tops {
    for (const kind of ["names", "blocked"] as const) {
      tops[kind].merge(
        names[kind].top(SKETCH_CAPACITY).map(([id, count]) => [
          this.#text("names", Number(id)),
          count,
        ]),
      );
    }
    return tops;
  }

  #countNames(slice: Slice, where: readonly string[], tops: Tops): void {
    const columns = `e.name, count(*) AS count, sum(e.outcome = ${BLOCKED}) AS blocked`;
    type Row = { name: number; count: number; blocked: number };
    for (const { name, count, blocked } of this.#all<Row>(columns, slice, where, "GROUP BY 1")) {
      tops.names.add(String(name), count);
      if (blocked > 0) tops.blocked.add(String(name), blocked);
    }
  }

  #countClients(slice: Slice, where: readonly string[], tops: Tops): void {
    const columns = `e.client, count(*) AS count, sum(e.outcome = ${BLOCKED}) AS blocked`;
    type Row = { client: number; count: number; blocked: number };
    for (const { client, count, blocked } of this.#all<Row>(columns, slice, where, "GROUP BY 1")) {
      const key = clientKey(this.#text("clients", client), this.#isAnonymized);
      if (key === "") continue;
      tops.clients.add(key, count);
      if (blocked > 0) tops.blocked_clients.add(key, blocked);
    }
  }

  #countLists(slice: Slice, where: readonly string[], tops: Tops): void {
    const list = "(SELECT substr(text, 1, instr(text, char(9)) - 1) FROM rules WHERE id = e.rule)";
    const blocked = [...where, `e.outcome = ${BLOCKED}`, "e.rule IS NOT NULL"];
    type Row = { list: string | null; count: number };
    const rows = this.#all<Row>(`${list} AS list, count(*) AS count`, slice, blocked, "GROUP BY 1");
    for (const { list, count } of rows) if (list !== null) tops.lists.add(list, count);
  }

  /** Hands on what was counted of each upstream. */
  #countUpstreams(
    slice: Slice,
    where: readonly string[],
    add: (row: CountRow, address: string, isFailure: boolean) => void,
    stepMs: number,
  ): void {
    const step = `e.id / ${stepMs * IDS_PER_MS}`;
    const columns = `${step} AS step, e.kind, e.outcome, ` +
      `${latencyBucketSql("e.duration")} AS bucket, count(*) AS count`;
    const kinds = new Map<number, { address: string; isFailure: boolean }>();
    const kindOf = (id: number) => {
      const known = kinds.get(id);
      if (known !== undefined) return known;
      const [, rcode, , , , address] = this.#text("kinds", id).split(TEXT_SEPARATOR);
      const kind = { address: address ?? "", isFailure: rcode === "SERVFAIL" };
      kinds.set(id, kind);
      return kind;
    };
    type Row = CountRow & { kind: number };
    // Most kinds name none: an upstream is the last of a text.
    const named = [...where, "e.kind IN (SELECT id FROM kinds WHERE text NOT GLOB '*' || char(9))"];
    for (const row of this.#all<Row>(columns, slice, named, "GROUP BY 1, 2, 3, 4")) {
      const { address, isFailure } = kindOf(row.kind);
      add(row, address, isFailure || row.outcome === FAILED);
    }
  }

  #text(table: "names" | "clients" | "kinds", id: number): string {
    const row = this.#db.prepare(`SELECT text FROM ${table} WHERE id = ?`).get(id);
    return String(row?.text ?? "");
  }
}

function addUpstreamRow(counts: number[], row: CountRow, isFailure: boolean): void {
  counts[0] += row.count;
  if (isFailure) counts[1] += row.count;
  counts[UPSTREAM_LATENCY_AT + row.bucket] += row.count;
}

function report(
  { startMs, stepMs, hours }: Window,
  { series, upstreams, previous }: Steps,
  top: LogStatistics["top"],
): LogStatistics {
  const timesMs = Array.from(
    { length: hours * HOUR_MS / stepMs },
    (_, i) => startMs + i * stepMs,
  );
  const sums = noCounts();
  for (const counts of series.values()) addTo(sums, counts);
  return {
    ...totalsOf(sums),
    series: timesMs.map((timeMs) => stepOf(timeMs, series.get(timeMs) ?? [])),
    previous: 2 * hours > HOURS_KEPT ? null : totalsOf(previous),
    top,
    upstreams: upstreamsOf(upstreams, timesMs),
  };
}
