/** Largest DNS message with its length field (RFC 1035 §4.2.2). */
const FRAME_BYTES_MAX = 2 + 0xffff;
const START_BYTES = 1_024;

/**
 * Cuts a stream into messages, each behind its length of two bytes. Grows to the largest message
 * of the stream and no further.
 */
export class FrameReader {
  #bytes = new Uint8Array(START_BYTES);
  #start = 0;
  #end = 0;

  /** Bytes of a message that is not whole yet. */
  get pendingBytes(): number {
    return this.#end - this.#start;
  }

  /** Adds what came in. Take every message with `next` before adding more. */
  push(chunk: Uint8Array): void {
    const pending = this.#end - this.#start;
    const needed = pending + chunk.length;
    if (needed > this.#bytes.length) {
      let size = this.#bytes.length;
      while (size < needed) size *= 2;
      const grown = new Uint8Array(size);
      grown.set(this.#bytes.subarray(this.#start, this.#end));
      this.#bytes = grown;
    } else if (this.#start > 0) {
      this.#bytes.copyWithin(0, this.#start, this.#end);
    }
    this.#start = 0;
    this.#end = pending;
    this.#bytes.set(chunk, this.#end);
    this.#end += chunk.length;
  }

  /** The next whole message, a view that is good until the next `push`; `null` when there is none. */
  next(): Uint8Array | null {
    const pending = this.#end - this.#start;
    if (pending < 2) return null;
    const length = (this.#bytes[this.#start] << 8) | this.#bytes[this.#start + 1];
    if (pending < 2 + length) {
      this.#shrink(pending);
      return null;
    }
    const at = this.#start + 2;
    this.#start = at + length;
    return this.#bytes.subarray(at, at + length);
  }

  /** After a burst, memory goes back to what one message can need. */
  #shrink(pending: number): void {
    if (this.#bytes.length <= 2 * FRAME_BYTES_MAX || pending > START_BYTES) return;
    const small = new Uint8Array(START_BYTES);
    small.set(this.#bytes.subarray(this.#start, this.#end));
    this.#bytes = small;
    this.#start = 0;
    this.#end = pending;
  }
}
