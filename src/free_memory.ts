/**
 * Has free memory go back once there may be enough of it. Whoever frees keeps: V8 looks for garbage
 * when it needs room, and the C library keeps what is free for those that ask next. After a busy
 * minute that is tens of megabytes, for as long as it is quiet.
 */
export class FreeMemory {
  readonly #usedBytes: () => number;
  readonly #giveBack: () => void;
  readonly #changeBytesMin: number;
  /** What was used when it was last given back, and the least since. */
  #leftBytes = Infinity;
  #leastBytes = -Infinity;

  /**
   * `giveBack` takes some milliseconds, and is called where that much more is used than after it; or
   * that much less: something large is over, which was in use at the time.
   */
  constructor(usedBytes: () => number, giveBack: () => void, changeBytesMin: number) {
    this.#usedBytes = usedBytes;
    this.#giveBack = giveBack;
    this.#changeBytesMin = changeBytesMin;
  }

  /** Called every now and then. */
  look(): void {
    const bytes = this.#usedBytes();
    const hasGrown = bytes >= this.#leastBytes + this.#changeBytesMin;
    if (!hasGrown && bytes > this.#leftBytes - this.#changeBytesMin) {
      this.#leastBytes = Math.min(this.#leastBytes, bytes);
      return;
    }
    this.#giveBack();
    this.#leftBytes = this.#leastBytes = this.#usedBytes();
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
