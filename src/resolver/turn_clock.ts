import type { SystemClocks } from "../clock/mod.ts";

/** Every so many readings within a turn the clock is really looked at: that is no small call. */
const READINGS = 16;

/**
 * The time of a query that is answered within a turn of the event loop. The first answer of a turn,
 * and every sixteenth, knows it to the microsecond; those between are given the same.
 */
export class TurnClock {
  /** When the turn began: in milliseconds since 1970, and by the monotonic clock. */
  epochMs = 0;
  startedAtMs = 0;
  #nowMs = 0;
  #readings = 0;

  constructor(private readonly clocks: SystemClocks) {}

  /** Begins a turn: a batch, a message or a timer. */
  begin(): void {
    this.epochMs = this.clocks.wallMs();
    this.startedAtMs = this.clocks.monotonicMs();
    this.#readings = 0;
  }

  /** The monotonic clock, now or a few answers ago. */
  nowMs(): number {
    if (this.#readings-- === 0) {
      this.#nowMs = this.clocks.monotonicMs();
      this.#readings = READINGS - 1;
    }
    return this.#nowMs;
  }
}
