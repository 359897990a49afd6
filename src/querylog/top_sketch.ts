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
  /** Places of names among these, in the order they came, and how often each was met. */
  readonly #places = new Map<string, number>();
  readonly #names: string[] = [];
  readonly #counts: number[] = [];
  /** Names there are: the room of those that were dropped is used again. */
  #size = 0;
  #floor = 0;

  constructor(capacity: number, rows: readonly TopRow[] = []) {
    this.#capacity = capacity;
    this.merge(rows);
  }

  /** The most that a name can have been counted without being here. */
  get floor(): number {
    return this.#floor;
  }

  add(name: string, count = 1): void {
    const place = this.#places.get(name);
    if (place !== undefined) {
      this.#counts[place] += count;
      return;
    }
    this.#insert(name, this.#floor + count);
    if (this.#size >= 2 * this.#capacity) this.#shrink();
  }

  /** Adds what another one counted. */
  merge(rows: readonly TopRow[]): void {
    for (const [name, count] of rows) {
      const place = this.#places.get(name);
      if (place !== undefined) this.#counts[place] += count;
      else this.#insert(name, count);
    }
  }

  #insert(name: string, count: number): void {
    this.#places.set(name, this.#size);
    this.#names[this.#size] = name;
    this.#counts[this.#size++] = count;
  }

  /** The `n` most frequent, the first first; of equal ones the one that sorts first. */
  top(n: number): TopRow[] {
    return this.#names.slice(0, this.#size).map((name, i): TopRow => [name, this.#counts[i]])
      .sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1)).slice(0, n);
  }

  #shrink(): void {
    // Of numbers alone and without garbage, as this comes with every so many names.
    const names = this.#names;
    const counts = this.#counts;
    const size = this.#size;
    if (sorted.length < size) sorted = new Float64Array(size);
    for (let i = 0; i < size; i++) sorted[i] = counts[i];
    const most = sorted.subarray(0, size).sort()[size - 1 - this.#capacity];
    this.#floor = Math.max(this.#floor, most);
    // Of those with as many, the ones that came first go.
    let excess = size - this.#capacity;
    for (let i = 0; i < size; i++) if (counts[i] < most) excess--;
    let kept = 0;
    for (let i = 0; i < size; i++) {
      const [name, count] = [names[i], counts[i]];
      if (count < most || count === most && excess-- > 0) {
        this.#places.delete(name);
        continue;
      }
      if (kept !== i) this.#places.set(name, kept);
      names[kept] = name;
      counts[kept++] = count;
    }
    names.fill("", kept);
    this.#size = kept;
  }
}

/** Where counts are sorted, of one sketch at a time. */
let sorted = new Float64Array(0);
