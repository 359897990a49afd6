import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { parseIp } from "../addr/mod.ts";
import {
  AD_BIT,
  type DecodedRecord,
  decodeMessage,
  encodeQuery,
  QR_BIT,
  Qtype,
  RA_BIT,
  type Section,
} from "../dns/mod.ts";
import type { FakePolicy } from "../snapshot/fakes.ts";
import { memoryOf } from "../snapshot/mod.ts";
import {
  a,
  describe,
  type FakeRecord,
  PipelineBench,
  response,
  snapshotOf,
  soaRdata,
  ttlOffsetsOf,
  wire,
} from "./fakes.ts";
import { ForwarderBench, quietly } from "./forward/fakes.ts";
import { Outcome } from "./outcome.ts";
import { Verdict } from "./verdict.ts";
import { Transport } from "./query.ts";

const none = { permissions: "none" } as const;

type Options = Parameters<typeof encodeQuery>[2];
const q = (name: string, type: number, options: Options = {}) =>
  encodeQuery(name, type, { id: 0xbeef, ...options });
const EDNS: Options = { edns: { payload: 1232 } };

function benchOf(policy: FakePolicy): PipelineBench {
  return new PipelineBench(snapshotOf(policy.lists ?? {}, {}, policy));
}

const RECORDS = [
  "nas.example A 192.0.2.1",
  "nas.example A 192.0.2.2 60",
  "nas.example AAAA 2001:db8::1",
  "*.wild.example A 192.0.2.9",
  "www.example CNAME nas.example 30",
  "far.example CNAME www.example",
  "txt.example CNAME nas.example",
  "blocked.example CNAME ads.test",
  "health.example CNAME health.svc.test",
  "out.example CNAME target.test 20",
  "ads.local.test A 192.0.2.7",
  ...Array.from({ length: 8 }, (_, i) => `hop${i}.example CNAME hop${i + 1}.example`),
  "hop8.example A 192.0.2.8",
  "toofar.example CNAME hop0.example",
  "circle.example CNAME elcric.example",
  "elcric.example CNAME circle.example",
];
const LISTS = { lists: { ads: "||ads.test^\n||local.test^\n" } };
const OK = "NOERROR rd ra; ";
const SOA = "10 SOA minimum 10";
const HOPS = Array.from({ length: 8 }, (_, i) => {
  return `hop${i}.example 300 CNAME hop${i + 1}.example`;
}).join("; ");

Deno.test("Pipeline answers with records of ours before the filter", none, async (t) => {
  const both = "nas.example 300 A 192.0.2.1; nas.example 60 A 192.0.2.2";
  const alias = "www.example 30 CNAME nas.example";
  const rows = [
    ["nas.example", Qtype.A, `${OK}${both}`],
    ["NAS.example", Qtype.A, `${OK}${both.replaceAll("nas.example", "NAS.example")}`],
    ["nas.example", Qtype.AAAA, `${OK}nas.example 300 AAAA 2001:db8::1`],
    // A name of ours is ours for every type.
    ["nas.example", Qtype.MX, `${OK}nas.example ${SOA}`],
    ["nas.example", Qtype.HTTPS, `${OK}nas.example ${SOA}`],
    ["nas.example", Qtype.CNAME, `${OK}nas.example ${SOA}`],
    ["nas.example", Qtype.ANY, `${OK}nas.example 3600 HINFO "RFC8482" ""`],
    ["a.b.wild.example", Qtype.A, `${OK}a.b.wild.example 300 A 192.0.2.9`],
    ["a.b.wild.example", Qtype.AAAA, `${OK}a.b.wild.example ${SOA}`],
    // A CNAME of ours leads to records of ours.
    ["www.example", Qtype.A, `${OK}${alias}; ${both}`],
    ["www.example", Qtype.CNAME, `${OK}${alias}`],
    ["www.example", Qtype.MX, `${OK}${alias}; nas.example ${SOA}`],
    [
      "far.example",
      Qtype.AAAA,
      `${OK}far.example 300 CNAME www.example; ${alias}; ` +
      "nas.example 300 AAAA 2001:db8::1",
    ],
    ["hop0.example", Qtype.A, `${OK}${HOPS}; hop8.example 300 A 192.0.2.8`],
    ["toofar.example", Qtype.A, "SERVFAIL rd ra"],
    ["circle.example", Qtype.A, "SERVFAIL rd ra"],
    ["circle.example", Qtype.CNAME, `${OK}circle.example 300 CNAME elcric.example`],
    // Its target is a name like any other: of the service's own, or blocked.
    [
      "health.example",
      Qtype.A,
      `${OK}health.example 300 CNAME health.svc.test; health.svc.test 10 A 127.0.0.1`,
    ],
    ["blocked.example", Qtype.A, `${OK}blocked.example 300 CNAME ads.test; ads.test 10 A 0.0.0.0`],
    ["blocked.example", Qtype.MX, `${OK}blocked.example 300 CNAME ads.test; ads.test ${SOA}`],
    // Before the filter: blocked, were it not ours.
    ["ads.local.test", Qtype.A, `${OK}ads.local.test 300 A 192.0.2.7`],
  ] as const;
  const bench = benchOf({ ...LISTS, records: RECORDS });
  for (const [name, type, want] of rows) {
    await t.step(`${name} ${type}`, () => {
      assert.equal(describe(bench.ask(q(name, type))), want);
      const withOpt = describe(bench.ask(q(name, type, EDNS)));
      const failed = want.startsWith("SERVFAIL");
      const ede = failed
        ? " Other: local CNAME records lead in a circle, or too far"
        : want.includes("; ads.test")
        ? " Blocked: ||ads.test^ (ads)"
        : "";
      assert.equal(withOpt, `${want}; OPT${ede}`);
      const withoutRd = describe(bench.ask(q(name, type, { rd: false })));
      assert.equal(withoutRd, want.replace("rd ra", "ra"));
    });
  }
  for (const name of ["example", "wild.example", "x.nas.example"]) {
    assert.equal(bench.decide(q(name, 1)), Verdict.Resolve, name);
  }
  assert.equal(bench.decide(q("x.local.test", 1)), Verdict.Send, "blocked");
});

