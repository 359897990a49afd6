const MINUTE_MS = 60_000;
const QUARTER_MS = 15 * MINUTE_MS;
export const DAY_MS = 24 * 60 * MINUTE_MS;
/** Quarters of an hour that a day begins before or behind what its date says at most. */
const QUARTERS_MAX = 12;

/** Days of a calendar, numbered from 1970-01-01 by their dates: each has 23 to 25 hours. */
export class LocalDays {
  readonly #format: Intl.DateTimeFormat;
  /** The day that was asked about last. */
  #known = { day: 0, startMs: Infinity, endMs: -Infinity };

  /** `zone` is the name of an IANA time zone; `null`: the machine's. */
  constructor(zone: string | null = null) {
    this.#format = new Intl.DateTimeFormat("en-US", {
      ...(zone !== null && { timeZone: zone }),
      calendar: "iso8601",
      numberingSystem: "latn",
      hourCycle: "h23",
      ...{ year: "numeric", month: "numeric", day: "numeric" },
      ...{ hour: "numeric", minute: "numeric", second: "numeric" },
    });
  }

  dayOf(timeMs: number): number {
    const { day, startMs, endMs } = this.#known;
    if (timeMs >= startMs && timeMs < endMs) return day;
    const found = Math.floor(this.#localMs(timeMs) / DAY_MS);
    this.#known = { day: found, startMs: this.startMs(found), endMs: this.startMs(found + 1) };
    return found;
  }

  /** When a day begins; one that was left out of the calendar begins when the next one does. */
  startMs(day: number): number {
    let startMs = day * DAY_MS - this.#offsetMs(day * DAY_MS);
    startMs = day * DAY_MS - this.#offsetMs(startMs);
    const isBefore = (timeMs: number) => this.#localMs(timeMs) < day * DAY_MS;
    // Where clocks are set at midnight, it begins earlier or later than its date says.
    for (let i = 0; i < QUARTERS_MAX && isBefore(startMs); i++) startMs += QUARTER_MS;
    for (let i = 0; i < QUARTERS_MAX && !isBefore(startMs - QUARTER_MS); i++) startMs -= QUARTER_MS;
    return startMs;
  }

  #offsetMs(timeMs: number): number {
    return this.#localMs(timeMs) - Math.floor(timeMs / 1_000) * 1_000;
  }

  /** What a clock on the wall shows, as if it were UTC; to the second. */
  #localMs(timeMs: number): number {
    const at = Object.fromEntries(
      this.#format.formatToParts(timeMs).map(({ type, value }) => [type, Number(value)]),
    );
    return Date.UTC(at.year, at.month - 1, at.day, at.hour, at.minute, at.second);
  }
}
