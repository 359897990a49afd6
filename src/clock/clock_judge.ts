import type { Clock, SystemClocks } from "./ports.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** A smaller step is what time synchronisation makes every day. */
export const STEP_MS_MIN = 5 * SECOND_MS;
/** How long a step is told of. */
export const STEP_TOLD_MS = HOUR_MS;
/** A clock that is further behind than this is not believed. */
const BEHIND_MS_MAX = MINUTE_MS;
/** A clock that jumped further ahead than this may have been set wrong. */
const AHEAD_MS_MAX = 24 * HOUR_MS;
/** A clock that nobody set for so long is believed, wherever it stands. */
export const STEADY_MS = 6 * HOUR_MS;
/** A clock that is set within this time was wrong since the start. */
const START_MS = 10 * MINUTE_MS;

/** What was dated at `fromMs` and later belongs so much later; or earlier, where that is negative. */
export interface Correction {
  readonly fromMs: number;
  readonly shiftMs: number;
}

export interface ClockJudgeOptions {
  /** No clock is before this: when this program was released. */
  readonly releasedMs: number;
  /** The system's clock was set by so many milliseconds. */
  readonly onStep?: (stepMs: number) => void;
  /** What has been dated was dated wrong. */
  readonly onCorrection?: (correction: Correction) => void;
}

/**
 * Judges the system's clock by what is known: no time is before this program was released, nor before
 * what this node has written, and between two looks no more time passes than the monotonic clock
 * says. A clock that is behind is not believed: time then goes on from where it was, until the clock
 * has caught up, has returned to where it was believed before, or was left alone for `STEADY_MS`.
 */
export class ClockJudge implements Clock {
  readonly #clocks: SystemClocks;
  readonly #options: ClockJudgeOptions;
  readonly #startedAtMs: number;
  /** Wall clock less monotonic clock, now and before the last step. */
  #offsetMs: number;
  #formerOffsetMs: number;
  /** The same of the time that is told. */
  #courseMs: number;
  #lookedAtMs: number;
  #stepMs = 0;
  #steppedAtMs = -Infinity;
  /** While the wall clock is not believed: the time it began with. */
  #heldFromMs: number | null = null;
  /** The offset that was believed before the last jump ahead, and the first time after it. */
  #left: { readonly offsetMs: number; readonly fromMs: number } | null = null;
  #jumpMs = 0;
  #jumpedAtMs = -Infinity;
  /** The time is past this, which was known at the start. */
  #knownMs: number;
  /** The log had ended long before the start. */
  #isLateStart = false;

  constructor(clocks: SystemClocks, options: ClockJudgeOptions) {
    this.#clocks = clocks;
    this.#options = options;
    this.#startedAtMs = this.#lookedAtMs = clocks.monotonicMs();
    const wallMs = clocks.wallMs();
    this.#offsetMs = this.#formerOffsetMs = this.#courseMs = wallMs - this.#startedAtMs;
    this.#knownMs = options.releasedMs;
    if (wallMs < options.releasedMs) this.#hold(options.releasedMs);
  }

