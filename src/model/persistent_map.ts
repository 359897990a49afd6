/** Changes that a map keeps beside its base at least, before both become a new base. */
const DELTA_SIZE_MIN = 16;

/**
 * A map that never changes: `with` and `without` make another that shares what stayed. Order is
 * that of insertion; a replaced value keeps its place. A change of a map of n entries costs about
 * √n, so that whoever holds an older one holds it whole and cheaply.
 */
export class PersistentMap<K, V> implements ReadonlyMap<K, V> {
  readonly size: number;
  readonly #base: ReadonlyMap<K, V>;
  /** Values of the base's keys that were replaced. */
  readonly #replaced: ReadonlyMap<K, V>;
  /** Keys of the base that are gone; one that came back is in `#added` too. */
  readonly #removed: ReadonlySet<K>;
  readonly #added: ReadonlyMap<K, V>;

  private constructor(
    base: ReadonlyMap<K, V>,
    replaced: ReadonlyMap<K, V>,
    removed: ReadonlySet<K>,
    added: ReadonlyMap<K, V>,
  ) {
    this.#base = base;
    this.#replaced = replaced;
    this.#removed = removed;
    this.#added = added;
    this.size = base.size - removed.size + added.size;
  }

  static from<K, V>(entries: Iterable<readonly [K, V]>): PersistentMap<K, V> {
    return new PersistentMap(new Map(entries), new Map(), new Set(), new Map());
  }

  get(key: K): V | undefined {
    if (this.#added.has(key)) return this.#added.get(key);
    if (this.#removed.has(key)) return undefined;
    return this.#replaced.has(key) ? this.#replaced.get(key) : this.#base.get(key);
  }

  has(key: K): boolean {
    return this.#added.has(key) || (this.#base.has(key) && !this.#removed.has(key));
  }

  /** The map with `value` at `key`. */
  with(key: K, value: V): PersistentMap<K, V> {
    const inBase = this.#base.has(key) && !this.#removed.has(key);
    return inBase
      ? this.#next(new Map(this.#replaced).set(key, value), this.#removed, this.#added)
      : this.#next(this.#replaced, this.#removed, new Map(this.#added).set(key, value));
  }

  /** The map without `key`. */
  without(key: K): PersistentMap<K, V> {
    if (this.#added.has(key)) {
      const added = new Map(this.#added);
      added.delete(key);
      return this.#next(this.#replaced, this.#removed, added);
    }
    if (!this.has(key)) return this;
    const replaced = new Map(this.#replaced);
    replaced.delete(key);
    return this.#next(replaced, new Set(this.#removed).add(key), this.#added);
  }

  #next(replaced: ReadonlyMap<K, V>, removed: ReadonlySet<K>, added: ReadonlyMap<K, V>) {
    const next = new PersistentMap(this.#base, replaced, removed, added);
    const delta = replaced.size + removed.size + added.size;
    const isSmall = delta <= DELTA_SIZE_MIN + Math.sqrt(this.#base.size);
    return isSmall ? next : PersistentMap.from(next);
  }

  *entries(): Generator<[K, V], undefined, unknown> {
    for (const [key, value] of this.#base) {
      if (this.#removed.has(key)) continue;
      yield [key, this.#replaced.has(key) ? this.#replaced.get(key)! : value];
    }
    yield* this.#added;
    return undefined;
  }

  *keys(): Generator<K, undefined, unknown> {
    for (const [key] of this.entries()) yield key;
    return undefined;
  }

  *values(): Generator<V, undefined, unknown> {
    for (const [, value] of this.entries()) yield value;
    return undefined;
  }

  [Symbol.iterator](): Generator<[K, V], undefined, unknown> {
    return this.entries();
  }

  forEach(visit: (value: V, key: K, map: ReadonlyMap<K, V>) => void): void {
    for (const [key, value] of this.entries()) visit(value, key, this);
  }
}
