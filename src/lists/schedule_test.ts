import assert from "node:assert/strict";
import { seededChance } from "./fakes.ts";
import { dueAtMs, FIRST_RETRY, RETRY, retryDelayMs } from "./schedule.ts";

Deno.test("retryDelayMs() doubles from a minute to six hours, and from seconds to one hour", {
  permissions: "none",
}, () => {
  const minutes = [1, 2, 4, 8, 16, 32, 64, 128, 256, 360, 360];
  minutes.forEach((want, i) => assert.equal(retryDelayMs(RETRY, i + 1, () => 0), want * 60_000));
  const seconds = [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600];
  seconds.forEach((want, i) =>
    assert.equal(retryDelayMs(FIRST_RETRY, i + 1, () => 0), want * 1000)
  );
  const seed = 7;
  const chance = seededChance(seed);
  for (const pauses of [RETRY, FIRST_RETRY]) {
    assert.equal(retryDelayMs(pauses, 100_000, () => 0), pauses.msMax);
    for (let failures = 1; failures < 50; failures++) {
      const delayMs = retryDelayMs(pauses, failures, chance);
      const inRange = delayMs > 0.75 * pauses.msMin && delayMs <= pauses.msMax;
      assert.ok(inRange, `seed ${seed}, failure ${failures}: ${delayMs}`);
    }
  }
});

const FAILURE = { atMs: 1_000_000, pauseMs: 60_000 };
const CASES = [
  ["never fetched", { checkedAtMs: null, failure: null, spread: 0 }, 1_000_000],
  ["fetched, first of the spread", { checkedAtMs: 999_000, failure: null, spread: 0 }, 1_009_000],
  ["fetched, last of the spread", { checkedAtMs: 999_000, failure: null, spread: 1 }, 1_008_000],
  ["fetched in the future", { checkedAtMs: 1_000_001, failure: null, spread: 0 }, 1_000_000],
  ["failed", { checkedAtMs: 999_000, failure: FAILURE, spread: 0 }, 1_060_000],
  ["failed in the future", {
    checkedAtMs: null,
    failure: { atMs: 1_000_001, pauseMs: 5_000 },
    spread: 0,
  }, 1_000_000],
] as const;

Deno.test("dueAtMs() says when to ask next", { permissions: "none" }, async (t) => {
  for (const [name, tries, want] of CASES) {
    await t.step(name, () => assert.equal(dueAtMs(tries, 10_000, 1_000_000), want));
  }
});
