import assert from "node:assert/strict";
import { Counter, CounterBlock, COUNTERS_BYTES, sumCounters } from "./mod.ts";

const none = { permissions: "none" } as const;

Deno.test("Counter names a place of its own for each, within a block", none, () => {
  const places = Object.values(Counter);
  assert.equal(new Set(places).size, places.length);
  assert.ok(places.every((place) => place >= 0 && place < COUNTERS_BYTES / 8));
});

Deno.test("sumCounters() adds up what each isolate counted in shared memory", none, () => {
  const memories = [0, 1, 2].map(() => new SharedArrayBuffer(COUNTERS_BYTES));
  const writers = memories.map((memory) => new CounterBlock(memory));
  for (const [i, writer] of writers.entries()) {
    for (let n = 0; n <= i; n++) writer.add(Counter.Cached);
  }
  writers[1].values[Counter.Blocked] = 2 ** 53 - 1;
  const readers = memories.map((memory) => new CounterBlock(memory));
  assert.equal(sumCounters(readers, Counter.Cached), 6);
  assert.equal(sumCounters(readers, Counter.Blocked), 2 ** 53 - 1);
  assert.equal(sumCounters(readers, Counter.Failed), 0);
  assert.equal(sumCounters([], Counter.Cached), 0);
});
