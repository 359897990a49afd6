import assert from "node:assert/strict";
import { AA_BIT, Ede, QR_BIT, Qtype, RA_BIT, Rcode, RD_BIT, TC_BIT } from "../../dns/mod.ts";
import { Counter } from "../../telemetry/mod.ts";
import { a, edeData, type FakeRecord, record, soaRdata } from "../fakes.ts";
import { Outcome } from "../outcome.ts";
import { RebindingProtection } from "../rebinding.ts";
import { ForwarderBench, quietly } from "./fakes.ts";

const none = { permissions: "none" } as const;
const N = "www.example";
const OK = QR_BIT | RD_BIT | RA_BIT;
const EDNS = { edns: { payload: 1232 } };
const ANSWER = `NOERROR rd ra; ${N} 300 A 192.0.2.1`;
const GOOD = { records: [a(N, 300)] };
const soa = (name: string): FakeRecord => ({
  section: 1,
  name,
  type: Qtype.SOA,
  ttl: 60,
  rdata: soaRdata(60),
});
const cname = (line: string) => ({ records: [record(line)] });

Deno.test("Forwarder asks for a CNAME's target that the answer leaves out", none, () => {
  const bench = new ForwarderBench();
  const clients = [bench.ask(N), bench.ask("WWW.Example")];
  bench.answer(bench.last, cname(`${N} 300 CNAME b.test`));
  assert.deepEqual(clients.map(({ answer }) => answer), ["", ""]);
  assert.equal(bench.last.message.questions[0].name.toLowerCase(), "b.test");
  bench.answer(bench.last, cname("b.test 200 CNAME c.test"));
  bench.answer(bench.last, { records: [a("c.test", 100)] });
  const want = (name: string) =>
    `NOERROR rd ra; ${name} 300 CNAME b.test; b.test 200 CNAME c.test; c.test 100 A 192.0.2.1`;
  assert.deepEqual(clients.map(({ answer }) => answer), [N, "WWW.Example"].map(want));
  assert.equal(bench.ask("wWw.eXaMpLe").answer, want("wWw.eXaMpLe"), "whole from the cache");
  assert.equal(bench.looked(), "a a a");
  bench.advance(100_000);
  bench.ask(N);
  assert.equal(bench.looked(), "a", "as long as its shortest part holds");
});

Deno.test("Forwarder asks who serves it for the target, with the bits of the query", none, () => {
  const bench = new ForwarderBench({ upstreams: { a: [], b: ["example"] } });
  const client = bench.ask(N, { cd: true, edns: { dnssecOk: true }, type: Qtype.AAAA });
  bench.answer(bench.last, cname(`${N} 300 CNAME b.test`));
  assert.equal(bench.looked(), "b a");
  const { cd, opt, questions } = bench.last.message;
  assert.deepEqual([cd, opt?.dnssecOk, questions[0].type], [true, true, Qtype.AAAA]);
  bench.answer(bench.last, { flags: OK | Rcode.NXDomain, records: [soa("test")] });
  assert.match(client.answer, /^NXDOMAIN rd ra cd; www.example 300 CNAME b.test; test 60 SOA/);
});

Deno.test("Forwarder ends a chain that leads on and on, or in a circle", none, () => {
  quietly(() => {
    const bench = new ForwarderBench({ upstreams: { a: [] } });
    const circle = bench.ask(N, EDNS);
    const loop: Record<string, string> = { [N]: "b.test", "b.test": N };
    for (let i = 0; i < 100 && bench.open.length > 0; i++) {
      const name = bench.last.message.questions[0].name.toLowerCase();
      bench.answer(bench.last, cname(`${name} 300 CNAME ${loop[name]}`));
    }
    assert.equal(
      circle.answer,
      "SERVFAIL rd ra; OPT Other: a leads in a circle of CNAME records, or too far",
    );
    assert.ok(bench.sent.length <= 13, `${bench.sent.length} asked`);
    bench.looked();
    assert.match(bench.ask(N, EDNS).answer, /^SERVFAIL .*in a circle/, "remembered");
    assert.equal(bench.looked(), "");
    bench.checkIdle();
  });
});

