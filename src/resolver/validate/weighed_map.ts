interface Entry<T> {
  readonly value: T;
  readonly bytes: number;
  /** Since it was looked at last to make room. */
  isUsed: boolean;
}

/** Entries in use that are passed over, at most, to make room. */
const SPARED_MAX = 16;

/** A map whose entries go, the oldest that are not in use first, where they weigh too much together. */
export class WeighedMap<T> {
  /** In the order of their age; those found in use begin anew. */
  readonly #entries = new Map<string, Entry<T>>();
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** What all entries weigh. */
  get bytes(): number {
    return this.#bytes;
  }

  get(key: string): T | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    entry.isUsed = true;
    return entry.value;
  }

  /** Sets an entry, or weighs it anew. */
  set(key: string, value: T, bytes: number): void {
    this.#delete(key);
    this.#entries.set(key, { value, bytes, isUsed: false });
    this.#bytes += bytes;
    if (this.#bytes > this.#bytesMax) this.#makeRoom();
  }

  #makeRoom(): void {
    let spared = 0;
    for (const [key, entry] of this.#entries) {
      if (this.#bytes <= this.#bytesMax) return;
      if (!entry.isUsed || spared >= SPARED_MAX) {
        this.#delete(key);
        continue;
      }
      spared++;
      entry.isUsed = false;
      this.#entries.delete(key);
      this.#entries.set(key, entry);
    }
  }

  clear(): void {
    this.#entries.clear();
    this.#bytes = 0;
  }

  #delete(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#bytes -= entry.bytes;
  }
}