Deno.test("Pipeline cuts records of ours that do not fit", none, async (t) => {
  const records = Array.from({ length: 40 }, (_, i) => `many.example A 192.0.2.${i}`);
  const bench = benchOf({ records: [...records, "to.example CNAME many.example"] });
  const rows = [
    [{}, Transport.Udp, true],
    [{ edns: { payload: 670 } }, Transport.Udp, true],
    [{ edns: { payload: 681 } }, Transport.Udp, false],
    [{}, Transport.Tcp, false],
  ] as const;
  for (const [options, transport, cut] of rows) {
    await t.step(JSON.stringify(options), () => {
      // Header and question take 30 bytes, a record 16, OPT 11.
      const shown = describe(bench.ask(q("many.example", 1, options), transport));
      assert.equal(shown.startsWith("NOERROR tc"), cut, shown);
      assert.equal(shown.match(/ A 192/g)?.length ?? 0, cut ? 0 : 40);
    });
  }
  assert.match(describe(bench.ask(q("to.example", 1, EDNS))), /CNAME many.*192\.0\.2\.39; OPT$/);
});

Deno.test("Pipeline leaves out a chain that has no room, and asks for TCP", none, () => {
  const label = "a".repeat(60);
  const long = (i: number) => `n${i}.${label}.${label}.${label}.example`;
  const records = Array.from({ length: 7 }, (_, i) => `${long(i)} CNAME ${long(i + 1)}`);
  const bench = benchOf({ records: [...records, `${long(7)} CNAME out.test`] });
  const shown = describe(bench.ask(q(long(0), 1, EDNS)));
  assert.equal(shown, "NOERROR tc rd ra; OPT");
  assert.equal(bench.decide(q(long(0), 1), Transport.Tcp), Verdict.Resolve);
});

