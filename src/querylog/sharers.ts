import type { DatabaseSync, StatementSync } from "node:sqlite";

/** Clients that one question is about. */
const FOUND_MAX = 1_000;
/** Numbers that are kept ready. */
const KNOWN_MAX = 4_096;

/** Clients that are counted by themselves, as texts with a number each; see `clientText`. */
export class Sharers {
  readonly #db: DatabaseSync;
  readonly #find: StatementSync;
  readonly #insert: StatementSync;
  readonly #known = new Map<string, number>();

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#find = db.prepare("SELECT id FROM sharers WHERE text = ?");
    this.#insert = db.prepare("INSERT INTO sharers (text) VALUES (?)");
  }

  /** The number of a text, which gets one if it has none. */
  idOf(text: string): number {
    const known = this.#known.get(text) ?? this.#find.get(text)?.id;
    const id = Number(known ?? this.#insert.run(text).lastInsertRowid);
    if (this.#known.size >= KNOWN_MAX) this.#known.clear();
    this.#known.set(text, id);
    return id;
  }

  textOf(id: number): string {
    return String(this.#db.prepare("SELECT text FROM sharers WHERE id = ?").get(id)?.text ?? "");
  }

  /** Numbers and texts of those that pass. */
  matching(test: (text: string) => boolean): { readonly id: number; readonly text: string }[] {
    const rows = this.#db.prepare("SELECT id, text FROM sharers").all();
    return rows.map(({ id, text }) => ({ id: Number(id), text: String(text) }))
      .filter(({ text }) => test(text)).slice(0, FOUND_MAX);
  }

  /** Removes those that nothing was counted of any more. */
  sweep(): void {
    this.#db.exec(
      "DELETE FROM sharers WHERE id NOT IN (SELECT client FROM client_hours) " +
        "AND id NOT IN (SELECT client FROM client_days)",
    );
    this.#known.clear();
  }

  /** Forgets what an undone transaction told it. */
  undo(): void {
    this.#known.clear();
  }
}

/** Keeps those with the highest counts of so many as are told apart, once there are twice as many. */
export function keepMost<T>(
  all: Map<string, T>,
  most: number,
  countOf: (one: T) => number,
): void {
  if (all.size < 2 * most) return;
  const rest = [...all].sort(([, a], [, b]) => countOf(b) - countOf(a)).slice(most);
  for (const [text] of rest) all.delete(text);
}
