/** Texts that are kept, a power of two; of the places that a text may have, the one used last stays. */
const TEXTS_KEPT = 8_192;
const WAYS = 4;
/** Longer ones are made anew each time. */
const KEY_BYTES_MAX = 128;
/** Odd, with its bits spread evenly: 2^32 divided by the golden ratio (Knuth, vol. 3, §6.4). */
export const HASH_FACTOR = 0x9e37_79b1 | 0;

/** In the place of a text where there is none. */
export const NO_TEXT: KeptText = { text: "", hash: 0, row: null };

/** A text that comes again and again, with what others know of it: they need not look it up. */
export interface KeptText {
  readonly text: string;
  /** See `textHash`; 0: nobody has asked for it yet. */
  hash: number;
  /** Its row in a dictionary. */
  row: TextRow | null;
}

export interface TextRow {
  readonly id: number;
  /** The epoch that the table says it was last used in. */
  epoch: number;
  /** Who knows that; nobody else may believe it. */
  readonly owner: object;
}

export function newText(text: string): KeptText {
  return { text, hash: 0, row: null };
}

/** Nobody is to choose names that stand in each other's way. */
const SEED = crypto.getRandomValues(new Int32Array(1))[0];

/** 32 bits of a text, never 0; others in each process. */
export function textHash(text: string): number {
  let hash = SEED;
  for (let i = 0; i < text.length; i++) {
    hash = Math.imul(hash ^ text.charCodeAt(i), HASH_FACTOR);
    hash ^= hash >>> 15;
  }
  return hash === 0 ? 1 : hash;
}

/** The same, computed once. */
export function hashOf(kept: KeptText): number {
  return kept.hash === 0 ? kept.hash = textHash(kept.text) : kept.hash;
}

/**
 * Texts by the bytes that they are made of, which begin at a whole word: what comes again and again is
 * the same text, which nobody decodes or hashes a second time. Leaves no garbage.
 */
export class ByteTexts {
  readonly #keyBytesMax: number;
  readonly #keyWords: number;
  readonly #sets: number;
  readonly #keys: Uint32Array;
  /** Bytes of each key; 0: the slot is empty. */
  readonly #lengths: Uint8Array;
  readonly #texts: KeptText[];
  /** Of each set of slots the one that was used last. */
  readonly #last: Uint8Array;

  constructor(kept = TEXTS_KEPT, keyBytesMax = KEY_BYTES_MAX) {
    this.#keyBytesMax = keyBytesMax;
    this.#keyWords = keyBytesMax / 4;
    this.#sets = kept / WAYS;
    this.#keys = new Uint32Array(kept * this.#keyWords);
    this.#lengths = new Uint8Array(kept);
    this.#texts = Array.from({ length: kept }, () => NO_TEXT);
    this.#last = new Uint8Array(this.#sets);
  }

  /** The text of so many bytes from a word on; `null`: it is to be made, and kept. */
  find(words: Uint32Array, at: number, lengthBytes: number): KeptText | null {
    if (lengthBytes === 0 || lengthBytes > this.#keyBytesMax) return null;
    const set = keyHash(words, at, lengthBytes) & (this.#sets - 1);
    for (let way = 0; way < WAYS; way++) {
      const slot = set * WAYS + way;
      if (this.#lengths[slot] !== lengthBytes || !this.#has(slot, words, at, lengthBytes)) continue;
      this.#last[set] = way;
      return this.#texts[slot];
    }
    return null;
  }

  /** Keeps the text of some bytes, and returns it. */
  keep(words: Uint32Array, at: number, lengthBytes: number, text: string): KeptText {
    const kept = newText(text);
    if (lengthBytes === 0 || lengthBytes > this.#keyBytesMax) return kept;
    const set = keyHash(words, at, lengthBytes) & (this.#sets - 1);
    const way = this.#last[set] = (this.#last[set] + 1) % WAYS;
    const slot = set * WAYS + way;
    const key = slot * this.#keyWords;
    for (let i = 0; i * 4 < lengthBytes; i++) {
      this.#keys[key + i] = wordOf(words, at, lengthBytes, i);
    }
    this.#lengths[slot] = lengthBytes;
    this.#texts[slot] = kept;
    return kept;
  }

  #has(slot: number, words: Uint32Array, at: number, lengthBytes: number): boolean {
    const key = slot * this.#keyWords;
    const whole = lengthBytes >>> 2;
    for (let i = 0; i < whole; i++) if (this.#keys[key + i] !== words[at + i]) return false;
    return (lengthBytes & 3) === 0 ||
      this.#keys[key + whole] === wordOf(words, at, lengthBytes, whole);
  }
}

function keyHash(words: Uint32Array, at: number, lengthBytes: number): number {
  let hash = lengthBytes;
  for (let i = 0; i * 4 < lengthBytes; i++) {
    hash = Math.imul(hash ^ wordOf(words, at, lengthBytes, i), HASH_FACTOR);
    hash ^= hash >>> 15;
  }
  return hash;
}

/** A word of a key; what lies behind the last byte is none of it. */
function wordOf(words: Uint32Array, at: number, lengthBytes: number, i: number): number {
  const left = lengthBytes - i * 4;
  return left >= 4 ? words[at + i] : words[at + i] & ((1 << (8 * left)) - 1);
}
