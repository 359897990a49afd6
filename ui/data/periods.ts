import { nodeClock } from "./clock.ts";

/** For how long: an hour, the rest of today, for ever. */
export const PERIODS = ["hour", "today", "ever"] as const;
export type Period = typeof PERIODS[number];

export function isPeriod(text: string): text is Period {
  return (PERIODS as readonly string[]).includes(text);
}

/** When a period that begins now ends; `null`: never. */
export function endOf(period: Exclude<Period, "ever">, now?: Date): Date;
export function endOf(period: Period, now?: Date): Date | null;
export function endOf(period: Period, now = nodeClock.now()): Date | null {
  if (period === "ever") return null;
  if (period === "hour") return new Date(now.getTime() + 3_600_000);
  const midnight = new Date(now);
  midnight.setHours(24, 0, 0, 0);
  return midnight;
}

/** Seconds until the next time that clock shows `hour`. */
export function secondsUntilHour(hour: number, now = nodeClock.now()): number {
  const then = new Date(now);
  then.setDate(then.getDate() + 1);
  then.setHours(hour, 0, 0, 0);
  return Math.round((then.getTime() - now.getTime()) / 1_000);
}
