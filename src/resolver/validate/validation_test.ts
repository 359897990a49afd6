// Goal: an answer is proven before it is anybody's, whichever source brings it, and whoever asks
// otherwise gets what he asked for. Method: the forwarder over zones that are signed here.
import assert from "node:assert/strict";
import { Qtype, Rcode } from "../../dns/mod.ts";
import type { RrSet } from "../../dnssec/mod.ts";
import { FakeKey } from "../../dnssec/fakes.ts";
import { Counter } from "../../telemetry/mod.ts";
import { wire } from "../fakes.ts";
import { DnssecState } from "../query.ts";
import { RebindingProtection } from "../rebinding.ts";
import { WAITING_MAX } from "./check_queue.ts";
import { RUNNING_MAX } from "./validation.ts";
import { TIMES, ValidationBench } from "./fakes.ts";

const none = { permissions: "none" } as const;
const WWW = "www.test 300 IN A 192.0.2.1";
const SOA = "test 300 IN SOA ns.test. host.test. 1 2 3 4 60";
const DO = { edns: { dnssecOk: true } } as const;
const { plain } = ValidationBench;

/** A zone with one signed address. */
function benchOf(...options: ConstructorParameters<typeof ValidationBench>): ValidationBench {
  const bench = new ValidationBench(...options);
  bench.said.set("www.test A", { answer: [bench.signed(WWW)] });
  const nsec = bench.signed("www.test 60 IN NSEC test. A RRSIG NSEC");
  bench.said.set("www.test DS", { authority: [bench.signed(SOA), nsec] });
  return bench;
}

/** The RRset with its first signature spoilt. */
function spoilt(rrset: RrSet): RrSet {
  const [signature, ...others] = rrset.signatures;
  const last = signature.length - 1;
  return { ...rrset, signatures: [signature.with(last, signature[last] ^ 1), ...others] };
}

Deno.test("Validation hands out AD and proofs to who asks for them", none, async () => {
  const bench = benchOf();
  const address = "www.test 300 A 192.0.2.1";
  const first = await bench.ask("www.test");
  assert.equal(first.answer, `NOERROR rd ra; ${address}`);
  assert.equal(first.dnssec, DnssecState.Secure);
  assert.deepEqual(bench.news(), ["a www.test A cd", "a test DNSKEY cd"]);
  assert.equal((await bench.ask("www.test", { ad: true })).answer, `NOERROR rd ra ad; ${address}`);
  assert.deepEqual(bench.news(), [], "out of the cache");
  const signed = new RegExp(`^NOERROR rd ra ad; ${address}; www.test 300 RRSIG A 15 .*OPT do$`);
  assert.match((await bench.ask("www.test", DO)).answer, signed);
  assert.deepEqual(bench.news(), ["a www.test A cd"], "the zone's keys are known by now");
  assert.match((await bench.ask("www.test", DO)).answer, signed);
  assert.equal(bench.bench.count(Counter.DnssecSecure), 2);
  bench.bench.checkIdle();
});

Deno.test(
  "Validation refuses what is bogus once another upstream says the same",
  none,
  async () => {
    const bench = benchOf();
    bench.said.set("www.test A", { answer: [spoilt(bench.signed(WWW))] });
    const why = new RegExp(
      "^SERVFAIL rd ra; OPT DNSSEC Bogus: www.test A: the signature of key \\d+ does not fit$",
    );
    const refused = await bench.ask("www.test", { edns: {} });
    assert.match(refused.answer, why);
    assert.equal(refused.dnssec, DnssecState.Bogus);
    // The second time without CD: an upstream that validates may find something better.
    assert.deepEqual(bench.news(), ["a www.test A cd", "a test DNSKEY cd", "b www.test A"]);
    assert.equal(bench.bench.count(Counter.DnssecBogus), 1);
    // It is remembered for a while.
    assert.match((await bench.ask("www.test", { edns: {} })).answer, why);
    bench.bench.advance(29_000);
    await bench.ask("www.test");
    assert.deepEqual(bench.news(), []);
    bench.bench.advance(2_000);
    await bench.ask("www.test");
    assert.equal(bench.news().length, 2);
    bench.bench.checkIdle();
  },
);

