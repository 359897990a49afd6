import type { DatabaseSync } from "node:sqlite";
import type { Conditions } from "./conditions.ts";
import { IDS_PER_MS } from "./entries.ts";
import { type LogEntry, type LogFilter, showEntry } from "./entry.ts";

/** Entries that are looked through first where there are several conditions: many may meet them all. */
const NEWEST_MAX = 20_000;
/** Most entries whose names are counted. */
const GROUPED_MAX = 100_000;

export interface LogPage {
  /** Newest first. */
  readonly entries: readonly LogEntry[];
  /** Where the next page starts; `null` where there is none. */
  readonly next: number | null;
}

/** Entries by their name. */
export interface NamePage {
  readonly names: readonly NameCount[];
  readonly next: number | null;
}

/** A name, how many entries it has, and the times of the first and the last of them. */
export interface NameCount {
  readonly name: string;
  readonly count: number;
  readonly first: string;
  readonly last: string;
}

interface NameRow {
  readonly name: string;
  readonly count: number;
  readonly first: number;
  readonly last: number;
}

interface Row {
  readonly id: number;
  readonly name: string;
  readonly client: string;
  readonly outcome: number;
  readonly kind: string;
  readonly rule: string | null;
  readonly answers: string | null;
  readonly duration: number;
}

/** Finds entries, newest first. Nothing else may use the table `wanted` meanwhile. */
export class LogSearch {
  readonly #db: DatabaseSync;
  readonly #conditions: Conditions;

  constructor(db: DatabaseSync, conditions: Conditions) {
    this.#db = db;
    this.#conditions = conditions;
  }

  /** The newest `limit` entries that pass, of those before the number `before`. */
  find(filter: LogFilter, limit: number, before: number | null): LogPage {
    const range = rangeOf(filter, before);
    const conditions = this.#conditions.of(filter);
    if (conditions === null || range === null) return { entries: [], next: null };
    const where = [range, ...conditions.map(({ sql }) => sql)].join(" AND ");
    let rows: Row[] = [];
    if (conditions.length > 1) {
      const newest = `SELECT * FROM entries e NOT INDEXED WHERE ${range} ORDER BY e.id DESC`;
      rows = this.#rows(`(${newest} LIMIT ${NEWEST_MAX}) e`, where, limit + 1);
    }
    if (rows.length <= limit) {
      rows = this.#rows(this.#conditions.source(conditions, range), where, limit + 1);
    }
    const page = rows.slice(0, limit);
    const next = rows.length > limit ? page[page.length - 1].id : null;
    return { entries: page.map(showRow), next };
  }

  /**
   * The names of the newest entries that pass, 100,000 of them at most, each with how often it is
   * there; the one that was asked for last comes first. `before` is a number of the former page.
   */
  names(filter: LogFilter, limit: number, before: number | null): NamePage {
    const range = rangeOf(filter, null);
    const conditions = this.#conditions.of(filter);
    if (conditions === null || range === null) return { names: [], next: null };
    const where = [range, ...conditions.map(({ sql }) => sql)].join(" AND ");
    const source = this.#conditions.source(conditions, range);
    const rows = this.#db.prepare(`
      SELECT n.text AS name, f.count, f.first, f.last FROM (
        SELECT e.name, count(*) AS count, min(e.id) AS first, max(e.id) AS last
        FROM (SELECT e.id, e.name FROM ${source} WHERE ${where} ORDER BY e.id DESC LIMIT ?) e
        GROUP BY e.name HAVING last < ? ORDER BY last DESC LIMIT ?
      ) f LEFT JOIN names n ON n.id = f.name ORDER BY f.last DESC`).all(
      GROUPED_MAX,
      before ?? Number.MAX_SAFE_INTEGER,
      limit + 1,
    ) as unknown as NameRow[];
    const page = rows.slice(0, limit);
    return {
      names: page.map(({ name, count, first, last }) => ({
        name,
        count,
        first: timeOf(first),
        last: timeOf(last),
      })),
      next: rows.length > limit ? page[page.length - 1].last : null,
    };
  }

  /** The newest entries of a source of them that pass. */
  #rows(source: string, where: string, count: number): Row[] {
    return this.#db.prepare(`
      SELECT e.id, n.text AS name, c.text AS client, e.outcome, k.text AS kind, r.text AS rule,
        a.text AS answers, e.duration
      FROM (SELECT e.id FROM ${source} WHERE ${where} ORDER BY e.id DESC LIMIT ?) f
      CROSS JOIN entries e ON e.id = f.id
      LEFT JOIN names n ON n.id = e.name
      LEFT JOIN clients c ON c.id = e.client
      LEFT JOIN kinds k ON k.id = e.kind
      LEFT JOIN rules r ON r.id = e.rule
      LEFT JOIN answers a ON a.id = e.answers
      ORDER BY e.id DESC`).all(count) as unknown as Row[];
  }
}

/** The entries that the filter's times and numbers let pass, in SQL; `null` where there are none. */
function rangeOf(
  { sinceMs = -1, untilMs = Infinity, afterId = -1 }: LogFilter,
  before: number | null,
) {
  const from = Math.max(0, (Math.floor(sinceMs) + 1) * IDS_PER_MS, afterId + 1);
  const end = Math.min(
    before ?? Number.MAX_SAFE_INTEGER,
    Math.max(0, Math.ceil(untilMs)) * IDS_PER_MS,
    Number.MAX_SAFE_INTEGER,
  );
  return from >= end ? null : `e.id >= ${from} AND e.id < ${end}`;
}

export function timeOf(id: number): string {
  return new Date(Math.floor(id / IDS_PER_MS)).toISOString();
}

function showRow(row: Row): LogEntry {
  const stored = {
    timeMs: Math.floor(row.id / IDS_PER_MS),
    durationUs: row.duration,
    outcome: row.outcome,
    name: row.name,
    client: row.client,
    kind: row.kind,
    rule: row.rule ?? "",
    answers: row.answers ?? "",
  };
  return { id: row.id, ...showEntry(stored) };
}
