import assert from "node:assert/strict";
import { AD_BIT, Ede, encodeQuery, QR_BIT, Qtype, RA_BIT } from "../dns/mod.ts";
import type { Settings } from "../model/mod.ts";
import { Counter } from "../telemetry/mod.ts";
import {
  a,
  describe,
  PipelineBench,
  record,
  response,
  snapshotOf,
  ttlOffsetsOf,
  wire,
} from "./fakes.ts";
import { ownError } from "./extended_errors.ts";
import { Outcome } from "./outcome.ts";
import { Verdict } from "./verdict.ts";
import { Transport } from "./query.ts";

const none = { permissions: "none" } as const;

type Options = Parameters<typeof encodeQuery>[2];
const q = (name: string, type: number, options: Options = {}) =>
  encodeQuery(name, type, { id: 0xbeef, ...options });
const EDNS: Options = { edns: { payload: 1232 } };

Deno.test("Pipeline answers the service's own names", none, async (t) => {
  const soa = "10 SOA minimum 10";
  const rows = [
    ["health.svc.test", Qtype.A, "NOERROR rd ra; health.svc.test 10 A 127.0.0.1"],
    ["health.svc.test", Qtype.AAAA, "NOERROR rd ra; health.svc.test 10 AAAA ::1"],
    ["HEALTH.Svc.Test", Qtype.A, "NOERROR rd ra; HEALTH.Svc.Test 10 A 127.0.0.1"],
    ["health.svc.test", Qtype.MX, `NOERROR rd ra; health.svc.test ${soa}`],
    ["health.svc.test", Qtype.ANY, `NOERROR rd ra; health.svc.test ${soa}`],
    ["svc.test", Qtype.A, `NOERROR rd ra; svc.test ${soa}`],
    ["svc.test", Qtype.SOA, `NOERROR rd ra; svc.test ${soa}`],
    ["other.svc.test", Qtype.A, `NXDOMAIN rd ra; other.svc.test ${soa}`],
    ["a.health.svc.test", Qtype.A, `NXDOMAIN rd ra; a.health.svc.test ${soa}`],
  ] as const;
  // Not even a rule about them changes what the failover component hears.
  const bench = new PipelineBench(snapshotOf({ custom: "||svc.test^$important" }));
  for (const [name, type, want] of rows) {
    await t.step(`${name} ${type}`, () => {
      assert.equal(describe(bench.ask(q(name, type))), want);
      assert.equal(describe(bench.ask(q(name, type, EDNS))), `${want}; OPT`);
    });
  }
  assert.equal(bench.outcomes(Outcome.Local), 2 * rows.length);
  for (const name of ["test", "xsvc.test", "svc.test.example", "health.svc.tes"]) {
    assert.equal(bench.decide(q(name, Qtype.A)), Verdict.Resolve, name);
  }
});

const RULES = { ads: "||ads.example^\n", custom: "@@||good.ads.example^\n|exact.example^\n" };
const FORMS: readonly (readonly [string, Partial<Settings>])[] = [
  ["null_ip", { block_response: "null_ip", block_ttl: 10 }],
  ["nxdomain", { block_response: "nxdomain", block_ttl: 17 }],
  ["refused", { block_response: "refused" }],
  ["custom_ip", {
    block_response: "custom_ip",
    blocking_ipv4: "192.0.2.7",
    blocking_ipv6: "2001:db8::7",
    block_ttl: 3600,
  }],
  ["custom_ip, IPv4 alone", { block_response: "custom_ip", blocking_ipv4: "192.0.2.7" }],
];
const N = "www.ads.example";
const BLOCKED: Readonly<Record<string, readonly [string, string, string]>> = {
  "null_ip": [
    `NOERROR rd ra; ${N} 10 A 0.0.0.0`,
    `NOERROR rd ra; ${N} 10 AAAA ::`,
    `NOERROR rd ra; ${N} 10 SOA minimum 10`,
  ],
  "nxdomain": [
    `NXDOMAIN rd ra; ${N} 17 SOA minimum 17`,
    `NXDOMAIN rd ra; ${N} 17 SOA minimum 17`,
    `NXDOMAIN rd ra; ${N} 17 SOA minimum 17`,
  ],
  "refused": ["REFUSED rd ra", "REFUSED rd ra", "REFUSED rd ra"],
  "custom_ip": [
    `NOERROR rd ra; ${N} 3600 A 192.0.2.7`,
    `NOERROR rd ra; ${N} 3600 AAAA 2001:db8::7`,
    `NOERROR rd ra; ${N} 3600 SOA minimum 3600`,
  ],
  "custom_ip, IPv4 alone": [
    `NOERROR rd ra; ${N} 10 A 192.0.2.7`,
    `NOERROR rd ra; ${N} 10 AAAA ::`,
    `NOERROR rd ra; ${N} 10 SOA minimum 10`,
  ],
};