Deno.test("Validation takes what another upstream can prove", none, async () => {
  const bench = benchOf();
  bench.said.set("a www.test A", { answer: [plain(WWW)] }); // It leaves signatures out.
  assert.match((await bench.ask("www.test", DO)).answer, /^NOERROR rd ra ad; www.test 300 A/);
  const chain = ["a test DNSKEY cd", "a www.test DS cd"];
  assert.deepEqual(bench.news(), ["a www.test A cd", ...chain, "b www.test A"]);
  bench.bench.checkIdle();
});

Deno.test("Validation says how many go on by themselves", none, async () => {
  const bench = benchOf();
  const { validation, threads } = bench;
  const seen = new Set<number>();
  threads.isHeld = true;
  bench.bench.ask("www.test", { edns: {} });
  // Until it waits for a thread, by way of the questions for its chain.
  for (let i = 0; i < 100 && threads.sent.length === 0; i++) {
    await bench.settle();
    seen.add(validation.busy);
  }
  assert.deepEqual([threads.sent.length, [...seen]], [1, [0]], "it waits whenever all has settled");
  threads.step(bench.checks);
  assert.equal(validation.busy, 1, "before anything that has awaited the result runs");
  threads.isHeld = false;
  for (let i = 0; i < 100 && validation.active > 0; i++) await bench.settle();
  assert.deepEqual([validation.active, validation.busy], [0, 0]);
  // One that is given up is not counted either, whatever it waits for.
  threads.isHeld = true;
  bench.bench.ask("other.test", { edns: {} });
  for (let i = 0; i < 200 && validation.active > 0; i++) {
    await bench.settle();
    bench.bench.advance(50);
  }
  assert.deepEqual([validation.active, validation.busy], [0, 0]);
});

Deno.test("Validation says what was bogus where nobody else answers", none, async () => {
  const bench = benchOf();
  bench.said.set("a www.test A", { answer: [plain(WWW)] });
  bench.said.delete("www.test A");
  const client = bench.bench.ask("www.test", { edns: {} });
  for (let i = 0; i < 200 && client.answer === ""; i++) {
    await bench.settle();
    bench.bench.advance(50);
  }
  assert.match(client.answer, /^SERVFAIL rd ra; OPT RRSIGs Missing: www.test A: not signed/);
  bench.bench.checkIdle();
});

Deno.test(
  "Validation leaves what is exempt, or asked for with CD, as it was found",
  none,
  async () => {
    const bench = benchOf();
    const bad = spoilt(bench.signed(WWW));
    bench.said.set("www.test A", { answer: [bad] });
    const unchecked = await bench.ask("www.test", { cd: true, ad: true, ...DO });
    assert.match(unchecked.answer, /^NOERROR rd ra cd; www.test 300 A 192.0.2.1; .*RRSIG/);
    assert.deepEqual(bench.news(), ["a www.test A cd"], "nothing is checked");
    bench.said.set("x.off.test A", { answer: [plain("x.off.test 9 IN A 192.0.2.2")] });
    const { answer } = await bench.ask("x.off.test", DO);
    assert.equal(answer, "NOERROR rd ra; x.off.test 9 A 192.0.2.2; OPT do");
    assert.equal(bench.bench.count(Counter.DnssecInsecure), 1);
  },
);

Deno.test("Validation never puts AD on what protection has changed", none, async () => {
  const bench = benchOf();
  const mixed = bench.signed("www.test 300 IN A 192.0.2.1", "www.test 300 IN A 192.168.1.1");
  bench.said.set("www.test A", { answer: [mixed] });
  for (const again of [false, true]) {
    const { answer } = await bench.ask("www.test", DO);
    assert.equal(answer, "NOERROR rd ra; www.test 300 A 192.0.2.1; OPT do", `${again}`);
  }
});

Deno.test("Validation keeps nothing longer than its signature lives", none, async () => {
  const bench = benchOf();
  const { bench: { front } } = bench;
  const expiration = front.pipeline.nowSeconds + 7;
  bench.said.set("www.test A", { answer: [bench.key.rrset([WWW], { ...TIMES, expiration })] });
  assert.equal((await bench.ask("www.test")).answer, "NOERROR rd ra; www.test 7 A 192.0.2.1");
});

