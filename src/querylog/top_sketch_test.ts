import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { TopSketch } from "./top_sketch.ts";

const none = { permissions: "none" } as const;

/** Names of which the first ones are asked for far more often. */
function skewed(prng: Prng, names: number): string {
  return `name${Math.floor(names * (prng.next() / 2 ** 32) ** 4)}`;
}

Deno.test("TopSketch is exact as long as there is room", none, () => {
  const prng = new Prng(seedFromEnv());
  const sketch = new TopSketch(50);
  const counts = new Map<string, number>();
  for (let i = 0; i < 5_000; i++) {
    const name = skewed(prng, 99);
    sketch.add(name);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const want = [...counts].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
  assert.deepEqual(sketch.top(1_000), want);
  assert.deepEqual(sketch.top(3), want.slice(0, 3));
  assert.equal(sketch.floor, 0);
});

Deno.test(
  "TopSketch counts no name too low, and none too high by more than its floor",
  none,
  () => {
    const prng = new Prng(seedFromEnv());
    const sketch = new TopSketch(100);
    const counts = new Map<string, number>();
    for (let i = 0; i < 50_000; i++) {
      const name = prng.chance(0.5) ? `random${prng.next()}` : skewed(prng, 1_000);
      sketch.add(name);
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    const rows = sketch.top(10_000);
    assert.ok(rows.length < 200 && sketch.floor > 0, "it is bounded");
    for (const [name, count] of rows) {
      const real = counts.get(name) ?? 0;
      assert.ok(count >= real && count <= real + sketch.floor, `${name}: ${count} for ${real}`);
    }
    const kept = new Set(rows.map(([name]) => name));
    for (const [name, count] of counts) {
      assert.ok(kept.has(name) || count <= sketch.floor, `${name} with ${count} is not lost`);
    }
  },
);

Deno.test("TopSketch.merge() adds counts up", none, () => {
  const sketch = new TopSketch(10, [["a", 2], ["b", 1]]);
  sketch.merge([["b", 5], ["c", 2]]);
  assert.deepEqual(sketch.top(10), [["b", 6], ["a", 2], ["c", 2]]);
});
