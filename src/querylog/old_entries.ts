import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { SegmentEntry } from "./segment.ts";

interface Row {
  readonly id: number;
  readonly name: number;
  readonly client: number;
  readonly outcome: number;
  readonly kind: number;
  readonly rule: number | null;
  readonly answers: number | null;
  readonly duration: number;
}

/** Entries as an earlier program wrote them, and writes them until it has ended: a row each. */
export class OldEntries {
  readonly #newestOnes: StatementSync | null;
  readonly #remove: StatementSync | null;
  readonly #ends: StatementSync | null;

  constructor(db: DatabaseSync) {
    const isThere = db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'entries'").get();
    const prepare = (sql: string) => isThere === undefined ? null : db.prepare(sql);
    this.#newestOnes = prepare("SELECT * FROM entries ORDER BY id DESC LIMIT ?");
    this.#remove = prepare("DELETE FROM entries WHERE id >= ?");
    this.#ends = prepare("SELECT min(id) AS oldest, max(id) AS newest FROM entries");
  }

  /** The number of the oldest one; `null` where there is none. */
  oldest(): number | null {
    return (this.#ends?.get()?.oldest ?? null) as number | null;
  }

  /** The number of the newest one, 0 where there is none. */
  newest(): number {
    return Number(this.#ends?.get()?.newest ?? 0);
  }

  /** Takes the newest so many out of the table: people look for those first. In their order. */
  take(count: number): SegmentEntry[] {
    const rows = (this.#newestOnes?.all(count) ?? []) as unknown as Row[];
    if (rows.length > 0) this.#remove?.run(rows[rows.length - 1].id);
    return rows.reverse().map(({ id, name, client, outcome, kind, rule, answers, duration }) => ({
      id,
      durationUs: duration,
      outcome,
      numbers: [name, client, kind, rule ?? 0, answers ?? 0],
    }));
  }
}
