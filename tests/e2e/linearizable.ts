/**
 * Whether what clients saw of one resource can have happened one after another (Herlihy and Wing):
 * each operation at one moment between its call and its answer. The resource is a register whose
 * revision grows with each change, and a change names the revision that it replaces. The search is
 * Wing and Gong's, with Lowe's memory of what was tried.
 */

/** One change that a client tried. Times grow; they are of one clock. */
export interface Change {
  readonly calledAt: number;
  /** Infinity: it was never answered, and may come about at any time, or never. */
  readonly answeredAt: number;
  readonly ifMatch: number;
  readonly value: string;
  readonly outcome:
    | { readonly kind: "done"; readonly revision: number }
    /** The resource had another revision at that moment. */
    | { readonly kind: "mismatch" }
    | { readonly kind: "unknown" };
}

export interface Register {
  readonly revision: number;
  readonly value: string;
}

/**
 * The orders are searched from `first` on. Returns `null` where there is one that ends in `last`,
 * and otherwise the longest beginning of one, in words.
 */
export function findFault(
  changes: readonly Change[],
  first: Register,
  last: Register,
): string | null {
  const seen = new Set<string>();
  let longest: readonly number[] = [];
  const isPending = (i: number, taken: ReadonlySet<number>) => !taken.has(i);
  /** Whether what is left has an order. */
  const search = (register: Register, order: readonly number[]): boolean => {
    const taken = new Set(order);
    const key = `${order.toSorted((a, b) => a - b).join()} ${register.revision} ${register.value}`;
    if (seen.has(key)) return false;
    seen.add(key);
    if (order.length > longest.length) longest = order;
    const pending = changes.keys().filter((i) => isPending(i, taken)).toArray();
    const needed = pending.filter((i) => changes[i].outcome.kind !== "unknown");
    if (needed.length === 0 && isSame(register, last)) return true;
    // Whoever is next was called before any other that is left was answered.
    const endsAt = Math.min(...pending.map((i) => changes[i].answeredAt));
    return pending.filter((i) => changes[i].calledAt <= endsAt)
      .toSorted((a, b) => changes[a].answeredAt - changes[b].answeredAt)
      .some((i) => {
        const next = step(register, changes[i]);
        return next !== null && search(next, [...order, i]);
      });
  };
  if (search(first, [])) return null;
  const told = longest.map((i) => JSON.stringify(changes[i]));
  return `no order of ${changes.length} changes; ${told.length} have one:\n${told.join("\n")}`;
}

function isSame(a: Register, b: Register): boolean {
  return a.revision === b.revision && a.value === b.value;
}

/** The register after a change at this moment; `null`: it can't have been answered so. */
function step(register: Register, { ifMatch, value, outcome }: Change): Register | null {
  const matches = register.revision === ifMatch;
  switch (outcome.kind) {
    case "done":
      return matches && outcome.revision > register.revision
        ? { revision: outcome.revision, value }
        : null;
    case "mismatch":
      return matches ? null : register;
    case "unknown":
      // Nobody was told the revision: it is the one that somebody else saw.
      return matches ? { revision: register.revision + 1, value } : null;
  }
}
