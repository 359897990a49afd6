import assert from "node:assert/strict";
import { TurnClock } from "./turn_clock.ts";

Deno.test("TurnClock looks at the clock for the first answer of a turn, and every 16th", {
  permissions: "none",
}, () => {
  let [looks, nowMs] = [0, 0];
  const clock = new TurnClock({
    wallMs: () => 1_000,
    monotonicMs: () => {
      looks++;
      return ++nowMs;
    },
  });
  clock.begin();
  assert.deepEqual([clock.epochMs, clock.startedAtMs], [1_000, 1]);
  const times = Array.from({ length: 33 }, () => clock.nowMs());
  assert.deepEqual([times[0], times[15], times[16], times[31], times[32]], [2, 2, 3, 3, 4]);
  clock.begin();
  assert.deepEqual([clock.startedAtMs, clock.nowMs(), looks], [5, 6, 6]);
});
