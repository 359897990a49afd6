import { appendBody, BODY_BYTES_MAX } from "./http.ts";
import { fieldColon, isText, lineEnd } from "./http1_head.ts";

/** Longest line of a chunk's size with its extensions, or of a trailer. */
const LINE_BYTES_MAX = 1_024;
const TRAILERS_MAX = 32;
/** A body may have a chunk for this many of the bytes it may have at most. */
const BYTES_A_CHUNK_MIN = 16;
/** Digits of a size; more than its value needs are there to overflow it. */
const SIZE_DIGITS_MAX = 12;

/** What reading on came to. */
export const Chunked = { Partial: 0, Whole: 1, Malformed: 400, TooLarge: 413 } as const;
export type Chunked = typeof Chunked[keyof typeof Chunked];

const State = { Size: 0, Data: 1, DataEnd: 2, Trailers: 3, Done: 4 } as const;
type State = typeof State[keyof typeof State];

const [CR, LF, SEMICOLON, SPACE, TAB] = [0x0d, 0x0a, 0x3b, 0x20, 0x09];
const NO_BYTES = new Uint8Array(0);

/** Reads a body that comes in chunks (RFC 9112 §7.1); each line of it ends with CR and LF. */
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

  constructor(readonly bodyBytesMax: number = BODY_BYTES_MAX) {}

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
          this.body = appendBody(this.body, this.bodyBytes, part, this.bodyBytesMax);
          this.bodyBytes += length;
          this.at += length;
          this.#left -= length;
          if (this.#left > 0) return Chunked.Partial;
          this.#state = State.DataEnd;
          break;
        }
        case State.DataEnd: {
          if (this.at < end && bytes[this.at] !== CR) return Chunked.Malformed;
          if (this.at + 1 >= end) return Chunked.Partial;
          if (bytes[this.at + 1] !== LF) return Chunked.Malformed;
          this.at += 2;
          this.#state = State.Size;
          break;
        }
        case State.Trailers: {
          const stop = lineEnd(bytes, this.at, end);
          if (stop < 0) return this.#partialLine(end);
          const line = this.at;
          if (stop === line || bytes[stop - 1] !== CR) return Chunked.Malformed;
          this.at = stop + 1;
          if (stop - 1 === line) {
            this.#state = State.Done;
            return Chunked.Whole;
          }
          if (fieldColon(bytes, line, stop - 1) < 0) return Chunked.Malformed;
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
    const lineStop = stop - 1;
    if (stop === this.at || bytes[lineStop] !== CR) return Chunked.Malformed;
    let size = 0;
    let at = this.at;
    for (; at < lineStop; at++) {
      const digit = hexDigit(bytes[at]);
      if (digit < 0) break;
      size = 16 * size + digit;
    }
    if (at === this.at || at - this.at > SIZE_DIGITS_MAX) return Chunked.Malformed;
    // Extensions are let pass; anything else behind the size is not.
    while (at < lineStop && (bytes[at] === SPACE || bytes[at] === TAB)) at++;
    if (at < lineStop && (bytes[at] !== SEMICOLON || !isText(bytes, at, lineStop))) {
      return Chunked.Malformed;
    }
    if (++this.#chunks > this.bodyBytesMax / BYTES_A_CHUNK_MIN) return Chunked.Malformed;
    if (this.bodyBytes + size > this.bodyBytesMax) return Chunked.TooLarge;
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
