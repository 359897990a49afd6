import { type Clock, ClockJudge, STEP_MS_MIN } from "../clock/mod.ts";
import { log } from "../log.ts";
import { every } from "./every.ts";
import type { Problems } from "./problems.ts";
import { RELEASED_MS } from "../version.ts";

/** How often the clocks are compared while nobody asks for the time. */
const LOOK_MS = 10_000;

/** The time of this process, for whoever ends or forgets something by its age. */
export interface TrustedClock {
  readonly judge: ClockJudge;
  readonly startedAtMs: () => number;
  stop(): void;
}

/** Watches the system's clock, tells of its steps, and says in the status what is wrong with it. */
export function trustedClock(problems: Problems): TrustedClock {
  const judge = new ClockJudge({ wallMs: Date.now, monotonicMs: () => performance.now() }, {
    releasedMs: RELEASED_MS,
    onStep: (stepMs) => log.warn("the system's clock jumped", { stepMs: Math.round(stepMs) }),
  });
  problems.watch("clock", () => judge.problems);
  const startedAtMs = startedAt(judge, () => performance.now());
  return { judge, startedAtMs, stop: every(LOOK_MS, () => void judge.nowMs()) };
}

/**
 * Tells when this was called, as it is dated by now: a machine may start with a clock that is set
 * later. What time synchronisation does every day changes nothing of it.
 */
export function startedAt(clock: Clock, steadyMs: () => number): () => number {
  const beginMs = steadyMs();
  let startedAtMs = clock.nowMs();
  return () => {
    const datedMs = clock.nowMs() - Math.round(steadyMs() - beginMs);
    if (Math.abs(datedMs - startedAtMs) >= STEP_MS_MIN) startedAtMs = datedMs;
    return startedAtMs;
  };
}
