import assert from "node:assert/strict";
import { FarClock } from "./far_clock.ts";

const DAY_MS = 86_400_000;

/** Runs with our clock at a time that the work sets. */
function atTimes(work: (set: (ms: number) => void) => void): void {
  const given = Date.now;
  let now = 0;
  Date.now = () => now;
  try {
    work((ms) => now = ms);
  } finally {
    Date.now = given;
  }
}

Deno.test("FarClock keeps to the service's time, however wrong ours is", {
  permissions: "none",
}, async (t) => {
  const told = Date.parse("2026-11-22T12:00:00Z");
  const date = new Date(told).toUTCString();
  await t.step("ours is right, to the second that an answer tells", () =>
    atTimes((set) => {
      const clock = new FarClock();
      set(told + 950);
      clock.learn(date, told + 900);
      assert.equal(clock.nowMs, told + 950);
    }));
  for (const wrongMs of [DAY_MS, -DAY_MS, 90_000]) {
    await t.step(`ours is wrong by ${wrongMs / 1_000} s`, () =>
      atTimes((set) => {
        const clock = new FarClock();
        set(told + wrongMs + 700);
        clock.learn(date, told + wrongMs + 200);
        const offMs = clock.nowMs - (told + 700);
        assert.ok(Math.abs(offMs) <= 1_000, `${offMs} ms off`);
        const before = clock.nowMs;
        clock.learn(date, told + wrongMs + 100);
        assert.equal(clock.nowMs, before, "what fits changes nothing");
      }));
  }
  await t.step("an answer that took its time moves nothing that fits", () =>
    atTimes((set) => {
      const clock = new FarClock();
      set(told + 30_000);
      clock.learn(date, told - 5_000);
      assert.equal(clock.nowMs, told + 30_000);
    }));
  await t.step("no date, or none that is one", () =>
    atTimes((set) => {
      const clock = new FarClock();
      set(told);
      for (const none of [null, "", "yesterday"]) clock.learn(none, 0);
      assert.equal(clock.nowMs, told);
    }));
});
