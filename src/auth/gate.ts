import { SvcError } from "../errors.ts";

/** Lets a few through at a time, the rest in the order in which they came. */
export class Gate {
  readonly #atOnceMax: number;
  readonly #waitingMax: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(atOnceMax: number, waitingMax: number) {
    this.#atOnceMax = atOnceMax;
    this.#waitingMax = waitingMax;
  }

  /**
   * Does `work` once it is let through.
   *
   * @throws {SvcError} `unavailable`, when as many wait as may.
   */
  async pass<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running < this.#atOnceMax) this.#running++;
    else await this.#wait();
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      // The place is handed over, so that nobody who comes just now gets in between.
      if (next === undefined) this.#running--;
      else next();
    }
  }

  #wait(): Promise<void> {
    if (this.#waiting.length >= this.#waitingMax) {
      throw new SvcError("unavailable", "too many passwords are being checked: try again");
    }
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }
}
