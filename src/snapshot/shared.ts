/** Arrays as they travel between isolates: views of one shared memory. */

type Parts<T> = { readonly [K in keyof T]: Int32Array | Uint8Array };

const WORD_BYTES = 4;

/** Arrays that are views of one memory. */
export interface Shared<T> {
  readonly memory: SharedArrayBuffer;
  readonly parts: T;
}

/** Copies arrays into one shared memory, which can be handed over and given back as a whole. */
export function share<T extends Parts<T>>(arrays: T): Shared<T> {
  const all = Object.entries(arrays) as [string, Int32Array | Uint8Array][];
  let lengthBytes = 0;
  for (const [, { byteLength }] of all) lengthBytes += aligned(byteLength);
  const memory = new SharedArrayBuffer(lengthBytes);
  const parts: Record<string, Int32Array | Uint8Array> = {};
  let at = 0;
  for (const [name, array] of all) {
    const view = array instanceof Int32Array
      ? new Int32Array(memory, at, array.length)
      : new Uint8Array(memory, at, array.length);
    view.set(array);
    parts[name] = view;
    at += aligned(array.byteLength);
  }
  return { memory, parts: parts as T };
}

function aligned(lengthBytes: number): number {
  return Math.ceil(lengthBytes / WORD_BYTES) * WORD_BYTES;
}

/** Bytes that nobody uses, beside as many as somebody does, that are worth making everything anew. */
const WASTE_BYTES_MAX = 64 * 1024;

/** Says whether too many of some bytes are no longer in use. */
export function isWasteful(lengthBytes: number, usedBytes: number): boolean {
  return lengthBytes > 2 * usedBytes + WASTE_BYTES_MAX;
}

/** Texts one behind the other: `[i]` is the bytes from `offsets[i]` to `offsets[i + 1]`. */
export interface Texts {
  readonly offsets: Int32Array;
  readonly bytes: Uint8Array;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export function packTexts(given: readonly string[]): Texts {
  // Halves of a character at an end and a start would make one of two texts.
  const texts = given.map((text) => text.toWellFormed());
  const joined = texts.join("");
  const bytes = encoder.encode(joined);
  const offsets = new Int32Array(texts.length + 1);
  // Most are ASCII, whose bytes need no counting.
  const isAscii = bytes.length === joined.length;
  for (const [i, text] of texts.entries()) {
    offsets[i + 1] = offsets[i] + (isAscii ? text.length : encoder.encode(text).length);
  }
  return { offsets, bytes };
}

/** A copy of text `i`: text in shared memory can't be decoded where it stands. */
export function unpackText({ offsets, bytes }: Texts, i: number): string {
  return decoder.decode(bytes.slice(offsets[i], offsets[i + 1]));
}
