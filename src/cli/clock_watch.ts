/** How often the two clocks are compared. */
export const CLOCK_CHECK_MS = 10_000;
/** A smaller step is what time synchronisation makes every day. */
export const CLOCK_STEP_MS_MIN = 5_000;
/** How long a step is told of. */
export const CLOCK_TOLD_MS = 60 * 60 * 1_000;

export interface WatchClocks {
  /** Milliseconds since 1970. */
  readonly wallMs: () => number;
  /** Milliseconds, monotonic. */
  readonly monotonicMs: () => number;
}

/** Notices that the machine's clock was set, which moves schedules, TTLs and certificates. */
export class ClockWatch {
  readonly #clocks: WatchClocks;
  /** Wall clock less monotonic clock: the same for as long as nobody sets the former. */
  #offsetMs: number;
  #stepMs = 0;
  #steppedAtMs = -Infinity;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(clocks: WatchClocks) {
    this.#clocks = clocks;
    this.#offsetMs = clocks.wallMs() - clocks.monotonicMs();
  }

  /** Compares every `CLOCK_CHECK_MS`; `onStep` gets the milliseconds that the clock jumped. */
  start(onStep: (stepMs: number) => void): void {
    this.#timer = setInterval(() => {
      const stepMs = this.check();
      if (stepMs !== 0) onStep(stepMs);
    }, CLOCK_CHECK_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Compares the clocks; the milliseconds that the wall clock jumped since the last time, or 0. */
  check(): number {
    const monotonicMs = this.#clocks.monotonicMs();
    const offsetMs = this.#clocks.wallMs() - monotonicMs;
    const stepMs = offsetMs - this.#offsetMs;
    this.#offsetMs = offsetMs;
    if (Math.abs(stepMs) < CLOCK_STEP_MS_MIN) return 0;
    this.#stepMs = stepMs;
    this.#steppedAtMs = monotonicMs;
    return stepMs;
  }

  /** What to tell of it, for an hour. */
  get problems(): string[] {
    if (this.#clocks.monotonicMs() - this.#steppedAtMs >= CLOCK_TOLD_MS) return [];
    const way = this.#stepMs > 0 ? "forward" : "back";
    const seconds = Math.round(Math.abs(this.#stepMs) / 1_000);
    return [
      `the system's clock jumped ${way} by ${seconds} s within the last hour: it was set, or the ` +
      "machine slept; see that NTP keeps it",
    ];
  }
}
