import { invariant } from "../errors.ts";
import { nameEnd } from "./names.ts";
import { LINE_LENGTH_MAX } from "./parse_rule.ts";

/** Words of a slot: tag | source and flags | text offset, or number of the newest further rule. */
export const SLOT_WORDS = 3;
/** Words of a further rule of a name: source and flags | text offset | number of the next. */
export const MORE_WORDS = 3;

/** The tag of a free slot. */
export const EMPTY_TAG = 0x7fffffff;

/** The first word of a rule that does not hold; a rule's is never zero: it covers or is of a kind. */
export const DROPPED = 0;

/** The tag of a hash: the hash itself, but never `EMPTY_TAG`. */
export function tagOf(hash: number): number {
  return hash === EMPTY_TAG ? EMPTY_TAG - 1 : hash;
}

/** The rules that hold, in the order of their names' tags, as `RuleTable` leaves them. */
export interface FilledTable {
  /** Slots, free ones and dropped ones among them. */
  readonly table: Int32Array<ArrayBuffer>;
  /** Further rules of names, each name's in a ring that its newest leads. */
  readonly more: Int32Array<ArrayBuffer>;
  readonly text: TextChunks;
  readonly names: number;
  readonly rules: number;
  /** Rules of names with several. */
  readonly runEntries: number;
  /** Words of all entries, and bytes of all tails, those of dropped rules among them. */
  readonly entryWordsMax: number;
  readonly tailBytesMax: number;
}

const CHUNK_SHIFT = 20;
const CHUNK_BYTES = 1 << CHUNK_SHIFT;
const CHUNK_MASK = CHUNK_BYTES - 1;
/**
 * Rules may be few: each chunk has twice the bytes of the one before, up to `CHUNK_BYTES`. The first
 * has room for what a line can hold.
 */
const FIRST_CHUNK_BYTES = 4 * LINE_LENGTH_MAX;
/** Offsets are 31 bits. */
const CHUNKS_MAX = 2 ** 31 / CHUNK_BYTES;

/** Names with what stands behind them, in chunks, so that text never has to be copied to grow. */
export class TextChunks {
  #chunks: Uint8Array<ArrayBuffer>[] = [];
  /** Of the last chunk. */
  #usedBytes = 0;
  #chunkBytes = 0;

  /** Keeps a name in wire format and the tail behind it; returns its offset. */
  put(wire: Uint8Array, start: number, lengthBytes: number, tail: Uint8Array): number {
    const total = lengthBytes + tail.length;
    if (this.#usedBytes + total > this.#chunkBytes) this.#addChunk();
    const last = this.#chunks.length - 1;
    const chunk = this.#chunks[last];
    const to = this.#usedBytes;
    for (let i = 0; i < lengthBytes; i++) chunk[to + i] = wire[start + i];
    if (tail.length > 0) chunk.set(tail, to + lengthBytes);
    this.#usedBytes = to + total;
    return (last << CHUNK_SHIFT) | to;
  }

  #addChunk(): void {
    invariant(this.#chunks.length < CHUNKS_MAX, "the text of all rules is under 2 GiB");
    const isFirst = this.#chunks.length === 0;
    this.#chunkBytes = isFirst ? FIRST_CHUNK_BYTES : Math.min(CHUNK_BYTES, 2 * this.#chunkBytes);
    this.#chunks.push(new Uint8Array(this.#chunkBytes));
    this.#usedBytes = 0;
  }

  /** The chunk that holds what is at an offset, which stands there at `startOf`. */
  chunkOf(offset: number): Uint8Array {
    return this.#chunks[offset >>> CHUNK_SHIFT];
  }

  startOf(offset: number): number {
    return offset & CHUNK_MASK;
  }

  /** Says whether the name at an offset is the one in `wire`. */
  isName(offset: number, wire: Uint8Array, lengthBytes: number): boolean {
    const chunk = this.chunkOf(offset);
    const start = this.startOf(offset);
    for (let i = 0; i < lengthBytes; i++) if (chunk[start + i] !== wire[i]) return false;
    return true;
  }

  /** Says whether what stands behind the name at an offset begins with bytes of `tail`. */
  tailStartsWith(offset: number, tail: Uint8Array, lengthBytes: number): boolean {
    const chunk = this.chunkOf(offset);
    const at = nameEnd(chunk, this.startOf(offset));
    for (let i = 0; i < lengthBytes; i++) if (chunk[at + i] !== tail[i]) return false;
    return true;
  }

  free(): void {
    for (const chunk of this.#chunks) chunk.buffer.transfer(0);
    this.#chunks = [];
  }
}
