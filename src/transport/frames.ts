import { InputBuffer } from "./listen/input_buffer.ts";

/**
 * Cuts a stream into messages, each behind its length of two bytes. A chunk of whole messages is
 * never copied, and what is left of one takes room for itself and no more.
 */
export class FrameReader {
  readonly #input = new InputBuffer();

  /** Bytes that are not handed out yet. */
  get pendingBytes(): number {
    return this.#input.length;
  }

  /** Adds what came in; it stays the caller's until `next` finds no more, or `keep`. */
  push({ buffer, byteOffset, length }: Uint8Array): void {
    // A plain view: `slice` of Node's kind shares memory in place of copying it.
    this.#input.push(new Uint8Array(buffer, byteOffset, length));
  }

  /**
   * The next whole message, a view that is good until the next `push`; `null` when there is none.
   */
  next(): Uint8Array | null {
    const input = this.#input;
    const { bytes, start, length: pending } = input;
    const length = pending < 2 ? 0 : (bytes[start] << 8) | bytes[start + 1];
    if (pending < 2 + length) {
      input.keep();
      return null;
    }
    input.start = start + 2 + length;
    return bytes.subarray(start + 2, start + 2 + length);
  }

  /** Takes a copy of what is not handed out, as the chunk's memory goes back to its owner. */
  keep(): void {
    this.#input.keep();
  }
}