Deno.test("Validation answers from gaps that were proven", none, async (t) => {
  const bench = benchOf();
  const nsecs = [
    bench.signed("b.test 60 IN NSEC m.test. A RRSIG NSEC"),
    bench.signed("test 60 IN NSEC b.test. SOA NS RRSIG NSEC DNSKEY"),
  ];
  const authority = [bench.signed(SOA), ...nsecs];
  bench.said.set("c.test A", { rcode: Rcode.NXDomain, authority });
  const first = await bench.ask("c.test");
  assert.match(first.answer, /^NXDOMAIN rd ra; test 60 SOA/);
  bench.news();
  await t.step("of other names", async () => {
    for (const name of ["d.test", "x.d.test", "lzz.test"]) {
      const { answer } = await bench.ask(name, DO);
      assert.match(answer, /^NXDOMAIN rd ra ad; test 60 SOA .*b.test 60 NSEC.*; OPT do$/, name);
    }
    assert.deepEqual(bench.news(), []);
    assert.equal(bench.bench.count(Counter.Deduced), 3);
  });
  await t.step("of types", async () => {
    bench.said.set("b.test MX", { authority: [bench.signed(SOA), nsecs[0]] });
    assert.match(
      (await bench.ask("b.test", { type: Qtype.MX, ...DO })).answer,
      /^NOERROR rd ra ad/,
    );
    assert.deepEqual(bench.news(), []);
  });
  await t.step("not of names that are there or exempt, nor with CD", async () => {
    const after = [bench.signed("m.test 60 IN NSEC www.test. A RRSIG NSEC"), nsecs[1]];
    const denied = { rcode: Rcode.NXDomain, authority: [bench.signed(SOA), ...after] };
    bench.said.set("n.test A", denied);
    await bench.ask("n.test");
    assert.match((await bench.ask("of.test")).answer, /^NXDOMAIN/);
    assert.deepEqual(bench.news(), ["a n.test A cd"]);
    for (
      const [name, options] of [
        ["www.test", {}],
        ["m.test", {}],
        ["off.test", {}],
        ["x.off.test", {}],
        ["d.test", { cd: true, ...DO }],
      ] as const
    ) {
      bench.bench.ask(name, options);
      await bench.settle();
      assert.equal(bench.news().length, 1, name);
    }
  });
  await t.step("and not for longer than they hold", async () => {
    bench.bench.advance(61_000);
    bench.news();
    bench.bench.ask("e.test");
    await bench.settle();
    assert.match(bench.news().join(), / e\.test A cd/);
  });
});

Deno.test("Validation answers from wildcards that were proven (RFC 8198 §5.3)", none, async (t) => {
  const bench = benchOf();
  const wildcard = bench.signed("*.test 60 IN A 192.0.2.7");
  const authority = [bench.signed("b.test 90 IN NSEC m.test. A RRSIG NSEC")];
  bench.said.set("c.test A", { answer: [{ ...wildcard, owner: wire("c.test") }], authority });
  assert.equal((await bench.ask("c.test")).answer, "NOERROR rd ra; c.test 60 A 192.0.2.7");
  bench.news();
  await t.step("other names, with the proof for who wants it", async () => {
    assert.equal((await bench.ask("d.test")).answer, "NOERROR rd ra; d.test 60 A 192.0.2.7");
    const { answer } = await bench.ask("x.lz.test", DO);
    assert.match(answer, /^NOERROR rd ra ad; x\.lz\.test 60 A .*RRSIG.*; b\.test 90 NSEC/);
    assert.deepEqual(bench.news(), []);
  });
  await t.step("without addresses of the network at hand", async () => {
    const bench = benchOf({ rebinding: new RebindingProtection([]) });
    const inner = { ...bench.signed("*.test 60 IN A 192.168.0.7"), owner: wire("c.test") };
    const gap = [bench.signed("b.test 90 IN NSEC m.test. A RRSIG NSEC")];
    bench.said.set("c.test A", { answer: [inner], authority: gap });
    const first = await bench.ask("c.test");
    bench.news();
    const second = await bench.ask("d.test");
    assert.deepEqual(bench.news(), []);
    for (const { answer } of [first, second]) assert.doesNotMatch(answer, /192\.168/);
  });
  await t.step("not of other types, of names that are there, or below other names", async () => {
    for (
      const [name, type] of [["d.test", Qtype.MX], ["m.test", Qtype.A], [
        "x.www.test",
        Qtype.A,
      ]] as const
    ) {
      bench.bench.ask(name, { type });
      await bench.settle();
      assert.equal(bench.news().length, 1, name);
    }
  });
  await t.step("and not for longer than it holds", async () => {
    bench.bench.advance(61_000);
    bench.bench.ask("e.test");
    await bench.settle();
    assert.match(bench.news().join(), / e\.test A cd/);
  });
});

