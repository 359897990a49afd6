// Goal: the time never goes back by more than a little, and finds to the right one, whatever the
// system's clock does. Method: clocks that are set by the test.
import assert from "node:assert/strict";
import {
  ClockJudge,
  type Correction,
  STEADY_MS,
  STEP_MS_MIN,
  STEP_TOLD_MS,
} from "./clock_judge.ts";

const none = { permissions: "none" } as const;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const RELEASED_MS = Date.UTC(2026, 0, 1);
const NOW_MS = Date.UTC(2026, 5, 1);

function judged(startMs = NOW_MS) {
  const clocks = { wall: startMs, monotonic: 5_000 };
  const steps: number[] = [];
  const corrections: Correction[] = [];
  const judge = new ClockJudge({
    wallMs: () => clocks.wall,
    monotonicMs: () => clocks.monotonic,
  }, {
    releasedMs: RELEASED_MS,
    onStep: (stepMs) => steps.push(stepMs),
    onCorrection: (correction) => corrections.push(correction),
  });
  /** Lets time pass, and the wall clock be set by `stepMs` more; the time then. */
  const pass = (ms: number, stepMs = 0) => {
    clocks.monotonic += ms;
    clocks.wall += ms + stepMs;
    return judge.nowMs();
  };
  return { clocks, judge, steps, corrections, pass };
}

Deno.test("ClockJudge tells of a jump with its amount, for an hour", none, () => {
  const { judge, steps, pass } = judged();
  pass(HOUR_MS);
  assert.deepEqual(judge.problems, []);
  pass(10_000, 90_000);
  assert.match(judge.problems.join(), /clock jumped forward by 90 s/);
  pass(10_000);
  assert.deepEqual(steps, [90_000], "once");
  pass(10_000, -30_000);
  assert.match(judge.problems.join(), /clock jumped back by 30 s/);
  assert.equal(judge.problems.length, 1, "the last one counts");
  pass(STEP_TOLD_MS - 1);
  assert.equal(judge.problems.length, 1);
  pass(1);
  assert.deepEqual(judge.problems, []);
});

Deno.test("ClockJudge lets pass what synchronisation does every day", none, () => {
  const { clocks, judge, steps, corrections, pass } = judged();
  // A clock that is slewed by 500 ppm for a week, and set a little now and then.
  for (let i = 0; i < 60_000; i++) assert.equal(pass(10_000, 5), clocks.wall);
  assert.equal(pass(10_000, STEP_MS_MIN - 1), clocks.wall);
  assert.equal(pass(10_000, -(STEP_MS_MIN - 1)), clocks.wall);
  assert.deepEqual([judge.problems, steps, corrections], [[], [], []]);
  assert.ok(judge.mayForget);
});

Deno.test("ClockJudge goes on from what was written, until the clock has caught up", none, () => {
  const { clocks, judge, corrections, pass } = judged(NOW_MS - 30 * DAY_MS);
  assert.ok(judge.mayForget);
  judge.resume(NOW_MS);
  assert.deepEqual([judge.isBelieved, judge.mayForget], [false, false]);
  assert.equal(judge.nowMs(), NOW_MS + 1);
  assert.equal(pass(HOUR_MS), NOW_MS + 1 + HOUR_MS, "by the time that passes");
  assert.equal(judge.dateOf(clocks.wall), NOW_MS + 1 + HOUR_MS);
  assert.match(
    judge.problems.join(),
    /says 2026-05-02T01:00Z, which is behind .* 2026-06-01T01:00Z/,
  );
  // NTP comes: the machine was off for two days.
  const before = clocks.wall;
  assert.equal(pass(1_000, 32 * DAY_MS), clocks.wall);
  const shiftMs = 2 * DAY_MS - 1;
  assert.deepEqual(corrections, [{ fromMs: NOW_MS + 1, shiftMs }]);
  assert.equal(judge.dateOf(before), clocks.wall - 1_000, "what waited is dated right");
  assert.equal(judge.dateOf(clocks.wall), clocks.wall);
  assert.deepEqual([judge.isBelieved, judge.mayForget], [true, true]);
});

Deno.test("ClockJudge believes no clock before the release, however long", none, () => {
  const { judge, corrections, pass } = judged(0);
  assert.equal(judge.nowMs(), RELEASED_MS);
  assert.match(judge.problems.join(), /says 1970-01-01T00:00Z, which is before this program was/);
  assert.equal(pass(100 * STEADY_MS), RELEASED_MS + 100 * STEADY_MS);
  assert.deepEqual([judge.isBelieved, judge.mayForget], [false, false]);
  assert.equal(pass(1_000, NOW_MS), NOW_MS + 100 * STEADY_MS + 1_000);
  assert.deepEqual(corrections, [{ fromMs: RELEASED_MS, shiftMs: NOW_MS - RELEASED_MS }]);
  assert.ok(judge.isBelieved);
});

