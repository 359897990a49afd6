import assert from "node:assert/strict";
import { median, medianRatio, percentile } from "./stats.ts";

const none = { permissions: "none" } as const;

const SERIES = [
  [[], NaN, NaN],
  [[7], 7, 7],
  [[3, 1], 2, 3],
  [[5, 1, 3], 3, 5],
  [Array.from({ length: 200 }, (_, i) => i + 1), 100.5, 198],
] as const;

Deno.test("median() and percentile() of a series", none, async (t) => {
  for (const [series, middle, p99] of SERIES) {
    await t.step(`${series.length} values`, () => {
      assert.equal(median(series), middle);
      assert.equal(percentile(series, 0.99), p99);
    });
  }
});

Deno.test("medianRatio() pairs rounds, so that a slow round cancels", none, () => {
  assert.equal(medianRatio([10, 100, 12], [20, 200, 24]), 0.5);
  assert.ok(Number.isNaN(medianRatio([1], [])));
});