Deno.test(
  "Validation files a gap under the zone that has signed it, whatever it says",
  none,
  async () => {
    const bench = benchOf();
    // The zone of an attacker, with a gap that leads to the end of the zone above.
    const evil = new FakeKey("evil.test");
    bench.said.set("evil.test DS", { answer: [bench.signed(evil.ds())] });
    bench.said.set("evil.test DNSKEY", { answer: [evil.dnskeys([], TIMES)] });
    const nsec = evil.rrset(["evil.test 60 IN NSEC test. SOA NS RRSIG NSEC DNSKEY"], TIMES);
    const forged = bench.key.sign(nsec, TIMES).map((byte, i) => i < 60 ? byte : byte ^ 1);
    const authority = [
      evil.rrset(["evil.test 60 IN SOA ns.test. host.test. 1 2 3 4 60"], TIMES),
      { ...nsec, signatures: [forged, ...nsec.signatures] },
    ];
    bench.said.set("evil.test MX", { authority });
    await bench.ask("evil.test", { type: Qtype.MX });
    bench.news();
    assert.equal((await bench.ask("www.test")).answer, "NOERROR rd ra; www.test 300 A 192.0.2.1");
  },
);

Deno.test(
  "Validation gives up in time where nobody checks, and leaves nothing behind",
  none,
  async () => {
    const bench = benchOf();
    const client = bench.bench.ask("www.test", { edns: {} });
    // Upstreams answer, and no thread does.
    bench.threads.isHeld = true;
    await bench.settle();
    assert.equal(bench.validation.active, 1);
    bench.bench.advance(4_750);
    assert.equal(client.answer, "");
    bench.bench.advance(100);
    assert.equal(
      client.answer,
      "SERVFAIL rd ra; OPT DNSSEC Indeterminate: validation took too long",
    );
    bench.threads.isHeld = false;
    await bench.settle(); // What comes too late is nobody's.
    assert.equal(bench.validation.active, 0);
    assert.equal(bench.checks.waiting, 0);
    bench.bench.checkIdle();
  },
);

