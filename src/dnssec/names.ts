/** Names as DNSSEC compares and orders them. All are uncompressed and in either case. */
import { countLabels, FOLD, NAME_BYTES_MAX } from "../dns/mod.ts";

/** Where each label of the name compared starts; scratch of `compareNames`. */
const aStarts = new Uint8Array(128);
const bStarts = new Uint8Array(128);

/** A copy in lower case (RFC 4034 §6.2). Length bytes are below 64, where folding changes nothing. */
export function canonicalName(name: Uint8Array): Uint8Array<ArrayBuffer> {
  const copy = new Uint8Array(name.length);
  for (let i = 0; i < name.length; i++) copy[i] = FOLD[name[i]];
  return copy;
}

/** The tail of a name that has `labels` labels: the name itself, its parent, …, the root. */
export function ancestor(name: Uint8Array, labels: number): Uint8Array {
  let at = 0;
  for (let above = countLabels(name, 0) - labels; above > 0; above--) at += 1 + name[at];
  return name.subarray(at);
}

/** The name without its first label; the root's parent is the root. */
export function parentName(name: Uint8Array): Uint8Array {
  return name[0] === 0 ? name : name.subarray(1 + name[0]);
}

/** `*.` before a name, or `null` where that is too long to exist. */
export function wildcardOf(encloser: Uint8Array): Uint8Array<ArrayBuffer> | null {
  if (encloser.length + 2 > NAME_BYTES_MAX) return null;
  const name = new Uint8Array(encloser.length + 2);
  name[0] = 1;
  name[1] = 0x2a;
  name.set(encloser, 2);
  return name;
}

export function isWildcard(name: Uint8Array): boolean {
  return name[0] === 1 && name[1] === 0x2a;
}

/** Labels that count for a signature: neither the root nor a leading asterisk (RFC 4034 §3.1.3). */
export function signedLabels(name: Uint8Array): number {
  return countLabels(name, 0) - (isWildcard(name) ? 1 : 0);
}

function readStarts(name: Uint8Array, starts: Uint8Array): number {
  let count = 0;
  for (let at = 0; name[at] !== 0; at += 1 + name[at]) starts[count++] = at;
  return count;
}

/** Compares two labels by their lower-case bytes, the shorter first (RFC 4034 §6.1). */
function compareLabels(a: Uint8Array, aAt: number, b: Uint8Array, bAt: number): number {
  const length = Math.min(a[aAt], b[bAt]);
  for (let i = 1; i <= length; i++) {
    const difference = FOLD[a[aAt + i]] - FOLD[b[bAt + i]];
    if (difference !== 0) return difference;
  }
  return a[aAt] - b[bAt];
}

/** Canonical order (RFC 4034 §6.1): below 0 where `a` comes first, 0 for equal names. */
export function compareNames(a: Uint8Array, b: Uint8Array): number {
  let i = readStarts(a, aStarts);
  let j = readStarts(b, bStarts);
  while (i > 0 && j > 0) {
    const order = compareLabels(a, aStarts[--i], b, bStarts[--j]);
    if (order !== 0) return order;
  }
  return i - j;
}

/** Labels that two names have in common, counted from the root. */
export function commonLabels(a: Uint8Array, b: Uint8Array): number {
  let i = readStarts(a, aStarts);
  let j = readStarts(b, bStarts);
  let common = 0;
  while (i > 0 && j > 0 && compareLabels(a, aStarts[--i], b, bStarts[--j]) === 0) common++;
  return common;
}

/** Compares byte arrays as left-justified, the shorter first (RFC 4034 §6.3). */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) if (a[i] !== b[i]) return a[i] - b[i];
  return a.length - b.length;
}
