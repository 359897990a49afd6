import assert from "node:assert/strict";
import { AD_BIT, QR_BIT, Qtype, RA_BIT, RD_BIT } from "../dns/mod.ts";
import { type FakePolicy, policyData } from "../snapshot/fakes.ts";
import { DEFAULT_GROUP, Snapshot } from "../snapshot/mod.ts";
import { Counter } from "../telemetry/mod.ts";
import { AnswerFilter } from "./answers.ts";
import { edeData, record, response, SEED, snapshotOf, START_SECONDS } from "./fakes.ts";
import { ForwarderBench, quietly } from "./forward/fakes.ts";
import { Outcome } from "./outcome.ts";

const none = { permissions: "none" } as const;

const KIDS = "192.0.2.77";
const FREE = "192.0.2.78";
/** Three groups: of one list, of two, and without a filter. */
const GROUPS: FakePolicy = {
  groups: {
    default: { lists: ["ads"] },
    kids: { lists: ["ads", "adult"] },
    free: { filtering: false },
  },
  clients: {
    tablet: { addresses: [KIDS], group: "kids" },
    server: { addresses: [FREE], group: "free" },
  },
};
const LISTS = {
  ads: "||tracker.test^\n@@||good.tracker.test^\n|198.51.100.7^\n",
  adult: "||adult.test^\n",
};

function policyOf(policy: FakePolicy, generation = 1): Snapshot {
  const data = policyData({ lists: LISTS, ...GROUPS, ...policy }, SEED, generation);
  return new Snapshot(data, START_SECONDS * 1_000);
}

const N = "www.example";
const OK = "NOERROR rd ra";

/** A chain from the asked name over others to an address. */
function chain(...names: string[]): string[] {
  const all = [N, ...names];
  return [
    ...names.map((name, i) => `${all[i]} 300 CNAME ${name}`),
    `${all.at(-1)} 300 A 192.0.2.1`,
  ];
}

interface Asked {
  readonly policy?: FakePolicy;
  readonly answers: readonly string[];
  readonly type?: number;
}

/** What a client is told by a fresh answer and by the cached one, which have to agree; in short. */
function told({ policy = {}, answers, type = Qtype.A }: Asked, from?: string): string {
  const bench = new ForwarderBench({ snapshot: policyOf(policy), rebinding: null });
  const options = { type, edns: {}, ...(from !== undefined && { from }) };
  const client = bench.ask(N, options);
  bench.answer(bench.last, { records: answers.map(record) });
  const cached = bench.ask(N, options);
  assert.equal(bench.sent.length, 1);
  assert.equal(cached.answer, client.answer, "from the cache as from upstream");
  const isBlocked = / Blocked: /.test(client.answer);
  assert.equal(client.outcome, isBlocked ? Outcome.Blocked : Outcome.Forwarded);
  const counts = [Outcome.Blocked, Outcome.Forwarded, Outcome.Cached].map((o) => bench.outcomes(o));
  assert.deepEqual(counts, isBlocked ? [2, 0, 0] : [0, 1, 1]);
  bench.checkIdle();
  return isBlocked
    ? client.answer.replace(`${OK}; ${N} 10 `, "").replace("OPT Blocked: ", "")
    : "passes";
}

const NULL_BY = (rule: string) => `A 0.0.0.0; ${rule}`;

