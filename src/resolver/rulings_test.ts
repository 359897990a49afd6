import assert from "node:assert/strict";
import { parseIp } from "../addr/mod.ts";
import { encodeQuery, parseQtype, Qtype } from "../dns/mod.ts";
import type { FakePolicy } from "../snapshot/fakes.ts";
import { SEARCH_ENGINES } from "../snapshot/mod.ts";
import { describe, PipelineBench, record, snapshotOf } from "./fakes.ts";
import { ForwarderBench } from "./forward/fakes.ts";
import { OUTCOME_NAMES } from "../logqueue/mod.ts";
import { Outcome } from "./outcome.ts";
import { Verdict } from "./verdict.ts";
import { Transport } from "./query.ts";

const none = { permissions: "none" } as const;

type Options = Parameters<typeof encodeQuery>[2];
const q = (name: string, type: number, options: Options = {}) =>
  encodeQuery(name, type, { id: 0xbeef, ...options });
const EDNS: Options = { edns: { payload: 1232 } };

function policyOf(policy: FakePolicy) {
  return snapshotOf(policy.lists ?? {}, {}, policy);
}

/** What becomes of a question that is answered at once, its outcome before the response. */
function told(bench: PipelineBench, question: string, options?: Options): string {
  const [name, typeName = "A"] = question.split(" ");
  const type = parseQtype(typeName);
  assert.ok(type !== null, question);
  const outcomes = OUTCOME_NAMES.map((_, i) => i as Outcome);
  const before = outcomes.map((one) => bench.outcomes(one));
  const response = describe(bench.ask(q(name, type, options)));
  const { outcome } = bench.query;
  // Each outcome is counted once, under its own name.
  for (const one of outcomes) {
    const more = one === outcome ? 1 : 0;
    assert.equal(bench.outcomes(one) - before[one], more, OUTCOME_NAMES[one]);
  }
  return `${OUTCOME_NAMES[outcome]}: ${response}`;
}

const RULES = {
  lists: {
    hosts: "192.0.2.10 nas.example\n192.0.2.11 nas.example\n2001:db8::10 nas.example\n" +
      "192.0.2.12 four.example\n",
    rewrites: "||one.example^$dnsrewrite=192.0.2.1\n||one.example^$dnsrewrite=192.0.2.2\n" +
      "||six.example^$dnsrewrite=2001:db8::6\n||gone.example^$dnsrewrite=NXDOMAIN\n" +
      "||no.example^$dnsrewrite=REFUSED\n||empty.example^$dnsrewrite=NOERROR\n" +
      "||both.example^$dnsrewrite=192.0.2.3\n||both.example^$important\n" +
      "||free.example^$dnsrewrite=192.0.2.4\n@@||free.example^$dnsrewrite\n",
  },
  records: ["alias.example CNAME one.example 30", "here.example CNAME nas.example"],
  settings: { block_ttl: 17 },
} satisfies FakePolicy;

const ONE = "one.example 17 A 192.0.2.1; one.example 17 A 192.0.2.2";
const RULED: readonly (readonly [string, string])[] = [
  ["one.example", `rewritten: NOERROR rd ra; ${ONE}`],
  ["ONE.Example", `rewritten: NOERROR rd ra; ${ONE.replaceAll("one.example", "ONE.Example")}`],
  ["below.one.example", `rewritten: NOERROR rd ra; ${ONE.replaceAll("one.", "below.one.")}`],
  ["one.example AAAA", "rewritten: NOERROR rd ra; one.example 17 SOA minimum 17"],
  ["one.example MX", "rewritten: NOERROR rd ra; one.example 17 SOA minimum 17"],
  ["one.example ANY", "rewritten: NOERROR rd ra; one.example 17 SOA minimum 17"],
  ["six.example AAAA", "rewritten: NOERROR rd ra; six.example 17 AAAA 2001:db8::6"],
  ["six.example", "rewritten: NOERROR rd ra; six.example 17 SOA minimum 17"],
  ["gone.example", "rewritten: NXDOMAIN rd ra; gone.example 17 SOA minimum 17"],
  ["gone.example TXT", "rewritten: NXDOMAIN rd ra; gone.example 17 SOA minimum 17"],
  ["no.example", "rewritten: REFUSED rd ra"],
  ["empty.example", "rewritten: NOERROR rd ra; empty.example 17 SOA minimum 17"],
  ["both.example", "rewritten: NOERROR rd ra; both.example 17 A 192.0.2.3"],
  [
    "nas.example",
    "rewritten: NOERROR rd ra; nas.example 17 A 192.0.2.10; nas.example 17 A 192.0.2.11",
  ],
  ["nas.example AAAA", "rewritten: NOERROR rd ra; nas.example 17 AAAA 2001:db8::10"],
  ["nas.example HTTPS", "rewritten: NOERROR rd ra; nas.example 17 SOA minimum 17"],
  ["four.example AAAA", "rewritten: NOERROR rd ra; four.example 17 SOA minimum 17"],
  ["alias.example", `rewritten: NOERROR rd ra; alias.example 30 CNAME one.example; ${ONE}`],
  [
    "here.example AAAA",
    "rewritten: NOERROR rd ra; here.example 300 CNAME nas.example; " +
    "nas.example 17 AAAA 2001:db8::10",
  ],
];

