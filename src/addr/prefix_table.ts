import { invariant } from "../errors.ts";
import { isMappedAt } from "./ip.ts";
import type { IpPrefix } from "./prefix.ts";

/** A network and the number that its addresses get, zero or more. */
export interface PrefixEntry {
  readonly prefix: IpPrefix;
  readonly value: number;
}

/**
 * Networks cut into ranges that touch and do not overlap: each starts at its place in `starts…` and
 * ends before the next, and its number is `NO_VALUE` where no network is. An address is one 32-bit
 * word of IPv4 or four of IPv6, the top bit of each turned over, so that signed numbers compare as
 * addresses do.
 */
export interface PrefixTableData {
  readonly starts4: Int32Array;
  readonly values4: Int32Array;
  readonly starts6: Int32Array;
  readonly values6: Int32Array;
}

/** The number of an address that no network holds. */
export const NO_VALUE = -1;

/** Turns unsigned order into signed order. */
const SIGN = 0x80000000 | 0;
const WORDS4 = 1;
const WORDS6 = 4;
/** Bits before the IPv4 address in an IPv4-mapped IPv6 one (RFC 4291 §2.5.5.2). */
const MAPPED_BITS = 96;
/** Networks of one table at most: a place among them fits beside 32 bits in a number's 53. */
const NETWORKS_MAX = 2 ** 20;

/**
 * Cuts networks into ranges, the longest prefix on top. Of two entries with the same network the
 * first counts. A network of IPv4-mapped addresses is the IPv4 network it stands for.
 */
export function compilePrefixes(entries: readonly PrefixEntry[]): PrefixTableData {
  return new PrefixSet(entries).compile();
}

/** Networks of which few change at a time: they stay sorted, so that cutting them takes one pass. */
export class PrefixSet {
  readonly #four: Ranges;
  readonly #six: Ranges;

