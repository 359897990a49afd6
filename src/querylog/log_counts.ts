import { OUTCOME_NAMES, TEXT_SEPARATOR } from "../logqueue/mod.ts";
import { clientSteps, countDays, type Shares } from "./client_counts.ts";
import type { HourSeries } from "./client_hours.ts";
import { clientKey } from "./entry.ts";
import { clientNumber, subjectTest } from "./filter.ts";
import { DAY_MS } from "./local_days.ts";
import { type LogStatistics, stepOf, totalsOf, upstreamsOf } from "./log_statistics.ts";
import { Minutes, noCounts } from "./minutes.ts";
import { timeOf } from "./search.ts";
import { IDS_PER_MS } from "./segment.ts";
import type { Part, StoredLog } from "./segments.ts";
import { addTo, entryOf, HOURS_KEPT, type Statistics, type StepCounts } from "./statistics.ts";
import {
  countTops,
  listsOf,
  sketches,
  TOP_KINDS,
  TOP_ROWS,
  type TopLists,
  topsOf,
} from "./tops.ts";

/** Segments that are looked through for clients between two turns of others. */
const FIRST_SLICE = 100;
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
  last: number;
  queries: number;
  blocked: number;
}

interface SeenSoFar {
  readonly startMs: number;
  /** The number of the entry to go on with. */
  next: number;
  readonly byClient: Map<number, SeenRow>;
}

interface Window {
  readonly startMs: number;
  readonly endMs: number;
  readonly stepMs: number;
  readonly hours: number;
}

type Steps = Pick<StepCounts, "series" | "upstreams" | "previous">;

/** Counts by short steps, and, of what the log still has, for some clients. */
export class LogCounts {
  readonly #log: StoredLog;
  readonly #statistics: Statistics;
  /** Tops of what is counted of a window's first hour, by its beginning and the number of queries. */
  readonly #parts = new Map<string, TopLists>();
  /** Kept for the hours that were asked for last. */
  #seen: SeenSoFar | null = null;
  readonly #shares: Shares;
  readonly #isAnonymized: boolean;

  /** `isAnonymized` says that the log has but the start of each address. */
  constructor(log: StoredLog, statistics: Statistics, shares: Shares, isAnonymized: boolean) {
    this.#log = log;
    this.#statistics = statistics;
    this.#shares = shares;
    this.#isAnonymized = isAnonymized;
  }

  /** Counts in pieces of work: whoever runs it may do something else between two of them. */
  *count(query: CountsQuery, nowMs: number): Generator<undefined, LogStatistics> {
    const { hours, stepMs } = query;
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
    if (steps.part > 0) {
      const first = Math.ceil(startMs / HOUR_MS);
      const part = yield* this.#countTops(startMs, first * HOUR_MS, test);
      for (const kind of TOP_KINDS) steps.tops[kind].merge(part[kind]);
    }
    return report(window, steps, topsOf(steps.tops));
  }

