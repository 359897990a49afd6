import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../../tests/prng.ts";
import { Ede, QR_BIT, Qtype, RA_BIT, Rcode, RD_BIT, TC_BIT } from "../../dns/mod.ts";
import { Counter } from "../../telemetry/mod.ts";
import { a, edeData, type FakeResponse, soaRdata } from "../fakes.ts";
import { type Client, ForwarderBench, quietly } from "./fakes.ts";
import { FLIGHTS_MAX } from "../flights/mod.ts";
import { WAITERS_MAX } from "../flights/flights.ts";

const none = { permissions: "none" } as const;
const N = "www.example";
const OK = QR_BIT | RD_BIT | RA_BIT;
const ANSWER = `NOERROR rd ra; ${N} 300 A 192.0.2.1`;
const SERVFAIL = { flags: OK | Rcode.ServFail };
const EDNS = { edns: { payload: 1232 } };
const STALE = `NOERROR rd ra; ${N} 30 A 192.0.2.1`;

/** A bench whose cache holds an answer that has expired. */
function staleBench(records = [a(N, 300)], flags = OK): ForwarderBench {
  const bench = new ForwarderBench({ serveStale: 3_600 });
  bench.ask(N);
  bench.answer(bench.last, { flags, records });
  bench.advance(400_000);
  bench.looked();
  return bench;
}

Deno.test(
  "Forwarder serves a stale answer when none has come for 1.8 seconds (RFC 8767)",
  none,
  () => {
    quietly(() => {
      const bench = staleBench();
      const client = bench.ask(N, EDNS);
      bench.advance(1_750);
      assert.equal(client.answer, "");
      bench.advance(50);
      assert.equal(client.answer, `${STALE}; OPT Stale Answer: `);
      assert.equal(bench.ask(N).answer, STALE, "and at once to who comes now");
      assert.deepEqual([bench.flights.inFlight, bench.flights.waiting], [1, 0]);
      bench.answer(bench.open[0], { records: [a(N, 60)] });
      assert.equal(bench.ask(N).answer, ANSWER.replace("300", "60"), "the asking went on");
      assert.equal(bench.count(Counter.Stale), 2);
      bench.checkIdle();
    });
  },
);

Deno.test(
  "Forwarder serves a stale answer when all upstreams fail, and a fresh one before",
  none,
  () => {
    quietly(() => {
      const fresh = staleBench();
      const early = fresh.ask(N);
      fresh.advance(1_000);
      fresh.answer(fresh.open[0], { records: [a(N, 300)] });
      assert.equal(early.answer, ANSWER);
      const bench = staleBench();
      const client = bench.ask(N, EDNS);
      while (bench.open.length > 0) bench.answer(bench.last, SERVFAIL);
      assert.equal(client.answer, `${STALE}; OPT Stale Answer: `);
      bench.checkIdle();
      // A failure is not remembered where there is something better to say.
      bench.looked();
      assert.equal(bench.ask(N).answer, "");
      assert.equal(bench.looked(), "a");
    });
  },
);

Deno.test(
  "Forwarder says so when a stale denial is served, and never serves one too old",
  none,
  () => {
    quietly(() => {
      const soa = {
        section: 1,
        name: "example",
        type: Qtype.SOA,
        ttl: 60,
        rdata: soaRdata(60),
      } as const;
      const bench = staleBench([soa as never], OK | Rcode.NXDomain);
      const client = bench.ask(N, EDNS);
      bench.advance(1_800);
      const want = "NXDOMAIN rd ra; example 30 SOA minimum 60; OPT Stale NXDOMAIN Answer: ";
      assert.equal(client.answer, want);
      const old = staleBench();
      old.advance(3_600_000);
      const late = old.ask(N, EDNS);
      old.advance(4_800);
      assert.match(late.answer, /^SERVFAIL/);
    });
  },
);

Deno.test("Forwarder serves no failure past its time, and remembers the next one", none, () => {
  quietly(() => {
    const bench = new ForwarderBench({ upstreams: { a: [] }, serveStale: 3_600 });
    const first = bench.ask(N, EDNS);
    bench.answer(bench.last, SERVFAIL);
    assert.match(first.answer, /^SERVFAIL/);
    bench.advance(10_000);
    const slow = bench.ask(N, EDNS);
    bench.advance(2_000);
    assert.equal(slow.answer, "", "a true answer may follow");
    for (const sent of bench.open) bench.answer(sent, SERVFAIL);
    assert.match(slow.answer, /^SERVFAIL rd ra; OPT No Reachable Authority: a answered SERVFAIL$/);
    const count = bench.sent.length;
    assert.match(bench.ask(N, EDNS).answer, /^SERVFAIL/);
    assert.equal(bench.sent.length, count, "nobody is asked within five seconds (RFC 9520)");
    assert.equal(bench.count(Counter.Stale), 0);
    bench.checkIdle();
  });
});

