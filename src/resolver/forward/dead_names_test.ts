// An upstream is silent where the servers of a name are dead: that is the name's fault, unless it says
// nothing about others either.
import assert from "node:assert/strict";
import { Rcode } from "../../dns/mod.ts";
import { a } from "../fakes.ts";
import { ForwarderBench, quietly } from "./fakes.ts";
import { FAILURES_MAX } from "./upstream.ts";

const none = { permissions: "none" } as const;
/** As long as an upstream may take for one answer, and a tick. */
const TIMEOUT_MS = 2_050;
const messagesOf = (lines: readonly string[]) => lines.map((line) => JSON.parse(line).message);

/** Answers the probes that are open. */
function answerProbes(bench: ForwarderBench): number {
  const probes = bench.open.filter(({ message }) => message.questions[0].name === ".");
  for (const probe of probes) bench.answer(probe, { name: ".", type: 2 });
  return probes.length;
}

Deno.test("names of one dead domain make no upstream a failing one", none, () => {
  const { lines } = quietly(() => {
    const bench = new ForwarderBench({ upstreams: { a: [] } });
    const [upstream] = bench.forwarder.upstreams;
    let probes = 0;
    for (let i = 0; i < 20; i++) {
      bench.ask(["dead.example", "www.dead.example", `n${i}.dead.example`][i % 3]);
      for (let ms = 0; ms < 3 * TIMEOUT_MS; ms += 50) {
        bench.advance(50);
        probes += answerProbes(bench);
        assert.equal(upstream.healthy, true);
      }
    }
    assert.ok(upstream.failuresTotal > FAILURES_MAX);
    assert.ok(probes > 0 && probes <= 20, `${probes} probes`);
    bench.advance(10_000);
    bench.checkIdle();
    assert.equal(bench.ticking, false);
  });
  assert.deepEqual(messagesOf(lines), []);
});

Deno.test("an upstream is asked something else where one name alone has no answer", none, () => {
  const { lines } = quietly(() => {
    const bench = new ForwarderBench({ upstreams: { a: [] } });
    const [upstream] = bench.forwarder.upstreams;
    bench.ask("dead.example");
    bench.advance(4_000);
    assert.ok(upstream.failures >= FAILURES_MAX);
    assert.equal(upstream.healthy, true);
    assert.equal(bench.last.message.questions[0].name, ".");
    // That is silent as well: nobody else had to ask for it to be known.
    bench.advance(TIMEOUT_MS);
    assert.deepEqual([upstream.healthy, upstream.reason], [false, "did not answer in time"]);
    bench.advance(4_000);
    answerProbes(bench);
    assert.equal(upstream.healthy, true);
    bench.flights.close();
  });
  assert.deepEqual(messagesOf(lines), ["upstream does not answer", "upstream answers again"]);
});

Deno.test("an upstream that is silent about two domains fails at once", none, () => {
  quietly(() => {
    const bench = new ForwarderBench({ upstreams: { a: [] } });
    const [upstream] = bench.forwarder.upstreams;
    for (const name of ["one.example", "two.example", "three.example"]) bench.ask(name);
    bench.advance(TIMEOUT_MS);
    assert.equal(upstream.healthy, false);
    bench.flights.close();
  });
});

Deno.test("SERVFAIL about a dead name is an answer", none, () => {
  const bench = new ForwarderBench({ upstreams: { a: [] } });
  const [upstream] = bench.forwarder.upstreams;
  for (let i = 0; i < 10; i++) {
    bench.ask(`n${i}.dead.example`);
    bench.answer(bench.last, { flags: 0x8180 | Rcode.ServFail });
  }
  assert.deepEqual([upstream.healthy, upstream.failures], [true, 0]);
  bench.ask("www.example");
  bench.answer(bench.last, { records: [a("www.example", 9)] });
  bench.advance(50);
  bench.checkIdle();
});