  constructor(entries: readonly PrefixEntry[]) {
    [this.#four, this.#six] = [WORDS4, WORDS6].map((words) => new Ranges(words));
    for (const entry of entries) this.#with(entry, (ranges, ...range) => ranges.append(...range));
    this.#four.sort();
    this.#six.sort();
  }

  add(entry: PrefixEntry): void {
    this.#with(entry, (ranges, ...range) => ranges.insert(...range));
  }

  /** Takes out the entry, which has to be there. */
  delete(entry: PrefixEntry): void {
    this.#with(entry, (ranges, ...range) => ranges.remove(...range));
  }

  #with({ prefix: { ip, lengthBits }, value }: PrefixEntry, use: UseOfRange): void {
    const isMapped = lengthBits >= MAPPED_BITS && ip.length === 16 && isMappedAt(ip, 0);
    if (isMapped) use(this.#four, ip, 12, lengthBits - MAPPED_BITS, value);
    else use(ip.length === 4 ? this.#four : this.#six, ip, 0, lengthBits, value);
  }

  /** The table, good until it is made again. */
  compile(): PrefixTableData {
    const [cut4, cut6] = [this.#four.cut(), this.#six.cut()];
    return {
      starts4: cut4.starts,
      values4: cut4.values,
      starts6: cut6.starts,
      values6: cut6.values,
    };
  }
}

type UseOfRange = (
  ranges: Ranges,
  ip: Uint8Array,
  offset: number,
  lengthBits: number,
  value: number,
) => void;

const RANGES_MIN = 16;
const GROWTH = 1.5;

/** Networks lie inside each other or apart: what is open at a place is a stack. */
class Ranges {
  readonly #words: number;
  /** First and last address of each network, by their first addresses, the larger one first. */
  #firsts: Int32Array;
  #lasts: Int32Array;
  #values: Int32Array;
  #count = 0;
  /** Each network begins a piece and may leave one behind it; used for each cut again. */
  #starts: Int32Array = new Int32Array(0);
  #pieces: Int32Array = new Int32Array(0);
  #pieceCount = 0;
  readonly #next: Int32Array;

  constructor(words: number) {
    this.#words = words;
    this.#firsts = new Int32Array(RANGES_MIN * words);
    this.#lasts = new Int32Array(RANGES_MIN * words);
    this.#values = new Int32Array(RANGES_MIN);
    this.#next = new Int32Array(words);
  }

  /** Adds a network behind all others: `sort` has to follow. */
  append(ip: Uint8Array, offset: number, lengthBits: number, value: number): void {
    this.#makeRoom();
    this.#put(this.#count++, ip, offset, lengthBits, value);
  }

  insert(ip: Uint8Array, offset: number, lengthBits: number, value: number): void {
    this.append(ip, offset, lengthBits, value);
    const last = this.#count - 1;
    const at = this.#placeOf(last);
    for (const [array, words] of this.#arrays()) {
      const moved = array.slice(last * words, (last + 1) * words);
      array.copyWithin((at + 1) * words, at * words, last * words);
      array.set(moved, at * words);
    }
  }

  remove(ip: Uint8Array, offset: number, lengthBits: number, value: number): void {
    this.append(ip, offset, lengthBits, value);
    const wanted = --this.#count; // It is there for the comparison only.
    let at = this.#placeOf(wanted) - 1;
    while (at >= 0 && this.#values[at] !== value && this.#order(at, wanted) === 0) at--;
    const isThere = at >= 0 && this.#values[at] === value && this.#order(at, wanted) === 0;
    invariant(isThere, "a network that is taken out was there");
    for (const [array, words] of this.#arrays()) {
      array.copyWithin(at * words, (at + 1) * words, this.#count * words);
    }
    this.#count--;
  }

  #arrays(): [Int32Array, number][] {
    const words = this.#words;
    return [[this.#firsts, words], [this.#lasts, words], [this.#values, 1]];
  }

  #makeRoom(): void {
    if (this.#count < this.#values.length) return;
    invariant(this.#count < NETWORKS_MAX, "the networks of a table can be numbered");
    const capacity = Math.min(Math.ceil(this.#count * GROWTH), NETWORKS_MAX);
    const grown = (array: Int32Array, words: number) => {
      const larger = new Int32Array(capacity * words);
      larger.set(array);
      return larger;
    };
    this.#firsts = grown(this.#firsts, this.#words);
    this.#lasts = grown(this.#lasts, this.#words);
    this.#values = grown(this.#values, 1);
  }

  #put(at: number, ip: Uint8Array, offset: number, lengthBits: number, value: number): void {
    for (let i = 0; i < this.#words; i++) {
      const bits = Math.max(0, Math.min(32, lengthBits - 32 * i));
      const hostMask = bits === 32 ? 0 : 0xffffffff >>> bits;
      const word = wordAt(ip, offset + 4 * i);
      this.#firsts[at * this.#words + i] = word;
      this.#lasts[at * this.#words + i] = ((word ^ SIGN) | hostMask) ^ SIGN;
    }
    this.#values[at] = value;
  }

  /** Which of two networks stands before the other; zero for the same network. */
  #order(i: number, k: number): number {
    return this.#compare(this.#firsts, i, this.#firsts, k) ||
      this.#compare(this.#lasts, k, this.#lasts, i);
  }

  /** Where a network belongs among those before it in the arrays: behind any that is the same. */
  #placeOf(range: number): number {
    let [low, high] = [0, range];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#order(middle, range) <= 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  cut(): { starts: Int32Array; values: Int32Array } {
    const [firsts, lasts, count] = [this.#firsts, this.#lasts, this.#count];
    if (this.#pieces.length < 2 * count) {
      this.#starts = new Int32Array(2 * this.#values.length * this.#words);
      this.#pieces = new Int32Array(2 * this.#values.length);
    }
    this.#pieceCount = 0;
    const open: number[] = [];
    for (let range = 0; range < count; range++) {
      while (open.length > 0 && this.#compare(lasts, open[open.length - 1], firsts, range) < 0) {
        this.#beginAfter(open.pop()!, open);
      }
      const top = open.length === 0 ? -1 : open[open.length - 1];
      const isKnown = top >= 0 && this.#compare(firsts, top, firsts, range) === 0 &&
        this.#compare(lasts, top, lasts, range) === 0;
      if (isKnown) continue; // The first one counts.
      open.push(range);
      this.#begin(firsts, range * this.#words, this.#values[range]);
    }
    while (open.length > 0) this.#beginAfter(open.pop()!, open);
    return {
      starts: this.#starts.subarray(0, this.#pieceCount * this.#words),
      values: this.#pieces.subarray(0, this.#pieceCount),
    };
  }

  #compare(a: Int32Array, i: number, b: Int32Array, k: number): number {
    const words = this.#words;
    for (let w = 0; w < words; w++) {
      const difference = a[i * words + w] - b[k * words + w];
      if (difference !== 0) return difference;
    }
    return 0;
  }

  sort(): void {
    const sorted = Int32Array.from({ length: this.#count }, (_, i) => i);
    this.#sort(sorted, 0);
    for (const [array, words] of this.#arrays()) {
      const before = array.slice();
      for (const [to, from] of sorted.entries()) {
        for (let w = 0; w < words; w++) array[to * words + w] = before[from * words + w];
      }
    }
  }

  /**
   * Sorts networks that agree in the words before `word`. Numbers sort many times faster than by a
   * comparison of ours: a word leads, the place in `ranges` follows.
   */
  #sort(ranges: Int32Array, word: number): void {
    const words = this.#words;
    if (word === words) {
      // Few: each has another length. The first of equal ones stays first.
      ranges.set(Array.from(ranges).sort((i, k) => this.#compare(this.#lasts, k, this.#lasts, i)));
      return;
    }
    const { length } = ranges;
    const keys = new Float64Array(length);
    for (let i = 0; i < length; i++) {
      keys[i] = this.#firsts[ranges[i] * words + word] * NETWORKS_MAX + i;
    }
    keys.sort();
    const before = ranges.slice();
    for (let i = 0; i < length; i++) {
      ranges[i] = before[keys[i] - Math.floor(keys[i] / NETWORKS_MAX) * NETWORKS_MAX];
    }
    for (let from = 0; from < length;) {
      const first = this.#firsts[ranges[from] * words + word];
      let to = from + 1;
      while (to < length && this.#firsts[ranges[to] * words + word] === first) to++;
      if (to - from > 1) this.#sort(ranges.subarray(from, to), word + 1);
      from = to;
    }
  }

  /** Begins a piece behind a network; behind the last address of all there is none. */
  #beginAfter(range: number, open: readonly number[]): void {
    const words = this.#words;
    const start = this.#next;
    for (let w = 0; w < words; w++) start[w] = this.#lasts[range * words + w];
    for (let w = words - 1; w >= 0; w--) {
      const next = ((start[w] ^ SIGN) + 1) | 0;
      start[w] = next ^ SIGN;
      if (next === 0) continue; // Carried into the next word.
      this.#begin(start, 0, open.length === 0 ? NO_VALUE : this.#values[open[open.length - 1]]);
      return;
    }
  }

  /** Begins a piece at the address whose words stand from `offset` on. */
  #begin(address: Int32Array, offset: number, value: number): void {
    const [words, starts, pieces] = [this.#words, this.#starts, this.#pieces];
    let count = this.#pieceCount;
    let isSame = count > 0;
    for (let w = 0; w < words && isSame; w++) {
      isSame = address[offset + w] === starts[(count - 1) * words + w];
    }
    if (isSame) count--;
    if ((count === 0 ? NO_VALUE : pieces[count - 1]) !== value) {
      for (let w = 0; w < words; w++) starts[count * words + w] = address[offset + w];
      pieces[count++] = value;
    }
    this.#pieceCount = count;
  }
}

/** Says which network an address is in, the one of the longest prefix. */
export class PrefixTable {
  constructor(private readonly data: PrefixTableData) {}

  /**
   * The number of the network that holds the address of `lengthBytes` (4 or 16) at `offset`, or
   * `NO_VALUE`. The cost grows with the logarithm of the networks. Leaves no garbage.
   */
  find(bytes: Uint8Array, offset: number, lengthBytes: number): number {
    return lengthBytes === 4 ? this.#find4(bytes, offset) : this.#find6(bytes, offset);
  }

  #find4(bytes: Uint8Array, offset: number): number {
    const { starts4: starts, values4 } = this.data;
    const address = wordAt(bytes, offset);
    let [low, high] = [0, starts.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (starts[middle] <= address) low = middle + 1;
      else high = middle;
    }
    return low === 0 ? NO_VALUE : values4[low - 1];
  }

  #find6(bytes: Uint8Array, offset: number): number {
    const { starts6: starts, values6 } = this.data;
    const first = wordAt(bytes, offset);
    const second = wordAt(bytes, offset + 4);
    const third = wordAt(bytes, offset + 8);
    const fourth = wordAt(bytes, offset + 12);
    let low = 0;
    let high = values6.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const at = middle * WORDS6;
      const isAfter = starts[at] !== first
        ? starts[at] < first
        : starts[at + 1] !== second
        ? starts[at + 1] < second
        : starts[at + 2] !== third
        ? starts[at + 2] < third
        : starts[at + 3] <= fourth;
      if (isAfter) low = middle + 1;
      else high = middle;
    }
    return low === 0 ? NO_VALUE : values6[low - 1];
  }
}

function wordAt(bytes: Uint8Array, at: number): number {
  const word = (bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3];
  return word ^ SIGN;
}