Deno.test("Pipeline answers by rewrites and hosts addresses", none, async (t) => {
  const bench = new PipelineBench(policyOf(RULES));
  for (const [question, want] of RULED) {
    await t.step(question, () => {
      assert.equal(told(bench, question), want);
      // A rewritten answer is none that was blocked: no extended error.
      assert.equal(told(bench, question, EDNS), `${want}; OPT`);
    });
  }
  for (const name of ["free.example", "below.nas.example", "example"]) {
    assert.equal(bench.decide(q(name, Qtype.A)), Verdict.Resolve, name);
    assert.equal(bench.query.isAllowed, false);
  }
  assert.equal(told(bench, "one.example"), RULED[0][1]);
  const { rule } = bench.query;
  assert.match(bench.pipeline.snapshot.decidedBy(rule).rule, /^\|\|one\.example\^\$dnsrewrite=/);
});

Deno.test("Pipeline answers all addresses of a name, or has it asked over TCP", none, () => {
  const lines = Array.from({ length: 250 }, (_, i) => `192.0.2.${i} many.example`);
  const bench = new PipelineBench(policyOf({ lists: { hosts: lines.join("\n") } }));
  assert.equal(told(bench, "many.example"), "rewritten: NOERROR tc rd ra");
  assert.equal(told(bench, "many.example", EDNS), "rewritten: NOERROR tc rd ra; OPT");
  const whole = describe(bench.ask(q("many.example", Qtype.A), Transport.Tcp));
  assert.equal(whole.match(/ A 192\.0\.2\.\d+/g)?.length, 250);
});

Deno.test("Pipeline keeps clients that look for a way around it", none, async (t) => {
  const soa = (name: string) => `${name} 10 SOA minimum 10`;
  const rows: readonly (readonly [string, string])[] = [
    ["use-application-dns.net", `NXDOMAIN rd ra; ${soa("use-application-dns.net")}`],
    ["USE-application-DNS.net AAAA", `NXDOMAIN rd ra; ${soa("USE-application-DNS.net")}`],
    ["use-application-dns.net TXT", `NXDOMAIN rd ra; ${soa("use-application-dns.net")}`],
    ["mask.icloud.com", `NXDOMAIN rd ra; ${soa("mask.icloud.com")}`],
    ["mask-h2.icloud.com AAAA", `NXDOMAIN rd ra; ${soa("mask-h2.icloud.com")}`],
    ["_dns.resolver.arpa SVCB", `NOERROR rd ra; ${soa("_dns.resolver.arpa")}`],
    ["x._dns.resolver.arpa SVCB", `NOERROR rd ra; ${soa("x._dns.resolver.arpa")}`],
    ["resolver.arpa A", `NOERROR rd ra; ${soa("resolver.arpa")}`],
  ];
  // A list's null address would say: go on.
  const lists = { ads: "|mask.icloud.com^\n||use-application-dns.net^\n" };
  for (const policy of [{}, { lists }, { settings: { protection: false } }]) {
    const bench = new PipelineBench(policyOf(policy));
    for (const [question, want] of rows) {
      await t.step(`${JSON.stringify(policy)} ${question}`, () => {
        assert.equal(told(bench, question), `local: ${want}`);
        assert.equal(bench.query.rule, -1);
      });
    }
    for (const name of ["icloud.com", "a.mask.icloud.com", "dns.net", "xresolver.arpa", "arpa"]) {
      assert.equal(bench.decide(q(name, Qtype.A)), Verdict.Resolve, name);
    }
  }
  await t.step("what the operator says of one goes before", () => {
    const own = new PipelineBench(policyOf({
      records: ["mask.icloud.com A 192.0.2.1"],
      rules: ["@@||mask-h2.icloud.com^", "||use-application-dns.net^$dnsrewrite=192.0.2.2"],
    }));
    assert.match(told(own, "mask.icloud.com"), /^local: NOERROR .* 300 A 192\.0\.2\.1$/);
    assert.match(told(own, "use-application-dns.net"), /^rewritten: NOERROR .* A 192\.0\.2\.2$/);
    assert.equal(own.decide(q("mask-h2.icloud.com", Qtype.A)), Verdict.Resolve);
  });
});

