import assert from "node:assert/strict";
import { LATENCY_BOUNDS_MS, sumLatencies } from "../telemetry/mod.ts";
import { a, START_SECONDS } from "./fakes.ts";
import { ForwarderBench, quietly } from "./forward/fakes.ts";
import { Outcome } from "./outcome.ts";
import { Transport } from "./query.ts";

const none = { permissions: "none" } as const;
const N = "www.example";

/** What is told of a slow query, short enough for a table. */
function slowBench() {
  const told: string[] = [];
  const bench = new ForwarderBench({
    onSlow: ({ outcome, upstream }, reply, epochMs, tookMs) => {
      const rcode = reply.bytes[reply.offset + 3] & 0xf;
      const atMs = epochMs - START_SECONDS * 1_000;
      told.push(`${outcome} ${rcode} of ${upstream} at ${atMs} after ${tookMs}`);
    },
  });
  bench.clock.begin();
  return { bench, told };
}

Deno.test("Resolver counts the time of each answer, from the query's arrival", none, () => {
  quietly(() => {
    const { bench } = slowBench();
    const times = () => sumLatencies([bench.front.counters], Transport.Udp);
    bench.ask(N);
    assert.deepEqual(times().counts.filter((count) => count > 0), [], "nobody is answered yet");
    bench.advance(50);
    bench.ask(N.toUpperCase()); // It joins the first.
    bench.advance(40);
    bench.answer(bench.last, { records: [a(N, 60)] });
    const place = (ms: number) => LATENCY_BOUNDS_MS.findIndex((bound) => ms <= bound);
    assert.equal(times().counts[place(90)], 1);
    assert.equal(times().counts[place(40)], 1);
    assert.equal(times().sumMs, 130);
    bench.ask(N);
    assert.equal(times().counts[0], 1, "what is kept is answered at once");
    bench.ask("health.svc.test");
    assert.equal(times().counts[0], 2);
    assert.deepEqual(sumLatencies([bench.front.counters], Transport.Tcp).sumMs, 0);
    // A failure is an answer too.
    bench.ask("silent.example");
    bench.advance(6_000);
    assert.equal(times().counts.reduce((sum, count) => sum + count, 0), 5);
    assert.ok(times().sumMs > 130 + 4_000);
    bench.checkIdle();
  });
});

Deno.test("Resolver tells of queries that waited, and of no others", none, () => {
  quietly(() => {
    const { bench, told } = slowBench();
    bench.ask(N);
    bench.advance(100);
    bench.answer(bench.last, { records: [a(N, 60)] });
    bench.ask(N);
    bench.ask("health.svc.test");
    assert.deepEqual(told, [`${Outcome.Forwarded} 0 of 0 at 100 after 100`]);
    bench.ask("silent.example");
    bench.advance(6_000);
    assert.equal(told.length, 2);
    assert.match(told[1], new RegExp(`^${Outcome.Failed} 2 of -1 at \\d+ after \\d{4}$`));
    bench.checkIdle();
  });
});
