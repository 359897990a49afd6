/**
 * Domain names. In wire format a name is length-prefixed labels and the root's zero byte; in a
 * packet a compression pointer may stand for its tail (RFC 1035 §4.1.4). What reads packets here
 * answers with -1 or `null` for a broken one, and its work is bounded by the constants below.
 */
import { FOLD } from "./name_hash.ts";
import { HEADER_BYTES } from "./numbers.ts";

/** Most bytes of a name, length bytes and root included (RFC 1035 §2.3.4). */
export const NAME_BYTES_MAX = 255;
/** Most bytes of a label; longer ones are pointers or the label types RFC 6891 §5 withdrew. */
export const LABEL_BYTES_MAX = 63;
/** Most pointers followed for one name: each stands behind a label, but for a first one. */
const POINTERS_MAX = 126;
/** The top bits of a compression pointer, and of its two bytes. */
const POINTER_BITS = 0xc0;
/** What a backslash hides in presentation: each would end or change the name there. */
const ESCAPED = new Set([...'"().;@$\\'].map((c) => c.charCodeAt(0)));

const DOT = 0x2e;
const BACKSLASH = 0x5c;

/**
 * Returns the offset behind the name at `offset`, or -1 when it is cut off at `end`, too long or
 * has a label of an unknown type. A pointer ends the name; where it leads is not looked at.
 */
export function skipName(packet: Uint8Array, offset: number, end: number = packet.length): number {
  let at = offset;
  while (at < end) {
    const length = packet[at];
    if (length > LABEL_BYTES_MAX) {
      return length >= POINTER_BITS && at + 2 <= end ? at + 2 : -1;
    }
    at += 1 + length;
    if (at - offset > NAME_BYTES_MAX) return -1;
    if (length === 0) return at;
  }
  return -1;
}

/** As `skipName` for a name that must not be compressed, as in RDATA since RFC 3597 §4. */
export function skipPlainName(
  bytes: Uint8Array,
  offset: number,
  end: number = bytes.length,
): number {
  let at = offset;
  while (at < end) {
    const length = bytes[at];
    if (length > LABEL_BYTES_MAX) return -1;
    at += 1 + length;
    if (at - offset > NAME_BYTES_MAX) return -1;
    if (length === 0) return at;
  }
  return -1;
}

/**
 * Writes the name at `offset` uncompressed to `target` and returns its bytes there (255 at most),
 * or -1 when it is broken or `target` too short. Pointers must lead to before the labels they
 * follow, which no loop survives, and behind the header (RFC 9267 §2).
 */
export function expandName(
  packet: Uint8Array,
  offset: number,
  target: Uint8Array,
  targetOffset: number,
  end: number = packet.length,
): number {
  let at = offset;
  let runStart = offset;
  let pointers = 0;
  let length = 0;
  while (at < end) {
    const label = packet[at];
    if (label > LABEL_BYTES_MAX) {
      if (label < POINTER_BITS || at + 2 > end || ++pointers > POINTERS_MAX) return -1;
      const to = ((label & ~POINTER_BITS) << 8) | packet[at + 1];
      if (to >= runStart || to < HEADER_BYTES) return -1;
      runStart = at = to;
      continue;
    }
    const next = at + 1 + label;
    const from = targetOffset + length;
    length += 1 + label;
    if (next > end || length > NAME_BYTES_MAX || targetOffset + length > target.length) return -1;
    for (let i = 0; i <= label; i++) target[from + i] = packet[at + i];
    if (label === 0) return length;
    at = next;
  }
  return -1;
}

/** Says whether two uncompressed names are equal, ASCII letters in either case (RFC 4343). */
export function equalNames(
  a: Uint8Array,
  aOffset: number,
  b: Uint8Array,
  bOffset: number,
): boolean {
  let at = 0;
  while (at < NAME_BYTES_MAX) {
    const label = a[aOffset + at];
    if (label !== b[bOffset + at] || !(label <= LABEL_BYTES_MAX)) return false;
    if (label === 0) return true;
    const next = at + 1 + label;
    for (at++; at < next; at++) {
      if (FOLD[a[aOffset + at]] !== FOLD[b[bOffset + at]]) return false;
    }
  }
  return false;
}

/** A key for maps: the same for uncompressed names that are equal. */
export function nameKey(name: Uint8Array, offset = 0): string {
  const end = Math.max(offset, skipPlainName(name, offset));
  let key = "";
  let at = offset;
  // Each addition leaves a string behind: there are to be few.
  for (; at + 8 <= end; at += 8) {
    key += String.fromCharCode(
      FOLD[name[at]],
      FOLD[name[at + 1]],
      FOLD[name[at + 2]],
      FOLD[name[at + 3]],
      FOLD[name[at + 4]],
      FOLD[name[at + 5]],
      FOLD[name[at + 6]],
      FOLD[name[at + 7]],
    );
  }
  for (; at < end; at++) key += String.fromCharCode(FOLD[name[at]]);
  return key;
}

