interface Waiting {
  readonly isUrgent: boolean;
  readonly go: () => void;
}

/** Lets so many pieces of work through at a time, urgent ones first, else in order. */
export class Slots {
  #free: number;
  readonly #waiting: Waiting[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  /**
   * Runs `work` when it is its turn; who is aborted by then no longer waits.
   *
   * @throws The signal's reason, and what `work` throws.
   */
  async run<T>(
    work: () => Promise<T>,
    { isUrgent = false, signal }: { isUrgent?: boolean; signal?: AbortSignal } = {},
  ): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await this.#turn(isUrgent, signal);
    try {
      signal?.throwIfAborted();
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next.go();
    }
  }

  /** Resolves once somebody hands its place on. */
  async #turn(isUrgent: boolean, signal: AbortSignal | undefined): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const mine: Waiting = { isUrgent, go: resolve };
    const before = isUrgent ? this.#waiting.findIndex((other) => !other.isUrgent) : -1;
    this.#waiting.splice(before < 0 ? this.#waiting.length : before, 0, mine);
    const leave = () => {
      const index = this.#waiting.indexOf(mine);
      if (index < 0) return; // It is its turn already.
      this.#waiting.splice(index, 1);
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", leave);
    if (signal?.aborted) leave();
    try {
      await promise;
    } finally {
      signal?.removeEventListener("abort", leave);
    }
  }
}
