import assert from "node:assert/strict";
import { seededChance } from "./fakes.ts";
import { dueAtMs, RETRY_MAX_MS, RETRY_MIN_MS, retryDelayMs } from "./schedule.ts";

Deno.test("retryDelayMs() doubles from a minute to six hours", { permissions: "none" }, () => {
  const minutes = [1, 2, 4, 8, 16, 32, 64, 128, 256, 360, 360];
  minutes.forEach((want, i) => assert.equal(retryDelayMs(i + 1, () => 0), want * 60_000));
  assert.equal(retryDelayMs(100_000, () => 0), RETRY_MAX_MS);
  const seed = 7;
  const chance = seededChance(seed);
  for (let failures = 1; failures < 50; failures++) {
    const delayMs = retryDelayMs(failures, chance);
    const inRange = delayMs > 0.75 * RETRY_MIN_MS && delayMs <= RETRY_MAX_MS;
    assert.ok(inRange, `seed ${seed}, failure ${failures}: ${delayMs}`);
  }
});

const CASES = [
  ["never fetched", { checkedAtMs: null, retryAtMs: null, spread: 0 }, 1_000_000],
  ["fetched, first of the spread", { checkedAtMs: 999_000, retryAtMs: null, spread: 0 }, 1_009_000],
  ["fetched, last of the spread", { checkedAtMs: 999_000, retryAtMs: null, spread: 1 }, 1_008_000],
  ["fetched in the future", { checkedAtMs: 1_000_001, retryAtMs: null, spread: 0 }, 1_000_000],
  ["failed", { checkedAtMs: 999_000, retryAtMs: 1_060_000, spread: 0 }, 1_060_000],
  ["failed in the future", { checkedAtMs: null, retryAtMs: 9e12, spread: 0 }, 1_000_000],
] as const;

Deno.test("dueAtMs() says when to ask next", { permissions: "none" }, async (t) => {
  for (const [name, tries, want] of CASES) {
    await t.step(name, () => assert.equal(dueAtMs(tries, 10_000, 1_000_000), want));
  }
});
