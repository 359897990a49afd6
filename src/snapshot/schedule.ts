import { invariant } from "../errors.ts";
import { type Day, DAYS } from "../model/constants.ts";
import type { ScheduleSpec } from "../model/mod.ts";

const MINUTE_MS = 60_000;
const DAY_MINUTES = 24 * 60;
const DAY_MS = DAY_MINUTES * MINUTE_MS;
const DAYS_OF_WEEK = 7;
/** 1970-01-01 was a Thursday; a week starts on Monday, as `DAYS` does. */
const EPOCH_WEEKDAY = 3;
/** What does not change within this time never does: every window comes back after a week. */
const HORIZON_MS = 9 * DAY_MS;
/** Edges of 64 windows and midnight, on each day up to the horizon, and clock changes. */
const EDGES_MAX = 2_000;
/** Clocks change at full quarters of an hour, UTC; between them an offset holds. */
const OFFSET_HOLDS_MS = 15 * MINUTE_MS;
/** More zones than there are: formatters of zones that nobody uses any more go. */
const ZONES_MAX = 1_024;

const zones = new Map<string, Zone>();

/** The clock on the wall of a time zone. */
class Zone {
  readonly #format: Intl.DateTimeFormat;
  #quarter = NaN;
  #offsetMs = 0;

  constructor(name: string) {
    this.#format = new Intl.DateTimeFormat("en-US", {
      timeZone: name,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
  }

  static of(name: string): Zone {
    const known = zones.get(name);
    if (known !== undefined) return known;
    if (zones.size >= ZONES_MAX) zones.clear();
    const zone = new Zone(name);
    zones.set(name, zone);
    return zone;
  }

  /** What the clock shows at an instant, as milliseconds since 1970 there. */
  wallMs(ms: number): number {
    return ms + this.offsetMs(ms);
  }

  offsetMs(ms: number): number {
    const quarter = Math.floor(ms / OFFSET_HOLDS_MS);
    if (quarter === this.#quarter) return this.#offsetMs;
    const startMs = quarter * OFFSET_HOLDS_MS;
    const parts: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {};
    for (const { type, value } of this.#format.formatToParts(startMs)) parts[type] = Number(value);
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
    this.#offsetMs = Date.UTC(year, month - 1, day, hour, minute, second) - startMs;
    this.#quarter = quarter;
    return this.#offsetMs;
  }
}

interface Window {
  /** Days it starts on, a bit each, Monday first. */
  readonly days: number;
  /** Minutes since midnight. */
  readonly start: number;
  readonly end: number;
}

/**
 * When something holds, by the clock on the wall of the schedule's time zone: while that clock shows
 * a time inside a window. A time that is skipped when clocks go forward is in no window, one that
 * comes twice when they go back is in its window twice. A window whose end is before its start runs
 * on into the next day that there is; one that ends when it starts holds never.
 */
export class Schedule {
  readonly #zone: Zone;
  readonly #windows: readonly Window[];
  /** Minutes of a day at which the answer can change, ascending; midnight is the first. */
  readonly #edges: readonly number[];

  constructor({ time_zone, windows }: ScheduleSpec) {
    this.#zone = Zone.of(time_zone);
    this.#windows = windows.map(({ days, start, end }) => ({
      days: days.reduce((bits, day) => bits | dayBit(day), 0),
      start: minutesOf(start),
      end: minutesOf(end),
    }));
    const edges = this.#windows.flatMap(({ start, end }) => [start, end % DAY_MINUTES]);
    this.#edges = [...new Set([0, ...edges])].sort((a, b) => a - b);
  }

  /** Says whether it holds at an instant, in milliseconds since 1970. */
  activeAt(ms: number): boolean {
    const wallMs = this.#zone.wallMs(ms);
    const day = Math.floor(wallMs / DAY_MS);
    const minute = Math.floor((wallMs - day * DAY_MS) / MINUTE_MS);
    const today = weekdayBit(day);
    let yesterday = 0;
    for (const { days, start, end } of this.#windows) {
      if (start <= end) {
        if ((days & today) !== 0 && minute >= start && minute < end) return true;
        continue;
      }
      if ((days & today) !== 0 && minute >= start) return true;
      if (minute >= end) continue;
      if (yesterday === 0) yesterday = weekdayBit(this.#dayBefore(ms, day));
      if ((days & yesterday) !== 0) return true;
    }
    return false;
  }

  /** The last day before `day`, on which `ms` is. Samoa had no 30 December 2011. */
  #dayBefore(ms: number, day: number): number {
    let at = ms;
    let found = day;
    // Where the clock went back today, one step of its hands is too short.
    while (found === day) {
      const wallMs = this.#zone.wallMs(at);
      at -= Math.floor((wallMs - found * DAY_MS) / MINUTE_MS + 1) * MINUTE_MS;
      found = Math.floor(this.#zone.wallMs(at) / DAY_MS);
    }
    return found;
  }

  /**
   * The first instant after `fromMs` at which `activeAt` says something else, to the millisecond;
   * `untilMs` where there is none before it, and `Infinity` for a schedule that never changes.
   */
  nextChangeMs(fromMs: number, untilMs = Infinity): number {
    const before = this.activeAt(fromMs);
    const lastMs = Math.min(untilMs, fromMs + HORIZON_MS);
    let at = fromMs;
    for (let i = 0; i < EDGES_MAX; i++) {
      at = this.#nextEdgeMs(at);
      if (at >= lastMs) return untilMs;
      if (this.activeAt(at) !== before) return at;
    }
    invariant(false, "a schedule has fewer edges than that before its horizon");
  }

  /** The next instant after `ms` at which the clock shows an edge, or is changed. */
  #nextEdgeMs(ms: number): number {
    const offsetMs = this.#zone.offsetMs(ms);
    const wallMs = ms + offsetMs;
    const day = Math.floor(wallMs / DAY_MS);
    const inDay = wallMs - day * DAY_MS;
    const edge = this.#edges.find((minute) => minute * MINUTE_MS > inDay) ?? DAY_MINUTES;
    const edgeMs = ms + edge * MINUTE_MS - inDay;
    if (this.#zone.offsetMs(edgeMs) === offsetMs) return edgeMs;
    // The clock is changed before it gets there: find the quarter of an hour.
    let low = Math.floor(ms / OFFSET_HOLDS_MS);
    let high = Math.floor(edgeMs / OFFSET_HOLDS_MS);
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      if (this.#zone.offsetMs(middle * OFFSET_HOLDS_MS) === offsetMs) low = middle;
      else high = middle;
    }
    return high * OFFSET_HOLDS_MS;
  }
}

function minutesOf(time: string): number {
  return 60 * Number(time.slice(0, 2)) + Number(time.slice(3));
}

function dayBit(day: Day): number {
  return 1 << DAYS.indexOf(day);
}

/** The bit of the weekday of a day, counted from 1970-01-01. */
function weekdayBit(day: number): number {
  return 1 << ((day + EPOCH_WEEKDAY) % DAYS_OF_WEEK);
}
