import { domainToASCII } from "node:url";
import { finishHash, FOLD, hashLabel, LABELS_MAX } from "../dns/mod.ts";

/** Longest name in wire format, the root's zero included (RFC 1035 §2.3.4). */
const WIRE_BYTES_MAX = 255;
const LABEL_BYTES_MAX = 63;
/** Longest pattern that stands where a name would, and what a piece of it has instead of a label. */
const PATTERN_BYTES_MAX = 1_020;
const PIECE_BYTES_MAX = 255;
/** Set in upper case letters of patterns: a name's have no case, those of an escape do. */
const UPPER_BIT = 0x80;

/** Longest name that is converted to A-labels; conversion takes longer than its text grows. */
const U_NAME_LENGTH_MAX = 253;

const NAME = /^(?=.{1,253}$)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/;
/** No top-level domain is a number: such a name is an address, or a piece of one. */
const NUMERIC_END = /(?:^|\.)[0-9]+$/;
// deno-lint-ignore no-control-regex -- ASCII ends where its control characters say.
const ASCII = /^[\x00-\x7f]*$/;

/**
 * A name as rules are compiled: lower case, A-labels (UTS 46), no dot at the end. Returns `null`
 * for what is no name or can't be converted.
 */
export function normaliseName(text: string): string | null {
  const bare = text.endsWith(".") ? text.slice(0, -1) : text;
  const ascii = ASCII.test(bare);
  if (!ascii && bare.length > U_NAME_LENGTH_MAX) return null;
  const name = ascii ? bare.toLowerCase() : domainToASCII(bare);
  return NAME.test(name) && !NUMERIC_END.test(name) ? name : null;
}

const OTHER = 0;
const LETTER = 1;
const UPPER = 2;
const DOT = 3;
const [ZERO, NINE] = [0x30, 0x39];

/** What each byte is in a name. */
const CLASS = Uint8Array.from({ length: 256 }, (_, byte) => {
  const c = String.fromCharCode(byte);
  if (/[A-Z]/.test(c)) return UPPER;
  return /[a-z0-9_-]/.test(c) ? LETTER : c === "." ? DOT : OTHER;
});

/** What the label of an address begins with: "|", which is in no name. */
const ADDRESS_MARK = 0x7c;
const HEX_DIGITS = new TextEncoder().encode("0123456789abcdef");

/** The address, or the octets that it begins with, of a name made by `NameReader.readAddress`. */
export function addressOctets(name: string): Uint8Array {
  return Uint8Array.from(name.slice(1).match(/../g) ?? [], (hex) => parseInt(hex, 16));
}

/** Reads names out of text into wire format, lower case, and hashes them; one buffer for all. */
export class NameReader {
  /** The name read last, in wire format. */
  readonly wire: Uint8Array = new Uint8Array(PATTERN_BYTES_MAX);
  lengthBytes = 0;
  /** Labels of the name, the root left out. */
  count = 0;
  /** Says whether the text had upper case. */
  folded = false;
  readonly #labels = new Uint16Array(LABELS_MAX + 1);
  #isPattern = false;

  /**
   * Reads the name that starts at `start` and ends before the first byte that is of no name.
   * Returns where that is, or -1 where there is no name. It takes what `normaliseName` does, but
   * neither a dot at the end nor what needs conversion.
   */
  read(bytes: Uint8Array, start: number, end: number): number {
    const wire = this.wire;
    const labels = this.#labels;
    // A longer name than a name can be is cut here and found out below.
    const stop = Math.min(end, start + WIRE_BYTES_MAX);
    let count = 0;
    let label = 0;
    let to = 1;
    let folded = false;
    let at = start;
    for (; at < stop; at++) {
      const byte = bytes[at];
      const kind = CLASS[byte];
      if (kind === LETTER) {
        wire[to++] = byte;
        continue;
      }
      if (kind === UPPER) {
        wire[to++] = FOLD[byte];
        folded = true;
        continue;
      }
      if (kind === OTHER) break;
      const length = to - label - 1;
      if (length === 0 || length > LABEL_BYTES_MAX || count === LABELS_MAX) return -1;
      wire[label] = length;
      labels[count++] = label;
      label = to++;
    }
    const length = to - label - 1;
    if (length === 0 || length > LABEL_BYTES_MAX || to + 1 > WIRE_BYTES_MAX) return -1;
    if (isNumber(wire, label + 1, to)) return -1;
    wire[label] = length;
    labels[count++] = label;
    wire[to] = 0;
    this.count = count;
    this.folded = folded;
    this.lengthBytes = to + 1;
    this.#isPattern = false;
    return at;
  }