Deno.test("Forwarder never asks for a target that is the service's own", none, () => {
  const bench = new ForwarderBench();
  const client = bench.ask(N);
  bench.answer(bench.last, cname(`${N} 300 CNAME x.svc.test`));
  assert.equal(client.answer, `NOERROR rd ra; ${N} 300 CNAME x.svc.test`);
  assert.equal(bench.looked(), "a");
  bench.checkIdle();
});

Deno.test("Forwarder gives SERVFAIL where nobody has the target", none, () => {
  const bench = new ForwarderBench({ upstreams: { a: ["example"] } });
  const client = bench.ask(N, EDNS);
  bench.answer(bench.last, cname(`${N} 300 CNAME b.test`));
  assert.match(client.answer, /OPT No Reachable Authority: no upstream serves this name$/);
  bench.checkIdle();
});

Deno.test(
  "Forwarder holds private addresses of a chain against each of its upstreams",
  none,
  () => {
    // The company's server leads to a public name: that gets no address of the company's network.
    const bench = new ForwarderBench({
      upstreams: { a: [], b: ["example"] },
      rebinding: new RebindingProtection(),
    });
    const client = bench.ask(N);
    bench.answer(bench.last, cname(`${N} 300 CNAME b.test`));
    bench.answer(bench.last, { records: [record("b.test 300 A 10.0.0.1")] });
    assert.equal(client.answer, `NOERROR rd ra; ${N} 300 CNAME b.test`);
    const own = bench.ask("x.example");
    bench.answer(bench.last, { records: [record("x.example 300 A 10.0.0.1")] });
    assert.match(own.answer, /A 10\.0\.0\.1$/);
  },
);

Deno.test("Forwarder takes NODATA without SOA from who knows the zone", none, async (t) => {
  const rows = [
    ["of a resolver", {}, "a", "NOERROR rd ra"],
    ["with authority", { flags: QR_BIT | AA_BIT }, "a", "NOERROR rd ra"],
    ["NXDOMAIN", { flags: QR_BIT | AA_BIT | Rcode.NXDomain }, "a", "NXDOMAIN rd ra"],
    ["of a server that does not recurse", { flags: QR_BIT }, "a b", ""],
    [
      "a referral",
      { flags: QR_BIT, records: [{ ...soa("example"), type: Qtype.NS, rdata: [0] }] },
      "a b",
      "",
    ],
  ] as const;
  for (const [what, fake, asked, want] of rows) {
    await t.step(what, () => {
      const bench = new ForwarderBench({ upstreams: { a: [], b: [] } });
      const client = bench.ask(N);
      bench.answer(bench.last, fake);
      assert.deepEqual([bench.looked(), client.answer], [asked, want]);
    });
  }
  await t.step("of the server of a domain", () => {
    const bench = new ForwarderBench({ upstreams: { a: ["example"] } });
    const client = bench.ask(N);
    bench.answer(bench.last, { flags: QR_BIT });
    assert.equal(client.answer, "NOERROR rd ra");
  });
});

Deno.test("Forwarder relays extended errors unchanged, later from the cache as well", none, () => {
  const bench = new ForwarderBench({ upstreams: { a: [] } });
  const opt = [
    { code: 15, data: edeData(Ede.Filtered, "by the upstream") },
    { code: 15, data: edeData(Ede.StaleAnswer, "é") },
  ];
  const want = "OPT Filtered: by the upstream, Stale Answer: é";
  const plain = bench.ask(N);
  const first = bench.ask(N, EDNS);
  bench.answer(bench.last, { ...GOOD, opt });
  assert.equal(first.answer, `${ANSWER}; ${want}`);
  assert.equal(plain.answer, ANSWER);
  assert.equal(bench.ask(N, EDNS).answer, `${ANSWER}; ${want}`);
  const failed = bench.ask("x.example", EDNS);
  bench.answer(bench.last, { flags: OK | Rcode.ServFail, opt });
  assert.equal(failed.answer, `SERVFAIL rd ra; ${want}`);
  assert.equal(bench.ask("x.example", EDNS).answer, `SERVFAIL rd ra; ${want}`);
  const denied = bench.ask("y.example", EDNS);
  bench.answer(bench.last, { flags: OK | Rcode.NXDomain, records: [soa("example")], opt });
  assert.equal(denied.answer, `NXDOMAIN rd ra; example 60 SOA minimum 60; ${want}`);
});