Deno.test("Pipeline puts a cached answer behind the CNAME that led to it", none, () => {
  const bench = benchOf({ records: ["www.example CNAME Target.test 30"] });
  const message = response({
    name: "target.test",
    type: 1,
    flags: QR_BIT | RA_BIT | AD_BIT,
    records: [
      { name: "target.test", type: 5, ttl: 200, rdata: wire("cdn.target.test") },
      a("cdn.target.test", 100),
      a("cdn.target.test", 100, 2),
    ],
  });
  const ttlOffsets = ttlOffsetsOf(message);
  bench.keep(q("target.test", 1), message, { ttl: 100, ttlOffsets });
  bench.pipeline.nowSeconds += 10;
  const want = "NOERROR rd ra; wWw.example 30 CNAME Target.test; " +
    "Target.test 190 CNAME cdn.target.test; cdn.target.test 90 A 192.0.2.1; " +
    "cdn.target.test 90 A 192.0.2.2";
  assert.equal(describe(bench.ask(q("wWw.example", 1))), want);
  // What we put before it is not signed: the answer as a whole is not either.
  assert.equal(describe(bench.ask(q("wWw.example", 1, { ad: true, ...EDNS }))), `${want}; OPT`);
  assert.equal(bench.outcomes(Outcome.Cached), 2);
  const negative = response({
    name: "target.test",
    type: 28,
    flags: QR_BIT | RA_BIT | 3,
    records: [{ section: 1, name: "test", type: 6, ttl: 60, rdata: soaRdata(60) }],
  });
  bench.keep(q("target.test", 28), negative, { ttl: 60, ttlOffsets: ttlOffsetsOf(negative) });
  assert.equal(
    describe(bench.ask(q("www.example", 28))),
    "NXDOMAIN rd ra; www.example 30 CNAME Target.test; test 60 SOA minimum 60",
  );
  const many = Array.from({ length: 60 }, (_, i) => a("target.test", 300, i));
  const large = response({ name: "target.test", type: 1, records: many });
  bench.keep(q("target.test", 1, { cd: true }), large, {
    ttl: 300,
    ttlOffsets: ttlOffsetsOf(large),
  });
  assert.match(describe(bench.ask(q("www.example", 1, { cd: true }))), /^NOERROR tc rd ra cd$/);
  const whole = describe(bench.ask(q("www.example", 1, { cd: true }), Transport.Tcp));
  assert.equal(whole.match(/ A 192/g)?.length, 60);
});

Deno.test("Pipeline puts any answer behind a CNAME without changing a record of it", none, () => {
  const prng = new Prng(seedFromEnv());
  const name = () => {
    const parts = ["a", "b", "cdn", "x".repeat(40)];
    const labels = Array.from({ length: prng.int(4) }, () => prng.pick(parts));
    return [...labels, prng.pick(["target.test", "test", "example"])].join(".");
  };
  const records = ["www.example CNAME target.test 30", "far.away.example CNAME www.example"];
  for (let round = 0; round < 300; round++) {
    const bench = benchOf({ records });
    const kept = Array.from({ length: 1 + prng.int(30) }, (_, i): FakeRecord => {
      const [type, rdata] = prng.pick<readonly [number, ArrayLike<number>]>([
        [Qtype.A, prng.bytes(4)],
        [Qtype.CNAME, wire(name())],
        [Qtype.MX, [0, 10, ...wire(name())]],
        [Qtype.SOA, soaRdata(60)],
        [Qtype.TXT, [3, ...prng.bytes(3)]],
        [65_280, prng.bytes(9)],
      ]);
      const section = (i < 20 ? 0 : 1) as Section;
      return { section, name: name(), ttl: prng.int(1_000), type, rdata };
    });
    const message = response({ name: "target.test", type: 1, records: kept });
    bench.keep(q("target.test", 1), message, { ttl: 60 });
    const before = decodeMessage(message)!;
    const after = decodeMessage(bench.ask(q("far.away.example", 1), Transport.Tcp))!;
    // RDATA as it stands differs where a name of it was compressed.
    const shown = (all: readonly DecodedRecord[]) =>
      all.map((record) => ({ ...record, rdata: null }));
    assert.deepEqual(shown(after.answers.slice(2)), shown(before.answers), `round ${round}`);
    assert.deepEqual(shown(after.authorities), shown(before.authorities), `round ${round}`);
    const chain = after.answers.slice(0, 2).map(({ data }) => data);
    assert.deepEqual(chain, ["www.example", "target.test"]);
    assert.equal(after.trailingBytes, 0);
  }
});

Deno.test(
  "Forwarder asks for the target of a CNAME of ours once, for all who need it",
  none,
  () => {
    const snapshot = snapshotOf({}, {}, {
      records: ["www.example CNAME target.test 30", "far.example CNAME www.example"],
    });
    const bench = new ForwarderBench({ snapshot });
    const clients = ["Www.example", "far.example", "target.test"].map((name) => bench.ask(name));
    assert.equal(bench.sent.length, 1);
    assert.equal(bench.last.message.questions[0].name.toLowerCase(), "target.test");
    // The snapshot that the chain came from is gone by the time of the answer.
    bench.front.pipeline.snapshot = snapshotOf({});
    for (const memory of memoryOf(snapshot.data)) new Uint8Array(memory).fill(0);
    bench.answer(bench.last, { records: [a("target.test", 300)] });
    assert.deepEqual(clients.map(({ answer }) => answer.toLowerCase()), [
      "noerror rd ra; www.example 30 cname target.test; target.test 300 a 192.0.2.1",
      "noerror rd ra; far.example 300 cname www.example; www.example 30 cname target.test; " +
      "target.test 300 a 192.0.2.1",
      "noerror rd ra; target.test 300 a 192.0.2.1",
    ]);
    assert.match(clients[0].answer, /; Www\.example 30 CNAME/);
    bench.checkIdle();
    bench.front.pipeline.snapshot = snapshotOf({}, {}, {
      records: ["x.example CNAME silent.test"],
    });
    const failing = bench.ask("x.example");
    quietly(() => bench.flights.close());
    assert.equal(failing.answer, "SERVFAIL rd ra");
    // The next waiter is one of those: nothing of the chain is left in it.
    const plain = bench.ask("plain.test");
    bench.answer(bench.last, { records: [a("plain.test", 300)] });
    assert.equal(plain.answer, "NOERROR rd ra; plain.test 300 A 192.0.2.1");
  },
);

