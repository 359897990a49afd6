/** Bytes of a piece: as much stays as long as anything in it is kept. */
const PIECE_BYTES = 1_024;

/**
 * Copies bytes that are kept for long into pieces of memory that they share. V8 takes some hundred bytes
 * for each piece beside it, and what lies between pieces that are freed holds on to a page.
 */
export class KeptBytes {
  #piece = new Uint8Array(0);
  #used = 0;

  copy(bytes: Uint8Array): Uint8Array {
    const { length } = bytes;
    if (length > PIECE_BYTES / 4) return bytes.slice();
    if (this.#used + length > this.#piece.length) {
      this.#piece = new Uint8Array(PIECE_BYTES);
      this.#used = 0;
    }
    const at = this.#used;
    this.#used += length;
    this.#piece.set(bytes, at);
    return this.#piece.subarray(at, at + length);
  }
}