Deno.test(
  "Forwarder leaves the way open when an answer is malformed, and asks others",
  none,
  () => {
    const broken = { records: [{ ...a(N, 300), rdata: [192, 0, 2] }] };
    const late = new ForwarderBench({ upstreams: { a: [], b: [] } });
    const first = late.ask(N);
    late.answer(late.last, broken);
    late.answer(late.sent[0], broken);
    assert.equal(late.looked(), "a b", "the next at once, and once");
    late.answer(late.sent[0], GOOD);
    assert.equal(first.answer, ANSWER, "the true answer counts");
    late.checkIdle();
    const alone = new ForwarderBench({ upstreams: { a: [] } });
    const second = alone.ask(N, EDNS);
    alone.answer(alone.last, broken);
    assert.equal(alone.looked(), "a a!");
    assert.equal(alone.open.length, 2);
    alone.answer(alone.last, broken);
    assert.equal(
      second.answer,
      "SERVFAIL rd ra; OPT Invalid Data: a answered with a malformed message",
    );
    alone.checkIdle();
  },
);

Deno.test("Forwarder tells when an upstream is this service itself", none, () => {
  const bench = new ForwarderBench({ upstreams: { a: [] } });
  const client = bench.ask("www.some.example", EDNS);
  const { id, questions } = bench.last.message;
  // What was sent comes in as a query of a client's.
  const back = bench.ask(questions[0].name, { ...EDNS, id, ad: true });
  const text = "OPT Other: upstream a leads back to this service";
  assert.equal(back.answer, `SERVFAIL rd ra; ${text}`);
  const opt = [{ code: 15, data: edeData(0, "upstream a leads back to this service") }];
  bench.answer(bench.last, { flags: OK | Rcode.ServFail, opt });
  assert.equal(client.answer, `SERVFAIL rd ra; ${text}`);
  bench.checkIdle();
});

Deno.test("Forwarder has one silent upstream take no room of the others", none, () => {
  const { lines } = quietly(() => {
    const bench = new ForwarderBench({ upstreams: { a: [], b: ["dead.test"] }, openMax: 100 });
    const dead = Array.from({ length: 300 }, (_, i) => bench.ask(`n${i}.dead.test`, EDNS));
    assert.equal(bench.open.length, 50);
    assert.equal(dead[50].answer, "SERVFAIL rd ra; OPT Other: too many queries wait for b");
    assert.equal(bench.count(Counter.UpstreamFull), 250);
    for (let i = 0; i < 40; i++) {
      const client = bench.ask(`n${i}.example`);
      bench.answer(bench.last, { records: [a(`n${i}.example`, 300)] });
      assert.match(client.answer, /^NOERROR/);
      bench.advance(50);
    }
    // Those that wait are asked for again as far as there is room, and never beyond; and one probe
    // asks whether it is these names alone.
    assert.ok(bench.open.length <= 50 + 1, `${bench.open.length}`);
    const [healthy, silent] = bench.forwarder.upstreams;
    assert.deepEqual([healthy.failures, silent.open], [0, bench.open.length]);
    bench.advance(10_000);
    assert.equal(bench.flights.inFlight, 0);
    bench.flights.close(); // With its probes.
    bench.checkIdle();
  });
  const told = lines.map((line) => JSON.parse(line).message);
  assert.equal(told.filter((message) => /^too many queries wait/.test(message)).length, 1);
});

