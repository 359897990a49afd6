/**
 * Has free memory go back once there may be enough of it. Whoever frees keeps: V8 looks for garbage
 * when it needs room, and the C library keeps what is free for those that ask next. After a busy
 * minute that is tens of megabytes, for as long as it is quiet.
 */
export class FreeMemory {
  readonly #usedBytes: () => number;
  readonly #giveBack: () => void;
  readonly #grownBytesMin: number;
  /** The least that was used since it was last given back. */
  #leastBytes = -Infinity;

  /** `giveBack` takes some milliseconds, and is called where that much more is used than after it. */
  constructor(usedBytes: () => number, giveBack: () => void, grownBytesMin: number) {
    this.#usedBytes = usedBytes;
    this.#giveBack = giveBack;
    this.#grownBytesMin = grownBytesMin;
  }

  /** Called every now and then. */
  look(): void {
    const bytes = this.#usedBytes();
    if (bytes < this.#leastBytes + this.#grownBytesMin) {
      this.#leastBytes = Math.min(this.#leastBytes, bytes);
      return;
    }
    this.#giveBack();
    this.#leastBytes = this.#usedBytes();
  }
}

/**
 * Collects this isolate's garbage and gives back its pages, where V8's `--expose-gc` is set; as a last
 * resort also what V8 would have to compile or learn again.
 */
export function giveBackHeap(flavor: "regular" | "last-resort" = "last-resort"): void {
  const { gc } = globalThis as { gc?: (how: Readonly<Record<string, string>>) => void };
  gc?.({ type: "major", flavor });
}
