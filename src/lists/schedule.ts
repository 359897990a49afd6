import type { Chance } from "./ports.ts";

/** Pause after the first failure and the longest one; it doubles with each further failure. */
interface Pauses {
  readonly msMin: number;
  readonly msMax: number;
}

/** While there is a text, an older one filters nearly as well… */
export const RETRY: Pauses = { msMin: 60_000, msMax: 6 * 3_600_000 };
/** …and while there is none, nothing of the list is filtered. */
export const FIRST_RETRY: Pauses = { msMin: 5_000, msMax: 3_600_000 };
/** Part of a pause that chance takes off, so that nodes and lists do not ask all at once. */
const RETRY_JITTER_RATIO = 0.25;
/** Part of the refresh interval over which lists spread. */
const REFRESH_SPREAD_RATIO = 0.1;

/** How long to leave a list alone after its `failures`-th failure in a row (1 or more). */
export function retryDelayMs(
  { msMin, msMax }: Pauses,
  failures: number,
  chance: Chance,
): number {
  // 2^16 times the shortest is far over the cap: an endless row must not end in Infinity.
  const fullMs = Math.min(msMax, msMin * 2 ** Math.min(failures - 1, 16));
  return fullMs * (1 - RETRY_JITTER_RATIO * chance());
}

/** A try that failed, and how long the list is left alone since. */
export interface Failure {
  readonly atMs: number;
  readonly pauseMs: number;
}

/** What is known of a list's last tries. */
export interface Tries {
  /** When the text was last fetched, confirmed or read; `null` if it never was. */
  readonly checkedAtMs: number | null;
  /** The last try, if that failed. */
  readonly failure: Failure | null;
  /** This list's place in the spread, 0 to 1. */
  readonly spread: number;
}

/** When the list is to be asked for next; `nowMs` at the latest if the clock has gone back. */
export function dueAtMs(tries: Tries, intervalMs: number, nowMs: number): number {
  const { checkedAtMs, failure, spread } = tries;
  if (failure !== null) return failure.atMs > nowMs ? nowMs : failure.atMs + failure.pauseMs;
  if (checkedAtMs === null || checkedAtMs > nowMs) return nowMs;
  // Early rather than late: the interval is what the text's age is promised to stay under.
  return checkedAtMs + intervalMs * (1 - REFRESH_SPREAD_RATIO * spread);
}
