import assert from "node:assert/strict";
import { parseIp, parsePrefix } from "../addr/mod.ts";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { RateLimiter, type RateLimitOptions } from "./rate_limit.ts";

const SEED = 7;
/** 2026-01-01, in milliseconds. */
const START_MS = 1_767_225_600_000;

function limiter(options: Partial<RateLimitOptions> = {}, memory?: SharedArrayBuffer): RateLimiter {
  const made = new RateLimiter(
    { queriesPerSecond: 300, burst: 1_000, exempt: [], ...options },
    memory ?? new SharedArrayBuffer(RateLimiter.MEMORY_BYTES),
    SEED,
  );
  made.setTime(START_MS);
  return made;
}

/** How many of `count` queries of an address pass. */
function passing(limits: RateLimiter, text: string, count: number): number {
  const ip = parseIp(text)!;
  let passed = 0;
  for (let i = 0; i < count; i++) passed += limits.take(ip, 0, ip.length) ? 1 : 0;
  return passed;
}

Deno.test("RateLimiter lets a burst pass, then so many a second", { permissions: "none" }, () => {
  const limits = limiter();
  assert.equal(passing(limits, "192.0.2.1", 1_500), 1_000);
  limits.setTime(START_MS + 100);
  assert.equal(passing(limits, "192.0.2.1", 100), 30);
  limits.setTime(START_MS + 1_100);
  assert.equal(passing(limits, "192.0.2.1", 1_000), 300);
  // Silence fills the bucket, and not beyond its brim.
  limits.setTime(START_MS + 3_600_000);
  assert.equal(passing(limits, "192.0.2.1", 5_000), 1_000);
});

Deno.test("RateLimiter counts IPv4 addresses and IPv6 /64 networks", {
  permissions: "none",
}, () => {
  const limits = limiter({ burst: 10 });
  assert.equal(passing(limits, "192.0.2.1", 20), 10);
  assert.equal(passing(limits, "192.0.2.2", 20), 10);
  assert.equal(passing(limits, "2001:db8:0:1::1", 6), 6);
  assert.equal(passing(limits, "2001:db8:0:1:ffff::2", 20), 4);
  assert.equal(passing(limits, "2001:db8:0:2::1", 20), 10);
});

Deno.test("RateLimiter never limits exempt networks", { permissions: "none" }, () => {
  const exempt = ["127.0.0.0/8", "::1", "192.0.2.128/25", "2001:db8::/48"]
    .map((text) => parsePrefix(text)!);
  const limits = limiter({ burst: 10, exempt });
  for (const text of ["127.0.0.9", "::1", "192.0.2.200", "2001:db8::5"]) {
    assert.equal(passing(limits, text, 50), 50, text);
  }
  assert.equal(passing(limits, "192.0.2.100", 50), 10);
  assert.equal(passing(limits, "2001:db8:1::5", 50), 10);
});

Deno.test("RateLimiter keeps one count for all isolates", { permissions: "none" }, () => {
  const memory = new SharedArrayBuffer(RateLimiter.MEMORY_BYTES);
  const [one, other] = [limiter({ burst: 10 }, memory), limiter({ burst: 10 }, memory)];
  assert.equal(passing(one, "192.0.2.1", 6), 6);
  assert.equal(passing(other, "192.0.2.1", 10), 4);
});

Deno.test("RateLimiter forgets debts when the clock is set back", { permissions: "none" }, () => {
  const limits = limiter({ burst: 10 });
  assert.equal(passing(limits, "192.0.2.1", 20), 10);
  limits.setTime(START_MS - 3_600_000);
  assert.equal(passing(limits, "192.0.2.1", 20), 10);
});

Deno.test("RateLimiter holds whoever is at the limit through a flood of forged addresses", {
  permissions: "none",
}, () => {
  const prng = new Prng(seedFromEnv());
  const limits = limiter({ burst: 100 });
  const held = Array.from({ length: 200 }, (_, i) => `198.51.100.${i}`);
  for (const text of held) assert.equal(passing(limits, text, 200), 100);
  for (let i = 0; i < 500_000; i++) limits.take(prng.bytes(4), 0, 4);
  for (const text of held) assert.equal(passing(limits, text, 1), 0, text);
});