Deno.test("Pipeline answers blocked names in each form, EDE 15 beside it", none, async (t) => {
  for (const [form, settings] of FORMS) {
    const bench = new PipelineBench(snapshotOf(RULES, settings));
    for (const [i, type] of [Qtype.A, Qtype.AAAA, Qtype.HTTPS].entries()) {
      await t.step(`${form} ${type}`, () => {
        const want = BLOCKED[form][i];
        assert.equal(describe(bench.ask(q(N, type))), want);
        const ede = "Blocked: ||ads.example^ (ads)";
        assert.equal(describe(bench.ask(q(N, type, EDNS))), `${want}; OPT ${ede}`);
        const dnssec = q(N, type, { cd: true, edns: { dnssecOk: true } });
        assert.equal(
          describe(bench.ask(dnssec)),
          `${want.replace("rd ra", "rd ra cd")}; OPT do ${ede}`,
        );
        // A name is blocked whether or not recursion is wanted.
        const withoutRd = want.replace("rd ra", "ra");
        assert.equal(describe(bench.ask(q(N, type, { rd: false }))), withoutRd);
        const tcp = bench.ask(q(N, type, EDNS), Transport.Tcp);
        assert.equal(describe(tcp), `${want}; OPT ${ede}`);
      });
    }
    assert.equal(bench.outcomes(Outcome.Blocked), 15);
  }
});

Deno.test("Pipeline blocks by rules and their exceptions, unless protection is off", none, () => {
  const rows = [
    ["ads.example", Verdict.Send],
    ["ADS.Example", Verdict.Send],
    ["good.ads.example", Verdict.Resolve],
    ["exact.example", Verdict.Send],
    ["www.exact.example", Verdict.Resolve],
    ["example", Verdict.Resolve],
  ] as const;
  const [on, off] = [true, false].map((protection) =>
    new PipelineBench(snapshotOf(RULES, { protection }))
  );
  for (const [name, verdict] of rows) {
    assert.equal(on.decide(q(name, Qtype.A)), verdict, name);
    assert.equal(off.decide(q(name, Qtype.A)), Verdict.Resolve, name);
  }
  // The next query is decided by the new snapshot.
  off.pipeline.snapshot = snapshotOf(RULES);
  assert.equal(off.decide(q("ads.example", Qtype.A)), Verdict.Send);
});

Deno.test("Pipeline leaves out an error text that does not fit, and keeps the code", none, () => {
  const label = "a".repeat(63);
  const name = `${label}.${label}.${label}.ads.example`;
  const bench = new PipelineBench(snapshotOf({ ["long ".repeat(60)]: `||${name}^` }));
  const small = { edns: { payload: 512 } };
  const shown = describe(bench.ask(q(name, Qtype.HTTPS, small)));
  assert.equal(shown, `NOERROR rd ra; ${name} 10 SOA minimum 10; OPT Blocked: `);
  assert.match(describe(bench.ask(q(name, Qtype.HTTPS, EDNS))), /OPT Blocked: \|\|a.*long long/);
});

