/**
 * Which time it is, as far as the system's clock can be believed: a machine may start with a clock
 * that is years behind, and one may be set far ahead for a while. Whoever forgets or ends something
 * by its age asks here. Scope: none. @module
 */
export { untilBeat } from "./beat.ts";
export {
  ClockJudge,
  type Correction,
  STEADY_MS,
  STEP_MS_MIN,
  STEP_TOLD_MS,
} from "./clock_judge.ts";
export type { Clock, SystemClocks } from "./ports.ts";
