import type { DatabaseSync } from "node:sqlite";
import { OUTCOME_NAMES, TEXT_SEPARATOR } from "../logqueue/mod.ts";
import type { Conditions } from "./conditions.ts";
import { IDS_PER_MS } from "./entries.ts";
import { clientKey } from "./entry.ts";
import { LATENCY_COUNTS, latencyBucketSql } from "./latency.ts";
import { timeOf } from "./search.ts";
import {
  addTo,
  HOURS_KEPT,
  type LogStatistics,
  noCounts,
  noUpstreamCounts,
  sketches,
  stepOf,
  topsOf,
  totalsOf,
  UPSTREAM_LATENCY_AT,
  upstreamsOf,
} from "./statistics.ts";

/** Entries of one step of the work: some tens of milliseconds, behind which others have their turn. */
const SLICE_ENTRIES = 20_000;
/** Addresses of one answer, and those that are put together between two turns of others. */
const SEEN_MAX = 10_000;
const SEEN_SLICE = 1_000;
/** Names and clients that are told apart. */
const SKETCH_CAPACITY = 2_000;
const HOUR_MS = 3_600_000;
const LATENCY_AT = OUTCOME_NAMES.length;
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

interface Slice {
  /** Numbers of entries: from, and up to without. */
  readonly from: number;
  readonly end: number;
}

interface CountRow {
  readonly step: number;
  readonly outcome: number;
  readonly bucket: number;
  readonly count: number;
}

/** Counts what the log still has, for some clients or by short steps. */
export class LogCounts {
  readonly #db: DatabaseSync;
  readonly #conditions: Conditions;
  readonly #isAnonymized: boolean;
  readonly #sliceEntries: number;

  /** `isAnonymized` says that the log has but the start of each address. */
  constructor(
    db: DatabaseSync,
    conditions: Conditions,
    isAnonymized: boolean,
    sliceEntries = SLICE_ENTRIES,
  ) {
    this.#db = db;
    this.#sliceEntries = sliceEntries;
    this.#conditions = conditions;
    this.#isAnonymized = isAnonymized;
  }

