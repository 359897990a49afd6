import { invariant } from "../errors.ts";

/** Bits of a hash or place that one level of a tree decides. */
const LEVEL_BITS = 5;
const WIDTH = 1 << LEVEL_BITS;
const SLOT_MASK = WIDTH - 1;
const HASH_BITS = 32;
/** Places are shifted as 32-bit integers. */
export const PLACES_MAX = 2 ** 30;

/** An entry that two maps have otherwise; `undefined` where one has it not. */
export interface Difference<V> {
  readonly key: string;
  readonly before: V | undefined;
  readonly after: V | undefined;
}

interface Entry<V> {
  readonly key: string;
  readonly value: V;
  readonly place: number;
}
/** A level of a tree. The index's last one is a plain list of entries whose hashes are equal. */
interface Node<V> extends ReadonlyArray<Node<V> | Entry<V> | undefined> {}
type Slot<V> = Node<V>[number];

/**
 * A map that never changes: `with` and `without` make another that shares all but the way to the
 * changed entry. Whoever holds an older one holds it whole. Order is that of insertion; a replaced
 * value keeps its place.
 */
export class PersistentMap<V> implements ReadonlyMap<string, V> {
  readonly size: number;
  /** By the key's hash. */
  readonly #index: Node<V>;
  /** By place; `#topShift` is the shift of its first level. */
  readonly #order: Node<V>;
  readonly #topShift: number;
  readonly #nextPlace: number;

  private constructor(
    size: number,
    index: Node<V>,
    order: Node<V>,
    topShift: number,
    nextPlace: number,
  ) {
    this.size = size;
    this.#index = index;
    this.#order = order;
    this.#topShift = topShift;
    this.#nextPlace = nextPlace;
  }

  static empty<V>(): PersistentMap<V> {
    return new PersistentMap<V>(0, [], [], 0, 0);
  }

