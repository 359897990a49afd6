import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { KeptText, TextRow } from "./byte_texts.ts";

/** Tables of texts that entries share. */
export const DICTIONARIES = ["names", "clients", "kinds", "rules", "answers"] as const;
export type DictionaryName = typeof DICTIONARIES[number];

/** Texts whose numbers are kept ready, in each of two halves. */
const KNOWN_MAX = 16_384;

/**
 * A table of texts with a number each. A row notes the epoch it was last used in, and so is known to
 * be in no entry's use once every entry of that epoch is gone.
 */
export class Dictionary {
  readonly #name: DictionaryName;
  readonly #find: StatementSync | null;
  readonly #insert: StatementSync;
  readonly #use: StatementSync;
  readonly #index: StatementSync | null;
  readonly #unindex: StatementSync | null;
  readonly #page: StatementSync;
  readonly #remove: StatementSync;
  /** Two halves: when the newer is full it becomes the older, and that is forgotten. */
  #known = new Map<string, TextRow>();
  #older = new Map<string, TextRow>();
  /** Of the rows that hold: another one once all are forgotten. */
  #owner = {};

  constructor(db: DatabaseSync, name: DictionaryName) {
    this.#name = name;
    // Answers are long and many: finding each again would take an index as large as they are.
    this.#find = name === "answers"
      ? null
      : db.prepare(`SELECT id, used FROM ${name} WHERE text = ?`);
    this.#insert = db.prepare(`INSERT INTO ${name} (text, used) VALUES (?, ?)`);
    this.#use = db.prepare(`UPDATE ${name} SET used = ? WHERE id = ?`);
    const isSearched = name === "names";
    this.#index = isSearched
      ? db.prepare("INSERT INTO names_text (rowid, text) VALUES (?, ?)")
      : null;
    this.#unindex = isSearched
      ? db.prepare("INSERT INTO names_text (names_text, rowid, text) VALUES ('delete', ?, ?)")
      : null;
    this.#page = db.prepare(`SELECT id, text, used FROM ${name} WHERE id > ? ORDER BY id LIMIT ?`);
    this.#remove = db.prepare(`DELETE FROM ${name} WHERE id = ?`);
  }

  get name(): DictionaryName {
    return this.#name;
  }

  /** The number of a text, which is in use in this epoch; `kept`, where there is one, is its own. */
  idOf(text: string, epoch: number, kept: KeptText | null = null): number {
    if (kept === null) return this.#rowOf(text, epoch).id;
    let { row } = kept;
    // What was used in this epoch is not removed in it.
    if (row === null || row.epoch !== epoch || row.owner !== this.#owner) {
      row = kept.row = this.#rowOf(text, epoch);
    }
    return row.id;
  }

  #rowOf(text: string, epoch: number): TextRow {
    const newer = this.#known.get(text);
    if (newer !== undefined && newer.epoch === epoch) return newer;
    const known = newer ?? this.#older.get(text);
    if (known !== undefined) {
      // Where the row has gone meanwhile, its number may be another's.
      if (known.epoch === epoch || Number(this.#use.run(epoch, known.id).changes) > 0) {
        return this.#keep(text, known.id, epoch);
      }
    }
    const row = this.#find?.get(text) as { id: number; used: number } | undefined;
    if (row !== undefined) {
      if (row.used !== epoch) this.#use.run(epoch, row.id);
      return this.#keep(text, row.id, epoch);
    }
    const id = Number(this.#insert.run(text, epoch).lastInsertRowid);
    this.#index?.run(id, text);
    return this.#keep(text, id, epoch);
  }

  #keep(text: string, id: number, epoch: number): TextRow {
    const known = this.#known.get(text);
    if (known !== undefined && known.id === id) {
      known.epoch = epoch;
      return known;
    }
    if (this.#known.size >= KNOWN_MAX) {
      this.#older = this.#known;
      this.#known = new Map();
    }
    const row: TextRow = { id, epoch, owner: this.#owner };
    this.#known.set(text, row);
    return row;
  }

  /** Forgets what it knows of the table: a transaction was undone. */
  forget(): void {
    this.#known.clear();
    this.#older.clear();
    this.#owner = {};
  }

  /**
   * Looks at the `count` rows behind `after` and removes those that were last used before `epoch`.
   * Returns the last of them, or 0 at the table's end.
   */
  sweep(after: number, count: number, epoch: number): number {
    const rows = this.#page.all(after, count) as { id: number; text: string; used: number }[];
    for (const { id, text, used } of rows) {
      if (used >= epoch) continue;
      this.#unindex?.run(id, text);
      this.#remove.run(id);
      // Its number may become another text's.
      this.#known.delete(text);
      this.#older.delete(text);
    }
    return rows.length < count ? 0 : rows[rows.length - 1].id;
  }
}