Deno.test("Pipeline answers a name unfiltered when checking it fails", none, async (t) => {
  const write = Deno.stderr.writeSync;
  for (const failClosed of [false, true]) {
    await t.step(failClosed ? "closed" : "open", () => {
      const broken = snapshotOf(RULES);
      broken.decide = () => {
        throw new Error("broken on purpose");
      };
      const bench = new PipelineBench(broken, 0, failClosed);
      const lines: string[] = [];
      Deno.stderr.writeSync = (bytes) => {
        return lines.push(new TextDecoder().decode(bytes)) && bytes.length;
      };
      try {
        for (let i = 0; i < 3; i++) {
          const verdict = bench.decide(q(N, Qtype.A, { edns: {} }));
          assert.equal(verdict, failClosed ? Verdict.Send : Verdict.Resolve);
        }
      } finally {
        Deno.stderr.writeSync = write;
      }
      assert.equal(bench.counters.values[Counter.FilterFailures], 3);
      assert.equal(lines.length, 1, "said once");
      assert.match(lines[0], /broken on purpose/);
      if (!failClosed) return;
      const { reply, query } = bench;
      const response = reply.bytes.slice(reply.offset, reply.offset + reply.length);
      assert.match(describe(response), /^SERVFAIL rd ra; OPT Other: the filter failed$/);
      assert.equal(query.outcome, Outcome.Failed);
    });
  }
});

Deno.test(
  "Pipeline refuses what no resolver forwards, and answers ANY with HINFO",
  none,
  async (t) => {
    const refused = "REFUSED rd ra";
    const rows = [
      ["class CH", q("version.bind", Qtype.TXT, { cls: 3 }), refused],
      ["class ANY", q(N, Qtype.A, { cls: 255 }), refused],
      ["class 0", q(N, Qtype.A, { cls: 0 }), refused],
      ["type 0", q(N, 0), refused],
      ["OPT", q(N, Qtype.OPT), refused],
      ["TKEY", q(N, Qtype.TKEY), refused],
      ["TSIG", q(N, Qtype.TSIG), refused],
      ["IXFR", q(N, Qtype.IXFR), refused],
      ["AXFR", q(N, Qtype.AXFR), refused],
      ["MAILB", q(N, Qtype.MAILB), refused],
      ["CH of the own zone", q("health.svc.test", Qtype.A, { cls: 3 }), refused],
      ["ANY", q(N, Qtype.ANY), `NOERROR rd ra; ${N} 3600 HINFO "RFC8482" ""`],
    ] as const;
    const bench = new PipelineBench();
    for (const [name, packet, want] of rows) {
      await t.step(name, () => assert.equal(describe(bench.ask(packet)), want));
    }
    const withEdns = q(N, Qtype.AXFR, EDNS);
    assert.equal(describe(bench.ask(withEdns)), `${refused}; OPT Not Supported: `);
    for (const type of [1, 2, 16, 64, 65, 248, 256, 257, 65280]) {
      assert.equal(bench.decide(q(N, type)), Verdict.Resolve, `type ${type}`);
    }
  },
);

