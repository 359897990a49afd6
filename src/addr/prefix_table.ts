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
const WORDS6 = 4;
/** Bits before the IPv4 address in an IPv4-mapped IPv6 one (RFC 4291 §2.5.5.2). */
const MAPPED_BITS = 96;

/**
 * Cuts networks into ranges, the longest prefix on top. Of two entries with the same network the
 * first counts. A network of IPv4-mapped addresses is the IPv4 network it stands for.
 */
export function compilePrefixes(entries: readonly PrefixEntry[]): PrefixTableData {
  const four: Range[] = [];
  const six: Range[] = [];
  for (const { prefix: { ip, lengthBits }, value } of entries) {
    const isMapped = lengthBits >= MAPPED_BITS && ip.length === 16 && isMappedAt(ip, 0);
    if (isMapped) four.push(rangeOf(ip.subarray(12), lengthBits - MAPPED_BITS, value));
    else (ip.length === 4 ? four : six).push(rangeOf(ip, lengthBits, value));
  }
  const [cut4, cut6] = [cut(four), cut(six)];
  return {
    starts4: Int32Array.from(cut4, ({ start }) => Number(start) ^ SIGN),
    values4: Int32Array.from(cut4, ({ value }) => value),
    starts6: Int32Array.from(
      cut6.flatMap(({ start }) =>
        [96n, 64n, 32n, 0n].map((shift) => Number((start >> shift) & 0xffffffffn) ^ SIGN)
      ),
    ),
    values6: Int32Array.from(cut6, ({ value }) => value),
  };
}

/** Numbers up to 128 bits: this is compiled once and read often. */
interface Range {
  readonly start: bigint;
  /** Behind the last address. */
  readonly end: bigint;
  readonly value: number;
}

function rangeOf(ip: Uint8Array, lengthBits: number, value: number): Range {
  let start = 0n;
  for (let i = 0; i < ip.length; i += 4) {
    const word = ((ip[i] << 24) | (ip[i + 1] << 16) | (ip[i + 2] << 8) | ip[i + 3]) >>> 0;
    start = (start << 32n) | BigInt(word);
  }
  return { start, end: start + (1n << BigInt(8 * ip.length - lengthBits)), value };
}

/** Networks lie inside each other or apart: what is open at a place is a stack. */
function cut(ranges: readonly Range[]): { start: bigint; value: number }[] {
  const sorted = ranges.toSorted((a, b) =>
    a.start !== b.start ? (a.start < b.start ? -1 : 1) : a.end > b.end ? -1 : a.end < b.end ? 1 : 0
  );
  const pieces: { start: bigint; value: number }[] = [];
  const open: Range[] = [];
  const begin = (start: bigint, value: number) => {
    if (pieces.at(-1)?.start === start) pieces.pop();
    if ((pieces.at(-1)?.value ?? NO_VALUE) !== value) pieces.push({ start, value });
  };
  const closeBefore = (start: bigint | null) => {
    for (;;) {
      const top = open.at(-1);
      if (top === undefined || (start !== null && top.end > start)) return;
      open.pop();
      begin(top.end, open.at(-1)?.value ?? NO_VALUE);
    }
  };
  for (const range of sorted) {
    closeBefore(range.start);
    const top = open.at(-1);
    if (top?.start === range.start && top.end === range.end) continue; // The first one counts.
    open.push(range);
    begin(range.start, range.value);
  }
  closeBefore(null);
  // No address stands behind the last one.
  const last = pieces.at(-1)?.start;
  if (last === 1n << 32n || last === 1n << 128n) pieces.pop();
  return pieces;
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
    const word = wordAt(bytes, offset);
    let low = 0;
    let high = values6.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const at = middle * WORDS6;
      let isAfter = word - starts[at];
      for (let i = 1; isAfter === 0 && i < WORDS6; i++) {
        isAfter = wordAt(bytes, offset + 4 * i) - starts[at + i];
      }
      if (isAfter >= 0) low = middle + 1;
      else high = middle;
    }
    return low === 0 ? NO_VALUE : values6[low - 1];
  }
}

function wordAt(bytes: Uint8Array, at: number): number {
  const word = (bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3];
  return word ^ SIGN;
}