Deno.test("AnswerFilter blocks answers by the names of their chain", none, async (t) => {
  const rows: readonly (readonly [string, Asked, string])[] = [
    ["no chain", { answers: chain() }, "passes"],
    ["a chain of others", { answers: chain("a.cdn.test", "b.cdn.test") }, "passes"],
    ["the first", { answers: chain("x.tracker.test") }, NULL_BY("||tracker.test^ (ads)")],
    ["the name itself", { answers: chain("TRACKER.test") }, NULL_BY("||tracker.test^ (ads)")],
    [
      "one in the middle",
      { answers: chain("a.cdn.test", "x.tracker.test", "b.cdn.test") },
      NULL_BY("||tracker.test^ (ads)"),
    ],
    [
      "the last",
      { answers: chain("a.cdn.test", "tracker.test") },
      NULL_BY("||tracker.test^ (ads)"),
    ],
    ["an exception for that one", { answers: chain("x.good.tracker.test") }, "passes"],
    [
      "an exception for one of two",
      { answers: chain("good.tracker.test", "bad.tracker.test") },
      NULL_BY("||tracker.test^ (ads)"),
    ],
    ["a list of another group", { answers: chain("adult.test") }, "passes"],
    [
      "a custom rule",
      { policy: { rules: ["|cdn.test^"] }, answers: chain("cdn.test") },
      NULL_BY("|cdn.test^ (custom rules)"),
    ],
    [
      "an exception for the asked name",
      { policy: { rules: [`@@|${N}^`] }, answers: chain("x.tracker.test") },
      "passes",
    ],
    [
      "a rewrite is about names asked for",
      { policy: { rules: ["||cdn.test^$dnsrewrite=192.0.2.9"] }, answers: chain("cdn.test") },
      "passes",
    ],
    ["protection off", {
      policy: { settings: { protection: false } },
      answers: chain("tracker.test"),
    }, "passes"],
    [
      "a blocked service",
      {
        policy: {
          lists: { ...LISTS, "service:tube": "||tube.test^\n" },
          groups: { default: { lists: ["ads"], services: ["tube"] } },
          clients: {},
          rules: ["@@||tube.test^"],
        },
        answers: chain("x.tube.test"),
      },
      NULL_BY("||tube.test^ (service:tube)"),
    ],
  ];
  for (const [what, asked, want] of rows) await t.step(what, () => assert.equal(told(asked), want));
  await t.step("the form that the settings say", () => {
    const cname = `${N} 300 CNAME tracker.test`;
    const form = (settings: NonNullable<FakePolicy["settings"]>, data = "A 192.0.2.1") => {
      const type = Qtype[data.split(" ")[0] as keyof typeof Qtype];
      return told({ policy: { settings }, answers: [cname, `tracker.test 60 ${data}`], type });
    };
    const rule = "||tracker.test^ (ads)";
    const refused = `REFUSED rd ra; ${rule}`;
    assert.equal(form({ block_response: "refused" }), refused);
    assert.equal(
      form({ block_response: "nxdomain" }),
      `NXDOMAIN rd ra; ${N} 10 SOA minimum 10; ${rule}`,
    );
    assert.equal(form({}, "AAAA 2001:db8::1"), `AAAA ::; ${rule}`);
    assert.equal(form({}, "HTTPS 1 . alpn=h2"), `SOA minimum 10; ${rule}`);
  });
});

Deno.test("AnswerFilter blocks answers by their addresses", none, async (t) => {
  const rules = ["|10.*", "|192.0.2.5", "|2001:db8::bad", "@@|10.1.*", "|10.1.2.*$important"];
  const rows: readonly (readonly [string, Asked, string])[] = [
    ["no rule", { answers: [`${N} 60 A 192.0.2.1`] }, "passes"],
    ["a list's", { answers: [`${N} 60 A 198.51.100.7`] }, NULL_BY("|198.51.100.7^ (ads)")],
    ["a prefix", { answers: [`${N} 60 A 10.9.8.7`] }, NULL_BY("|10.* (custom rules)")],
    ["an address", { answers: [`${N} 60 A 192.0.2.5`] }, NULL_BY("|192.0.2.5 (custom rules)")],
    [
      "one of several",
      { answers: [`${N} 60 A 192.0.2.1`, `${N} 60 A 10.0.0.1`, `${N} 60 A 192.0.2.2`] },
      NULL_BY("|10.* (custom rules)"),
    ],
    ["an exception", { answers: [`${N} 60 A 10.1.0.1`] }, "passes"],
    [
      "an important block",
      { answers: [`${N} 60 A 10.1.2.3`] },
      NULL_BY("|10.1.2.*$important (custom rules)"),
    ],
    [
      "IPv6",
      { answers: [`${N} 60 AAAA 2001:db8::bad`], type: Qtype.AAAA },
      "AAAA ::; |2001:db8::bad (custom rules)",
    ],
    ["other IPv6", { answers: [`${N} 60 AAAA 2001:db8::1`], type: Qtype.AAAA }, "passes"],
    [
      "an IPv4 hint",
      { answers: [`${N} 60 HTTPS 1 . alpn=h2 ipv4hint=192.0.2.1,10.0.0.1`], type: Qtype.HTTPS },
      "SOA minimum 10; |10.* (custom rules)",
    ],
    [
      "an IPv6 hint",
      { answers: [`${N} 60 SVCB 1 . ipv6hint=2001:db8::bad`], type: Qtype.SVCB },
      "SOA minimum 10; |2001:db8::bad (custom rules)",
    ],
    ["hints of others", {
      answers: [`${N} 60 HTTPS 1 . ipv4hint=192.0.2.1 ipv6hint=2001:db8::1`],
      type: Qtype.HTTPS,
    }, "passes"],
  ];
  for (const [what, asked, want] of rows) {
    await t.step(what, () => assert.equal(told({ policy: { rules }, ...asked }), want));
  }
  await t.step("an exception for the asked name", () => {
    const policy = { rules: [...rules, `@@||${N}^`] };
    assert.equal(told({ policy, answers: [`${N} 60 A 10.0.0.1`] }), "passes");
  });
});