Deno.test("RateLimiter is a token bucket for each of many clients", { permissions: "none" }, () => {
  const prng = new Prng(seedFromEnv());
  for (let round = 0; round < 40; round++) {
    const queriesPerSecond = prng.pick([1, 7, 300, 1_000, 1_000_000]);
    const burst = prng.pick([1, 5, 1_000, 100_000]);
    const limits = limiter({ queriesPerSecond, burst });
    // Few enough that every client keeps its bucket.
    const clients = Array.from({ length: 8 }, () => prng.bytes(prng.chance(0.5) ? 4 : 16));
    // The model: tokens of each, and when they were counted.
    const model = clients.map(() => ({ tokens: burst, ticks: 0 }));
    let nowMs = START_MS + prng.int(1_000_000_000);
    for (let step = 0; step < 3_000; step++) {
      nowMs += prng.chance(0.1) ? prng.int(prng.pick([2, 50, 5_000])) : 0;
      const ticks = Math.floor(nowMs * queriesPerSecond / 1_000);
      limits.setTime(nowMs);
      const i = prng.int(clients.length);
      const bucket = model[i];
      bucket.tokens = Math.min(burst, bucket.tokens + ticks - bucket.ticks);
      bucket.ticks = ticks;
      const passes = bucket.tokens > 0;
      if (passes) bucket.tokens--;
      const ip = clients[i];
      const where = `round ${round}, step ${step}: ${queriesPerSecond}/s, burst ${burst}`;
      assert.equal(limits.take(ip, 0, ip.length), passes, where);
    }
  }
});

Deno.test("RateLimiter counts each query, however often others come in between", {
  permissions: "none",
}, () => {
  const memory = new SharedArrayBuffer(RateLimiter.MEMORY_BYTES);
  const [one, other] = [0, 1].map(() => limiter({ burst: 10_000 }, memory));
  assert.equal(passing(one, "192.0.2.1", 1), 1);
  const swap = Atomics.compareExchange;
  let between = 5_000;
  const swapLate = (table: Int32Array, at: number, from: number, to: number): number => {
    if (between > 0) {
      between--;
      Atomics.compareExchange = swap;
      assert.equal(passing(other, "192.0.2.1", 1), 1);
      Atomics.compareExchange = swapLate as typeof swap;
    }
    return swap(table, at, from, to);
  };
  try {
    Atomics.compareExchange = swapLate as typeof swap;
    assert.equal(passing(one, "192.0.2.1", 1), 1);
  } finally {
    Atomics.compareExchange = swap;
  }
  assert.equal(between, 0);
  assert.equal(passing(one, "192.0.2.1", 20_000), 10_000 - 5_000 - 2);
  // Where the others take all that is left, it is none of those that pass.
  for (const limits of [one, other]) limits.setTime(START_MS + 3_600_000);
  assert.equal(passing(one, "192.0.2.1", 1), 1);
  between = 10_000 - 1;
  try {
    Atomics.compareExchange = swapLate as typeof swap;
    assert.equal(passing(one, "192.0.2.1", 1), 0);
  } finally {
    Atomics.compareExchange = swap;
  }
});

Deno.test("RateLimiter keeps its count where isolates set their clocks a moment apart", {
  permissions: "none",
}, () => {
  for (const apartMs of [1, 4, 50, 900]) {
    const memory = new SharedArrayBuffer(RateLimiter.MEMORY_BYTES);
    const [early, late] = [0, 1].map(() => limiter({ burst: 1_000 }, memory));
    late.setTime(START_MS + apartMs);
    assert.equal(passing(late, "192.0.2.1", 1_500), 1_000);
    assert.equal(passing(early, "192.0.2.1", 100), 0, `${apartMs} ms`);
    assert.equal(passing(late, "192.0.2.1", 100), 0, `${apartMs} ms`);
  }
});

Deno.test("RateLimiter counts exactly when isolates count at once", {
  permissions: { read: true },
}, async () => {
  const memory = new SharedArrayBuffer(RateLimiter.MEMORY_BYTES);
  const source = `
    import { RateLimiter } from "${new URL("./rate_limit.ts", import.meta.url)}";
    self.onmessage = ({ data: { memory, nowMs, seed } }) => {
      const limits = new RateLimiter({ queriesPerSecond: 1, burst: 150000, exempt: [] }, memory, seed);
      limits.setTime(nowMs);
      const ip = Uint8Array.of(192, 0, 2, 1);
      let passed = 0;
      for (let i = 0; i < 100000; i++) passed += limits.take(ip, 0, 4) ? 1 : 0;
      self.postMessage(passed);
    };`;
  const url = `data:application/javascript,${encodeURIComponent(source)}`;
  const workers = [0, 1].map(() => new Worker(url, { type: "module" }));
  // The first query makes the bucket, so that both find it.
  passing(limiter({ queriesPerSecond: 1, burst: 150_000 }, memory), "192.0.2.1", 1);
  const passed = await Promise.all(
    workers.map((worker) =>
      new Promise<number>((resolve, reject) => {
        worker.onerror = ({ message }) => reject(new Error(message));
        worker.onmessage = ({ data }: MessageEvent<number>) => resolve(data);
        worker.postMessage({ memory, nowMs: START_MS, seed: SEED });
      })
    ),
  );
  for (const worker of workers) worker.terminate();
  assert.equal(passed[0] + passed[1] + 1, 150_000);
});