Deno.test("Forwarder forgets at once that it had no room for a question", none, () => {
  quietly(() => {
    const bench = new ForwarderBench({ upstreams: { a: [] }, openMax: 4 });
    const others = ["n0.example", "n1.example"].map((name) => bench.ask(name));
    const early = bench.ask(N, EDNS);
    assert.equal(early.answer, "SERVFAIL rd ra; OPT Other: too many queries wait for a");
    for (const sent of bench.open) {
      bench.answer(sent, { records: [a(sent.message.questions[0].name.toLowerCase(), 300)] });
    }
    assert.ok(others.every(({ answer }) => answer.startsWith("NOERROR")));
    bench.lacksSockets = true;
    assert.match(bench.ask(N, EDNS).answer, /^SERVFAIL rd ra; OPT Other: no socket is left/);
    bench.lacksSockets = false;
    const client = bench.ask(N);
    bench.answer(bench.last, { records: [a(N, 300)] });
    assert.equal(client.answer, ANSWER);
    bench.checkIdle();
  });
});

Deno.test("Forwarder serves nothing past its time that was not to be kept", none, () => {
  quietly(() => {
    const cut = { flags: OK | TC_BIT, records: [a(N, 300)] };
    for (const [transport, kind] of [["udp", { records: [a(N, 0)] }], ["tls", cut]] as const) {
      const bench = new ForwarderBench({
        upstreams: { a: [] },
        transports: { a: transport },
        serveStale: 3_600,
      });
      bench.ask(N);
      bench.answer(bench.last, kind);
      bench.advance(60_000);
      const client = bench.ask(N);
      bench.advance(5_000);
      assert.equal(client.answer, "SERVFAIL rd ra");
    }
  });
});

Deno.test("Forwarder.refresh() renews an entry for nobody in particular", none, () => {
  const bench = new ForwarderBench();
  bench.ask(N);
  bench.answer(bench.last, { records: [a(N, 300)] });
  bench.advance(280_000);
  const { query } = bench.front;
  assert.equal(bench.ask(N).answer, ANSWER.replace("300", "20"));
  bench.looked();
  bench.ask(N);
  assert.equal(bench.front.refreshed.length, 1);
  // The front notes what the pipeline wanted; here it is done.
  bench.front.decide(
    Uint8Array.of(
      0,
      0,
      1,
      0,
      0,
      1,
      0,
      0,
      0,
      0,
      0,
      0,
      3,
      119,
      119,
      119,
      7,
      101,
      120,
      97,
      109,
      112,
      108,
      101,
      0,
      0,
      1,
      0,
      1,
    ),
  );
  bench.flights.refresh(query);
  bench.flights.refresh(query);
  assert.equal(bench.looked(), "a", "once");
  assert.deepEqual([bench.flights.inFlight, bench.flights.waiting], [1, 0]);
  bench.answer(bench.last, { records: [a(N, 300, 9)] });
  assert.equal(bench.ask(N).answer, ANSWER.replace("192.0.2.1", "192.0.2.9"));
  bench.checkIdle();
});

Deno.test("Forwarder.refresh() that fails leaves the entry as it is", none, () => {
  quietly(() => {
    const bench = new ForwarderBench({ upstreams: { a: [] } });
    bench.ask(N);
    bench.answer(bench.last, { records: [a(N, 300)] });
    bench.ask(N);
    const { query } = bench.front;
    bench.front.decide(
      Uint8Array.of(
        0,
        0,
        1,
        0,
        0,
        1,
        0,
        0,
        0,
        0,
        0,
        0,
        3,
        119,
        119,
        119,
        7,
        101,
        120,
        97,
        109,
        112,
        108,
        101,
        0,
        0,
        1,
        0,
        1,
      ),
    );
    bench.flights.refresh(query);
    while (bench.open.length > 0) bench.answer(bench.last, SERVFAIL);
    assert.equal(bench.ask(N).answer, ANSWER);
    bench.checkIdle();
  });
});

Deno.test("Forwarder bounds who waits for one name, and says so", none, () => {
  quietly(() => {
    const bench = new ForwarderBench();
    const clients = Array.from({ length: 1_024 }, () => bench.ask(N));
    const want = "SERVFAIL rd ra; OPT Other: too many clients wait for this name";
    assert.equal(bench.ask(N, EDNS).answer, want);
    assert.equal(bench.count(Counter.FlightsFull), 1);
    assert.equal(bench.looked(), "a");
    bench.answer(bench.last, { records: [a(N, 300)] });
    assert.ok(clients.every(({ answer }) => answer === ANSWER));
    bench.checkIdle();
  });
});

