interface Counter {
  count: number;
}

/** A name and how often it was met. */
export type TopRow = readonly [name: string, count: number];

/**
 * Counts the most frequent of many names in little memory. As long as there are fewer than twice
 * `capacity` names the counts are exact; beyond, the rarest are dropped, and one that comes later
 * starts from the most that a dropped one had: a count is never too small, and too large by no more
 * than `floor` (the idea of Space-Saving, Metwally et al. 2005, done by the batch).
 */
export class TopSketch {
  readonly #capacity: number;
  readonly #counts: Map<string, Counter>;
  #floor = 0;

  constructor(capacity: number, rows: readonly TopRow[] = []) {
    this.#capacity = capacity;
    this.#counts = new Map(rows.map(([name, count]) => [name, { count }]));
  }

  /** The most that a name can have been counted without being here. */
  get floor(): number {
    return this.#floor;
  }

  add(name: string, count = 1): void {
    const known = this.#counts.get(name);
    if (known !== undefined) {
      known.count += count;
      return;
    }
    this.#counts.set(name, { count: this.#floor + count });
    if (this.#counts.size >= 2 * this.#capacity) this.#shrink();
  }

  /** Adds what another one counted. */
  merge(rows: readonly TopRow[]): void {
    for (const [name, count] of rows) {
      const known = this.#counts.get(name);
      if (known !== undefined) known.count += count;
      else this.#counts.set(name, { count });
    }
  }

  /** The `n` most frequent, the first first; of equal ones the one that sorts first. */
  top(n: number): TopRow[] {
    return this.#sorted().slice(0, n);
  }

  #sorted(): [string, number][] {
    return Array.from(this.#counts, ([name, { count }]): [string, number] => [name, count])
      .sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
  }

  #shrink(): void {
    // Of numbers alone and without garbage, as this comes with every so many names.
    const counts = this.#counts;
    const size = counts.size;
    if (sorted.length < size) sorted = new Float64Array(size);
    let at = 0;
    counts.forEach(({ count }) => {
      sorted[at++] = count;
    });
    const most = sorted.subarray(0, size).sort()[size - 1 - this.#capacity];
    let excess = size - this.#capacity;
    this.#floor = Math.max(this.#floor, most);
    counts.forEach(({ count }, name) => {
      if (count >= most) return;
      counts.delete(name);
      excess--;
    });
    // Of those with as many, the ones that came first go.
    counts.forEach(({ count }, name) => {
      if (excess <= 0 || count > most) return;
      counts.delete(name);
      excess--;
    });
  }
}

/** Where counts are sorted, of one sketch at a time. */
let sorted = new Float64Array(0);