/** Labels of an uncompressed name, the root left out, or -1 when it is broken. */
export function countLabels(bytes: Uint8Array, offset: number): number {
  let at = offset;
  let count = 0;
  while (at < bytes.length && at - offset < NAME_BYTES_MAX) {
    const label = bytes[at];
    if (label === 0) return count;
    if (label > LABEL_BYTES_MAX) return -1;
    at += 1 + label;
    count++;
  }
  return -1;
}

/** Says whether an uncompressed name is `zone` itself or below it; all are at or below the root. */
export function isAtOrBelow(
  name: Uint8Array,
  nameOffset: number,
  zone: Uint8Array,
  zoneOffset: number,
): boolean {
  const zoneCount = countLabels(zone, zoneOffset);
  let above = countLabels(name, nameOffset) - zoneCount;
  if (zoneCount < 0 || above < 0) return false;
  let at = nameOffset;
  for (; above > 0; above--) at += 1 + name[at];
  return equalNames(name, at, zone, zoneOffset);
}

/**
 * An uncompressed name in presentation form (RFC 1035 §5.1), without the dot at its end; the root
 * is ".". Bytes that are no printable ASCII become `\DDD`. A name that is cut off or compressed
 * ends where it does: `readNameText` tells.
 */
export function formatName(wire: Uint8Array, offset = 0): string {
  const end = Math.min(wire.length, offset + NAME_BYTES_MAX);
  if (wire[offset] === 0) return ".";
  let text = "";
  let at = offset;
  while (at < end && wire[at] !== 0 && wire[at] <= LABEL_BYTES_MAX) {
    if (at > offset) text += ".";
    const next = Math.min(at + 1 + wire[at], end);
    for (at++; at < next; at++) {
      const byte = wire[at];
      if (byte <= 0x20 || byte >= 0x7f) text += `\\${byte.toString().padStart(3, "0")}`;
      else text += ESCAPED.has(byte) ? `\\${String.fromCharCode(byte)}` : String.fromCharCode(byte);
    }
  }
  return text;
}

/**
 * Reads a name in presentation form, with or without the dot at its end, into wire format.
 * Returns `null` for an empty or too long label or name, a broken escape or a byte that is no
 * printable ASCII: names in other scripts come here as A-labels.
 */
export function parseName(text: string): Uint8Array<ArrayBuffer> | null {
  if (text === ".") return new Uint8Array(1);
  const wire = new Uint8Array(NAME_BYTES_MAX);
  let labelStart = 0;
  let at = 1;
  for (let i = 0; i < text.length; i++) {
    let byte = text.charCodeAt(i);
    if (byte <= 0x20 || byte >= 0x7f) return null;
    if (byte === DOT) {
      if (at === labelStart + 1) return null;
      wire[labelStart] = at - labelStart - 1;
      labelStart = at++;
      continue;
    }
    if (byte === BACKSLASH) {
      const digits = /^\d{3}/.exec(text.slice(i + 1, i + 4))?.[0];
      byte = digits === undefined ? text.charCodeAt(i + 1) : Number(digits);
      // NaN at the end of the text fails the first comparison.
      if (!(byte <= 0xff) || (digits === undefined && (byte <= 0x20 || byte >= 0x7f))) return null;
      if (digits === undefined && byte >= 0x30 && byte <= 0x39) return null;
      i += digits === undefined ? 1 : 3;
    }
    // Behind this byte the root's must fit.
    if (at - labelStart > LABEL_BYTES_MAX || at >= NAME_BYTES_MAX - 1) return null;
    wire[at++] = byte;
  }
  if (at === 1) return null;
  const dotted = at === labelStart + 1;
  if (!dotted) wire[labelStart] = at - labelStart - 1;
  return wire.slice(0, dotted ? at : at + 1);
}

/** Scratch of `readNameText`, which leaves before anything else can use it. */
const expanded = new Uint8Array(NAME_BYTES_MAX);

/** The name at `offset` of a packet, compressed or not, in presentation form; `null` if broken. */
export function readNameText(
  packet: Uint8Array,
  offset: number,
  end: number = packet.length,
): string | null {
  return expandName(packet, offset, expanded, 0, end) < 0 ? null : formatName(expanded);
}