Deno.test("Forwarder bounds the questions on their way, and who waits all told", none, () => {
  quietly(() => {
    const bench = new ForwarderBench({ upstreams: { a: [] } });
    const clients: Client[] = [];
    // As many as are left for others.
    const most = FLIGHTS_MAX / 2;
    for (let i = 0; i < most; i++) clients.push(bench.ask(`n${i}.example`));
    assert.equal(bench.flights.inFlight, most);
    const flights = "SERVFAIL rd ra; OPT Other: too many queries wait for a";
    assert.equal(bench.ask(N, EDNS).answer, flights);
    for (let round = 1; round < WAITERS_MAX / most; round++) {
      for (let i = 0; i < most; i++) clients.push(bench.ask(`n${i}.example`));
    }
    assert.equal(bench.flights.waiting, WAITERS_MAX);
    const waiters = "SERVFAIL rd ra; OPT Other: too many queries wait";
    assert.equal(bench.ask("n0.example", EDNS).answer, waiters);
    assert.equal(bench.count(Counter.FlightsFull), 2);
    bench.flights.close();
    assert.ok(clients.every(({ answer }) => answer === "SERVFAIL rd ra"));
    bench.checkIdle();
    assert.equal(bench.ticking, false);
  });
});

Deno.test("Forwarder.close() fails those who wait, once", none, () => {
  quietly(() => {
    const bench = new ForwarderBench();
    const clients = [bench.ask(N, EDNS), bench.ask(N, EDNS), bench.ask("other.example", EDNS)];
    bench.flights.close();
    for (const { answer } of clients) assert.match(answer, /^SERVFAIL/);
    bench.checkIdle();
  });
});

/** What an upstream may say, the unkind among it. */
function anyAnswer(prng: Prng): Partial<FakeResponse> {
  switch (prng.int(9)) {
    case 0:
      return SERVFAIL;
    case 1:
      return { flags: OK | TC_BIT };
    case 2:
      return { flags: OK | Rcode.FormErr };
    case 3:
      return { ...SERVFAIL, opt: [{ code: 15, data: edeData(Ede.DnssecBogus) }] };
    case 4:
      return { id: prng.int(0x10000) };
    case 5:
      return { flags: QR_BIT };
    case 6:
      return { records: [a(N, 0)] };
    default:
      return { records: [a(N, 1 + prng.int(20))] };
  }
}

/** One thing that happens. */
function anything(bench: ForwarderBench, prng: Prng, clients: Client[]): void {
  const { open } = bench;
  const what = prng.int(100);
  if (what < 30) {
    const options = prng.pick([{}, { cd: true }, { edns: { dnssecOk: true } }, { rd: false }]);
    const name = prng.pick(["www", "a.lan", "b.lan", "x", "y", "z"]);
    clients.push(bench.ask(`${name}.example`, { type: prng.pick([1, 28]), ...options }));
  } else if (what < 60 && open.length > 0) {
    const sent = prng.pick(open);
    const packet = bench.packetFor(sent, anyAnswer(prng));
    if (prng.chance(0.1)) packet[4 + prng.int(20)] ^= 1 << prng.int(8); // Counts, QNAME.
    bench.deliver(sent, packet);
  } else if (what < 65 && open.length > 0) {
    bench.asker.onFailure(prng.pick(open).token, "closed");
  } else if (what < 70) {
    const set = prng.pick([bench.down, bench.downTcp]);
    const upstream = prng.int(4);
    if (!set.delete(upstream)) set.add(upstream);
  } else if (what === 70) {
    bench.front.cache.flush();
  } else if (what === 71) {
    bench.advance(60_000);
  } else {
    bench.advance(prng.pick([10, 50, 200, 1_000]));
  }
}

Deno.test("Forwarder answers everyone once, whatever happens in whatever order, seeded", {
  permissions: { env: ["SVC_SEED"] },
}, () => {
  const seed = seedFromEnv();
  quietly(() => {
    for (let run = 0; run < 40; run++) {
      const prng = new Prng(seed + run);
      const bench = new ForwarderBench({
        upstreams: { a: [], b: [], c: ["lan.example"], d: ["lan.example"] },
        serveStale: prng.pick([0, 3_600]),
        seed: seed + run,
      });
      const clients: Client[] = [];
      for (let step = 0; step < 400; step++) {
        anything(bench, prng, clients);
        const unanswered = clients.filter(({ answer }) => answer === "").length;
        assert.equal(bench.flights.waiting, unanswered, `run ${run}, step ${step}`);
        assert.ok(bench.asker.inUse >= bench.open.length);
      }
      // Left to itself, every wait ends in time, and all that is left is probing.
      bench.advance(5_000);
      assert.ok(clients.every(({ answer }) => answer !== ""), `run ${run}: all are answered`);
      [bench.down, bench.downTcp].forEach((set) => set.clear());
      for (let i = 0; i < 5_000 && (bench.ticking || bench.open.length > 0); i++) {
        for (const sent of bench.open) bench.answer(sent, { records: [a(N, 9)] });
        bench.advance(50);
      }
      bench.checkIdle();
      assert.equal(bench.ticking, false, `run ${run}: and then there is peace`);
    }
  });
});