  /** Counts in pieces of work: whoever runs it may do something else between two of them. */
  *count(query: CountsQuery, nowMs: number): Generator<undefined, LogStatistics> {
    const { hours, stepMs, clients, group } = query;
    const endMs = (Math.floor(nowMs / stepMs) + 1) * stepMs;
    const startMs = endMs - hours * HOUR_MS;
    const steps = hours * HOUR_MS / stepMs;
    const timesMs = Array.from({ length: steps }, (_, i) => startMs + i * stepMs);
    const conditions = this.#conditions.of({
      ...(clients !== undefined && { clients }),
      ...(group !== undefined && { group }),
    });
    const previous = noCounts();
    const series = new Map<number, number[]>();
    const tops = sketches(SKETCH_CAPACITY);
    const names = sketches(SKETCH_CAPACITY);
    const upstreams = new Map<string, Map<number, number[]>>();
    for (const slice of this.#slices(startMs - hours * HOUR_MS, endMs)) {
      if (conditions === null) break;
      const where = conditions.map(({ sql }) => sql);
      for (const row of this.#counts(slice, where, stepMs)) {
        const timeMs = row.step * stepMs;
        const isPrevious = timeMs < startMs;
        const counts = isPrevious ? previous : series.get(timeMs) ?? noCounts();
        counts[row.outcome] += row.count;
        counts[LATENCY_AT + row.bucket] += row.count;
        if (!isPrevious) series.set(timeMs, counts);
      }
      const from = Math.max(slice.from, startMs * IDS_PER_MS);
      if (from < slice.end) {
        const present = { from, end: slice.end };
        this.#countNames(present, where, names);
        this.#countClients(present, where, tops);
        this.#countLists(present, where, tops);
        this.#countUpstreams(present, where, stepMs, upstreams);
      }
      yield undefined;
    }
    const sums = noCounts();
    for (const counts of series.values()) addTo(sums, counts);
    const { names: asked, blocked } = topsOf(names);
    const named = (rows: typeof asked) =>
      rows.map(({ name, count }) => ({ name: this.#text("names", Number(name)), count }))
        .sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1));
    return {
      ...totalsOf(sums),
      series: timesMs.map((timeMs) => stepOf(timeMs, series.get(timeMs) ?? [])),
      previous: 2 * hours > HOURS_KEPT ? null : totalsOf(previous),
      top: { ...topsOf(tops), names: named(asked), blocked: named(blocked) },
      upstreams: upstreamsOf(upstreams, timesMs),
    };
  }

  /** The addresses that asked in the last hours, the one that asked last first; in pieces of work. */
  *seen(hours: number, nowMs: number): Generator<undefined, readonly SeenAddress[]> {
    type Row = { client: number; count: number; blocked: number; last: number };
    const byClient = new Map<number, Row>();
    for (const slice of this.#slices(nowMs - hours * HOUR_MS, nowMs + HOUR_MS)) {
      const columns = `e.client, count(*) AS count, sum(e.outcome = ${BLOCKED}) AS blocked, ` +
        "max(e.id) AS last";
      for (const row of this.#all<Row>(columns, slice, [], "GROUP BY 1")) {
        const known = byClient.get(row.client);
        if (known === undefined) byClient.set(row.client, { ...row });
        else {
          known.count += row.count;
          known.blocked += row.blocked;
          known.last = row.last;
        }
      }
      yield undefined;
    }
    const found = new Map<string, SeenIds>();
    const oldest = this.#db.prepare("SELECT min(id) AS first FROM entries WHERE client = ?");
    for (const [i, { client, count, blocked, last }] of [...byClient.values()].entries()) {
      if (i % SEEN_SLICE === SEEN_SLICE - 1) yield undefined;
      const [address] = this.#text("clients", client).split(TEXT_SEPARATOR, 1);
      if (address === "") continue;
      const first = Number(oldest.get(client)?.first ?? last);
      const known = found.get(address) ?? { first, last, queries: 0, blocked: 0 };
      found.set(address, {
        first: Math.min(known.first, first),
        last: Math.max(known.last, last),
        queries: known.queries + count,
        blocked: known.blocked + blocked,
      });
    }
    return [...found].sort(([, a], [, b]) => b.last - a.last).slice(0, SEEN_MAX)
      .map(([address, { first, last, queries, blocked }]) => ({
        address,
        first_seen: timeOf(first),
        last_seen: timeOf(last),
        queries,
        blocked,
      }));
  }

  /** Spans of at most so many entries, the oldest first. */
  *#slices(startMs: number, endMs: number): Generator<Slice> {
    const behind = this.#db.prepare(
      "SELECT id FROM entries WHERE id >= ? ORDER BY id LIMIT 1 OFFSET ?",
    );
    const end = endMs * IDS_PER_MS;
    for (let from = Math.max(0, startMs) * IDS_PER_MS; from < end;) {
      const next = Math.min(end, Number(behind.get(from, this.#sliceEntries)?.id ?? end));
      yield { from, end: next };
      from = next;
    }
  }

  #all<R>(columns: string, { from, end }: Slice, where: readonly string[], rest: string): R[] {
    const all = [`e.id >= ${from} AND e.id < ${end}`, ...where].join(" AND ");
    const sql = `SELECT ${columns} FROM entries e NOT INDEXED WHERE ${all} ${rest}`;
    return this.#db.prepare(sql).all() as unknown as R[];
  }

  #counts(slice: Slice, where: readonly string[], stepMs: number): CountRow[] {
    const step = `e.id / ${stepMs * IDS_PER_MS}`;
    const columns = `${step} AS step, e.outcome, ${latencyBucketSql("e.duration")} AS bucket, ` +
      "count(*) AS count";
    return this.#all(columns, slice, where, "GROUP BY 1, 2, 3");
  }

  #countNames(slice: Slice, where: readonly string[], tops: ReturnType<typeof sketches>): void {
    const columns = `e.name, count(*) AS count, sum(e.outcome = ${BLOCKED}) AS blocked`;
    type Row = { name: number; count: number; blocked: number };
    for (const { name, count, blocked } of this.#all<Row>(columns, slice, where, "GROUP BY 1")) {
      tops.names.add(String(name), count);
      if (blocked > 0) tops.blocked.add(String(name), blocked);
    }
  }

  #countClients(slice: Slice, where: readonly string[], tops: ReturnType<typeof sketches>): void {
    const columns = `e.client, count(*) AS count, sum(e.outcome = ${BLOCKED}) AS blocked`;
    type Row = { client: number; count: number; blocked: number };
    for (const { client, count, blocked } of this.#all<Row>(columns, slice, where, "GROUP BY 1")) {
      const key = clientKey(this.#text("clients", client), this.#isAnonymized);
      if (key === "") continue;
      tops.clients.add(key, count);
      if (blocked > 0) tops.blocked_clients.add(key, blocked);
    }
  }

  #countLists(slice: Slice, where: readonly string[], tops: ReturnType<typeof sketches>): void {
    const list = "(SELECT substr(text, 1, instr(text, char(9)) - 1) FROM rules WHERE id = e.rule)";
    const blocked = [...where, `e.outcome = ${BLOCKED}`, "e.rule IS NOT NULL"];
    type Row = { list: string | null; count: number };
    const rows = this.#all<Row>(`${list} AS list, count(*) AS count`, slice, blocked, "GROUP BY 1");
    for (const { list, count } of rows) if (list !== null) tops.lists.add(list, count);
  }

  #countUpstreams(
    slice: Slice,
    where: readonly string[],
    stepMs: number,
    upstreams: Map<string, Map<number, number[]>>,
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
      const byTime = upstreams.get(address) ?? new Map<number, number[]>();
      const counts = byTime.get(row.step * stepMs) ?? noUpstreamCounts();
      counts[0] += row.count;
      if (isFailure || row.outcome === FAILED) counts[1] += row.count;
      counts[UPSTREAM_LATENCY_AT + Math.min(row.bucket, LATENCY_COUNTS - 1)] += row.count;
      upstreams.set(address, byTime.set(row.step * stepMs, counts));
    }
  }

  #text(table: "names" | "clients" | "kinds", id: number): string {
    const row = this.#db.prepare(`SELECT text FROM ${table} WHERE id = ?`).get(id);
    return String(row?.text ?? "");
  }
}
