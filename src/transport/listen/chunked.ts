import { appendBody, BODY_BYTES_MAX } from "./http.ts";
import { lineEnd } from "./http1_head.ts";

/** Longest line of a chunk's size with its extensions, or of a trailer. */
const LINE_BYTES_MAX = 1_024;
const TRAILERS_MAX = 32;
/** Chunks of one body; each has a byte at least. */
const CHUNKS_MAX = 4_096;

/** What reading on came to. */
export const Chunked = { Partial: 0, Whole: 1, Malformed: 400, TooLarge: 413 } as const;
export type Chunked = typeof Chunked[keyof typeof Chunked];

const State = { Size: 0, Data: 1, DataEnd: 2, Trailers: 3, Done: 4 } as const;
type State = typeof State[keyof typeof State];

const [CR, LF, SEMICOLON, SPACE, TAB] = [0x0d, 0x0a, 0x3b, 0x20, 0x09];
const NO_BYTES = new Uint8Array(0);

/** Reads a body that comes in chunks (RFC 9112 §7.1). */
export class ChunkedReader {
  body: Uint8Array = NO_BYTES;
  bodyBytes = 0;
  /** How far `read` got in the bytes it was given. */
  at = 0;
  #state: State = State.Size;
  /** Bytes of the chunk at hand that are still to come. */
  #left = 0;
  #chunks = 0;
  #trailers = 0;

  /** Reads on at `start`; what is not read, behind `at`, is to be given again with more behind it. */
  read(bytes: Uint8Array, start: number, end: number): Chunked {
    this.at = start;
    for (;;) {
      switch (this.#state) {
        case State.Size: {
          const outcome = this.#readSize(bytes, end);
          if (outcome !== Chunked.Whole) return outcome;
          break;
        }
        case State.Data: {
          const length = Math.min(this.#left, end - this.at);
          const part = bytes.subarray(this.at, this.at + length);
          this.body = appendBody(this.body, this.bodyBytes, part);
          this.bodyBytes += length;
          this.at += length;
          this.#left -= length;
          if (this.#left > 0) return Chunked.Partial;
          this.#state = State.DataEnd;
          break;
        }
        case State.DataEnd: {
          const isCr = this.at < end && bytes[this.at] === CR;
          const lf = isCr ? this.at + 1 : this.at;
          if (lf >= end) return Chunked.Partial;
          if (bytes[lf] !== LF) return Chunked.Malformed;
          this.at = lf + 1;
          this.#state = State.Size;
          break;
        }
        case State.Trailers: {
          const stop = lineEnd(bytes, this.at, end);
          if (stop < 0) return this.#partialLine(end);
          const isEmpty = stop === this.at || (stop === this.at + 1 && bytes[this.at] === CR);
          this.at = stop + 1;
          if (isEmpty) {
            this.#state = State.Done;
            return Chunked.Whole;
          }
          if (++this.#trailers > TRAILERS_MAX) return Chunked.Malformed;
          break;
        }
        case State.Done:
          return Chunked.Whole;
      }
    }
  }

  #partialLine(end: number): Chunked {
    return end - this.at > LINE_BYTES_MAX ? Chunked.Malformed : Chunked.Partial;
  }

  #readSize(bytes: Uint8Array, end: number): Chunked {
    const stop = lineEnd(bytes, this.at, end);
    if (stop < 0) return this.#partialLine(end);
    let size = 0;
    let at = this.at;
    for (; at < stop; at++) {
      const digit = hexDigit(bytes[at]);
      if (digit < 0) break;
      size = 16 * size + digit;
      if (size > BODY_BYTES_MAX) return Chunked.TooLarge;
    }
    if (at === this.at || ++this.#chunks > CHUNKS_MAX) return Chunked.Malformed;
    const next = bytes[at];
    // Extensions are let pass; anything else behind the size is not.
    const isPlain = next === LF || (next === CR && at + 1 === stop);
    if (!isPlain && next !== SEMICOLON && next !== SPACE && next !== TAB) return Chunked.Malformed;
    if (this.bodyBytes + size > BODY_BYTES_MAX) return Chunked.TooLarge;
    this.at = stop + 1;
    this.#left = size;
    this.#state = size === 0 ? State.Trailers : State.Data;
    return Chunked.Whole;
  }
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x61 + 10 : -1;
}