  /** The tops of the log's entries of a time, of the clients that pass. */
  *#countTops(
    startMs: number,
    endMs: number,
    test: ((client: string) => boolean) | null,
  ): Generator<undefined, TopLists> {
    const tops = sketches(SKETCH_CAPACITY);
    for (const part of this.#between(startMs, endMs)) {
      for (const entry of this.#log.reader.counted(part)) {
        if (test !== null && !test(entry.client)) continue;
        countTops(tops, entry, clientKey(entry.client, this.#isAnonymized));
      }
      yield undefined;
    }
    return listsOf(tops, SKETCH_CAPACITY);
  }

  /** The parts of the log's entries of a time, the oldest first. */
  #between(startMs: number, endMs: number): Generator<Part> {
    return this.#log.segments.oldestFirst(startMs * IDS_PER_MS, endMs * IDS_PER_MS);
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
    for (const part of this.#between(hour * HOUR_MS, (hour + 1) * HOUR_MS)) {
      for (const entry of this.#log.reader.counted(part)) minutes.add(entry);
      yield undefined;
    }
    this.#statistics.fill(hour, minutes);
  }

  /** The tops of a window's part of its first hour, which ends with the hour `end`. */
  *#part(startMs: number, end: number, queries: number): Generator<undefined, TopLists> {
    const key = `${startMs} ${queries}`;
    const known = this.#parts.get(key);
    if (known !== undefined) return known;
    const oldest = this.#log.segments.oldest() ?? Infinity;
    if (queries > PART_ENTRIES_MAX || oldest >= startMs * IDS_PER_MS) {
      return this.#statistics.shareOf(end - 1, queries);
    }
    const found = yield* this.#countTops(startMs, end * HOUR_MS, null);
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
    for (const [i, [client, row]] of [...byClient].entries()) {
      if (i % SEEN_SLICE === SEEN_SLICE - 1) yield undefined;
      row.address ??= this.#log.reader.text("clients", client).split(TEXT_SEPARATOR, 1)[0];
    }
    yield* this.#findFirst(byClient);
    const found = new Map<string, SeenIds>();
    for (const { address, first, last, queries, blocked } of byClient.values()) {
      if (address === null || address === "") continue;
      const known = found.get(address) ?? { first: last, last, queries: 0, blocked: 0 };
      found.set(address, {
        first: Math.min(known.first, first ?? last),
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

  /** Finds the first entry of each address whose first one is not known, of all that the log has. */
  *#findFirst(byClient: ReadonlyMap<number, SeenRow>): Generator<undefined, void> {
    const rows = [...byClient.values()].filter(({ first, address }) => first === null && address);
    const byAddress = Map.groupBy(rows, ({ address }) => address);
    // An address may have been another client then: of another group, or without a name.
    const others = this.#log.db.prepare("SELECT id FROM clients WHERE text >= ? AND text < ?");
    const wanted = new Map<number, readonly SeenRow[]>();
    for (const [i, [address, own]] of [...byAddress].entries()) {
      if (i % SEEN_SLICE === SEEN_SLICE - 1) yield undefined;
      const start = `${address}${TEXT_SEPARATOR}`;
      for (const { id } of others.all(start, `${start}\u{10ffff}`)) wanted.set(Number(id), own);
    }
    let looked = 0;
    for (const part of this.#log.segments.oldestFirst(0, Number.MAX_SAFE_INTEGER)) {
      if (wanted.size === 0) return;
      if (looked++ % FIRST_SLICE === FIRST_SLICE - 1) yield undefined;
      const clients = part.list("clients");
      if (!clients.some((client) => wanted.has(client))) continue;
      const { columns, start, stop } = part.open();
      const places = columns.places("clients");
      for (let i = start; i < stop; i++) {
        for (const row of wanted.get(clients[places[i]]) ?? []) row.first ??= columns.ids[i];
      }
      for (const [client, [row]] of wanted) if (row.first !== null) wanted.delete(client);
    }
  }

  /** Counts clients from a time on; of those counted before, what has come since. */
  *#countSeen(startMs: number, endMs: number): Generator<undefined, SeenSoFar> {
    if (this.#seen?.startMs !== startMs) {
      this.#seen = { startMs, next: startMs * IDS_PER_MS, byClient: new Map() };
    }
    const seen = this.#seen;
    for (const part of this.#log.segments.oldestFirst(seen.next, endMs * IDS_PER_MS)) {
      const { columns, lists, start, stop } = part.open();
      const places = columns.places("clients");
      for (let i = start; i < stop; i++) {
        const client = lists.clients[places[i]];
        const row = entryOf(seen.byClient, client, newSeen);
        row.queries++;
        if (columns.outcomes[i] === BLOCKED) row.blocked++;
        row.last = columns.ids[i];
        seen.next = row.last + 1;
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
}

function newSeen(): SeenRow {
  return { address: null, first: null, last: 0, queries: 0, blocked: 0 };
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
