import { type Day, DAYS, type ScheduleSpec } from "../model/mod.ts";

/** Milliseconds since midnight between which something does not hold; the end is not among them. */
interface Pause {
  readonly start: number;
  readonly end: number;
}

export type Pauses = Readonly<Partial<Record<Day, Pause | null | undefined>>>;

const MINUTE_MS = 60_000;
const DAY_MINUTES = 24 * 60;

/**
 * The windows in which something holds that is paused by the day; `null`: it holds at all times.
 * None at all: it never holds. What is less than a minute is left to the pause.
 */
export function windowsOf(pauses: Pauses): ScheduleSpec["windows"] | null {
  const days = new Map<string, Day[]>();
  let isPaused = false;
  for (const day of DAYS) {
    const { start, end } = pauses[day] ?? { start: 0, end: 0 };
    const from = minutesWithin(Math.floor(start / MINUTE_MS));
    const to = minutesWithin(Math.ceil(end / MINUTE_MS));
    const hasPause = to > from;
    isPaused ||= hasPause;
    const held = hasPause ? [[0, from], [to, DAY_MINUTES]] : [[0, DAY_MINUTES]];
    for (const [a, b] of held) {
      if (a >= b) continue;
      const span = `${timeOf(a)}-${timeOf(b)}`;
      days.set(span, [...days.get(span) ?? [], day]);
    }
  }
  if (!isPaused) return null;
  return Array.from(days, ([span, on]) => {
    const [start, end] = span.split("-");
    return { days: on, start, end };
  });
}

function minutesWithin(minutes: number): number {
  return Math.min(Math.max(0, minutes), DAY_MINUTES);
}

function timeOf(minutes: number): string {
  const two = (n: number) => `${n}`.padStart(2, "0");
  return `${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}
