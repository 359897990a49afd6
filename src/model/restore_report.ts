/** Most differences that a report names; it counts them all. */
export const DIFFERENCES_MAX = 1_000;

export type RestoredKind = "added" | "changed" | "removed" | "kept" | "left_out";

/** One thing that is not as it was. */
export interface RestoredItem {
  /** As the audit log calls it. */
  readonly type: string;
  readonly id: string | null;
  readonly name: string;
  readonly kind: Exclude<RestoredKind, "kept">;
}

/** What a restoration made of a state, by collection, `users`, `settings`, `tokens`, `webhooks`. */
export interface RestoreReport {
  readonly counts: Readonly<Record<string, Readonly<Record<RestoredKind, number>>>>;
  /** The first so many of all. */
  readonly items: readonly RestoredItem[];
}

/** Counts what a restoration makes. */
export class Tally {
  readonly counts: Record<string, Record<RestoredKind, number>> = {};
  readonly items: RestoredItem[] = [];

  add(part: string, kind: RestoredKind, item: Omit<RestoredItem, "kind">): void {
    const counts = this.counts[part] ??= { added: 0, changed: 0, removed: 0, kept: 0, left_out: 0 };
    counts[kind]++;
    if (kind !== "kept" && this.items.length < DIFFERENCES_MAX) this.items.push({ ...item, kind });
  }
}

/** A revision that neither the one that is there nor the one of the backup has had. */
export function nextOf(revision: number, restored: number, at: string) {
  return { revision: Math.max(revision, restored) + 1, updated_at: at };
}

export function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
