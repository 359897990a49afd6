import { invariant } from "../../../errors.ts";

/**
 * Length in bits of each symbol's code, a base-36 digit a symbol, EOS last (RFC 7541 Appendix B).
 * Codes of one length count up in the order of their symbols and go on where the shorter ones end,
 * so that the lengths are all there is to know.
 */
const LENGTHS = "dnsssssssoussussssssssusssssssss6aacd68baa8b8666555666666678f6ca" +
  "d67777777777777777777777878djde6f56565666577666567655677777fbeds" +
  "kmkkmmmnmnnnnnonoomnonnnnlmnmnnomlkmmnnlnmmolmnnllmlnmnnkmmmnmmn" +
  "qqkjmnmpqqqrrqopjlqrrqrollqqsrrrkoklmllnmmppooqnqrqqrrrrrsrrrrrq" +
  "u";
const EOS = 256;
const LENGTH_MIN = 5;
const LENGTH_MAX = 30;
/** Codes up to this length are found by one look; all of letters and digits are. */
const ROOT_BITS = 8;

/** Symbols in the order of their codes. */
const symbols = new Uint16Array(EOS + 1);
/** By length: the first code, and where its symbol stands in `symbols`. */
const firstCodes = new Uint32Array(LENGTH_MAX + 2);
const firstIndexes = new Uint16Array(LENGTH_MAX + 2);
/** By the next eight bits: length and symbol of the code they start with, or 0. */
const root = new Uint16Array(1 << ROOT_BITS);
const codes = new Uint32Array(EOS + 1);
const lengths = Uint8Array.from(LENGTHS, (digit) => parseInt(digit, 36));

function buildTables(): void {
  invariant(lengths.length === EOS + 1, "each symbol has a code");
  let code = 0;
  let index = 0;
  for (let length = LENGTH_MIN; length <= LENGTH_MAX; length++) {
    code *= 2;
    firstCodes[length] = code;
    firstIndexes[length] = index;
    for (let symbol = 0; symbol <= EOS; symbol++) {
      if (lengths[symbol] !== length) continue;
      codes[symbol] = code;
      if (length <= ROOT_BITS) {
        const spare = ROOT_BITS - length;
        root.fill((length << 8) | symbol, code << spare, (code + 1) << spare);
      }
      symbols[index++] = symbol;
      code++;
    }
  }
  firstIndexes[LENGTH_MAX + 1] = index;
  invariant(code === 2 ** LENGTH_MAX, "the code is complete");
}
buildTables();

/**
 * Reads the Huffman-coded string at `start` to `end` into `target` from `at` on. Returns where it
 * ends there; -1 for what is no such string or does not fit (RFC 7541 §5.2).
 */
export function readHuffman(
  bytes: Uint8Array,
  start: number,
  end: number,
  target: Uint8Array,
  at: number,
): number {
  const endBit = end * 8;
  let bit = start * 8;
  while (bit < endBit) {
    const i = bit >> 3;
    // Behind the end stand ones, as in the padding.
    const next = i + 1 < end ? bytes[i + 1] : 0xff;
    const peek = (((bytes[i] << 8) | next) >> (8 - (bit & 7))) & 0xff;
    // The padding is the start of EOS, shorter than a byte; no symbol is made of so few ones.
    if (endBit - bit < 8 && peek === 0xff) return at;
    const found = root[peek];
    let symbol: number;
    if (found !== 0) {
      symbol = found & 0xff;
      bit += found >> 8;
    } else {
      const long = readLong(bytes, bit, endBit, peek);
      if (long < 0) return -1;
      symbol = long & 0xff;
      bit += long >> 8;
    }
    if (bit > endBit || at >= target.length) return -1;
    target[at++] = symbol;
  }
  return at;
}

/** Length and symbol of a code that starts with the bits `code`, or -1. */
function readLong(bytes: Uint8Array, bit: number, endBit: number, code: number): number {
  for (let length = ROOT_BITS + 1; length <= LENGTH_MAX && bit + length <= endBit; length++) {
    const at = bit + length - 1;
    code = code * 2 + ((bytes[at >> 3] >> (7 - (at & 7))) & 1);
    const index = firstIndexes[length] + code - firstCodes[length];
    if (index < firstIndexes[length + 1]) {
      // EOS is no part of a string.
      return symbols[index] === EOS ? -1 : (length << 8) | symbols[index];
    }
  }
  return -1;
}

/** The Huffman-coded form of a text of Latin-1 characters. */
export function huffman(text: string): Uint8Array<ArrayBuffer> {
  let bits = "";
  for (let i = 0; i < text.length; i++) {
    const symbol = text.charCodeAt(i);
    bits += codes[symbol].toString(2).padStart(lengths[symbol], "0");
  }
  bits = bits.padEnd(Math.ceil(bits.length / 8) * 8, "1");
  return Uint8Array.from(
    { length: bits.length / 8 },
    (_, i) => parseInt(bits.slice(8 * i, 8 * i + 8), 2),
  );
}