Deno.test(
  "Pipeline.answerUnread() says what was wrong, and nothing to what is no query",
  none,
  () => {
    const bench = new PipelineBench();
    const changed = (options: Options, change: (packet: Uint8Array) => void) => {
      const packet = q(N, Qtype.A, options);
      change(packet);
      return packet;
    };
    const version1 = q(N, Qtype.A, { edns: { version: 1 } });
    assert.equal(describe(bench.ask(version1)), "BADVERS rd ra; OPT");
    const update = changed({}, (p) => void (p[2] |= 5 << 3));
    const shown = bench.ask(update);
    assert.equal(describe(shown), "NOTIMP rd ra");
    assert.equal(shown[2] >> 3 & 15, 5, "the opcode comes back");
    assert.deepEqual(shown.slice(12), update.slice(12), "and the question");
    // Without a question that can be read there is none to repeat.
    const bare = changed({}, (p) => p.set([5 << 3, 0, 0, 2], 2));
    assert.equal(bench.ask(bare).length, 12);
    const cut = update.slice(0, -3);
    assert.equal(bench.ask(cut).length, 12);
    const noQuestion = changed({}, (p) => void (p[5] = 0));
    assert.deepEqual(
      bench.ask(noQuestion),
      Uint8Array.of(0xbe, 0xef, 0x81, 0x81, 0, 0, 0, 0, 0, 0, 0, 0),
    );
    assert.equal(bench.decide(changed({}, (p) => void (p[2] |= 0x80))), Verdict.Drop);
    assert.equal(bench.decide(new Uint8Array(5)), Verdict.Drop);
    const { values } = bench.counters;
    assert.deepEqual([values[Counter.FormErr], values[Counter.NotImp], values[Counter.Dropped]], [
      2,
      3,
      2,
    ]);
  },
);

Deno.test(
  "Pipeline answers from the cache with the client's own ID, case and flags",
  none,
  async (t) => {
    const bench = new PipelineBench();
    const message = response({
      id: 1,
      name: "www.example",
      type: 1,
      flags: QR_BIT | RA_BIT | AD_BIT,
      records: [a("www.example", 300), a("www.example", 200, 2)],
    });
    const ttlOffsets = ttlOffsetsOf(message);
    for (const options of [{}, { cd: true }, { edns: { dnssecOk: true } }]) {
      bench.keep(q("www.example", 1, options), message, { ttl: 200, ttlOffsets });
    }
    const answers = (name: string) => `${name} 300 A 192.0.2.1; ${name} 200 A 192.0.2.2`;
    const rows: readonly (readonly [string, Options, string])[] = [
      ["www.example", {}, "NOERROR rd ra"],
      ["wWw.ExAmPlE", {}, "NOERROR rd ra"],
      ["www.example", { rd: false }, "NOERROR ra"],
      ["www.example", { ad: true }, "NOERROR rd ra ad"],
      ["www.example", { cd: true }, "NOERROR rd ra cd"],
      ["WWW.example", { edns: { dnssecOk: true } }, "NOERROR rd ra ad"],
    ];
    for (const [name, options, flags] of rows) {
      await t.step(`${name} ${JSON.stringify(options)}`, () => {
        const bytes = bench.ask(q(name, 1, options));
        const opt = options?.edns === undefined ? "" : "; OPT do";
        assert.equal(describe(bytes), `${flags}; ${answers(name)}${opt}`);
        assert.equal((bytes[0] << 8) | bytes[1], 0xbeef);
      });
    }
    assert.equal(bench.outcomes(Outcome.Cached), rows.length);
    assert.equal(bench.decide(q("www.example", 28)), Verdict.Resolve, "another type");
    bench.pipeline.nowSeconds += 199;
    assert.match(describe(bench.ask(q("www.example", 1))), / 101 A 192.0.2.1; \S+ 1 A 192.0.2.2$/);
    bench.pipeline.nowSeconds++;
    assert.equal(bench.decide(q("www.example", 1)), Verdict.Resolve, "expired");
  },
);

Deno.test("Pipeline asks nobody for a query without RD", none, () => {
  const bench = new PipelineBench();
  const want = "REFUSED ra; OPT Not Authoritative: ";
  assert.equal(describe(bench.ask(q(N, 1, { rd: false, ...EDNS }))), want);
});

