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

/**
 * Cuts networks into ranges, the longest prefix on top. Of two entries with the same network the
 * first counts. A network of IPv4-mapped addresses is the IPv4 network it stands for.
 */
export function compilePrefixes(entries: readonly PrefixEntry[]): PrefixTableData {
  const [four, six] = [new RangeCutter(WORDS4), new RangeCutter(WORDS6)];
  for (const { prefix: { ip, lengthBits }, value } of entries) {
    const isMapped = lengthBits >= MAPPED_BITS && ip.length === 16 && isMappedAt(ip, 0);
    if (isMapped) four.add(ip, 12, lengthBits - MAPPED_BITS, value);
    else (ip.length === 4 ? four : six).add(ip, 0, lengthBits, value);
  }
  const [cut4, cut6] = [four.cut(), six.cut()];
  return {
    starts4: cut4.starts,
    values4: cut4.values,
    starts6: cut6.starts,
    values6: cut6.values,
  };
}

/** Networks lie inside each other or apart: what is open at a place is a stack. */
class RangeCutter {
  readonly #words: number;
  /** First and last address of each network. */
  readonly #firsts: number[] = [];
  readonly #lasts: number[] = [];
  readonly #values: number[] = [];
  readonly #starts: number[] = [];
  readonly #pieces: number[] = [];

  constructor(words: number) {
    this.#words = words;
  }

  add(ip: Uint8Array, offset: number, lengthBits: number, value: number): void {
    for (let i = 0; i < this.#words; i++) {
      const bits = Math.max(0, Math.min(32, lengthBits - 32 * i));
      const hostMask = bits === 32 ? 0 : 0xffffffff >>> bits;
      const word = wordAt(ip, offset + 4 * i);
      this.#firsts.push(word);
      this.#lasts.push(((word ^ SIGN) | hostMask) ^ SIGN);
    }
    this.#values.push(value);
  }

  cut(): { starts: Int32Array; values: Int32Array } {
    const [words, firsts, lasts] = [this.#words, this.#firsts, this.#lasts];
    const compare = (a: readonly number[], i: number, b: readonly number[], k: number): number => {
      for (let w = 0; w < words; w++) {
        const difference = a[i * words + w] - b[k * words + w];
        if (difference !== 0) return difference;
      }
      return 0;
    };
    // The larger of two that start together goes first; the sort leaves equal ones in order.
    const sorted = Array.from(this.#values, (_, i) => i).sort((i, k) =>
      compare(firsts, i, firsts, k) || compare(lasts, k, lasts, i)
    );
    const open: number[] = [];
    const valueOfTop = () => open.length === 0 ? NO_VALUE : this.#values[open[open.length - 1]];
    for (const range of sorted) {
      while (open.length > 0 && compare(lasts, open[open.length - 1], firsts, range) < 0) {
        this.#beginAfter(open.pop()!, valueOfTop);
      }
      const top = open.length === 0 ? -1 : open[open.length - 1];
      const isKnown = top >= 0 && compare(firsts, top, firsts, range) === 0 &&
        compare(lasts, top, lasts, range) === 0;
      if (isKnown) continue; // The first one counts.
      open.push(range);
      this.#begin(firsts.slice(range * words, (range + 1) * words), this.#values[range]);
    }
    while (open.length > 0) this.#beginAfter(open.pop()!, valueOfTop);
    return { starts: Int32Array.from(this.#starts), values: Int32Array.from(this.#pieces) };
  }

  /** Begins a piece behind a network; behind the last address of all there is none. */
  #beginAfter(range: number, value: () => number): void {
    const words = this.#words;
    const start = this.#lasts.slice(range * words, (range + 1) * words);
    for (let w = words - 1; w >= 0; w--) {
      const next = ((start[w] ^ SIGN) + 1) | 0;
      start[w] = next ^ SIGN;
      if (next === 0) continue; // Carried into the next word.
      this.#begin(start, value());
      return;
    }
  }

  #begin(start: readonly number[], value: number): void {
    const [starts, pieces] = [this.#starts, this.#pieces];
    const at = starts.length - this.#words;
    if (pieces.length > 0 && start.every((word, w) => starts[at + w] === word)) {
      starts.length = at;
      pieces.pop();
    }
    if ((pieces.at(-1) ?? NO_VALUE) === value) return;
    for (const word of start) starts.push(word);
    pieces.push(value);
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