  /**
   * Takes the text of a pattern, printable ASCII, for a name, so that rules about patterns stand in the
   * same table: in pieces longer than a label may be, and with a hash that no name has.
   */
  readPattern(text: string): void {
    const wire = this.wire;
    let to = 0;
    this.count = 0;
    for (let at = 0; at < text.length; at += PIECE_BYTES_MAX) {
      const end = Math.min(text.length, at + PIECE_BYTES_MAX);
      this.#labels[this.count++] = to;
      wire[to++] = end - at;
      for (let i = at; i < end; i++) {
        const byte = text.charCodeAt(i);
        wire[to++] = CLASS[byte] === UPPER ? byte | UPPER_BIT : byte;
      }
    }
    wire[to] = 0;
    this.folded = false;
    this.lengthBytes = to + 1;
    this.#isPattern = true;
  }

  /**
   * Takes 1 to 16 bytes of an address for a name: one label that no rule about a name has, so that
   * rules about addresses stand in the same table.
   */
  readAddress(bytes: Uint8Array, offset: number, lengthBytes: number): void {
    const wire = this.wire;
    let to = 1;
    wire[to++] = ADDRESS_MARK;
    for (let i = 0; i < lengthBytes; i++) {
      wire[to++] = HEX_DIGITS[bytes[offset + i] >>> 4];
      wire[to++] = HEX_DIGITS[bytes[offset + i] & 15];
    }
    wire[0] = to - 1;
    wire[to] = 0;
    this.#labels[0] = 0;
    this.count = 1;
    this.folded = false;
    this.lengthBytes = to + 1;
    this.#isPattern = false;
  }

  /** Where the last label's length byte stands in `wire`. */
  get lastLabel(): number {
    return this.#labels[this.count - 1];
  }

  /** The hash of the name: what `HashedName` makes of it in a packet. */
  hash(seed: number): number {
    let running = this.#isPattern ? ~seed : seed;
    for (let k = this.count - 1; k >= 0; k--) {
      running = hashLabel(running, this.wire, this.#labels[k]);
    }
    return finishHash(running);
  }
}

function isNumber(bytes: Uint8Array, start: number, end: number): boolean {
  for (let i = end - 1; i >= start; i--) if (bytes[i] < ZERO || bytes[i] > NINE) return false;
  return true;
}

/** Writes the wire-format name at `offset` as text. */
export function nameText(wire: Uint8Array, offset: number): string {
  let text = "";
  for (let at = offset; wire[at] !== 0;) {
    const end = at + 1 + wire[at];
    if (text !== "") text += ".";
    for (at++; at < end; at++) text += String.fromCharCode(wire[at]);
  }
  return text;
}

/** The text of a pattern that stands where a name would. */
export function patternAt(wire: Uint8Array, offset: number): string {
  let text = "";
  for (let at = offset; wire[at] !== 0;) {
    const end = at + 1 + wire[at];
    for (at++; at < end; at++) text += String.fromCharCode(wire[at] & ~UPPER_BIT);
  }
  return text;
}

/** Where the wire-format name at `offset` ends: behind the root's zero. */
export function nameEnd(wire: Uint8Array, offset: number): number {
  let at = offset;
  while (wire[at] !== 0) at += 1 + wire[at];
  return at + 1;
}
