import type { Cache } from "../../cache/mod.ts";

const MESSAGE_BYTES_MAX = 0x10000;

/** Reads messages out of the cache of answers. */
export class KeptMessages {
  readonly #cache: Cache;
  readonly #nowSeconds: () => number;
  readonly #bytes: Uint8Array<ArrayBuffer>;
  readonly #words: Uint32Array<ArrayBuffer>;

  constructor(cache: Cache, nowSeconds: () => number) {
    this.#cache = cache;
    this.#nowSeconds = nowSeconds;
    const memory = new ArrayBuffer(MESSAGE_BYTES_MAX);
    this.#bytes = new Uint8Array(memory);
    this.#words = new Uint32Array(memory);
  }

  /** The message of an entry, its TTLs aged: a view that is good until the next call. */
  copy(entry: number): Uint8Array {
    this.#cache.copyTo(entry, this.#bytes, this.#words, 0, this.#nowSeconds(), 0);
    return this.#bytes.subarray(0, this.#cache.messageLength(entry));
  }
}
