import assert from "node:assert/strict";
import { encodeQuery, parseName, Qtype, Rcode } from "../dns/mod.ts";
import { a, snapshotOf } from "./fakes.ts";
import { ForwarderBench, quietly } from "./forward/fakes.ts";
import { type Found, Lookups } from "./lookups.ts";
import { Outcome } from "./outcome.ts";
import { OWN_QUESTIONS_MAX, OwnQuestions } from "./own_questions.ts";

const none = { permissions: "none" } as const;
const N = "lists.example";
const SERVFAIL = { flags: 0x8180 | Rcode.ServFail };

/** A bench whose filter blocks every name below `example`. */
function lookupsOf(records: readonly string[] = []) {
  const bench = new ForwarderBench({
    snapshot: snapshotOf({ all: "||example^" }, {}, { records }),
  });
  const questions = new OwnQuestions(bench.resolver, bench.forwarder.routes, () => bench.nowMs);
  const lookups = new Lookups(questions);
  const start = (name = N, type: number = Qtype.A): Found[] => {
    const found: Found[] = [];
    lookups.lookup(name, type, (what) => found.push(what));
    return found;
  };
  return { bench, lookups: questions, start };
}

Deno.test(
  "Lookups.lookup() asks upstreams whatever the filter says, and counts nothing",
  none,
  () => {
    const { bench, lookups, start } = lookupsOf();
    const first = start();
    assert.deepEqual([first, lookups.pending], [[], 1]);
    const last = [{ ...a("cdn.example", 30), name: "cdn.example" }, { ...a("cdn.example", 60, 2) }];
    const cname = { name: N, type: Qtype.CNAME, ttl: 20, rdata: [3, 99, 100, 110, 0xc0, 18] };
    bench.answer(bench.last, { records: [cname, ...last] });
    assert.deepEqual(first, [{ addresses: ["192.0.2.1", "192.0.2.2"], ttl: 20, failure: null }]);
    assert.deepEqual(start(), first, "from the cache then");
    assert.equal(bench.looked(), "a");
    for (const outcome of Object.values(Outcome)) assert.equal(bench.outcomes(outcome), 0);
    assert.match(bench.ask(N).answer, /0\.0\.0\.0/, "for a client it stays blocked");
    assert.equal(bench.outcomes(Outcome.Blocked), 1);
    assert.equal(lookups.pending, 0);
    bench.checkIdle();
  },
);

Deno.test("Lookups.lookup() finds what our own records say", none, () => {
  const { bench, start } = lookupsOf(["nas.home A 192.0.2.9", "www.home CNAME nas.home"]);
  assert.deepEqual(start("www.home")[0].addresses, ["192.0.2.9"]);
  assert.deepEqual(start("nas.home", Qtype.AAAA)[0], { addresses: [], ttl: 0, failure: null });
  assert.equal(bench.looked(), "");
});

Deno.test("Lookups.lookup() tells a name without address from one that nobody knows", none, () => {
  quietly(() => {
    const { bench, start } = lookupsOf();
    const missing = start("missing.example");
    bench.answer(bench.last, { flags: 0x8180 | Rcode.NXDomain });
    assert.deepEqual(missing, [{ addresses: [], ttl: 0, failure: null }]);
    const failed = start();
    while (bench.open.length > 0) bench.answer(bench.last, SERVFAIL);
    assert.match(failed[0].failure ?? "", /answered SERVFAIL/);
    assert.match(start("a..b")[0].failure ?? "", /is no name/);
    assert.equal(bench.outcomes(Outcome.Failed), 0);
  });
});

Deno.test("Lookups.lookup() bounds how many wait", none, () => {
  quietly(() => {
    const { bench, lookups, start } = lookupsOf();
    const waiting = Array.from({ length: OWN_QUESTIONS_MAX }, (_, i) => start(`n${i}.example`));
    assert.equal(lookups.pending, OWN_QUESTIONS_MAX);
    assert.match(start()[0].failure ?? "", /too many/);
    bench.flights.close();
    assert.ok(waiting.every(([found]) => found.failure !== null));
    assert.equal(lookups.pending, 0);
  });
});

Deno.test("OwnQuestions.ask() goes the way of a group, and its answers stay there", none, () => {
  const { bench, lookups: questions, start } = lookupsOf();
  const packet = encodeQuery(parseName(N)!, Qtype.A);
  const ask = (upstreams: readonly string[]) =>
    questions.ask(packet, { isAnew: false, isTraced: false, upstreams }, () => {});
  ask(["b"]);
  bench.answer(bench.last, { records: [a(N, 300, 2)] });
  assert.equal(bench.looked(), "b");
  ask(["b"]);
  assert.equal(bench.looked(), "", "from the cache");
  start();
  bench.answer(bench.last, { records: [a(N, 300, 1)] });
  assert.equal(bench.looked(), "a");
  ask(["gone"]);
  assert.equal(bench.looked(), "");
  bench.checkIdle();
});
