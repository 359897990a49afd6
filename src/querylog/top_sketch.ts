import { textHash } from "./byte_texts.ts";

/** Slots of a table of names to begin with, a power of two. */
const SLOTS_MIN = 16;

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
  /** In the order they came. */
  readonly #names: string[] = [];
  readonly #hashes: number[] = [];
  readonly #counts: number[] = [];
  /** Names there are: the room of those that were dropped is used again. */
  #size = 0;
  /** Open addressing: where a name is among these, and one more; 0: a free slot. */
  #slots: Uint16Array | Uint32Array = new Uint16Array(SLOTS_MIN);
  #floor = 0;

  constructor(capacity: number, rows: readonly TopRow[] = []) {
    this.#capacity = capacity;
    this.merge(rows);
  }

  /** The most that a name can have been counted without being here. */
  get floor(): number {
    return this.#floor;
  }

  /** Counts a name; `hash` is its `textHash`. */
  add(name: string, count = 1, hash = textHash(name)): void {
    const place = this.#find(name, hash);
    if (place >= 0) {
      this.#counts[place] += count;
      return;
    }
    this.#insert(name, hash, this.#floor + count);
    if (this.#size >= 2 * this.#capacity) this.#shrink();
  }

  /** Adds what another one counted. */
  merge(rows: readonly TopRow[]): void {
    for (const [name, count] of rows) {
      const hash = textHash(name);
      const place = this.#find(name, hash);
      if (place >= 0) this.#counts[place] += count;
      else this.#insert(name, hash, count);
    }
  }

  /** The place of a name; negative where it has none. */
  #find(name: string, hash: number): number {
    const last = this.#slots.length - 1;
    for (let slot = hash & last;; slot = (slot + 1) & last) {
      const place = this.#slots[slot] - 1;
      if (place < 0 || this.#hashes[place] === hash && this.#names[place] === name) return place;
    }
  }

  #insert(name: string, hash: number, count: number): void {
    const place = this.#size++;
    this.#names[place] = name;
    this.#hashes[place] = hash;
    this.#counts[place] = count;
    if (2 * this.#size > this.#slots.length) this.#index(2 * this.#slots.length);
    else this.#enter(place);
  }

  #enter(place: number): void {
    const last = this.#slots.length - 1;
    let slot = this.#hashes[place] & last;
    while (this.#slots[slot] !== 0) slot = (slot + 1) & last;
    this.#slots[slot] = place + 1;
  }

  /** Enters all anew, into so many slots. */
  #index(slots: number): void {
    if (slots === this.#slots.length) this.#slots.fill(0);
    else this.#slots = slots > 2 ** 16 ? new Uint32Array(slots) : new Uint16Array(slots);
    for (let place = 0; place < this.#size; place++) this.#enter(place);
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
      const count = counts[i];
      if (count < most || count === most && excess-- > 0) continue;
      names[kept] = names[i];
      this.#hashes[kept] = this.#hashes[i];
      counts[kept++] = count;
    }
    names.fill("", kept);
    this.#size = kept;
    this.#index(this.#slots.length);
  }
}

/** Where counts are sorted, of one sketch at a time. */
let sorted = new Float64Array(0);
