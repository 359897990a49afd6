import type { DatabaseSync } from "node:sqlite";
import { OUTCOME_NAMES, TEXT_SEPARATOR } from "../logqueue/mod.ts";
import type { LogFilter } from "./entry.ts";
import { clientStart, clientTest, foldedName, groupPattern, kindPattern } from "./filter.ts";

/**
 * A condition that fewer entries meet is followed by its index; others are met soon enough. Where
 * there are several, entries that meet all of them may be few all the same.
 */
const INDEXED_MAX = 20_000;
const INDEXED_MAX_OF_SEVERAL = 100_000;
/** Names that are looked for by number; more of them are everywhere in the log. */
const NAMES_MAX = 50_000;
const CLIENTS_MAX = 1_000;
/** Shorter texts have no three letters to be found by. */
const TRIGRAM_LENGTH = 3;

/** A part of the condition, and the index that has what passes it. */
export interface Condition {
  readonly sql: string;
  /** Names this index, and is empty where there is none to follow. */
  readonly index: "" | "entries_name" | "entries_client" | "entries_outcome";
}

/** What filters say in SQL. Nothing else may use the table `wanted` meanwhile. */
export class Conditions {
  readonly #db: DatabaseSync;
  readonly #isAnonymized: boolean;

  /** `isAnonymized` says that the log has but the start of each address. */
  constructor(db: DatabaseSync, isAnonymized: boolean) {
    this.#db = db;
    this.#isAnonymized = isAnonymized;
  }

  /** What a filter says in SQL; `null` where nothing can pass it. */
  of(filter: LogFilter): Condition[] | null {
    // No text of the log has it, and SQL ends there.
    if (Object.values(filter).some((value) => typeof value === "string" && value.includes("\0"))) {
      return null;
    }
    const conditions: Condition[] = [];
    if (filter.outcomes !== undefined) {
      const numbers = filter.outcomes.map((outcome) => OUTCOME_NAMES.indexOf(outcome));
      conditions.push({ sql: `e.outcome IN (${numbers.join(", ")})`, index: "entries_outcome" });
    }
    const among = (column: string, table: string, where: string) =>
      conditions.push({
        sql: `e.${column} IN (SELECT id FROM ${table} WHERE ${where})`,
        index: "",
      });
    const kind = kindPattern(filter);
    if (kind !== null) among("kind", "kinds", `text GLOB ${quote(kind)}`);
    if (filter.group !== undefined) {
      among("client", "clients", `text GLOB ${quote(groupPattern(filter.group))}`);
    }
    if (filter.list !== undefined) {
      const start = filter.list + TEXT_SEPARATOR;
      among("rule", "rules", `text >= ${quote(start)} AND text < ${quote(`${start}\u{10ffff}`)}`);
    }
    if (filter.client !== undefined) {
      const ids = this.#clientsOf(filter.client);
      if (ids.length === 0) return null;
      conditions.push({ sql: `e.client IN (${ids.join(", ")})`, index: "entries_client" });
    }
    if (filter.clients !== undefined) {
      const tests = filter.clients.map((client) => clientTest(client, this.#isAnonymized));
      const ids = this.#clientsThat((text) => tests.some((test) => test(text)));
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

  /** The table of entries by the index that leads to those that pass soonest. */
  source(conditions: readonly Condition[], range: string): string {
    const index = this.#choose(conditions, range);
    return index === "" ? "entries e NOT INDEXED" : `entries e INDEXED BY ${index}`;
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
    // This one has its entries in order, as long as there is one outcome.
    return conditions[0].sql.startsWith("e.outcome IN (") && !conditions[0].sql.includes(",")
      ? "entries_outcome"
      : "";
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
    return this.#clientsThat(clientTest(client, this.#isAnonymized));
  }

  #clientsThat(test: (text: string) => boolean): number[] {
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