Deno.test("Pipeline holds one cached answer against each client's own rules", none, () => {
  const bench = new ForwarderBench({ snapshot: policyOf({}) });
  const answer = `${OK}; ${N} 300 CNAME adult.test; adult.test 300 A 192.0.2.1`;
  const first = bench.ask(N);
  bench.answer(bench.last, { records: chain("adult.test").map(record) });
  assert.equal(first.answer, answer);
  for (let i = 0; i < 3; i++) {
    assert.equal(bench.ask(N).answer, answer);
    assert.equal(bench.ask(N, { from: KIDS }).answer, `${OK}; ${N} 10 A 0.0.0.0`);
    assert.equal(bench.ask(N, { from: FREE }).answer, answer);
  }
  assert.equal(bench.sent.length, 1);
  assert.deepEqual([bench.outcomes(Outcome.Blocked), bench.outcomes(Outcome.Cached)], [3, 6]);
});

Deno.test("Pipeline gives each who waits for one answer what its rules say", none, () => {
  const bench = new ForwarderBench({ snapshot: policyOf({}) });
  const clients = [undefined, KIDS, FREE, KIDS].map((from) => {
    return bench.ask(N, from === undefined ? {} : { from });
  });
  assert.equal(bench.sent.length, 1);
  bench.answer(bench.last, { records: chain("adult.test").map(record) });
  const outcomes = clients.map(({ outcome }) => outcome);
  const { Forwarded, Blocked } = Outcome;
  assert.deepEqual(outcomes, [Forwarded, Blocked, Forwarded, Blocked]);
  assert.deepEqual(
    clients.map(({ answer }) => answer.includes("0.0.0.0")),
    [false, true, false, true],
  );
  assert.equal(bench.front.pipeline.snapshot.decidedBy(clients[1].rule).rule, "||adult.test^");
  assert.deepEqual([bench.outcomes(Outcome.Forwarded), bench.outcomes(Outcome.Blocked)], [2, 2]);
});

Deno.test("Pipeline holds cached answers against a new snapshot at once", none, () => {
  const bench = new ForwarderBench({ snapshot: policyOf({}) });
  const { pipeline } = bench.front;
  bench.ask(N);
  bench.answer(bench.last, { records: chain("cdn.test").map(record) });
  const isBlocked = () => bench.ask(N).answer.includes("0.0.0.0");
  assert.equal(isBlocked(), false);
  pipeline.snapshot = policyOf({ rules: ["||cdn.test^"] }, 2);
  assert.equal(isBlocked(), true);
  pipeline.snapshot = policyOf({ rules: ["|192.0.2.1"] }, 3);
  assert.equal(isBlocked(), true);
  pipeline.snapshot = policyOf({}, 4);
  assert.equal(isBlocked(), false);
  assert.equal(bench.sent.length, 1);
});

Deno.test("Pipeline finds new rules about addresses for an entry without a CNAME", none, () => {
  const bench = new ForwarderBench({ snapshot: policyOf({}) });
  const { pipeline } = bench.front;
  bench.ask(N);
  bench.answer(bench.last, { records: chain().map(record) });
  const isBlocked = () => bench.ask(N).answer.includes("0.0.0.0");
  const rows: [rules: string[], isBlocked: boolean][] = [
    [[], false],
    [["||cdn.test^"], false], // Marked by now: no rule about a name can be about it.
    [["|192.0.2.1"], true],
    [["||cdn.test^"], false],
    [["|192.0.*"], true],
    [[`||${N.replace(/\.$/, "")}^`], true],
    [[], false],
  ];
  for (const [i, [rules, want]] of rows.entries()) {
    pipeline.snapshot = policyOf({ rules }, 2 + i);
    assert.deepEqual([isBlocked(), isBlocked()], [want, want], rules.join());
  }
  assert.equal(bench.sent.length, 1);
});