Deno.test("Pipeline sends a cached extended error, unless it would cost a record", none, () => {
  const records = Array.from({ length: 40 }, (_, i) => a("www.example", 60, i));
  const message = response({ name: "www.example", type: 1, records });
  const bench = new PipelineBench();
  bench.keep(q("www.example", 1), message, { ttl: 60, errors: ownError(Ede.Filtered, "by them") });
  const limit = message.length + 11;
  const rows = [
    [limit + 13, "OPT Filtered: by them"],
    [limit + 12, "OPT Filtered: "],
    [limit + 6, "OPT Filtered: "],
    [limit + 5, "OPT"],
  ] as const;
  for (const [payload, want] of rows) {
    const shown = describe(bench.ask(q("www.example", 1, { edns: { payload } })));
    assert.ok(shown.endsWith(`A 192.0.2.39; ${want}`), shown);
  }
  const cut = describe(bench.ask(q("www.example", 1, { edns: { payload: limit - 1 } })));
  assert.match(cut, /^NOERROR tc rd ra; OPT/);
});

Deno.test(
  "Pipeline cuts what does not fit the client, header and question alone",
  none,
  async (t) => {
    // One A record is 16 bytes and the head is 29.
    const rows: readonly (readonly [number, Options, Transport, boolean])[] = [
      [30, {}, Transport.Udp, false],
      [31, {}, Transport.Udp, true],
      [30, { edns: { payload: 512 } }, Transport.Udp, true],
      [29, { edns: { payload: 512 } }, Transport.Udp, false],
      [29, { edns: { payload: 0 } }, Transport.Udp, false],
      [45, { edns: { payload: 760 } }, Transport.Udp, false],
      [45, { edns: { payload: 759 } }, Transport.Udp, true],
      [74, { edns: { payload: 4096 } }, Transport.Udp, false],
      [75, { edns: { payload: 4096 } }, Transport.Udp, true],
      [75, {}, Transport.Tcp, false],
      [4_000, { edns: { payload: 512 } }, Transport.Tcp, false],
    ];
    for (const [count, options, transport, cut] of rows) {
      await t.step(`${count} records, ${JSON.stringify(options)}, ${transport}`, () => {
        const bench = new PipelineBench();
        const records = Array.from({ length: count }, () => a("www.example", 60));
        const message = response({ name: "www.example", type: 1, records });
        assert.equal(message.length, 29 + 16 * count);
        bench.keep(q("www.example", 1, options), message, { ttl: 60 });
        const shown = describe(bench.ask(q("www.example", 1, options), transport));
        if (cut) assert.match(shown, /^NOERROR tc rd ra(; OPT)?$/);
        else assert.equal(shown.match(/ A 192/g)?.length, count);
        assert.equal(bench.reply.truncated, cut);
        assert.equal(bench.counters.values[Counter.Truncated], cut ? 1 : 0);
      });
    }
  },
);

Deno.test("Pipeline.writeEntry() sends a stale answer with TTLs of 30 seconds", none, () => {
  const bench = new PipelineBench(snapshotOf({}), 3_600);
  const message = response({ name: "www.example", type: 1, records: [a("www.example", 300)] });
  const ttlOffsets = ttlOffsetsOf(message);
  const entry = bench.keep(q("www.example", 1, EDNS), message, { ttl: 300, ttlOffsets });
  bench.pipeline.nowSeconds += 400;
  assert.equal(bench.decide(q("www.example", 1, EDNS)), Verdict.Resolve, "fresh ones are sought");
  bench.reply.bytes.fill(0xee);
  bench.pipeline.answerWaiter(bench.query, entry, Ede.StaleAnswer, bench.reply);
  const want = "NOERROR rd ra; www.example 30 A 192.0.2.1; OPT Stale Answer: ";
  assert.equal(describe(bench.taken()), want);
});

Deno.test("Pipeline.writeEntry() hands a TTL of zero out as it is", none, () => {
  const bench = new PipelineBench(snapshotOf({}), 3_600);
  const message = response({ name: "www.example", type: 1, records: [a("www.example", 0)] });
  const ttlOffsets = ttlOffsetsOf(message);
  const entry = bench.keep(q("www.example", 1), message, { ttl: 0, ttlOffsets });
  bench.reply.bytes.fill(0xee);
  bench.pipeline.answerWaiter(bench.query, entry, -1, bench.reply);
  assert.equal(describe(bench.taken()), "NOERROR rd ra; www.example 0 A 192.0.2.1");
});

