/** From the signal to the end: whoever stops the service waits no longer, whatever hangs. */
export const STOP_MS_MAX = 2_000;
/** Kept of it for what is stopped last: the query log's entries, which have what was answered. */
const LAST_MS = 500;
/** Kept of it for what follows: closing the store. */
const CLOSING_MS = 100;
/** What one part may be late by: it is ended after its time, which takes some as well. */
const LATE_MS = 500;

/** Deals out the time in which a service ends. */
export class StopTime {
  readonly #nowMs: () => number;
  readonly #endsAtMs: number;

  /** Begins now; `nowMs` is a monotonic clock. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#endsAtMs = nowMs() + STOP_MS_MAX;
  }

  /** For those that are stopped first, side by side. */
  firstMs(): number {
    return this.#left(LAST_MS + CLOSING_MS + LATE_MS);
  }

  /** For what is stopped when they are. */
  lastMs(): number {
    return this.#left(CLOSING_MS);
  }

  #left(keptMs: number): number {
    return Math.max(0, this.#endsAtMs - this.#nowMs() - keptMs);
  }
}
