const [ASKED, HANGS, ENDED] = [0, 1, 2];

/**
 * A thread that takes no other turn until a test has it go on. Nothing else ends it, `terminate()`
 * included: one in a loop would take a processor from every test behind this one.
 */
export class Hang {
  readonly #state: Int32Array;

  constructor(
    readonly memory: SharedArrayBuffer = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT),
  ) {
    this.#state = new Int32Array(memory);
  }

  /** For the thread: comes back after `end`. */
  begin(): void {
    if (Atomics.compareExchange(this.#state, 0, ASKED, HANGS) === ASKED) {
      Atomics.wait(this.#state, 0, HANGS);
    }
  }

  /** For the thread: the same in a loop that takes a processor. */
  spin(): void {
    if (Atomics.compareExchange(this.#state, 0, ASKED, HANGS) !== ASKED) return;
    while (Atomics.load(this.#state, 0) === HANGS);
  }

  /** Says whether the thread hangs. */
  get hangs(): boolean {
    return Atomics.load(this.#state, 0) === HANGS;
  }

  /** For the test: has the thread go on, or never hang. */
  end(): void {
    Atomics.store(this.#state, 0, ENDED);
    Atomics.notify(this.#state, 0);
  }
}