const WHO: FakePolicy = {
  lists: { ads: "||ads.example^\n", adult: "||adult.example^\n" },
  groups: {
    default: { lists: ["ads"] },
    kids: { lists: ["ads", "adult"] },
    free: { filtering: false },
  },
  clients: {
    house: { addresses: ["192.0.2.0/24"], group: "free" },
    tablet: { addresses: ["192.0.2.7", "2001:db8::7"], group: "kids" },
  },
};

Deno.test("Pipeline filters by the group of whoever asks", none, async (t) => {
  const bench = new PipelineBench(snapshotOf(WHO.lists ?? {}, {}, WHO));
  const rows = [
    ["", "ads.example"],
    ["198.51.100.1", "ads.example"],
    ["192.0.2.1", ""],
    ["192.0.2.7", "ads.example adult.example"],
    ["::ffff:192.0.2.7", "ads.example adult.example"],
    ["::ffff:192.0.2.8", ""],
    ["2001:db8::7", "ads.example adult.example"],
    ["2001:db8::8", "ads.example"],
  ] as const;
  for (const [client, blocked] of rows) {
    await t.step(client === "" ? "an address not known" : client, () => {
      const ip = parseIp(client) ?? new Uint8Array(0);
      const names = ["ads.example", "adult.example", "www.example"].filter((name) =>
        bench.decide(q(name, 1), Transport.Udp, ip) === Verdict.Send
      );
      assert.equal(names.join(" "), blocked);
    });
  }
});

Deno.test("Pipeline knows ten thousand clients and own records without garbage", none, () => {
  const clients = Object.fromEntries(
    Array.from({ length: 10_000 }, (_, i) => [`c${i}`, {
      addresses: [`10.${i >> 8}.${i & 255}.1`, `10.${i >> 8}.${i & 255}.64/26`],
      group: `g${i % 1_000}`,
    }]),
  );
  const groups = Object.fromEntries(
    Array.from({ length: 1_000 }, (_, i) => [`g${i}`, { lists: ["ads"] }]),
  );
  const policy: FakePolicy = {
    lists: { ads: "||ads.test^\n" },
    rules: ["||custom.test^"],
    records: RECORDS,
    clients,
    groups,
  };
  const bench = new PipelineBench(snapshotOf(policy.lists ?? {}, {}, policy));
  const message = response({ name: "target.test", type: 1, records: [a("target.test", 300)] });
  const ttlOffsets = ttlOffsetsOf(message);
  bench.keep(q("target.test", 1), message, { ttl: 300, ttlOffsets });
  const packets = [
    q("nas.example", 1),
    q("nas.example", Qtype.MX, EDNS),
    q("far.example", 28),
    q("circle.example", 1),
    q("blocked.example", 1),
    q("out.example", 1),
    q("custom.test", 1, EDNS),
    q("target.test", 1),
  ];
  const addresses = ["10.3.7.1", "10.3.7.99", "2001:db8::1", "192.0.2.1"].map((text) =>
    parseIp(text)!
  );
  const rounds = (count: number) => {
    for (let i = 0; i < count; i++) {
      for (let k = 0; k < packets.length; k++) {
        const verdict = bench.decide(packets[k], Transport.Udp, addresses[(i + k) & 3]);
        assert.equal(verdict, Verdict.Send);
      }
    }
  };
  rounds(5_000); // Compiled and warm.
  // See the test of the same kind beside: two quiet runs of seven are proof.
  const deltas = Array.from({ length: 7 }, () => {
    const before = Deno.memoryUsage().heapUsed;
    rounds(12_500);
    return Math.abs(Deno.memoryUsage().heapUsed - before);
  }).sort((x, y) => x - y);
  assert.ok(deltas[1] < 100_000, `the heap changed by ${deltas.join(", ")} bytes`);
});