Deno.test(
  "Validation goes without what is signed after a clock that is behind",
  none,
  async (t) => {
    const DAY_S = 86_400;
    /** By its clock, signatures of these times begin tomorrow; nine days are past for certain. */
    const benchBehind = (ends: number) => {
      const bench = benchOf();
      const { nowSeconds } = bench.bench.front.pipeline;
      const times = { inception: nowSeconds + DAY_S, expiration: nowSeconds + ends };
      bench.validation.pastS = nowSeconds + 9 * DAY_S;
      return { bench, times };
    };
    const nobody = { rcode: Rcode.NXDomain } as const;
    await t.step("an answer, the keys, a proof", async () => {
      const { bench, times } = benchBehind(10 * DAY_S);
      const proof = bench.key.rrset(["www.test 60 IN NSEC test. A RRSIG NSEC"], times);
      bench.said.set("www.test A", { answer: [bench.key.rrset([WWW], times)] });
      bench.said.set("x.test A", { ...nobody, authority: [bench.signed(SOA), proof] });
      assert.match((await bench.ask("www.test", DO)).answer, /^NOERROR rd ra; www.test 300 A/);
      assert.match((await bench.ask("x.test", DO)).answer, /^NXDOMAIN rd ra; test 60 SOA/);
      bench.said.set("test DNSKEY", { answer: [bench.key.dnskeys([], times)] });
      bench.validation.forget();
      bench.bench.front.cache.flush();
      bench.said.set("www.test A", { answer: [plain(WWW)] });
      const { answer, dnssec } = await bench.ask("www.test", DO);
      assert.match(answer, /^NOERROR rd ra; www.test 300 A/);
      assert.equal(dnssec, DnssecState.Insecure);
      assert.equal(bench.validation.clockSuspect, false, "it is known already");
    });
    await t.step("not what the time has passed for certain", async () => {
      const { bench, times } = benchBehind(8 * DAY_S);
      bench.said.set("www.test A", { answer: [bench.key.rrset([WWW], times)] });
      assert.match(
        (await bench.ask("www.test", { edns: {} })).answer,
        /^SERVFAIL rd ra; OPT Signature Not Yet Valid/,
      );
    });
    await t.step("all else is as ever", async () => {
      const { bench } = benchBehind(0);
      assert.match((await bench.ask("www.test", DO)).answer, /^NOERROR rd ra ad; www.test 300 A/);
      bench.said.set("bad.test A", { answer: [spoilt(bench.signed(WWW.replace("www", "bad")))] });
      assert.match((await bench.ask("bad.test", DO)).answer, /^SERVFAIL/);
    });
  },
);

Deno.test(
  "Validation tells of a clock by which an anchor's keys are out of time",
  none,
  async () => {
    const bench = benchOf();
    const old = { inception: 1_600_000_000, expiration: 1_600_000_001 };
    bench.said.set("test DNSKEY", { answer: [bench.key.dnskeys([], old)] });
    assert.match(
      (await bench.ask("www.test", { edns: {} })).answer,
      /^SERVFAIL rd ra; OPT Signature Expired: test DNSKEY: the signature of key \d+ expired 2020-/,
    );
    assert.equal(bench.validation.clockSuspect, true);
  },
);

Deno.test(
  "Validation looks at few answers of a client at a time, and at all in the end",
  none,
  async () => {
    const bench = benchOf({ openMax: 8_192 });
    await bench.ask("www.test"); // The way to the keys is known.
    bench.threads.isHeld = true;
    const count = 3 * RUNNING_MAX;
    const ask = (name: string, from: string) => {
      bench.said.set(`${name} A`, { answer: [bench.signed(`${name} 300 IN A 192.0.2.3`)] });
      return bench.bench.ask(name, { from });
    };
    const clients = Array.from({ length: count }, (_, i) => ask(`n${i}.test`, "192.0.2.200"));
    await bench.settle();
    const isHad = () => bench.checks.waiting + bench.threads.sent.length;
    assert.deepEqual([isHad(), bench.validation.active], [RUNNING_MAX, count]);
    clients.push(ask("other.test", "192.0.2.7"));
    await bench.settle();
    assert.equal(isHad(), RUNNING_MAX + 1, "another client does not wait for it");
    for (let i = 0; i < 10; i++) await bench.step();
    assert.equal(clients.filter(({ answer }) => answer !== "").length, 10);
    assert.equal(isHad(), RUNNING_MAX + (clients.at(-1)!.answer === "" ? 1 : 0));
    bench.threads.isHeld = false;
    for (let i = 0; i < 10; i++) await bench.settle();
    assert.ok(clients.every(({ answer }) => /^NOERROR/.test(answer)));
    assert.deepEqual([bench.validation.active, bench.validation.busy], [0, 0]);
    bench.bench.checkIdle();
  },
);