const KIDS = "192.0.2.77";
const SAFE: FakePolicy = {
  groups: { default: {}, kids: { safeSearch: true }, free: { filtering: false, safeSearch: true } },
  clients: {
    tablet: { addresses: [KIDS], group: "kids" },
    server: { addresses: ["192.0.2.78"], group: "free" },
  },
  settings: { block_ttl: 17 },
};

Deno.test("Pipeline leads search engines to their safe hosts", none, async (t) => {
  for (const { name, hosts: [host], safe } of SEARCH_ENGINES) {
    if (parseIp(safe) !== null) continue;
    await t.step(name, () => {
      const bench = new ForwarderBench({ snapshot: policyOf(SAFE) });
      const cname = `${host} 17 CNAME ${safe}`;
      const rows = [
        ["A", "A 192.0.2.1"],
        ["AAAA", "AAAA 2001:db8::1"],
        ["HTTPS", 'HTTPS 1 . alpn="h2"'],
      ] as const;
      for (const [typeName, data] of rows) {
        const type = Qtype[typeName];
        const client = bench.ask(host, { type, from: KIDS });
        assert.equal(bench.last.message.questions[0].name.toLowerCase(), safe);
        assert.equal(bench.last.message.questions[0].type, type);
        bench.answer(bench.last, { records: [record(`${safe} 60 ${data}`)] });
        const want = `NOERROR rd ra; ${cname}; ${safe} 60 ${data}`;
        assert.equal(client.answer, want);
        assert.equal(client.outcome, Outcome.SafeSearch);
        // Again from the cache, and whoever asks for the safe host itself finds the same.
        const cached = bench.ask(host, { type, from: KIDS });
        assert.equal(cached.answer, want);
        const itself = bench.ask(safe, { type, from: KIDS });
        assert.equal(itself.answer, `NOERROR rd ra; ${safe} 60 ${data}`);
      }
      assert.equal(bench.outcomes(Outcome.SafeSearch), 2 * rows.length);
      const sent = bench.sent.length;
      bench.ask(host, { type: Qtype.MX, from: KIDS });
      assert.equal(bench.sent.length, sent + 1);
      assert.equal(bench.last.message.questions[0].name.toLowerCase(), host, "others pass");
    });
  }
  await t.step("an engine without a host answers by its address", () => {
    const bench = new PipelineBench(policyOf(SAFE));
    const from = parseIp(KIDS)!;
    const ask = (type: number) => describe(bench.ask(q("ya.ru", type), Transport.Udp, from));
    assert.equal(ask(Qtype.A), "NOERROR rd ra; ya.ru 17 A 213.180.193.56");
    assert.equal(bench.query.outcome, Outcome.SafeSearch);
    assert.equal(ask(Qtype.AAAA), "NOERROR rd ra; ya.ru 17 SOA minimum 17");
    assert.equal(ask(Qtype.HTTPS), "NOERROR rd ra; ya.ru 17 SOA minimum 17");
    assert.equal(bench.outcomes(Outcome.SafeSearch), 3);
    assert.equal(bench.decide(q("ya.ru", Qtype.TXT), Transport.Udp, from), Verdict.Resolve);
  });
  await t.step("other groups search as they like", () => {
    const bench = new PipelineBench(policyOf(SAFE));
    for (const from of ["192.0.2.1", "192.0.2.78"]) {
      const verdict = bench.decide(q("ya.ru", Qtype.A), Transport.Udp, parseIp(from)!);
      assert.equal(verdict, Verdict.Resolve, from);
    }
    bench.pipeline.snapshot = policyOf({ ...SAFE, settings: { protection: false } });
    assert.equal(bench.decide(q("ya.ru", Qtype.A), Transport.Udp, parseIp(KIDS)!), Verdict.Resolve);
  });
});

