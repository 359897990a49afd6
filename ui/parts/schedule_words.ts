import {
  clockOf,
  DAY_MINUTES,
  stateAt,
  type Stretch,
  stretchesOf,
  weekMinute,
} from "../data/week.ts";
import type { Specs } from "../data/types.ts";
import { t } from "../text/mod.ts";
import { weekday } from "./format.ts";

function at(minute: number, now: number): string {
  const [day, time] = [Math.floor(minute / DAY_MINUTES), clockOf(minute % DAY_MINUTES)];
  return Math.floor(now / DAY_MINUTES) === day ? time : `${weekday(day)} ${time}`;
}

/** Whether a schedule holds now, and what comes next. */
export function scheduleState({ time_zone, windows }: Specs["schedules"], nowMs: number): {
  isActive: boolean;
  text: string;
} {
  const stretches: readonly Stretch[] = stretchesOf(windows);
  let minute: number;
  try {
    minute = weekMinute(time_zone, new Date(nowMs));
  } catch {
    return { isActive: false, text: "" }; // A time zone that is half typed.
  }
  const { isActive, until } = stateAt(stretches, minute);
  if (until === null) return { isActive, text: isActive ? t.schedules.always : t.schedules.never };
  return {
    isActive,
    text: (isActive ? t.schedules.activeUntil : t.schedules.nextAt)(at(until, minute)),
  };
}
