import assert from "node:assert/strict";
import { CLOCK_CHECK_MS, CLOCK_STEP_MS_MIN, CLOCK_TOLD_MS, ClockWatch } from "./clock_watch.ts";

const none = { permissions: "none" } as const;

function watched() {
  const clocks = { wall: 1_767_225_600_000, monotonic: 5_000 };
  const watch = new ClockWatch({
    wallMs: () => clocks.wall,
    monotonicMs: () => clocks.monotonic,
  });
  /** Lets time pass, and the wall clock be set by `stepMs` more. */
  const pass = (ms: number, stepMs = 0) => {
    clocks.monotonic += ms;
    clocks.wall += ms + stepMs;
    return watch.check();
  };
  return { watch, pass };
}

Deno.test("ClockWatch tells of a jump with its amount, for an hour", none, () => {
  const { watch, pass } = watched();
  assert.equal(pass(CLOCK_CHECK_MS), 0);
  assert.deepEqual(watch.problems, []);
  assert.equal(pass(CLOCK_CHECK_MS, 90_000), 90_000);
  assert.match(watch.problems.join(), /clock jumped forward by 90 s/);
  assert.equal(pass(CLOCK_CHECK_MS), 0, "once");
  assert.equal(pass(CLOCK_CHECK_MS, -3_600_000), -3_600_000);
  assert.match(watch.problems.join(), /clock jumped back by 3600 s/);
  assert.equal(watch.problems.length, 1, "the last one counts");
  pass(CLOCK_TOLD_MS - 1);
  assert.equal(watch.problems.length, 1);
  pass(1);
  assert.deepEqual(watch.problems, []);
});

Deno.test("ClockWatch lets pass what synchronisation does every day", none, () => {
  const { watch, pass } = watched();
  // A clock that is slewed by 500 ppm for a week, and set a little now and then.
  for (let i = 0; i < 60_000; i++) assert.equal(pass(CLOCK_CHECK_MS, 5), 0);
  assert.equal(pass(CLOCK_CHECK_MS, CLOCK_STEP_MS_MIN - 1), 0);
  assert.equal(pass(CLOCK_CHECK_MS, -(CLOCK_STEP_MS_MIN - 1)), 0);
  assert.deepEqual(watch.problems, []);
});