Deno.test("Forwarder serves what is stale where too many queries wait", none, () => {
  quietly(() => {
    const bench = new ForwarderBench({ upstreams: { a: [] }, serveStale: 3_600 });
    bench.ask(N);
    bench.answer(bench.last, GOOD);
    bench.advance(400_000);
    for (let i = 0; i < 2_048; i++) bench.ask(`n${i}.example`);
    assert.equal(bench.ask(N, EDNS).answer, `${ANSWER.replace("300", "30")}; OPT Stale Answer: `);
    bench.flights.close();
  });
});

Deno.test("Forwarder blames no upstream for the sockets that the process lacks", none, () => {
  const { lines } = quietly(() => {
    const bench = new ForwarderBench({ upstreams: { a: [], b: [] } });
    bench.lacksSockets = true;
    for (let i = 0; i < 20; i++) {
      const client = bench.ask(`n${i}.example`, EDNS);
      assert.match(client.answer, /^SERVFAIL .*OPT Other: no socket is left .* open files$/);
      assert.equal(client.outcome, Outcome.Failed);
    }
    assert.deepEqual(
      bench.forwarder.upstreams.map(({ healthy, failures }) => [healthy, failures]),
      [[true, 0], [true, 0]],
    );
    assert.equal(bench.count(Counter.NoSocket), 20);
    assert.equal(bench.forwarder.lacksSockets, true);
    bench.lacksSockets = false;
    const client = bench.ask(N);
    bench.answer(bench.last, GOOD);
    assert.equal(client.answer, ANSWER);
    bench.advance(50);
    bench.ask("later.example");
    bench.advance(0);
    // One that came later, as a connection's error does.
    bench.asker.onFailure(bench.last.token, "closed the connection", true);
    assert.equal(bench.forwarder.upstreams[0].failures, 0);
    bench.flights.close();
  });
  const told = lines.map((line) => JSON.parse(line));
  assert.deepEqual(told.map(({ level }) => level), ["error"]);
  assert.match(told[0].message, /^no socket is left/);
});

Deno.test("Forwarder probes an upstream again for which there was no room", none, () => {
  quietly(() => {
    const bench = new ForwarderBench({ upstreams: { a: [] }, openMax: 2 });
    const [upstream] = bench.forwarder.upstreams;
    bench.ask(N);
    upstream.healthy = false;
    bench.lacksSockets = true;
    bench.advance(100);
    assert.equal(upstream.probing, false);
    bench.lacksSockets = false;
    bench.advance(2_000);
    assert.equal(bench.last.message.questions[0].name, ".");
    bench.answer(bench.last, { name: ".", type: 2 });
    assert.equal(upstream.healthy, true);
  });
});

Deno.test("Forwarder bounds what a cut answer over TCP as well comes to", none, () => {
  const bench = new ForwarderBench({ upstreams: { a: [], b: [] } });
  const client = bench.ask(N, EDNS);
  while (bench.open.length > 0 && bench.sent.length < 50) {
    bench.answer(bench.last, { flags: OK | TC_BIT });
  }
  assert.match(client.answer, /^SERVFAIL/);
  assert.equal(bench.looked(), "a a! b b!");
  bench.checkIdle();
});

Deno.test("Forwarder keeps merged queries apart by their DO and CD bits", none, () => {
  const bench = new ForwarderBench({ upstreams: { a: [] } });
  const asked = [{}, { cd: true }, { edns: { dnssecOk: true } }, {
    cd: true,
    edns: { dnssecOk: true },
  }];
  const clients = asked.map((options) => bench.ask(N, options));
  for (const [i, sent] of bench.sent.entries()) bench.answer(sent, { records: [a(N, 300, i)] });
  for (const [i, client] of clients.entries()) {
    assert.match(client.answer, new RegExp(`A 192\\.0\\.2\\.${i}\\b`));
  }
});