Deno.test(
  "Pipeline goes by the schedule in force for entries that it has seen before",
  none,
  () => {
    const days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
    const schedules = {
      noon: { time_zone: "UTC", windows: [{ days: [...days], start: "12:00", end: "13:00" }] },
    };
    const snapshot = policyOf({
      groups: { default: { lists: ["adult@noon"] } },
      clients: {},
      schedules,
    });
    const bench = new ForwarderBench({ snapshot });
    const at = (hour: number) => snapshot.evaluate(Date.UTC(2027, 0, 1, hour));
    at(11);
    bench.ask(N);
    bench.answer(bench.last, { records: chain("adult.test").map(record) });
    const isBlocked = () => bench.ask(N).answer.includes("0.0.0.0");
    assert.equal(isBlocked(), false);
    at(12);
    assert.equal(isBlocked(), true, "nothing was built, and the list holds");
    at(13);
    assert.equal(isBlocked(), false);
  },
);

Deno.test("Pipeline knows a waiting client's group after a new snapshot", none, () => {
  const bench = new ForwarderBench({ snapshot: policyOf({}) });
  const client = bench.ask(N, { from: KIDS });
  // Its group is gone, and its number with it; the rules are others.
  bench.front.pipeline.snapshot = policyOf(
    { groups: { default: { lists: ["ads"] } }, clients: {} },
    2,
  );
  bench.answer(bench.last, { records: chain("adult.test").map(record) });
  assert.equal(client.outcome, Outcome.Forwarded);
  const second = bench.ask("b.example", { from: KIDS });
  bench.front.pipeline.snapshot = policyOf({}, 3);
  bench.answer(bench.last, {
    records: ["b.example 60 CNAME adult.test", "adult.test 60 A 192.0.2.1"].map(record),
  });
  assert.equal(second.outcome, Outcome.Blocked);
});

Deno.test("Pipeline looks through answers that our own records lead to", none, () => {
  const bench = new ForwarderBench({
    snapshot: policyOf({
      records: ["own.example CNAME www.example 30"],
      groups: { default: { lists: ["ads"], safeSearch: true } },
      clients: {},
    }),
  });
  const own = bench.ask("own.example", { edns: {} });
  bench.answer(bench.last, { records: chain("x.tracker.test").map(record) });
  const blocked = `${OK}; own.example 30 CNAME www.example; www.example 10 A 0.0.0.0; ` +
    "OPT Blocked: ||tracker.test^ (ads)";
  assert.equal(own.answer, blocked);
  assert.equal(bench.ask("own.example", { edns: {} }).answer, blocked);
  const safe = bench.ask("www.bing.com");
  bench.answer(bench.last, {
    records: ["strict.bing.com 60 CNAME b.tracker.test", "b.tracker.test 60 A 192.0.2.1"].map(
      record,
    ),
  });
  assert.match(safe.answer, /strict\.bing\.com 10 A 0\.0\.0\.0$/);
  assert.equal(safe.outcome, Outcome.Blocked);
});

Deno.test(
  "Pipeline relays an upstream's extended error unchanged, but for blocked answers",
  none,
  () => {
    const bench = new ForwarderBench({ snapshot: policyOf({}) });
    const opt = [{ code: 15, data: edeData(17, "filtered upstream") }];
    const passes = bench.ask(N, { edns: {} });
    bench.answer(bench.last, { records: chain("cdn.test").map(record), opt });
    assert.match(passes.answer, /OPT Filtered: filtered upstream$/);
    assert.match(bench.ask(N, { edns: {} }).answer, /OPT Filtered: filtered upstream$/);
    const blocked = bench.ask("b.example", { edns: {} });
    bench.answer(bench.last, {
      records: ["b.example 60 CNAME tracker.test", "tracker.test 60 A 192.0.2.1"].map(record),
      opt,
    });
    assert.match(blocked.answer, /OPT Blocked: \|\|tracker\.test\^ \(ads\)$/);
  },
);

