/** Slots for texts, a power of two; a text takes the place of another with the same one. */
const SLOTS = 4_096;
/** Longer ones are made anew each time. */
const KEY_BYTES_MAX = 128;
/** FNV-1a in 32 bits (draft-eastlake-fnv). */
const FNV_OFFSET = 0x811c_9dc5 | 0;
const FNV_PRIME = 0x0100_0193;

/**
 * Texts by the bytes that they are made of: what comes again and again is the same text, which nobody
 * decodes or hashes a second time.
 */
export class ByteTexts {
  readonly #keys: (Uint8Array | undefined)[] = Array.from({ length: SLOTS });
  readonly #texts: string[] = Array.from({ length: SLOTS }, () => "");

  /** The text of the bytes from one place up to another; `null`: it is to be made, and kept. */
  find(bytes: Uint8Array, from: number, to: number): string | null {
    if (to - from > KEY_BYTES_MAX) return null;
    const slot = slotOf(bytes, from, to);
    const key = this.#keys[slot];
    return key !== undefined && isSame(key, bytes, from, to - from) ? this.#texts[slot] : null;
  }

  /** Keeps the text of some bytes, and returns it. */
  keep(bytes: Uint8Array, from: number, to: number, text: string): string {
    if (to - from > KEY_BYTES_MAX) return text;
    const slot = slotOf(bytes, from, to);
    this.#keys[slot] = bytes.slice(from, to);
    this.#texts[slot] = text;
    return text;
  }
}

function slotOf(bytes: Uint8Array, from: number, to: number): number {
  let hash = FNV_OFFSET;
  for (let i = from; i < to; i++) hash = Math.imul(hash ^ bytes[i], FNV_PRIME);
  return (hash ^ (hash >>> 16)) & (SLOTS - 1);
}

function isSame(key: Uint8Array, bytes: Uint8Array, from: number, length: number): boolean {
  if (key.length !== length) return false;
  for (let i = 0; i < length; i++) if (key[i] !== bytes[from + i]) return false;
  return true;
}
