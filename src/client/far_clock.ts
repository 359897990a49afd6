/**
 * The clock of a service, as its answers tell it: that of whoever looks at it may be wrong by days, and
 * what is asked for and shown is in the service's time. Scope: none. RFC 9110 §6.6.1. @module
 */

/** An answer's `Date` is cut to seconds. */
const STEP_MS = 1_000;

export class FarClock {
  #aheadMs = 0;

  /** The service's time; ours, until an answer tells another. */
  get nowMs(): number {
    return Date.now() + this.#aheadMs;
  }

  now(): Date {
    return new Date(this.nowMs);
  }

  /**
   * Learns from the `Date` of an answer that is here now, to what was sent at `sentMs` by our clock. It
   * was written somewhere between the two: as long as what is known fits there, nothing jumps.
   */
  learn(date: string | null, sentMs: number): void {
    const toldMs = Date.parse(date ?? "");
    if (Number.isNaN(toldMs)) return;
    const least = toldMs - Date.now();
    const most = toldMs + STEP_MS - sentMs;
    if (this.#aheadMs < least || this.#aheadMs > most) this.#aheadMs = (least + most) / 2;
  }
}
