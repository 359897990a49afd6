/** Records written a second, for about a tenth of a processor's time; of a flood, this part. */
const RECORDS_PER_SECOND = 22_000;
const FLOOD_PART = 1 / 5;
/** So much of a rest that lasted longer than it was to is made good. */
const LATE_MS_MAX = 200;

/**
 * How soon after some records the next are taken from the queues. More wait there, and of what finds
 * no room then some of each client's are left out.
 */
export class Pace {
  #taken = 0;
  #dropped = 0;
  /** When a rest was last asked for, and how many had come by then. */
  #last = { ms: -Infinity, come: 0 };
  #untilMs = -Infinity;

  /** When the next ones may be taken. */
  get untilMs(): number {
    return this.#untilMs;
  }

  /** Records taken so far. */
  get taken(): number {
    return this.#taken;
  }

  /** A record was taken from a queue. */
  take(): void {
    this.#taken++;
  }

  /** So many found no room in one. */
  drop(count: number): void {
    this.#dropped += count;
  }

  /** Begins to rest from having taken so many just now. */
  rest(nowMs: number, count: number): void {
    const { ms, come: before } = this.#last;
    const come = this.#taken + this.#dropped;
    this.#last = { ms: nowMs, come };
    const comePerMs = (come - before) / Math.max(1, nowMs - ms);
    const restMs = count / Math.max(RECORDS_PER_SECOND / 1_000, FLOOD_PART * comePerMs);
    this.#untilMs = Math.round(Math.max(this.#untilMs, nowMs - LATE_MS_MAX) + restMs);
  }
}
