/** What blocking and allowing write: a name, for whom, for how long. */

const HOUR_MS = 3_600_000;

export const PERIODS = ["1 hour", "today", "for ever"] as const;
export type Period = typeof PERIODS[number];

/** When a period that begins now ends; `null`: never. */
export function endOf(period: Period, now: Date): string | null {
  if (period === "for ever") return null;
  if (period === "1 hour") return new Date(now.getTime() + HOUR_MS).toISOString();
  const midnight = new Date(now);
  midnight.setHours(24, 0, 0, 0);
  return midnight.toISOString();
}

/** Seconds until the clock next shows six in the morning of another day. */
export function secondsUntilMorning(now: Date): number {
  const morning = new Date(now);
  morning.setDate(morning.getDate() + 1);
  morning.setHours(6, 0, 0, 0);
  return Math.round((morning.getTime() - now.getTime()) / 1_000);
}

/** The names that a rule may be about: the one asked for, it and all below, or below a parent. */
export interface Reach {
  readonly label: string;
  readonly name: string;
  readonly isBelow: boolean;
}

export function reachesOf(name: string): Reach[] {
  const labels = name.split(".");
  // A top-level domain is nobody's to block by mistake.
  const parents = labels.slice(1, -1).map((_, i) => labels.slice(i + 1).join("."));
  return [
    { label: name, name, isBelow: false },
    ...[name, ...parents].map((one) => ({ label: `${one} and below`, name: one, isBelow: true })),
  ];
}
