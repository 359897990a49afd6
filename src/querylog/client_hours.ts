import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Correction } from "../clock/mod.ts";
import { OUTCOME_NAMES } from "../logqueue/mod.ts";
import { textHash } from "./byte_texts.ts";
import { listOf, type StoredEntry } from "./entry.ts";
import { countOfRow, type MinuteRows, Minutes } from "./minutes.ts";
import { timeOf } from "./search.ts";
import { IDS_PER_MS } from "./segment.ts";
import type { StoredLog } from "./segments.ts";
import { keepMost, type Sharers } from "./sharers.ts";
import { type TopRow, TopSketch } from "./top_sketch.ts";

const HOUR_MS = 3_600_000;
/** As long as other counts by the hour. */
const HOURS_MAX = 720;
/** Clients of an hour that are told apart: those that ask most. */
const CLIENTS_MAX = 200;
/** Hours of clients there are at most; the oldest go first. A household has some five thousand a week. */
const ROWS_MAX = 50_000;
/** Names of a client's hour. */
const NAMES_MAX = 100;
/** Hours that stay in memory, as those of all do. */
const OPEN_MAX = 2;
/** Clients of one step of the work where no entries are read. */
const SERIES_SLICE = 50;
const BLOCKED = OUTCOME_NAMES.indexOf("blocked");
/** The number of no client: its row says that the hour was counted from its beginning. */
const WHOLE = 0;

const TOPS = ["names", "blocked", "lists"] as const;
export type ClientTops = Record<typeof TOPS[number], readonly TopRow[]>;

/** What a client asked within an hour. */
interface Tally {
  readonly minutes: Minutes;
  readonly tops: Record<typeof TOPS[number], TopSketch>;
  queries: number;
}

type Tallies = Map<string, Tally>;

export interface ClientHour {
  readonly hour: number;
  readonly client: string;
  readonly minutes: MinuteRows;
  readonly tops: ClientTops;
}

/** Queries by the hour, from an hour on. */
export interface HourSeries {
  /** RFC 3339. */
  readonly since: string;
  /** How many clients asked. */
  readonly active: readonly number[];
  /** Of each client that was asked for. */
  readonly counts: readonly (readonly number[])[];
}

/** What of clients is kept, and for how long. */
export interface ClientHoursOptions {
  /** Entries are kept for so long: so are the names that a client asked for. */
  readonly retentionMs: number;
  /** Nothing is told of what a client asked for: there are no entries either. */
  readonly isNameless: boolean;
}

/** Counts by the hour of each client: whoever asks for one's figures reads no entries for it. */
export class ClientHours {
  readonly #db: DatabaseSync;
  readonly #log: StoredLog;
  readonly #sharers: Sharers;
  readonly #options: ClientHoursOptions;
  readonly #read: StatementSync;
  readonly #readHour: StatementSync;
  readonly #write: StatementSync;
  /** By hours since 1970; `null`: not from its beginning, so the log is asked. */
  readonly #open = new Map<number, Tallies | null>();
  readonly #unsaved = new Set<number>();
  /** Hours from this one on are counted from their beginning. */
  #sinceHour: number;
  #trimmedHour = -Infinity;

