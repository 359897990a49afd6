import type { DatabaseSync } from "node:sqlite";
import { OUTCOME_NAMES } from "../logqueue/mod.ts";
import { IDS_PER_MS } from "./entries.ts";
import { type LogEntry, type LogFilter, showEntry } from "./entry.ts";
import { clientStart, clientTest, foldedName } from "./filter.ts";

/**
 * A condition that fewer entries meet is followed by its index; others are met soon enough. Where
 * there are several, entries that meet all of them may be few all the same.
 */
const INDEXED_MAX = 20_000;
const INDEXED_MAX_OF_SEVERAL = 100_000;
/** Entries that are looked through first where there are several conditions: many may meet them all. */
const NEWEST_MAX = 20_000;
/** Names that are looked for by number; more of them are everywhere in the log. */
const NAMES_MAX = 50_000;
const CLIENTS_MAX = 1_000;
/** Shorter texts have no three letters to be found by. */
const TRIGRAM_LENGTH = 3;

export interface LogPage {
  /** Newest first. */
  readonly entries: readonly LogEntry[];
  /** Where the next page starts; `null` where there is none. */
  readonly next: number | null;
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

/** A part of the condition, and the index that has what passes it. */
interface Condition {
  readonly sql: string;
  /** Names this index, and is empty where there is none to follow. */
  readonly index: "" | "entries_name" | "entries_client" | "entries_outcome";
}

/** Finds entries, newest first. Nothing else may use the table `wanted` meanwhile. */
export class LogSearch {
  readonly #db: DatabaseSync;
  readonly #isAnonymized: boolean;

  /** `isAnonymized` says that the log has but the start of each address. */
  constructor(db: DatabaseSync, isAnonymized: boolean) {
    this.#db = db;
    this.#isAnonymized = isAnonymized;
  }

  /** The newest `limit` entries that pass, of those before the number `before`. */
  find(filter: LogFilter, limit: number, before: number | null): LogPage {
    const { sinceMs = -1, untilMs = Infinity } = filter;
    const from = Math.max(0, Math.floor(sinceMs) + 1) * IDS_PER_MS;
    const end = Math.min(
      before ?? Number.MAX_SAFE_INTEGER,
      Math.max(0, Math.ceil(untilMs)) * IDS_PER_MS,
      Number.MAX_SAFE_INTEGER,
    );
    const range = `e.id >= ${from} AND e.id < ${end}`;
    const conditions = this.#conditions(filter);
    if (conditions === null || from >= end) return { entries: [], next: null };
    const where = [range, ...conditions.map(({ sql }) => sql)].join(" AND ");
    let rows: Row[] = [];
    if (conditions.length > 1) {
      const newest = `SELECT * FROM entries e NOT INDEXED WHERE ${range} ORDER BY e.id DESC`;
      rows = this.#rows(`(${newest} LIMIT ${NEWEST_MAX}) e`, where, limit + 1);
    }
    if (rows.length <= limit) {
      const index = this.#choose(conditions, range);
      const by = index === "" ? "NOT INDEXED" : `INDEXED BY ${index}`;
      rows = this.#rows(`entries e ${by}`, where, limit + 1);
    }
    const page = rows.slice(0, limit);
    const next = rows.length > limit ? page[page.length - 1].id : null;
    return { entries: page.map(showRow), next };
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

  /** What a filter says in SQL; `null` where nothing can pass it. */
  #conditions(filter: LogFilter): Condition[] | null {
    const conditions: Condition[] = [];
    if (filter.outcome !== undefined) {
      const outcome = OUTCOME_NAMES.indexOf(filter.outcome);
      conditions.push({ sql: `e.outcome = ${outcome}`, index: "entries_outcome" });
    }
    if (filter.client !== undefined) {
      const ids = this.#clientsOf(filter.client);
      if (ids.length === 0) return null;
      conditions.push({ sql: `e.client IN (${ids.join(", ")})`, index: "entries_client" });
    }
    if (filter.name !== undefined) {
      const isSet = this.#wantNames(filter.name);
      if (isSet === null) return null;
      conditions.push(
        isSet ? { sql: "e.name IN (SELECT id FROM wanted)", index: "entries_name" } : {
          sql: `(SELECT instr(text, ${
            quote(foldedName(filter.name))
          }) FROM names WHERE id = e.name)`,
          index: "",
        },
      );
    }
    return conditions;
  }

  /** The index of the condition that fewest entries pass; "" where the newest entries are as good. */
  #choose(conditions: readonly Condition[], range: string): Condition["index"] {
    const most = conditions.length > 1 ? INDEXED_MAX_OF_SEVERAL : INDEXED_MAX;
    let best: { index: Condition["index"]; count: number } = { index: "", count: most };
    for (const { sql, index } of conditions) {
      if (index === "") continue;
      const count = Number(
        this.#db.prepare(`SELECT count(*) AS count FROM (
          SELECT 1 FROM entries e INDEXED BY ${index} WHERE ${sql} AND ${range} LIMIT ${best.count}
        )`).get()?.count,
      );
      if (count < best.count) best = { index, count };
    }
    if (best.index !== "" || conditions.length !== 1) return best.index;
    // This one has its entries in order.
    return conditions[0].index === "entries_outcome" ? "entries_outcome" : "";
  }

  /** The numbers of the clients with an address; or with a name or client ID, for what is none. */
  #clientsOf(client: string): number[] {
    const start = clientStart(client, this.#isAnonymized);
    if (start !== null) {
      // Behind every text that starts so: a tab is followed by no higher byte than these.
      const rows = this.#db.prepare(
        "SELECT id FROM clients WHERE text >= ? AND text < ? LIMIT ?",
      ).all(start, `${start}\u{10ffff}`, CLIENTS_MAX);
      return rows.map(({ id }) => Number(id));
    }
    const test = clientTest(client, this.#isAnonymized);
    const rows = this.#db.prepare("SELECT id, text FROM clients").all();
    return rows.filter(({ text }) => test(String(text))).slice(0, CLIENTS_MAX)
      .map(({ id }) => Number(id));
  }

  /**
   * Puts the numbers of the names with a text into `wanted`. Returns `false` where they are too many
   * for that, and `null` where there are none.
   */
  #wantNames(name: string): boolean | null {
    const text = foldedName(name);
    this.#db.exec("DELETE FROM wanted");
    const matching = text.length >= TRIGRAM_LENGTH
      ? "SELECT rowid FROM names_text WHERE names_text MATCH ? LIMIT ?"
      : "SELECT id FROM names WHERE instr(text, ?) LIMIT ?";
    const phrase = text.length >= TRIGRAM_LENGTH ? `"${text.replaceAll('"', '""')}"` : text;
    const found = Number(
      this.#db.prepare(`INSERT INTO wanted ${matching}`).run(phrase, NAMES_MAX).changes,
    );
    return found === 0 ? null : found < NAMES_MAX;
  }
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

function showRow(row: Row): LogEntry {
  return showEntry({
    timeMs: Math.floor(row.id / IDS_PER_MS),
    durationUs: row.duration,
    outcome: row.outcome,
    name: row.name,
    client: row.client,
    kind: row.kind,
    rule: row.rule ?? "",
    answers: row.answers ?? "",
  });
}