  get(key: string): V | undefined {
    return find(this.#index, key)?.value;
  }

  has(key: string): boolean {
    return find(this.#index, key) !== undefined;
  }

  /** Where an entry stands in the order: a number that grows with each insertion. */
  placeOf(key: string): number | undefined {
    return find(this.#index, key)?.place;
  }

  /**
   * The map with `value` at `key`. A new entry goes behind all others, or to `place`, which none
   * may have.
   */
  with(key: string, value: V, place: number = this.#nextPlace): PersistentMap<V> {
    const old = find(this.#index, key);
    const entry = { key, value, place: old?.place ?? place };
    invariant(entry.place < PLACES_MAX, "a place is within its bits");
    let [order, topShift] = [this.#order, this.#topShift];
    while (entry.place >= 2 ** (topShift + LEVEL_BITS)) {
      order = [order];
      topShift += LEVEL_BITS;
    }
    return new PersistentMap(
      this.size + (old === undefined ? 1 : 0),
      putHashed(this.#index, 0, hashOf(key), entry),
      putPlaced(order, topShift, entry.place, entry),
      topShift,
      Math.max(this.#nextPlace, entry.place + 1),
    );
  }

  /** The map without `key`. */
  without(key: string): PersistentMap<V> {
    const old = find(this.#index, key);
    if (old === undefined) return this;
    return new PersistentMap(
      this.size - 1,
      removeHashed(this.#index, 0, hashOf(key), key) ?? [],
      putPlaced(this.#order, this.#topShift, old.place, undefined),
      this.#topShift,
      this.#nextPlace,
    );
  }

  /**
   * The entries that two maps have otherwise, in the order of `after`, those that are gone first. What
   * the maps share is not looked at: the cost grows with what changed between them.
   */
  static differences<V>(before: PersistentMap<V>, after: PersistentMap<V>): Difference<V>[] {
    const [old, now]: [Entry<V>[], Entry<V>[]] = [[], []];
    compare(before.#index, after.#index, old, now);
    const gone = new Map(old.map((entry) => [entry.key, entry.value]));
    const found: Difference<V>[] = [];
    for (const { key, value } of now.sort((a, b) => a.place - b.place)) {
      const former = gone.get(key);
      gone.delete(key);
      if (former !== value) found.push({ key, before: former, after: value });
    }
    return [
      ...Array.from(gone, ([key, value]) => ({ key, before: value, after: undefined })),
      ...found,
    ];
  }

  #entries(): Entry<V>[] {
    const entries: Entry<V>[] = [];
    collect(this.#order, entries);
    return entries;
  }

  entries(): MapIterator<[string, V]> {
    return this.#entries().map(({ key, value }): [string, V] => [key, value]).values();
  }

  keys(): MapIterator<string> {
    return this.#entries().map(({ key }) => key).values();
  }

  values(): MapIterator<V> {
    return this.#entries().map(({ value }) => value).values();
  }

  [Symbol.iterator](): MapIterator<[string, V]> {
    return this.entries();
  }

  forEach(visit: (value: V, key: string, map: ReadonlyMap<string, V>) => void): void {
    for (const { key, value } of this.#entries()) visit(value, key, this);
  }
}

/** Adds every entry at and below a slot. */
function collect<V>(slot: Slot<V>, entries: Entry<V>[]): void {
  if (slot === undefined) return;
  if (!isNode(slot)) entries.push(slot);
  else for (const below of slot) collect(below, entries);
}

/** Adds the entries of two indexes but for those in what both share. */
function compare<V>(a: Slot<V>, b: Slot<V>, old: Entry<V>[], now: Entry<V>[]): void {
  if (a === b) return;
  if (a === undefined || b === undefined || !isNode(a) || !isNode(b)) {
    collect(a, old);
    collect(b, now);
    return;
  }
  const width = Math.max(a.length, b.length);
  for (let i = 0; i < width; i++) compare(a[i], b[i], old, now);
}

function isNode<V>(slot: Slot<V>): slot is Node<V> {
  return Array.isArray(slot);
}

/** FNV-1a over UTF-16 units; IDs are drawn at random, so nobody chooses what collides. */
function hashOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  return (hash ^ (hash >>> 15)) >>> 0;
}

function find<V>(index: Node<V>, key: string): Entry<V> | undefined {
  const hash = hashOf(key);
  let node = index;
  for (let shift = 0; shift < HASH_BITS; shift += LEVEL_BITS) {
    const slot = node[(hash >>> shift) & SLOT_MASK];
    if (slot === undefined) return undefined;
    if (!isNode(slot)) return slot.key === key ? slot : undefined;
    node = slot;
  }
  return node.find((slot): slot is Entry<V> => isEntryOf(slot, key));
}

function isEntryOf<V>(slot: Slot<V>, key: string): boolean {
  return slot !== undefined && !isNode(slot) && slot.key === key;
}

/** A copy of a level with one slot changed. */
function withSlot<V>(node: Node<V>, i: number, slot: Slot<V>): Node<V> {
  const copy: Slot<V>[] = node.length === 0 ? new Array(WIDTH).fill(undefined) : node.slice();
  copy[i] = slot;
  return copy;
}

function putHashed<V>(node: Node<V>, shift: number, hash: number, entry: Entry<V>): Node<V> {
  if (shift >= HASH_BITS) return [...node.filter((slot) => !isEntryOf(slot, entry.key)), entry];
  const i = (hash >>> shift) & SLOT_MASK;
  const slot = node[i];
  const next = shift + LEVEL_BITS;
  if (slot === undefined || isEntryOf(slot, entry.key)) return withSlot(node, i, entry);
  if (isNode(slot)) return withSlot(node, i, putHashed(slot, next, hash, entry));
  const below = putHashed<V>([], next, hashOf(slot.key), slot);
  return withSlot(node, i, putHashed(below, next, hash, entry));
}

/** The level without `key`; `undefined` if nothing is left of it. */
function removeHashed<V>(
  node: Node<V>,
  shift: number,
  hash: number,
  key: string,
): Node<V> | undefined {
  if (shift >= HASH_BITS) {
    const left = node.filter((slot) => !isEntryOf(slot, key));
    return left.length === 0 ? undefined : left;
  }
  const i = (hash >>> shift) & SLOT_MASK;
  const slot = node[i];
  const left = isNode(slot) ? removeHashed(slot, shift + LEVEL_BITS, hash, key) : undefined;
  const copy = withSlot(node, i, left);
  return copy.every((other) => other === undefined) ? undefined : copy;
}

function putPlaced<V>(
  node: Node<V>,
  shift: number,
  place: number,
  entry: Entry<V> | undefined,
): Node<V> {
  const i = (place >>> shift) & SLOT_MASK;
  if (shift === 0) return withSlot(node, i, entry);
  const slot = node[i];
  const below = putPlaced(isNode(slot) ? slot : [], shift - LEVEL_BITS, place, entry);
  const isEmpty = entry === undefined && below.every((other) => other === undefined);
  return withSlot(node, i, isEmpty ? undefined : below);
}