  constructor(log: StoredLog, sharers: Sharers, options: ClientHoursOptions) {
    const { db } = log;
    this.#db = db;
    this.#log = log;
    this.#sharers = sharers;
    this.#options = options;
    this.#read = db.prepare(
      "SELECT hour, counts, top FROM client_hours WHERE client = ? AND hour BETWEEN ? AND ?",
    );
    this.#readHour = db.prepare("SELECT client, counts, top FROM client_hours WHERE hour = ?");
    this.#write = db.prepare("INSERT OR REPLACE INTO client_hours VALUES (?, ?, ?, ?)");
    const since = db.prepare("SELECT hour FROM client_hours_since").get();
    this.#sinceHour = Number(since?.hour ?? this.#beginAfter());
  }

  /** Hours that begin behind the newest entry are counted from their beginning. */
  #beginAfter(): number {
    const newest = this.#log.segments.newest();
    const hour = newest === null ? 0 : Math.floor(newest / IDS_PER_MS / HOUR_MS) + 1;
    this.#db.exec("DELETE FROM client_hours_since");
    this.#db.prepare("INSERT INTO client_hours_since VALUES (?)").run(hour);
    return hour;
  }

  /** Counts an entry; without a name where none is kept of it. */
  add(entry: StoredEntry, hasName: boolean, nameHash = textHash(entry.name)): void {
    const hour = hourOf(entry.timeMs);
    const tallies = this.#talliesOf(hour);
    if (tallies === null) return;
    addTo(tallies, entry, hasName && !this.#options.isNameless, nameHash);
    keepMost(tallies, CLIENTS_MAX, queriesOf);
    this.#unsaved.add(hour);
  }

  #talliesOf(hour: number): Tallies | null {
    let tallies = this.#open.get(hour);
    if (tallies !== undefined) return tallies;
    const rows = this.#readHour.all(hour) as unknown as Row[];
    const isWhole = hour >= this.#sinceHour || rows.some(({ client }) => client === WHOLE);
    tallies = isWhole ? this.#load(rows) : null;
    this.#open.set(hour, tallies);
    return tallies;
  }

  #load(rows: readonly Row[]): Tallies {
    return new Map(
      rows.filter(({ client }) => client !== WHOLE).map(({ client, counts, top }) => {
        const minutes = JSON.parse(counts) as MinuteRows;
        const tops = JSON.parse(top) as ClientTops;
        const sketch = (kind: typeof TOPS[number]) => new TopSketch(NAMES_MAX, tops[kind]);
        return [this.#sharers.textOf(client), {
          minutes: new Minutes(minutes),
          tops: { names: sketch("names"), blocked: sketch("blocked"), lists: sketch("lists") },
          queries: minutes.all.reduce((sum, row) => sum + countOfRow(row), 0),
        }];
      }),
    );
  }

  /** Writes what was counted, and removes what is too old or too much; `null`: nothing is too old. */
  save(nowMs: number | null): void {
    for (const hour of this.#unsaved) this.#saveHour(hour);
    this.#unsaved.clear();
    const hours = [...this.#open.keys()].sort((a, b) => b - a);
    for (const hour of hours.slice(OPEN_MAX)) this.#open.delete(hour);
    if (nowMs === null || hourOf(nowMs) === this.#trimmedHour) return;
    this.#trimmedHour = hourOf(nowMs);
    const kept = Math.min(HOURS_MAX, Math.ceil(this.#options.retentionMs / HOUR_MS));
    this.#db.prepare("DELETE FROM client_hours WHERE hour < ?").run(hourOf(nowMs) - kept);
    this.#db.prepare(
      "DELETE FROM client_hours WHERE hour <= " +
        "(SELECT hour FROM client_hours ORDER BY hour DESC LIMIT 1 OFFSET ?)",
    ).run(ROWS_MAX);
    this.#sharers.sweep();
  }

  #saveHour(hour: number): void {
    const tallies = this.#open.get(hour);
    if (tallies === undefined || tallies === null) return;
    keepMost(tallies, CLIENTS_MAX, queriesOf);
    this.#write.run(WHOLE, hour, "", "");
    for (const [text, { minutes, tops }] of tallies) {
      const top = Object.fromEntries(TOPS.map((kind) => [kind, tops[kind].top(NAMES_MAX)]));
      const counts = JSON.stringify(minutes.rows());
      this.#write.run(this.#sharers.idOf(text), hour, counts, JSON.stringify(top));
    }
  }

  /**
   * What clients that pass asked in some hours, hour by hour; in pieces of work. Hours that an
   * earlier program has not counted so are counted now, once, of the log.
   */
  *find(
    test: (text: string) => boolean,
    first: number,
    last: number,
  ): Generator<undefined, ClientHour[]> {
    for (const hour of this.#uncounted(first, last)) yield* this.#fill(hour);
    const found: ClientHour[] = [];
    const isOpen = (hour: number) => (this.#open.get(hour) ?? null) !== null;
    for (const { id, text } of this.#sharers.matching(test)) {
      for (const { hour, counts, top } of this.#read.all(id, first, last) as unknown as Row[]) {
        if (isOpen(hour)) continue;
        found.push({ hour, client: text, minutes: JSON.parse(counts), tops: JSON.parse(top) });
      }
    }
    for (const [hour, tallies] of this.#open) {
      if (tallies === null || hour < first || hour > last) continue;
      for (const [client, { minutes, tops }] of tallies) {
        if (!test(client)) continue;
        const { names, blocked, lists } = tops;
        const all = (sketch: TopSketch) => sketch.top(NAMES_MAX);
        found.push({
          ...{ hour, client, minutes: minutes.rows() },
          tops: { names: all(names), blocked: all(blocked), lists: all(lists) },
        });
      }
    }
    return found;
  }

  /**
   * Queries by the hour of some clients, by what `numberOf` gives a client's text (-1: none of them),
   * and how many clients asked in each; in pieces of work. Reads no entries: begins behind the last
   * hour that was not counted so.
   */
  *series(
    numberOf: (text: string) => number,
    clients: number,
    wanted: number,
    last: number,
  ): Generator<undefined, HourSeries> {
    const first = Math.max(wanted, (this.#uncounted(wanted, last).at(-1) ?? -Infinity) + 1);
    const none = () => Array.from({ length: last - first + 1 }, () => 0);
    const [active, counts] = [none(), Array.from({ length: clients }, none)];
    const isOpen = (hour: number) => (this.#open.get(hour) ?? null) !== null;
    const asked = this.#db.prepare(
      "SELECT hour, count(*) AS count FROM client_hours " +
        "WHERE hour BETWEEN ? AND ? AND client <> ? GROUP BY 1",
    );
    for (const { hour, count } of asked.all(first, last, WHOLE)) {
      if (!isOpen(Number(hour))) active[Number(hour) - first] = Number(count);
    }
    const read = this.#db.prepare(
      "SELECT hour, counts FROM client_hours WHERE client = ? AND hour BETWEEN ? AND ?",
    );
    type Counts = Pick<Row, "hour" | "counts">;
    for (const [i, { id, text }] of this.#sharers.matching((one) => numberOf(one) >= 0).entries()) {
      if (i % SERIES_SLICE === SERIES_SLICE - 1) yield undefined;
      const own = counts[numberOf(text)];
      for (const { hour, counts } of read.all(id, first, last) as unknown as Counts[]) {
        const { all } = JSON.parse(counts) as MinuteRows;
        if (!isOpen(hour)) own[hour - first] += all.reduce((sum, row) => sum + countOfRow(row), 0);
      }
    }
    for (const [hour, tallies] of this.#open) {
      if (tallies === null || hour < first || hour > last) continue;
      active[hour - first] = tallies.size;
      for (const [text, { queries }] of tallies) {
        const number = numberOf(text);
        if (number >= 0) counts[number][hour - first] += queries;
      }
    }
    return { since: timeOf(first * HOUR_MS * IDS_PER_MS), active, counts };
  }

  /** Hours with entries that nobody counted from their beginning. */
  #uncounted(first: number, last: number): number[] {
    const whole = this.#db.prepare("SELECT 1 FROM client_hours WHERE client = ? AND hour = ?");
    const found: number[] = [];
    const end = Math.min(last + 1, this.#sinceHour);
    for (let hour = first; hour < end; hour++) {
      const id = this.#log.segments.next(Math.max(0, hour) * HOUR_MS * IDS_PER_MS);
      hour = id === null ? end : Math.floor(id / IDS_PER_MS / HOUR_MS);
      const isCounted = (this.#open.get(hour) ?? null) !== null ||
        whole.get(WHOLE, hour) !== undefined;
      if (hour < end && !isCounted) found.push(hour);
    }
    return found;
  }

  /** Counts an hour of the log's entries; nothing comes between the last look and that. */
  *#fill(hour: number): Generator<undefined, void> {
    const tallies: Tallies = new Map();
    const [from, end] = [hour, hour + 1].map((one) => one * HOUR_MS * IDS_PER_MS);
    for (const part of this.#log.segments.oldestFirst(from, end)) {
      for (const entry of this.#log.reader.counted(part)) {
        addTo(tallies, entry, true, textHash(entry.name));
        keepMost(tallies, CLIENTS_MAX, queriesOf);
      }
      yield undefined;
    }
    const isOpen = this.#open.has(hour);
    this.#open.set(hour, tallies);
    this.#db.exec("BEGIN IMMEDIATE");
    try {
      this.#saveHour(hour);
      this.#db.exec("COMMIT");
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
      this.#sharers.undo();
      this.#open.delete(hour);
      throw error;
    }
    if (!isOpen) this.#open.delete(hour);
  }

  /** Hours that a correction is about are counted anew, when its entries are where they belong. */
  forget({ fromMs, shiftMs }: Correction): void {
    const from = Math.min(hourOf(fromMs), hourOf(fromMs + shiftMs));
    this.#db.prepare("DELETE FROM client_hours WHERE hour >= ?").run(from);
    this.#open.clear();
    this.#unsaved.clear();
    this.#sinceHour = this.#beginAfter();
  }

  /** Has everything in memory written again: a transaction was undone. */
  undo(): void {
    for (const hour of this.#open.keys()) this.#unsaved.add(hour);
  }
}

interface Row {
  readonly client: number;
  readonly hour: number;
  readonly counts: string;
  readonly top: string;
}

function addTo(
  tallies: Tallies,
  entry: StoredEntry,
  hasName: boolean,
  nameHash: number,
): void {
  let tally = tallies.get(entry.client);
  if (tally === undefined) {
    const sketch = () => new TopSketch(NAMES_MAX);
    const tops = { names: sketch(), blocked: sketch(), lists: sketch() };
    tallies.set(entry.client, tally = { minutes: new Minutes(), tops, queries: 0 });
  }
  tally.queries++;
  tally.minutes.add(entry);
  const { names, blocked, lists } = tally.tops;
  if (hasName) {
    names.add(entry.name, 1, nameHash);
    if (entry.outcome === BLOCKED) blocked.add(entry.name, 1, nameHash);
  }
  const list = entry.outcome === BLOCKED ? listOf(entry.rule) : "";
  if (list !== "") lists.add(list);
}

function queriesOf({ queries }: Tally): number {
  return queries;
}

function hourOf(timeMs: number): number {
  return Math.floor(timeMs / HOUR_MS);
}