Deno.test("Pipeline has records and rules decide before safe search", none, async (t) => {
  const kids = { ...SAFE, groups: { ...SAFE.groups, default: { safeSearch: true } } };
  const rows: readonly (readonly [string, FakePolicy, string])[] = [
    ["a record", { records: ["ya.ru A 192.0.2.1"] }, "local: NOERROR rd ra; ya.ru 300 A 192.0.2.1"],
    ["a block", { rules: ["||ya.ru^"] }, "blocked: NOERROR rd ra; ya.ru 17 A 0.0.0.0"],
    [
      "a rewrite",
      { rules: ["|ya.ru^$dnsrewrite=192.0.2.3"] },
      "rewritten: NOERROR rd ra; ya.ru 17 A 192.0.2.3",
    ],
    // It allows the name, and search engines are what safe search is for.
    [
      "an exception",
      { rules: ["@@||ya.ru^"] },
      "safe_search: NOERROR rd ra; ya.ru 17 A 213.180.193.56",
    ],
    [
      "a CNAME of ours",
      { records: ["search.example CNAME ya.ru"] },
      "safe_search: NOERROR rd ra; ya.ru 17 A 213.180.193.56",
    ],
    [
      "a record of the safe host",
      { records: ["strict.bing.com A 192.0.2.9"] },
      "safe_search: NOERROR rd ra; ya.ru 17 A 213.180.193.56",
    ],
  ];
  for (const [what, policy, want] of rows) {
    await t.step(what, () => {
      const bench = new PipelineBench(policyOf({ ...kids, ...policy }));
      assert.equal(told(bench, "ya.ru"), want);
    });
  }
  const bench = new PipelineBench(policyOf({
    ...kids,
    records: ["strict.bing.com A 192.0.2.9", "search.example CNAME www.bing.com 30"],
  }));
  assert.equal(
    told(bench, "search.example"),
    "safe_search: NOERROR rd ra; search.example 30 CNAME www.bing.com; " +
      "www.bing.com 17 CNAME strict.bing.com; strict.bing.com 300 A 192.0.2.9",
  );
  assert.equal(
    told(bench, "search.example AAAA"),
    "safe_search: NOERROR rd ra; search.example 30 CNAME www.bing.com; " +
      "www.bing.com 17 CNAME strict.bing.com; strict.bing.com 17 SOA minimum 17",
  );
});

Deno.test("Pipeline bounds chains that safe search adds to", none, () => {
  const hops = (count: number, last: string) =>
    Array.from({ length: count }, (_, i) => {
      return `h${i}.example CNAME ${i === count - 1 ? last : `h${i + 1}.example`}`;
    });
  const groups = { default: { safeSearch: true } };
  const longest = new PipelineBench(policyOf({
    groups,
    records: [...hops(8, "www.bing.com"), "strict.bing.com A 192.0.2.9"],
  }));
  const shown = told(longest, "h0.example", EDNS);
  assert.match(shown, /^safe_search: NOERROR rd ra; .*strict\.bing\.com 300 A 192\.0\.2\.9; OPT$/);
  assert.equal(shown.match(/CNAME/g)?.length, 9);
  const tooLong = new PipelineBench(policyOf({
    groups,
    records: [
      ...hops(8, "www.bing.com"),
      "strict.bing.com CNAME nas.example",
      "nas.example A 192.0.2.1",
    ],
  }));
  assert.match(told(tooLong, "h0.example"), /^failed: SERVFAIL/);
});

Deno.test("Pipeline notes the outcome of each query", none, () => {
  const bench = new PipelineBench(policyOf({ rules: ["||ads.example^", "@@||ok.example^"] }));
  assert.match(told(bench, "health.svc.test"), /^local:/);
  assert.match(told(bench, "ads.example"), /^blocked:/);
  assert.match(told(bench, "www.example IXFR"), /^refused: REFUSED/);
  assert.match(told(bench, "www.example", { rd: false }), /^refused: REFUSED/);
  assert.equal(bench.decide(q("ok.example", Qtype.A)), Verdict.Resolve);
  assert.equal(bench.query.isAllowed, true);
  assert.equal(bench.pipeline.snapshot.decidedBy(bench.query.rule).rule, "@@||ok.example^");
  // The next query starts anew.
  assert.equal(bench.decide(q("other.example", Qtype.A)), Verdict.Resolve);
  assert.deepEqual([bench.query.isAllowed, bench.query.rule], [false, -1]);
});
