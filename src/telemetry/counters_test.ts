import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { COUNTERS_MAX } from "./counters.ts";
import {
  Counter,
  CounterBlock,
  COUNTERS_BYTES,
  countLatency,
  countOutcome,
  LATENCY_BOUNDS_MS,
  OUTCOMES_MAX,
  sumCounters,
  sumLatencies,
  sumOutcome,
  TRANSPORTS_MAX,
} from "./mod.ts";

const none = { permissions: "none" } as const;

function blocks(count: number) {
  const memories = Array.from({ length: count }, () => new SharedArrayBuffer(COUNTERS_BYTES));
  const open = () => memories.map((memory) => new CounterBlock(memory));
  return { writers: open(), readers: open() };
}

Deno.test("Counter names a place of its own for each, within a block", none, () => {
  const places = Object.values(Counter);
  assert.equal(new Set(places).size, places.length);
  assert.ok(places.every((place) => place >= 0 && place < COUNTERS_MAX));
});

Deno.test("sumCounters() adds up what each isolate counted in shared memory", none, () => {
  const { writers, readers } = blocks(3);
  for (const [i, writer] of writers.entries()) {
    for (let n = 0; n <= i; n++) writer.add(Counter.CacheHits);
  }
  writers[1].values[Counter.Merged] = 2 ** 53 - 1;
  assert.equal(sumCounters(readers, Counter.CacheHits), 6);
  assert.equal(sumCounters(readers, Counter.Merged), 2 ** 53 - 1);
  assert.equal(sumCounters(readers, Counter.Stale), 0);
  assert.equal(sumCounters([], Counter.CacheHits), 0);
});

Deno.test("sumOutcome() and sumLatencies() tell what was counted, and nothing else", none, () => {
  const prng = new Prng(seedFromEnv());
  const { writers, readers } = blocks(2);
  const outcomes = new Map<string, number>();
  const times: number[][] = Array.from({ length: TRANSPORTS_MAX }, () => []);
  for (let i = 0; i < 5_000; i++) {
    const { values } = prng.pick(writers);
    const transport = prng.int(TRANSPORTS_MAX);
    const outcome = prng.int(OUTCOMES_MAX);
    countOutcome(values, transport, outcome);
    const key = `${transport} ${outcome}`;
    outcomes.set(key, (outcomes.get(key) ?? 0) + 1);
    // Bounds themselves, times between them, and some beyond the last.
    const bound = prng.pick(LATENCY_BOUNDS_MS);
    const tookMs = prng.pick([0, bound, bound * 1.01, bound * 0.99, 1e6]);
    countLatency(values, transport, tookMs);
    times[transport].push(tookMs);
  }
  for (let transport = 0; transport < TRANSPORTS_MAX; transport++) {
    for (let outcome = 0; outcome < OUTCOMES_MAX; outcome++) {
      const want = outcomes.get(`${transport} ${outcome}`) ?? 0;
      assert.equal(sumOutcome(readers, outcome, transport), want);
    }
    const { counts, sumMs } = sumLatencies(readers, transport);
    const upTo = (bound: number) => times[transport].filter((ms) => ms <= bound).length;
    let below = 0;
    const want = [...LATENCY_BOUNDS_MS, Infinity].map((bound) => {
      const count = upTo(bound) - below;
      below += count;
      return count;
    });
    assert.deepEqual(counts, want);
    const sum = times[transport].reduce((total, ms) => total + ms, 0);
    assert.ok(Math.abs(sumMs - sum) <= 1e-9 * sum);
  }
  const all = Array.from({ length: OUTCOMES_MAX }, (_, outcome) => sumOutcome(readers, outcome));
  assert.equal(all.reduce((total, count) => total + count, 0), 5_000);
  for (const counter of Object.values(Counter)) assert.equal(sumCounters(readers, counter), 0);
});