Deno.test(
  "ClockJudge takes a clock set soon after the start for one that was wrong since",
  none,
  () => {
    const { clocks, judge, corrections, pass } = judged();
    judge.resume(NOW_MS - 60_000); // The clock went on from where the machine was switched off.
    assert.ok(judge.isBelieved);
    assert.equal(pass(30_000, 20 * DAY_MS), clocks.wall);
    assert.deepEqual(corrections, [{ fromMs: NOW_MS, shiftMs: 20 * DAY_MS }]);
    assert.equal(judge.mayForget, false, "not at once");
    assert.match(judge.problems.join(), /jumped ahead by 20 days: nothing is removed/);
    pass(STEADY_MS);
    assert.ok(judge.mayForget);
  },
);

Deno.test("ClockJudge forgets nothing by a clock that was ahead for a while", none, () => {
  const { clocks, judge, corrections, pass } = judged();
  pass(30 * DAY_MS);
  const aheadMs = 73 * 365 * DAY_MS;
  const atMs = pass(1_000, aheadMs);
  assert.equal(atMs, clocks.wall);
  assert.equal(judge.mayForget, false);
  assert.deepEqual(corrections, [], "what was dated by a right clock stays");
  pass(STEADY_MS - 1);
  assert.equal(judge.mayForget, false);
  assert.equal(pass(1, -aheadMs), clocks.wall, "and back where it was");
  assert.deepEqual(corrections, [{ fromMs: atMs - 1_000, shiftMs: -aheadMs }]);
  assert.deepEqual([judge.isBelieved, judge.mayForget], [true, true]);
});

Deno.test(
  "ClockJudge doubts a clock far past the newest entry, and one set back, for a time",
  none,
  () => {
    const late = judged();
    late.judge.resume(NOW_MS - 2 * DAY_MS);
    assert.deepEqual([late.judge.isBelieved, late.judge.mayForget], [true, false]);
    assert.deepEqual(late.judge.problems, [], "a machine may be off for days");
    late.pass(STEADY_MS);
    assert.ok(late.judge.mayForget);

    // A former start wrote by a clock that was ahead.
    const { clocks, judge, corrections, pass } = judged();
    const aheadMs = 73 * 365 * DAY_MS;
    judge.resume(NOW_MS + aheadMs);
    assert.equal(pass(STEADY_MS - 1), NOW_MS + aheadMs + STEADY_MS);
    assert.equal(pass(1), clocks.wall);
    assert.deepEqual(corrections, [{ fromMs: NOW_MS + STEADY_MS, shiftMs: -aheadMs - 1 }]);
    assert.ok(judge.mayForget);
  },
);

Deno.test("ClockJudge follows a clock that is set back soon after the start", none, () => {
  const aheadMs = 73 * 365 * DAY_MS;
  const { clocks, judge, corrections, pass } = judged(NOW_MS + aheadMs);
  judge.resume(NOW_MS - HOUR_MS);
  assert.equal(judge.mayForget, false);
  assert.equal(pass(60_000, -aheadMs), clocks.wall);
  assert.deepEqual(corrections, [{ fromMs: NOW_MS + aheadMs, shiftMs: -aheadMs }]);
  assert.ok(judge.isBelieved);
});

Deno.test("ClockJudge takes back what a clock soon after the start was followed in", none, () => {
  const { clocks, corrections, pass } = judged();
  pass(60_000, 400 * DAY_MS);
  assert.equal(pass(60_000, -400 * DAY_MS), clocks.wall);
  assert.deepEqual(corrections, [
    { fromMs: NOW_MS, shiftMs: 400 * DAY_MS },
    { fromMs: NOW_MS + 400 * DAY_MS, shiftMs: -400 * DAY_MS },
  ]);
});

Deno.test("ClockJudge never goes back while the clock is set here and there", none, () => {
  const { judge, pass } = judged();
  pass(HOUR_MS);
  let lastMs = judge.nowMs();
  const setMs = [-HOUR_MS, 10_000, -DAY_MS, -400 * DAY_MS, 3_000, 300 * DAY_MS, -5, 20 * DAY_MS];
  for (const stepMs of setMs) {
    const nowMs = pass(1_000, stepMs);
    assert.ok(nowMs >= lastMs, `${stepMs}: ${nowMs - lastMs}`);
    lastMs = nowMs;
  }
});
