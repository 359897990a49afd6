/** A schedule's windows as stretches of minutes in a week, which can be painted on and read. */
export const DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
export type Day = typeof DAYS[number];

export interface Window {
  days: Day[];
  start: string;
  end: string;
}

/** From, and behind the last; minutes from Monday 0:00, disjoint, in order, within the week. */
export type Stretch = readonly [from: number, to: number];

export const DAY_MINUTES = 1_440;
export const WEEK_MINUTES = 7 * DAY_MINUTES;

function minutesOf(clock: string): number {
  const [hours, minutes] = clock.split(":").map(Number);
  return hours * 60 + minutes;
}

export function clockOf(minutes: number): string {
  const two = (value: number) => String(value).padStart(2, "0");
  return `${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}

/** A stretch within the week; one that runs past its end goes on at its beginning. */
function inWeek([from, to]: Stretch): Stretch[] {
  const length = Math.min(to - from, WEEK_MINUTES);
  const begin = ((from % WEEK_MINUTES) + WEEK_MINUTES) % WEEK_MINUTES;
  const end = begin + length;
  return end <= WEEK_MINUTES ? [[begin, end]] : [[begin, WEEK_MINUTES], [0, end - WEEK_MINUTES]];
}

/** Joins what touches. */
function joined(stretches: readonly Stretch[]): Stretch[] {
  const sorted = stretches.flatMap(inWeek).sort((a, b) => a[0] - b[0]);
  const result: [number, number][] = [];
  for (const [from, to] of sorted) {
    const last = result.at(-1);
    if (last !== undefined && from <= last[1]) last[1] = Math.max(last[1], to);
    else result.push([from, to]);
  }
  return result;
}

export function stretchesOf(windows: readonly Window[]): Stretch[] {
  return joined(windows.flatMap(({ days, start, end }) => {
    const [from, to] = [minutesOf(start), minutesOf(end)];
    const length = to > from ? to - from : to + DAY_MINUTES - from;
    return days.map((day): Stretch => {
      const at = DAYS.indexOf(day) * DAY_MINUTES + from;
      return [at, at + length];
    });
  }));
}

/** Paints a part of the week, or takes it away. */
export function paint(stretches: readonly Stretch[], part: Stretch, on: boolean): Stretch[] {
  if (on) return joined([...stretches, part]);
  return inWeek(part).reduce(
    (left: readonly Stretch[], [from, to]) =>
      left.flatMap(([a, b]): Stretch[] => {
        const before: Stretch[] = a < from ? [[a, Math.min(b, from)]] : [];
        const behind: Stretch[] = b > to ? [[Math.max(a, to), b]] : [];
        return [...before, ...behind];
      }).filter(([a, b]) => a < b),
    stretches,
  ) as Stretch[];
}

/**
 * The stretch that a minute is in, whole: one around the end of the week ends behind it. `null`: it is
 * in none.
 */
export function stretchAt(stretches: readonly Stretch[], minute: number): Stretch | null {
  const found = stretches.find(([from, to]) => minute >= from && minute < to);
  if (found === undefined) return null;
  const [first, last] = [stretches[0], stretches[stretches.length - 1]];
  const isAround = first !== last && first[0] === 0 && last[1] === WEEK_MINUTES;
  return isAround && (found === first || found === last)
    ? [last[0], WEEK_MINUTES + first[1]]
    : found;
}

/** Puts another stretch in the place of one. */
export function exchange(
  stretches: readonly Stretch[],
  before: Stretch,
  after: Stretch,
): Stretch[] {
  return paint(paint(stretches, before, false), after, true);
}

/** The stretch with one end at a minute; it keeps a length of at least `least`. */
export function withEnd(
  [from, to]: Stretch,
  end: "from" | "to",
  minute: number,
  least: number,
): Stretch {
  // The minute is one of the week, and a stretch may end behind that.
  const near = minute < from - least && to > WEEK_MINUTES ? minute + WEEK_MINUTES : minute;
  return end === "from"
    ? [Math.max(Math.min(near, to - least), to - WEEK_MINUTES), to]
    : [from, Math.min(Math.max(near, from + least), from + WEEK_MINUTES)];
}

/** Copies what is on a day to another. */
export function copyDay(stretches: readonly Stretch[], from: number, to: number): Stretch[] {
  const begin = to * DAY_MINUTES;
  const cleared = paint(stretches, [begin, begin + DAY_MINUTES], false);
  return onDay(stretches, from).reduce(
    (all, [a, b]) => paint(all, [begin + a, begin + b], true),
    cleared,
  );
}

/** The fewest windows that say the same, days of the same times together. */
export function windowsOf(stretches: readonly Stretch[]): Window[] {
  const around = [...stretches];
  const [first, last] = [around[0], around.at(-1)];
  if (around.length > 1 && first[0] === 0 && last![1] === WEEK_MINUTES) {
    around.splice(around.length - 1, 1, [last![0], WEEK_MINUTES + first[1]]);
    around.shift();
  }
  const windows = new Map<string, Window>();
  const add = (day: number, start: number, end: number) => {
    const [from, to] = [clockOf(start), clockOf(end)];
    const window = windows.get(`${from} ${to}`) ?? { days: [], start: from, end: to };
    window.days.push(DAYS[day % 7]);
    windows.set(`${from} ${to}`, window);
  };
  for (const [from, to] of around) {
    let at = from;
    while (at < to) {
      const day = Math.floor(at / DAY_MINUTES);
      const start = at % DAY_MINUTES;
      const end = to - day * DAY_MINUTES;
      if (end <= DAY_MINUTES) {
        add(day, start, end);
        break;
      }
      if (end - DAY_MINUTES < start) {
        add(day, start, end - DAY_MINUTES); // Past midnight, and over before it begins again.
        break;
      }
      add(day, start, DAY_MINUTES);
      at = (day + 1) * DAY_MINUTES;
    }
  }
  for (const window of windows.values()) {
    window.days.sort((a, b) => DAYS.indexOf(a) - DAYS.indexOf(b));
  }
  return [...windows.values()];
}

/** What of the week lies on a day, in minutes of that day. */
export function onDay(stretches: readonly Stretch[], day: number): Stretch[] {
  const begin = day * DAY_MINUTES;
  return stretches.map(([from, to]): Stretch => [
    Math.max(from - begin, 0),
    Math.min(to - begin, DAY_MINUTES),
  ]).filter(([from, to]) => from < to);
}

/** Where in the week it is in a time zone. */
export function weekMinute(zone: string, now: Date): number {
  const parts = new Intl.DateTimeFormat("en-GB", {
    timeZone: zone,
    weekday: "short",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  }).formatToParts(now);
  const part = (type: string) => parts.find((one) => one.type === type)?.value ?? "";
  const day = DAYS.indexOf(part("weekday").toLowerCase() as Day);
  return day * DAY_MINUTES + Number(part("hour")) * 60 + Number(part("minute"));
}

/** Whether it holds at this minute, and until when; `null`: it never changes. */
export function stateAt(
  stretches: readonly Stretch[],
  minute: number,
): { readonly isActive: boolean; readonly until: number | null } {
  const around = stretches.find(([from, to]) => minute >= from && minute < to);
  if (around !== undefined) {
    const [from, to] = around;
    if (from === 0 && to === WEEK_MINUTES) return { isActive: true, until: null };
    const next = stretches[0];
    const isOverWeek = to === WEEK_MINUTES && next[0] === 0;
    return { isActive: true, until: isOverWeek ? next[1] : to % WEEK_MINUTES };
  }
  if (stretches.length === 0) return { isActive: false, until: null };
  const next = stretches.find(([from]) => from > minute) ?? stretches[0];
  return { isActive: false, until: next[0] };
}
