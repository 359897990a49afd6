/** Slots for texts, a power of two: of the two that a text may have, the one used last stays. */
const SLOTS = 8_192;
const WAYS = 2;
/** Longer ones are made anew each time. */
const KEY_BYTES_MAX = 128;
const KEY_WORDS = KEY_BYTES_MAX / 4;
/** Odd, with its bits spread evenly: 2^32 divided by the golden ratio (Knuth, vol. 3, §6.4). */
const HASH_FACTOR = 0x9e37_79b1 | 0;

/**
 * Texts by the bytes that they are made of, which begin at a whole word: what comes again and again is
 * the same text, which nobody decodes or hashes a second time. Leaves no garbage.
 */
export class ByteTexts {
  readonly #keys = new Uint32Array(SLOTS * KEY_WORDS);
  /** Bytes of each key; 0: the slot is empty. */
  readonly #lengths = new Uint8Array(SLOTS);
  readonly #texts: string[] = Array.from({ length: SLOTS }, () => "");
  /** Of each pair of slots the one that was used last. */
  readonly #last = new Uint8Array(SLOTS / WAYS);

  /** The text of so many bytes from a word on; `null`: it is to be made, and kept. */
  find(words: Uint32Array, at: number, lengthBytes: number): string | null {
    if (lengthBytes === 0 || lengthBytes > KEY_BYTES_MAX) return null;
    const pair = pairOf(words, at, lengthBytes);
    for (let way = 0; way < WAYS; way++) {
      const slot = pair * WAYS + way;
      if (this.#lengths[slot] !== lengthBytes || !this.#has(slot, words, at, lengthBytes)) continue;
      this.#last[pair] = way;
      return this.#texts[slot];
    }
    return null;
  }

  /** Keeps the text of some bytes, and returns it. */
  keep(words: Uint32Array, at: number, lengthBytes: number, text: string): string {
    if (lengthBytes === 0 || lengthBytes > KEY_BYTES_MAX) return text;
    const pair = pairOf(words, at, lengthBytes);
    const way = this.#last[pair] ^= 1;
    const slot = pair * WAYS + way;
    const key = slot * KEY_WORDS;
    for (let i = 0; i < KEY_WORDS && i * 4 < lengthBytes; i++) {
      this.#keys[key + i] = wordOf(words, at, lengthBytes, i);
    }
    this.#lengths[slot] = lengthBytes;
    this.#texts[slot] = text;
    return text;
  }

  #has(slot: number, words: Uint32Array, at: number, lengthBytes: number): boolean {
    const key = slot * KEY_WORDS;
    const whole = lengthBytes >>> 2;
    for (let i = 0; i < whole; i++) if (this.#keys[key + i] !== words[at + i]) return false;
    return (lengthBytes & 3) === 0 ||
      this.#keys[key + whole] === wordOf(words, at, lengthBytes, whole);
  }
}

function pairOf(words: Uint32Array, at: number, lengthBytes: number): number {
  let hash = lengthBytes;
  for (let i = 0; i * 4 < lengthBytes; i++) {
    hash = Math.imul(hash ^ wordOf(words, at, lengthBytes, i), HASH_FACTOR);
    hash ^= hash >>> 15;
  }
  return hash & (SLOTS / WAYS - 1);
}

/** A word of a key; what lies behind the last byte is none of it. */
function wordOf(words: Uint32Array, at: number, lengthBytes: number, i: number): number {
  const left = lengthBytes - i * 4;
  return left >= 4 ? words[at + i] : words[at + i] & ((1 << (8 * left)) - 1);
}
