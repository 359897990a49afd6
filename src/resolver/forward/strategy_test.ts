// Goal: who is asked before whom, and what several at once may cost. Method: upstreams a to f that
// answer when the test says so, on its clock.
import assert from "node:assert/strict";
import { QR_BIT, RA_BIT, Rcode, RD_BIT } from "../../dns/mod.ts";
import { a } from "../fakes.ts";
import { FLIGHT_MS } from "../flights/mod.ts";
import { ForwarderBench, quietly } from "./fakes.ts";

const none = { permissions: "none" } as const;
const OK = QR_BIT | RD_BIT | RA_BIT;
const SERVFAIL = { flags: OK | Rcode.ServFail };
const REFUSED = { flags: OK | Rcode.Refused };
const NXDOMAIN = { flags: OK | Rcode.NXDomain };
const FASTEST = { kind: "fastest", atOnce: 1 } as const;
const parallel = (atOnce: number) => ({ kind: "parallel", atOnce }) as const;
const six = { a: [], b: [], c: [], d: [], e: [], f: [] };

let names = 0;
const fresh = () => `n${++names}.example`;
const good = (name: string) => ({ records: [a(name, 300)] });

/** Asks a new name and has the upstream that is asked first answer after a while; which one it is. */
function askFirst(bench: ForwarderBench, timesMs: Readonly<Record<string, number>>): string {
  const name = fresh();
  const client = bench.ask(name);
  const first = bench.looked();
  const sent = bench.last;
  bench.advance(timesMs[first]);
  bench.answer(sent, good(name));
  assert.notEqual(client.answer, "");
  return first;
}

Deno.test("fastest: who has been answering soonest is asked first", none, () => {
  const bench = new ForwarderBench({ strategy: FASTEST });
  const timesMs = { a: 100, b: 20, c: 50 };
  const firsts = Array.from({ length: 8 }, () => askFirst(bench, timesMs));
  // Each has its time taken once; from then on it decides.
  assert.deepEqual(firsts, ["a", "b", "c", "b", "b", "b", "b", "b"]);
  timesMs.b = 140;
  const later = Array.from({ length: 12 }, () => askFirst(bench, timesMs));
  assert.equal(later.at(-1), "c", later.join());
  bench.checkIdle();
});

Deno.test("fastest: one in twenty goes to another one, whose time may have changed", none, () => {
  let drawn = -3;
  const random = () => drawn++ < 0 ? 0.99 : ((drawn - 1) % 120) / 120;
  const bench = new ForwarderBench({ strategy: FASTEST, random });
  const timesMs = { a: 100, b: 20, c: 50 };
  for (let i = 0; i < 3; i++) askFirst(bench, timesMs);
  const counts: Record<string, number> = { a: 0, b: 0, c: 0 };
  for (let i = 0; i < 240; i++) counts[askFirst(bench, timesMs)]++;
  assert.deepEqual(counts, { a: 4, b: 232, c: 4 });
});

Deno.test("fastest: one that is silent loses its place, and is put aside as ever", none, () => {
  const bench = new ForwarderBench({ strategy: FASTEST });
  const timesMs = { a: 100, b: 20, c: 50 };
  for (let i = 0; i < 3; i++) askFirst(bench, timesMs);
  const name = fresh();
  const client = bench.ask(name);
  bench.advance(150);
  assert.equal(bench.looked(), "b c", "the second is the second fastest");
  bench.answer(bench.last, good(name));
  assert.notEqual(client.answer, "");
  assert.equal(bench.forwarder.upstreams[1].failures, 1);
  assert.equal(bench.forwarder.upstreams[1].expectedMs, 0.875 * 20 + 0.125 * 150);
  bench.checkIdle();
});

Deno.test("fastest: health comes before speed", none, () => {
  const bench = new ForwarderBench({ strategy: FASTEST });
  const timesMs = { a: 100, b: 20, c: 50 };
  for (let i = 0; i < 3; i++) askFirst(bench, timesMs);
  quietly(() => {
    for (let i = 0; i < 3; i++) {
      bench.forwarder.upstreams[1].failed(bench.nowMs, "test", bench.nowMs, null);
    }
  });
  assert.equal(bench.forwarder.upstreams[1].healthy, false);
  assert.equal(askFirst(bench, timesMs), "c");
});

Deno.test("parallel: the first useful answer wins, and the rest are called off", none, () => {
  const bench = new ForwarderBench({ upstreams: six, strategy: parallel(3) });
  const name = fresh();
  const client = bench.ask(name);
  assert.equal(bench.looked(), "a b c");
  bench.answer(bench.sent[1], SERVFAIL);
  assert.equal(client.answer, "");
  assert.equal(bench.looked(), "d", "another one in the place of who did not help");
  bench.answer(bench.sent[2], REFUSED);
  assert.equal(bench.looked(), "e");
  bench.advance(50);
  bench.answer(bench.sent[3], good(name));
  assert.match(client.answer, /^NOERROR/);
  assert.deepEqual(bench.open, []);
  const { upstreams } = bench.forwarder;
  assert.deepEqual(upstreams.map(({ sent }) => sent), [1, 1, 1, 1, 1, 0]);
  assert.deepEqual(upstreams.map((one) => one.calledOffTotal), [1, 0, 0, 0, 1, 0]);
  assert.deepEqual(upstreams.map(({ failures }) => failures), [0, 0, 0, 0, 0, 0]);
  bench.checkIdle();
});

Deno.test("parallel: a denial is an answer", none, () => {
  const bench = new ForwarderBench({ strategy: parallel(3) });
  const missing = bench.ask(fresh());
  bench.answer(bench.sent[2], NXDOMAIN);
  assert.match(missing.answer, /^NXDOMAIN/);
  const empty = bench.ask(fresh());
  bench.answer(bench.sent[4], {});
  assert.match(empty.answer, /^NOERROR/);
  bench.checkIdle();
});

Deno.test("parallel: nobody sends more than six times for one question", none, () => {
  const bench = new ForwarderBench({ upstreams: six, strategy: parallel(5) });
  const client = bench.ask(fresh());
  assert.equal(bench.looked(), "a b c d e");
  quietly(() => bench.advance(FLIGHT_MS));
  assert.match(client.answer, /^SERVFAIL/);
  assert.equal(bench.sent.filter(({ message }) => message.questions[0].name !== ".").length, 6);
});

Deno.test("parallel: who is put aside is asked when nobody else is left", none, () => {
  const bench = new ForwarderBench({ strategy: parallel(3) });
  quietly(() => {
    for (let i = 0; i < 3; i++) {
      bench.forwarder.upstreams[1].failed(bench.nowMs, "test", bench.nowMs, null);
    }
  });
  const name = fresh();
  bench.ask(name);
  assert.equal(bench.looked(), "a c");
  for (const sent of [...bench.open]) bench.answer(sent, SERVFAIL);
  assert.equal(bench.looked(), "b");
  bench.answer(bench.last, good(name));
  bench.checkIdle();
});

Deno.test("parallel: in a rush one upstream is asked at a time", none, () => {
  const bench = new ForwarderBench({ strategy: parallel(3), openMax: 12 });
  for (let i = 0; i < 4; i++) bench.ask(fresh());
  assert.equal(bench.looked(), "a b c a b c a a");
  quietly(() => bench.flights.close());
});
