const EMPTY = new Uint8Array(0);
/** First size of a copy; it doubles up to what a reader leaves unread. */
const COPY_BYTES_MIN = 1_024;

/**
 * What came in and is not read yet. A chunk that is read to its end is never copied; only the rest
 * of one is, and room for it is held no longer than that.
 */
export class InputBuffer {
  bytes: Uint8Array = EMPTY;
  /** The unread part of `bytes`; the reader moves `start` on. */
  start = 0;
  end = 0;
  /** `bytes` is a copy of our own. */
  #isOwn = false;

  get length(): number {
    return this.end - this.start;
  }

  /** Adds a chunk, which stays the caller's until `keep`. */
  push(chunk: Uint8Array): void {
    if (this.start === this.end) {
      this.bytes = chunk;
      this.start = 0;
      this.end = chunk.length;
      this.#isOwn = false;
      return;
    }
    this.#makeOwn(chunk.length);
    this.bytes.set(chunk, this.end);
    this.end += chunk.length;
  }

  /** Takes a copy of what is left, as the chunk's memory goes back to its owner. */
  keep(): void {
    if (this.start === this.end) {
      this.bytes = EMPTY;
      this.start = this.end = 0;
      this.#isOwn = false;
    } else if (!this.#isOwn) {
      this.#makeOwn(0);
    }
  }

  /** Drops everything. */
  clear(): void {
    this.start = this.end;
    this.keep();
  }

  /** Has `bytes` be a copy with room for `more` bytes behind the unread part. */
  #makeOwn(more: number): void {
    const { length } = this;
    const needed = length + more;
    if (this.#isOwn && this.end + more <= this.bytes.length) return;
    if (this.#isOwn && needed <= this.bytes.length) {
      this.bytes.copyWithin(0, this.start, this.end);
    } else {
      let size = COPY_BYTES_MIN;
      while (size < needed) size *= 2;
      const copy = new Uint8Array(size);
      copy.set(this.bytes.subarray(this.start, this.end));
      this.bytes = copy;
      this.#isOwn = true;
    }
    this.start = 0;
    this.end = length;
  }
}
