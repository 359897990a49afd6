import type { Chance } from "./ports.ts";

/** Pause after the first failure; it doubles with each further one. */
export const RETRY_MIN_MS = 60_000;
/** Longest pause between two tries of a failing list. */
export const RETRY_MAX_MS = 6 * 3_600_000;
/** Part of a pause that chance takes off, so that nodes and lists do not ask all at once. */
const RETRY_JITTER_RATIO = 0.25;
/** Part of the refresh interval over which lists spread. */
const REFRESH_SPREAD_RATIO = 0.1;

/** How long to leave a list alone after its `failures`-th failure in a row (1 or more). */
export function retryDelayMs(failures: number, chance: Chance): number {
  // 2^16 minutes is far over the cap: an endless row of failures must not end in Infinity.
  const fullMs = Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** Math.min(failures - 1, 16));
  return fullMs * (1 - RETRY_JITTER_RATIO * chance());
}

/** What is known of a list's last tries. */
export interface Tries {
  /** When the text was last fetched, confirmed or read; `null` if it never was. */
  readonly checkedAtMs: number | null;
  /** When to try again after a failure; `null` unless the last try failed. */
  readonly retryAtMs: number | null;
  /** This list's place in the spread, 0 to 1. */
  readonly spread: number;
}

/** When the list is to be asked for next; `nowMs` at the latest if the clock has gone back. */
export function dueAtMs(tries: Tries, intervalMs: number, nowMs: number): number {
  const { checkedAtMs, retryAtMs, spread } = tries;
  if (retryAtMs !== null) return retryAtMs > nowMs + RETRY_MAX_MS ? nowMs : retryAtMs;
  if (checkedAtMs === null || checkedAtMs > nowMs) return nowMs;
  // Early rather than late: the interval is what the text's age is promised to stay under.
  return checkedAtMs + intervalMs * (1 - REFRESH_SPREAD_RATIO * spread);
}