Deno.test("Pipeline has popular entries fetched again shortly before they expire", none, () => {
  const rows = [
    [300, 269, 0],
    [300, 270, 1],
    [300, 299, 1],
    [10, 9, 1],
    [9, 8, 0], // So short that it is left to expire.
  ] as const;
  for (const [ttl, age, want] of rows) {
    const bench = new PipelineBench();
    const message = response({ name: "www.example", type: 1, records: [a("www.example", ttl)] });
    bench.keep(q("www.example", 1), message, { ttl });
    const hash = bench.query.keyHash;
    bench.pipeline.nowSeconds += age;
    for (let i = 0; i < 3; i++) bench.ask(q("www.example", 1));
    assert.deepEqual(bench.refreshed, want === 1 ? [hash] : [], `${ttl} after ${age}`);
  }
});

Deno.test("Pipeline answers own, blocked and cached names without garbage", none, () => {
  const rewrite = "||rewritten.example^$dnsrewrite=192.0.2.1\n|10.*\n";
  const groups = { default: { lists: [...Object.keys(RULES), "rewrite"], safeSearch: true } };
  const bench = new PipelineBench(snapshotOf({ ...RULES, rewrite }, {}, { groups }));
  const kept = {
    "www.example": [a("www.example", 300)],
    "alias.example": [record("alias.example 300 CNAME www.example"), a("www.example", 300)],
    "tracked.example": [record(`tracked.example 300 CNAME ${N}`), a(N, 300)],
    "strict.bing.com": [a("strict.bing.com", 300)],
  };
  for (const [name, records] of Object.entries(kept)) {
    const message = response({ name, type: 1, records });
    const options = { ttl: 300, ttlOffsets: ttlOffsetsOf(message) };
    bench.keep(q(name, 1), message, options);
  }
  const packets = [
    q("health.svc.test", Qtype.A),
    q("x.svc.test", Qtype.A, EDNS),
    q(N, Qtype.A, EDNS),
    q(N, Qtype.HTTPS),
    q("www.example", 1),
    q("WWW.example", 1, { cd: false }),
    q(N, Qtype.ANY),
    q(N, Qtype.AXFR),
    q("alias.example", 1),
    q("tracked.example", 1, EDNS),
    q("rewritten.example", 1),
    q("mask.icloud.com", 1),
    q("www.bing.com", 1),
  ];
  const rounds = (count: number) => {
    for (let i = 0; i < count; i++) {
      for (const packet of packets) assert.equal(bench.decide(packet), Verdict.Send);
    }
  };
  rounds(5_000); // Compiled and warm.
  // The runtime itself takes some now and then, and gives it back; what answers left would be there
  // in every run, so two quiet ones of seven are proof.
  const deltas = Array.from({ length: 7 }, () => {
    const before = Deno.memoryUsage().heapUsed;
    rounds(25_000);
    return Math.abs(Deno.memoryUsage().heapUsed - before);
  }).sort((x, y) => x - y);
  // 325,000 answers: a third of a byte each.
  assert.ok(deltas[1] < 100_000, `the heap changed by ${deltas.join(", ")} bytes`);
});

Deno.test("Pipeline keeps a name apart from one with a dot or a zero inside a label", none, () => {
  const bench = new PipelineBench(snapshotOf({ custom: "||www.example^" }));
  assert.equal(bench.decide(q("www.example", 1)), Verdict.Send);
  for (const name of ["www\\.example", "www\\000.example", "\\119\\119\\119\\000.example"]) {
    assert.equal(bench.decide(encodeQuery(wire(name), 1)), Verdict.Resolve, name);
  }
});