Deno.test("Validation serves others while signatures are a flood (KeyTrap)", none, async () => {
  const bench = benchOf({ openMax: 8_192 });
  const evil = new FakeKey("evil.test");
  bench.said.set("evil.test DS", { answer: [bench.signed(evil.ds())] });
  bench.said.set("evil.test DNSKEY", { answer: [evil.dnskeys([], TIMES)] });
  await bench.ask("www.test");
  bench.said.set("new.test A", { answer: [bench.signed("new.test 300 IN A 192.0.2.3")] });
  // Each name has as many signatures as are looked at, of the right key, and none of them fits.
  const [count, each] = [600, 4];
  for (let i = 0; i < count; i++) {
    const rrset = plain(`n${i}.evil.test 300 IN A 192.0.2.66`);
    const signature = evil.sign(rrset, TIMES);
    const last = signature.length - 1;
    const signatures = Array.from(
      { length: each },
      (_, k) => signature.with(last, signature[last] ^ (1 + k)),
    );
    bench.said.set(`n${i}.evil.test A`, { answer: [{ ...rrset, signatures }] });
  }
  bench.threads.isHeld = true;
  const from = "192.0.2.200";
  const attack = Array.from(
    { length: count },
    (_, i) => bench.bench.ask(`n${i}.evil.test`, { from }),
  );
  await bench.settle();
  // Its way to the zone's keys is one for all.
  for (let i = 0; i < 4; i++) await bench.step();
  assert.equal(bench.checks.waiting, WAITING_MAX);
  const refused = attack.filter(({ answer }) => answer !== "").length;
  assert.ok(refused > 0, "what is too much is refused");
  assert.equal(bench.bench.count(Counter.ChecksRefused), refused);
  // What is cached does not wait, and what is new waits for a handful of checks.
  assert.match((await bench.ask("www.test")).answer, /^NOERROR .* 192\.0\.2\.1$/);
  const late = bench.bench.ask("new.test", { from: "192.0.2.7" });
  await bench.settle();
  let steps = 0;
  while (late.answer === "" && steps < 50) {
    await bench.step();
    steps++;
  }
  assert.match(late.answer, /^NOERROR .* 192\.0\.2\.3$/);
  assert.ok(steps <= 5, `${steps} checks`);
  // And no name costs more than its four.
  bench.threads.isHeld = false;
  for (let i = 0; i < 40; i++) await bench.settle();
  assert.deepEqual(
    [...new Set(attack.map(({ answer }) => answer))],
    ["SERVFAIL rd ra"],
  );
  assert.ok(bench.threads.checked <= each * count + 10, `${bench.threads.checked}`);
  assert.equal(bench.validation.active, 0);
  bench.bench.checkIdle();
});

Deno.test("Validation of what upstreams of a group say asks these alone", none, async () => {
  const bench = benchOf();
  const { front: { pipeline }, forwarder } = bench.bench;
  const asGroup = (names: readonly string[]) => {
    const lists = new Map(names.length === 0 ? [] : [[0, names] as const]);
    pipeline.routes = forwarder.routes.of(lists, 1);
  };
  asGroup(["b"]);
  const secure = await bench.ask("www.test", DO);
  assert.match(secure.answer, /^NOERROR rd ra ad; /);
  assert.deepEqual(bench.news(), ["b www.test A cd", "b test DNSKEY cd"]);
  // What one of its upstreams proves not to be there is for it alone to say.
  const gap = bench.signed("a.test 60 IN NSEC www.test. A RRSIG NSEC");
  const apex = bench.signed("test 60 IN NSEC a.test. NS SOA RRSIG NSEC DNSKEY");
  const denied = { rcode: Rcode.NXDomain, authority: [bench.signed(SOA), gap, apex] };
  bench.said.set("gone.test A", denied);
  assert.match((await bench.ask("gone.test", DO)).answer, /^NXDOMAIN rd ra ad; /);
  assert.deepEqual(bench.news(), ["b gone.test A cd"]);
  asGroup([]);
  bench.said.set("here.test A", denied);
  await bench.ask("here.test", DO);
  assert.deepEqual(bench.news(), ["a here.test A cd"]);
  assert.match((await bench.ask("there.test", DO)).answer, /^NXDOMAIN rd ra ad; /);
  assert.deepEqual(bench.news(), [], "follows from what was said to everybody");
  asGroup(["b"]);
  bench.said.set("there.test A", {
    answer: [spoilt(bench.signed("there.test 300 IN A 192.0.2.9"))],
  });
  assert.match((await bench.ask("there.test", { edns: {} })).answer, /^SERVFAIL .*DNSSEC Bogus/);
  assert.ok(bench.news().every((asked) => asked.startsWith("b ")));
  bench.bench.checkIdle();
});