  /** The time; it goes on where the system's clock is not believed. */
  nowMs(): number {
    return Math.round(this.#look() + this.#courseMs);
  }

  /** When something happened a moment ago that the system's clock gave this time. */
  dateOf(wallMs: number): number {
    const age = Math.abs(this.#lookedAtMs - (wallMs - this.#offsetMs));
    const formerAge = Math.abs(this.#lookedAtMs - (wallMs - this.#formerOffsetMs));
    const shiftMs = this.#courseMs - (age <= formerAge ? this.#offsetMs : this.#formerOffsetMs);
    return Math.abs(shiftMs) < 1 ? wallMs : Math.round(wallMs + shiftMs);
  }

  /** Takes note of what was written before this start: the time is past that. */
  witness(writtenMs: number): void {
    const nowMs = this.nowMs();
    this.#knownMs = Math.max(this.#knownMs, writtenMs);
    if (writtenMs - nowMs > BEHIND_MS_MAX) this.#hold(writtenMs + 1);
  }

  /** The same of the newest of what is written all the time. */
  resume(newestMs: number): void {
    this.witness(newestMs);
    if (this.nowMs() - newestMs > AHEAD_MS_MAX) this.#isLateStart = true;
  }

  /** Says whether the system's clock is believed. */
  get isBelieved(): boolean {
    this.#look();
    return this.#heldFromMs === null;
  }

  /** Says whether something may be removed for its age. */
  get mayForget(): boolean {
    if (!this.isBelieved) return false;
    const doubtedAtMs = Math.max(
      this.#jumpedAtMs,
      this.#isLateStart ? this.#startedAtMs : -Infinity,
    );
    return this.#lookedAtMs - doubtedAtMs >= STEADY_MS;
  }

  /** What is wrong with the system's clock, for the status. */
  get problems(): string[] {
    const atMs = this.#look();
    const steady = `${STEADY_MS / HOUR_MS} hours`;
    if (this.#heldFromMs !== null) {
      const wallMs = atMs + this.#offsetMs;
      const isOld = wallMs < this.#options.releasedMs;
      const past = isOld
        ? "before this program was released"
        : `behind what this node has seen, ${instant(atMs + this.#courseMs)}`;
      const until = isOld ? "it is set" : `it is set or was left alone for ${steady}`;
      return [
        `the system's clock says ${
          instant(wallMs)
        }, which is ${past}, and is not believed: until ` +
        `${until}, nothing is removed from the query log for its age, and sessions, links and ` +
        "certificates end by the time that passes; see that NTP keeps it",
      ];
    }
    const problems: string[] = [];
    if (atMs - this.#steppedAtMs < STEP_TOLD_MS) {
      const way = this.#stepMs > 0 ? "forward" : "back";
      const seconds = Math.round(Math.abs(this.#stepMs) / SECOND_MS);
      problems.push(
        `the system's clock jumped ${way} by ${seconds} s within the last hour: it was set, or ` +
          "the machine slept; see that NTP keeps it",
      );
    }
    if (atMs - this.#jumpedAtMs < STEADY_MS) {
      const days = Math.round(this.#jumpMs / (24 * HOUR_MS));
      problems.push(
        `the system's clock jumped ahead by ${days} days: nothing is removed from the query log ` +
          `for its age until it was left alone for ${steady}`,
      );
    }
    return problems;
  }

  /** Looks at both clocks; returns the monotonic one. */
  #look(): number {
    const atMs = this.#clocks.monotonicMs();
    const offsetMs = this.#clocks.wallMs() - atMs;
    const stepMs = offsetMs - this.#offsetMs;
    if (Math.abs(stepMs) >= STEP_MS_MIN) {
      this.#formerOffsetMs = this.#offsetMs;
      this.#stepMs = stepMs;
      this.#steppedAtMs = atMs;
    }
    this.#offsetMs = offsetMs;
    if (this.#heldFromMs === null) this.#follow(atMs);
    if (this.#heldFromMs !== null) this.#reconsider(atMs, this.#heldFromMs);
    this.#lookedAtMs = atMs;
    if (Math.abs(stepMs) >= STEP_MS_MIN) this.#options.onStep?.(stepMs);
    return atMs;
  }

  /** Goes with a clock that was believed so far. */
  #follow(atMs: number): void {
    const gapMs = this.#offsetMs - this.#courseMs;
    if (gapMs < -BEHIND_MS_MAX) {
      this.#heldFromMs = atMs + this.#courseMs;
      return;
    }
    if (gapMs > AHEAD_MS_MAX) {
      // What was dated since the last look may have been dated by either.
      this.#left = { offsetMs: this.#courseMs, fromMs: this.#lookedAtMs + this.#offsetMs };
      this.#jumpMs = gapMs;
      this.#jumpedAtMs = atMs;
    }
    const startMs = this.#startedAtMs + this.#courseMs;
    this.#courseMs = this.#offsetMs;
    if (gapMs > 0 && atMs - this.#startedAtMs < START_MS) {
      this.#correct({ fromMs: startMs, shiftMs: gapMs });
    }
  }

  /** Believes a clock again that was not, where there is reason to. */
  #reconsider(atMs: number, heldFromMs: number): void {
    const wallMs = atMs + this.#offsetMs;
    if (wallMs < this.#options.releasedMs) return;
    const gapMs = this.#offsetMs - this.#courseMs;
    const steadyMs = atMs - Math.max(this.#steppedAtMs, this.#startedAtMs);
    if (gapMs >= -BEHIND_MS_MAX) {
      this.#believe({ fromMs: heldFromMs, shiftMs: gapMs });
    } else if (wallMs >= this.#knownMs && atMs - this.#startedAtMs < START_MS) {
      this.#believe({ fromMs: this.#startedAtMs + this.#courseMs, shiftMs: gapMs });
    } else if (
      this.#left !== null && Math.abs(this.#offsetMs - this.#left.offsetMs) <= BEHIND_MS_MAX
    ) {
      this.#believe({ fromMs: this.#left.fromMs, shiftMs: gapMs });
    } else if (steadyMs >= STEADY_MS) {
      this.#believe({ fromMs: wallMs, shiftMs: gapMs });
    }
  }

  #believe(correction: Correction): void {
    this.#heldFromMs = null;
    this.#courseMs = this.#offsetMs;
    if (correction.shiftMs < 0) {
      this.#left = null;
      this.#jumpedAtMs = -Infinity; // It was undone.
    }
    this.#correct(correction);
  }

  #correct(correction: Correction): void {
    if (Math.abs(correction.shiftMs) >= STEP_MS_MIN) this.#options.onCorrection?.(correction);
  }

  /** Goes on from a time, and not by the wall clock. */
  #hold(fromMs: number): void {
    this.#courseMs = fromMs - this.#lookedAtMs;
    this.#heldFromMs = fromMs;
  }
}

function instant(ms: number): string {
  return new Date(ms).toISOString().slice(0, 16) + "Z";
}