Deno.test("Forwarder keeps no private address of a public name", none, () => {
  const answers = [`${N} 60 A 192.168.0.1`, `${N} 60 A 192.0.2.1`].map(record);
  const bench = new ForwarderBench({ upstreams: { a: [], b: ["corp.example"] } });
  const client = bench.ask(N, { ad: true });
  bench.answer(bench.last, { records: answers, flags: QR_BIT | RD_BIT | RA_BIT | AD_BIT });
  assert.equal(client.answer, `${OK}; ${N} 60 A 192.0.2.1`);
  bench.advance(10_000);
  assert.equal(bench.ask(N).answer, `${OK}; ${N} 50 A 192.0.2.1`);
  const bare = bench.ask("bare.example");
  bench.answer(bench.last, { records: [record("bare.example 60 A 10.0.0.1")] });
  assert.equal(bare.answer, OK);
  // An operator that has a domain asked elsewhere wants that network's addresses.
  const corp = bench.ask("nas.corp.example");
  bench.answer(bench.last, { records: [record("nas.corp.example 60 A 10.0.0.1")] });
  assert.equal(corp.answer, `${OK}; nas.corp.example 60 A 10.0.0.1`);
  const off = new ForwarderBench({ rebinding: null });
  const kept = off.ask(N);
  off.answer(off.last, { records: answers });
  assert.equal(kept.answer, `${OK}; ${N} 60 A 192.168.0.1; ${N} 60 A 192.0.2.1`);
});

Deno.test("Pipeline blocks by private addresses that are taken out of the response", none, () => {
  const snapshot = snapshotOf({ ads: "|10.*\n@@|10.0.0.2\n|fd00::1\n" });
  const bench = new ForwarderBench({ snapshot });
  const rows = [
    [N, ["A 192.0.2.1", "A 10.9.9.9"], `${N} 10 A 0.0.0.0`],
    ["excepted.example", ["A 10.0.0.2", "A 192.0.2.1"], "excepted.example 60 A 192.0.2.1"],
    ["other.example", ["A 192.168.0.1", "A 192.0.2.1"], "other.example 60 A 192.0.2.1"],
  ] as const;
  for (const [name, lines, want] of rows) {
    const fresh = bench.ask(name);
    bench.answer(bench.last, { records: lines.map((line) => record(`${name} 60 ${line}`)) });
    assert.equal(fresh.answer, `${OK}; ${want}`);
    assert.equal(bench.ask(name).answer, `${OK}; ${want}`, "from the cache as well");
  }
});

Deno.test("Pipeline answers what it can't check as on_failure says", none, () => {
  const snapshot = policyOf({});
  snapshot.match = () => {
    throw new Error("broken on purpose");
  };
  const bench = new ForwarderBench({ snapshot });
  const { lines } = quietly(() => {
    const client = bench.ask(N);
    bench.answer(bench.last, { records: chain("tracker.test").map(record) });
    assert.match(client.answer, /A 192\.0\.2\.1$/);
    assert.match(bench.ask(N).answer, /A 192\.0\.2\.1$/);
  });
  assert.equal(bench.count(Counter.FilterFailures), 2);
  assert.equal(lines.length, 1);
});

Deno.test("AnswerFilter.isClean says whether any rule is about what a message holds", none, () => {
  const filter = new AnswerFilter(SEED);
  const snapshot = snapshotOf(
    { ads: "||tracker.test^\n@@||fine.test^\n|10.*\n" },
    {},
    { groups: { default: {} } },
  );
  const clean = (...lines: string[]) => {
    const message = response({ name: N, type: 1, records: lines.map(record) });
    // The group has no list: nothing is blocked, whatever rules there are.
    const rule = filter.blockingRule(message, message.length, snapshot, DEFAULT_GROUP);
    assert.equal(rule, -1);
    return filter.isClean;
  };
  assert.equal(clean(...chain()), true);
  assert.equal(clean(...chain("cdn.test")), true);
  assert.equal(clean(...chain("cdn.test", "tracker.test")), false);
  assert.equal(clean(...chain("fine.test")), false, "an exception may hide a block");
  assert.equal(clean(`${N} 60 A 10.0.0.1`), false);
  assert.equal(clean(`${N} 60 HTTPS 1 . ipv4hint=10.0.0.1`), false);
  assert.equal(clean(`${N} 60 A 192.0.2.1`), true);
});
