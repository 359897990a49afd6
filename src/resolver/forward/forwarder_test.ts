import assert from "node:assert/strict";
import { Ede, QR_BIT, Qtype, RA_BIT, Rcode, RD_BIT, TC_BIT } from "../../dns/mod.ts";
import { Counter } from "../../telemetry/mod.ts";
import { a, edeData, soaRdata } from "../fakes.ts";
import { ForwarderBench, quietly } from "./fakes.ts";

const none = { permissions: "none" } as const;
const N = "www.example";
const OK = QR_BIT | RD_BIT | RA_BIT;
const GOOD = { records: [a(N, 300)] };
const ANSWER = `NOERROR rd ra; ${N} 300 A 192.0.2.1`;
const SERVFAIL = { flags: OK | Rcode.ServFail };
const EDNS = { edns: { payload: 1232 } };

Deno.test("Forwarder asks with a random ID and case, and with what the client needs", none, () => {
  const bench = new ForwarderBench();
  const ids = new Set<number>();
  const spellings = new Set<string>();
  for (let i = 0; i < 20; i++) {
    bench.ask(`abcdefgh${i}.example`, { cd: i % 2 === 1, edns: { dnssecOk: i >= 10 } });
    const { id, questions, rd, ad, cd, opt, response } = bench.last.message;
    assert.deepEqual({ rd, ad, cd, response }, {
      rd: true,
      ad: true,
      cd: i % 2 === 1,
      response: false,
    });
    const { payload, version, dnssecOk, options } = opt!;
    assert.deepEqual({ payload, version, dnssecOk, options }, {
      payload: 1232,
      version: 0,
      dnssecOk: i >= 10,
      options: [],
    });
    assert.equal(questions[0].name.toLowerCase(), `abcdefgh${i}.example`);
    assert.deepEqual([questions[0].type, questions[0].cls], [1, 1]);
    ids.add(id);
    spellings.add(questions[0].name.slice(0, 8));
  }
  assert.ok(ids.size >= 19 && spellings.size >= 15, `${ids.size} IDs, ${spellings.size} spellings`);
  quietly(() => bench.flights.close());
  bench.checkIdle();
  assert.equal(bench.ticking, false);
});

Deno.test("Forwarder mixes the case of letters alone", none, () => {
  const bench = new ForwarderBench();
  const name = "\\064\\091\\096\\123-_09.\\224\\225.example";
  bench.ask(name);
  const asked = bench.last.message.questions[0].name;
  assert.equal(asked.toLowerCase(), "@[`{-_09.\\224\\225.example".replace("@", "\\@"));
});

Deno.test("Forwarder asks an identical question once", none, () => {
  const bench = new ForwarderBench();
  const clients = [N, "WWW.example", N].map((name) => bench.ask(name));
  const others = [
    bench.ask(N, { cd: true }),
    bench.ask(N, { edns: { dnssecOk: true } }),
  ];
  const aaaa = bench.ask(N, { type: Qtype.AAAA });
  assert.equal(bench.looked(), "a a a a");
  assert.deepEqual([bench.flights.inFlight, bench.flights.waiting], [4, 6]);
  assert.equal(bench.count(Counter.Merged), 2);
  bench.answer(bench.sent[0], GOOD);
  assert.deepEqual(clients.map(({ answer }) => answer), [
    ANSWER,
    ANSWER.replace("www", "WWW"),
    ANSWER,
  ]);
  assert.deepEqual(others.map(({ answer }) => answer), ["", ""]);
  for (const sent of bench.sent.slice(1, -1)) bench.answer(sent, GOOD);
  bench.answer(bench.last);
  assert.equal(aaaa.answer, "NOERROR rd ra");
  assert.ok(others.every(({ answer }) => answer !== ""));
  assert.equal(bench.ask(N).answer, ANSWER, "from the cache");
  assert.equal(bench.looked(), "");
  bench.checkIdle();
});

Deno.test(
  "Forwarder asks the next upstream when the first is slow; the first answer counts",
  none,
  () => {
    for (const answering of [0, 1]) {
      const bench = new ForwarderBench();
      const client = bench.ask(N);
      bench.advance(350);
      assert.equal(bench.looked(), "a");
      bench.advance(50);
      assert.equal(bench.looked(), "b");
      assert.equal(bench.open.length, 2, "the first may still answer");
      bench.advance(100);
      bench.answer(bench.sent[answering], GOOD);
      assert.equal(client.answer, ANSWER);
      bench.checkIdle();
      // Whoever was overtaken after its time has failed once; whoever had time left has not.
      assert.deepEqual(bench.forwarder.upstreams.map(({ failures }) => failures), [
        answering === 1 ? 1 : 0,
        0,
        0,
      ]);
      bench.advance(100);
      assert.equal(bench.ticking, false);
    }
  },
);

Deno.test("Forwarder waits as long as an upstream usually takes, within bounds", none, () => {
  // Answers in so many milliseconds, and the time given to the next question.
  for (const [tookMs, patienceMs] of [[1, 150], [100, 400], [350, 1_400]] as const) {
    const bench = new ForwarderBench();
    bench.ask("first.example");
    bench.advance(tookMs);
    bench.answer(bench.last, { records: [a("first.example", 9)] });
    bench.looked();
    bench.ask(N);
    bench.advance(patienceMs - 50);
    assert.equal(bench.looked(), "a");
    bench.advance(50);
    assert.equal(bench.looked(), "b", `after ${patienceMs} ms`);
  }
});

Deno.test("Forwarder gives the same upstream twice the time, each time it asks", none, () => {
  const bench = new ForwarderBench({ upstreams: { a: [] } });
  const client = bench.ask(N, EDNS);
  quietly(() => bench.advance(10_000));
  assert.deepEqual(
    bench.sent.filter(({ message }) => message.questions[0].name !== ".").map((s) => s.atMs),
    [0, 400, 1_200, 2_800],
  );
  assert.equal(client.answer, "SERVFAIL rd ra; OPT No Reachable Authority: no upstream answered");
});

Deno.test("Forwarder asks the next upstream at once when one can't or won't", none, async (t) => {
  const rows = [
    ["SERVFAIL", SERVFAIL],
    ["REFUSED", { flags: OK | Rcode.Refused }],
    ["NOTIMP", { flags: OK | Rcode.NotImp }],
    ["a referral", { flags: QR_BIT }],
    ["an extended code", { extendedRcode: 1 }],
  ] as const;
  for (const [name, unhelpful] of rows) {
    await t.step(name, () => {
      const bench = new ForwarderBench();
      const client = bench.ask(N);
      bench.answer(bench.last, unhelpful);
      assert.equal(bench.looked(), "a b");
      bench.answer(bench.last, GOOD);
      assert.equal(client.answer, ANSWER);
      bench.checkIdle();
    });
  }
});

Deno.test("Forwarder tells what the last upstream said when none helps", none, () => {
  const bench = new ForwarderBench({ upstreams: { a: [], b: [] } });
  const client = bench.ask(N, EDNS);
  const ede = [{ code: 15, data: edeData(Ede.Prohibited) }];
  while (bench.open.length > 0) bench.answer(bench.last, { ...SERVFAIL, opt: ede });
  assert.equal(bench.looked(), "a b");
  assert.equal(client.answer, "SERVFAIL rd ra; OPT Prohibited: ");
  bench.checkIdle();
});

Deno.test("Forwarder stops at a bogus answer: another upstream would only hide it", none, () => {
  const bench = new ForwarderBench();
  const client = bench.ask(N, EDNS);
  bench.answer(bench.last, { ...SERVFAIL, opt: [{ code: 15, data: edeData(Ede.DnssecBogus) }] });
  assert.equal(client.answer, "SERVFAIL rd ra; OPT DNSSEC Bogus: ");
  assert.equal(bench.looked(), "a");
  bench.checkIdle();
});

Deno.test(
  "Forwarder relays an extended error of an answer, later from the cache as well",
  none,
  () => {
    const bench = new ForwarderBench();
    const client = bench.ask(N, EDNS);
    bench.answer(bench.last, { ...GOOD, opt: [{ code: 15, data: edeData(Ede.ForgedAnswer) }] });
    assert.equal(client.answer, `${ANSWER}; OPT Forged Answer: `);
    assert.equal(bench.ask(N, EDNS).answer, `${ANSWER}; OPT Forged Answer: `);
    assert.equal(bench.ask(N).answer, ANSWER);
  },
);

Deno.test(
  "Forwarder goes by TCP when UDP cuts, folds case or is full of guesses",
  none,
  async (t) => {
    const good = (bench: ForwarderBench) => bench.packetFor(bench.last, GOOD);
    const rows: readonly (readonly [string, number, (bench: ForwarderBench) => Uint8Array])[] = [
      ["cut", 1, (bench) => bench.packetFor(bench.last, { flags: OK | TC_BIT })],
      ["case", 1, (bench) => {
        const packet = good(bench);
        packet[13] ^= 0x20;
        return packet;
      }],
      ["guessed IDs", 32, (bench) => {
        const packet = good(bench);
        packet[0] ^= 1;
        return packet;
      }],
      ["another question", 32, (bench) => {
        const packet = good(bench);
        packet[14] ^= 1;
        return packet;
      }],
    ];
    for (const [name, times, make] of rows) {
      await t.step(name, () => {
        const bench = new ForwarderBench();
        const client = bench.ask(N);
        const udp = bench.last;
        for (let i = 0; i < times; i++) {
          assert.equal(bench.sent.length, 1);
          bench.deliver(udp, make(bench));
        }
        assert.equal(bench.looked(), "a a!");
        assert.equal(udp.open, false);
        assert.deepEqual(bench.last.packet, udp.packet, "the same question again");
        assert.equal(bench.count(Counter.UpstreamTcp), 1);
        bench.answer(bench.last, GOOD);
        assert.equal(client.answer, ANSWER);
        bench.checkIdle();
      });
    }
  },
);

Deno.test("Forwarder ignores a wrong packet while the right one may come", none, () => {
  const bench = new ForwarderBench();
  const client = bench.ask(N);
  const { last } = bench;
  for (let i = 0; i < 31; i++) bench.answer(last, { ...GOOD, id: last.message.id ^ (i + 1) });
  bench.answer(last, GOOD);
  assert.equal(client.answer, ANSWER);
  assert.equal(bench.count(Counter.UpstreamMismatched), 31);
  assert.equal(bench.looked(), "a");
});

Deno.test("Forwarder goes on when the way by TCP is closed", none, () => {
  const bench = new ForwarderBench();
  bench.downTcp.add(0);
  const client = bench.ask(N);
  bench.answer(bench.last, { flags: OK | TC_BIT });
  assert.equal(bench.looked(), "a b");
  bench.answer(bench.last, { flags: OK | TC_BIT });
  assert.equal(bench.looked(), "b!");
  bench.asker.onFailure(bench.last.token, "closed");
  assert.equal(bench.looked(), "c");
  // A truncated answer over TCP is none; the wait for another goes on.
  bench.answer(bench.last, { flags: OK | TC_BIT });
  bench.answer(bench.last, { flags: OK | TC_BIT });
  assert.equal(client.answer, "");
  bench.answer(bench.last, GOOD);
  assert.equal(client.answer, ANSWER);
  bench.checkIdle();
});

Deno.test("Forwarder asks without EDNS whoever answers FORMERR to it, from then on", none, () => {
  const bench = new ForwarderBench();
  const client = bench.ask(N);
  bench.answer(bench.last, { flags: OK | Rcode.FormErr });
  assert.equal(bench.looked(), "a a-");
  bench.answer(bench.last, GOOD);
  assert.equal(client.answer, ANSWER);
  bench.ask("other.example");
  assert.equal(bench.looked(), "a-");
  // A FORMERR that EDNS is no reason for is a failure like others.
  bench.answer(bench.last, { flags: OK | Rcode.FormErr });
  assert.equal(bench.looked(), "b");
});

Deno.test(
  "Forwarder makes sure of a FORMERR by a header alone, and asks without EDNS",
  none,
  () => {
    const bench = new ForwarderBench({ upstreams: { a: [] } });
    const bare = ({ packet }: { readonly packet: Uint8Array }, rcode: number) =>
      Uint8Array.of(packet[0], packet[1], 0x81, 0x80 | rcode, 0, 0, 0, 0, 0, 0, 0, 0);
    const client = bench.ask(N);
    const [first] = bench.open;
    bench.deliver(first, bare(first, Rcode.ServFail));
    assert.equal(bench.looked(), "a", "of others a header says nothing");
    bench.deliver(first, bare(first, Rcode.FormErr));
    assert.equal(bench.looked(), "a!", "it may be forged");
    bench.deliver(bench.last, bare(bench.last, Rcode.FormErr));
    assert.equal(bench.looked(), "a-");
    bench.answer(bench.last, GOOD);
    assert.equal(client.answer, ANSWER);
    bench.ask("other.example");
    assert.equal(bench.looked(), "a-", "and so from then on");
    // A true answer may come behind a forged one.
    const other = new ForwarderBench({ upstreams: { a: [] } });
    const lucky = other.ask(N);
    const [asked] = other.open;
    other.deliver(asked, bare(asked, Rcode.FormErr));
    other.answer(asked, GOOD);
    assert.equal(lucky.answer, ANSWER);
    other.checkIdle();
  },
);

Deno.test(
  "Forwarder counts failures, leaves an upstream alone, probes it and trusts it again",
  none,
  () => {
    const { lines } = quietly(() => {
      const bench = new ForwarderBench();
      const [first] = bench.forwarder.upstreams;
      const oneOfB = (name: string) => {
        bench.ask(name);
        bench.advance(450);
        bench.answer(bench.last, { records: [a(name, 9)] });
      };
      for (let i = 0; i < 3; i++) oneOfB(`n${i}.example`);
      assert.deepEqual([first.healthy, first.failures], [false, 3]);
      bench.looked();
      bench.ask(N);
      assert.equal(bench.looked(), "b", "the healthy ones first");
      bench.answer(bench.last, GOOD);
      // Nobody asks anything: probes alone, each pause twice the one before.
      const probes: number[] = [];
      const until = (ms: number) => {
        while (bench.nowMs < ms) {
          bench.advance(50);
          if (bench.looked() === "") continue;
          probes.push(bench.last.atMs);
          const { questions } = bench.last.message;
          assert.deepEqual([questions[0].name, questions[0].type, bench.last.upstream], [
            ".",
            2,
            0,
          ]);
        }
      };
      until(400_000);
      const pauses = probes.slice(1).map((atMs, i) => Math.round((atMs - probes[i]) / 1_000));
      // The pause begins when the probe has failed, two seconds after it was sent.
      assert.deepEqual(pauses.slice(0, 8), [4, 6, 10, 18, 34, 62, 62, 62]);
      assert.equal(bench.ticking, true);
      until(bench.nowMs + 60_000);
      while (bench.open.length === 0) until(bench.nowMs + 50);
      bench.answer(bench.open[0], { name: ".", type: 2, flags: OK | Rcode.Refused });
      assert.deepEqual([first.healthy, first.failures], [true, 0]);
      bench.looked();
      bench.ask("last.example");
      assert.equal(bench.looked(), "a");
      bench.answer(bench.last, { records: [a("last.example", 9)] });
      bench.advance(50);
      bench.checkIdle();
      assert.equal(bench.ticking, false);
    });
    const messages = lines.map((line) => JSON.parse(line).message);
    assert.deepEqual(messages, ["upstream does not answer", "upstream answers again"]);
  },
);

Deno.test("Forwarder asks unhealthy upstreams when there is nothing better", none, () => {
  quietly(() => {
    const bench = new ForwarderBench({ upstreams: { a: [], b: [] } });
    for (const upstream of bench.forwarder.upstreams) upstream.healthy = false;
    for (const upstream of bench.forwarder.upstreams) upstream.probeAtMs = 1e9;
    const client = bench.ask(N);
    bench.advance(400);
    assert.equal(bench.looked(), "a b");
    bench.answer(bench.last, GOOD);
    assert.equal(client.answer, ANSWER);
    assert.deepEqual(bench.forwarder.upstreams.map(({ healthy }) => healthy), [false, true]);
    // And behind the healthy ones, when those are silent.
    const other = bench.ask("other.example");
    bench.advance(1_500);
    assert.match(bench.looked(), /^b a/);
    bench.answer(bench.sent[3], { records: [a("other.example", 9)] });
    assert.match(other.answer, /^NOERROR/);
  });
});

Deno.test("Forwarder goes on when the system refuses to send", none, () => {
  quietly(() => {
    const bench = new ForwarderBench({ upstreams: { a: [], b: [] } });
    bench.down.add(0);
    const client = bench.ask(N);
    assert.equal(bench.looked(), "b");
    bench.down.add(1);
    const unlucky = bench.ask("other.example", EDNS);
    assert.match(
      unlucky.answer,
      /^SERVFAIL .*OPT No Reachable Authority: . can't be reached from here$/,
    );
    bench.answer(bench.last, GOOD);
    assert.equal(client.answer, ANSWER);
    bench.checkIdle();
  });
});

Deno.test(
  "Forwarder asks upstreams of a domain for its names, the most specific first",
  none,
  async (t) => {
    const upstreams = {
      a: [],
      b: ["example"],
      c: ["lan.example", "corp.test"],
      d: ["lan.example"],
    };
    const rows = [
      ["www.test", "a"],
      ["example", "b"],
      ["www.example", "b"],
      ["WWW.Example", "b"],
      ["xexample", "a"],
      ["lan.example", "c d"],
      ["a.b.LAN.example", "c d"],
      ["xlan.example", "b"],
      ["corp.test", "c"],
      ["example.com", "a"],
      [".", "a"],
    ] as const;
    for (const [name, want] of rows) {
      await t.step(name, () => {
        const bench = new ForwarderBench({ upstreams });
        const client = bench.ask(name, { ...EDNS, type: 15 });
        bench.answer(bench.last, SERVFAIL);
        const asked = [...new Set(bench.looked().split(" "))].join(" ");
        assert.equal(asked, want);
        quietly(() => bench.advance(10_000));
        assert.match(client.answer, /^SERVFAIL/, "no other upstream is asked for it");
        assert.equal([...new Set(bench.sent.map((s) => "abcd"[s.upstream]))].join(" "), want);
      });
    }
    const bench = new ForwarderBench({ upstreams: { a: ["example"] } });
    const want = "SERVFAIL rd ra; OPT No Reachable Authority: no upstream serves this name";
    assert.equal(bench.ask("www.test", EDNS).answer, want);
    bench.checkIdle();
  },
);

Deno.test("Forwarder gives up before the client does, and remembers it (RFC 9520)", none, () => {
  quietly(() => {
    const bench = new ForwarderBench();
    const clients = [bench.ask(N, EDNS), bench.ask(N)];
    bench.advance(4_750);
    assert.equal(clients[0].answer, "");
    bench.advance(50);
    const want = "SERVFAIL rd ra; OPT No Reachable Authority: no upstream answered";
    assert.deepEqual(clients.map(({ answer }) => answer), [want, "SERVFAIL rd ra"]);
    assert.ok(bench.sent.length <= 6, `${bench.sent.length} sent`);
    bench.looked();
    assert.equal(bench.ask(N, EDNS).answer, want);
    assert.equal(bench.looked(), "", "nobody is asked again");
    bench.advance(5_200);
    bench.looked();
    bench.ask(N);
    assert.notEqual(bench.looked(), "", "but after a while");
  });
});

Deno.test("Forwarder keeps denials, and no answer of an error's", none, () => {
  const bench = new ForwarderBench();
  const soa = {
    section: 1,
    name: "example",
    type: Qtype.SOA,
    ttl: 60,
    rdata: soaRdata(60),
  } as const;
  const client = bench.ask(N);
  bench.answer(bench.last, { flags: OK | Rcode.NXDomain, records: [soa] });
  const want = "NXDOMAIN rd ra; example 60 SOA minimum 60";
  assert.deepEqual([client.answer, bench.ask(N).answer], [want, want]);
  bench.looked();
  const other = bench.ask("empty.example");
  bench.answer(bench.last, { records: [] });
  assert.equal(other.answer, "NOERROR rd ra");
  assert.equal(bench.ask("empty.example").answer, "NOERROR rd ra");
  assert.equal(bench.looked(), "a", "without an SOA it is kept for a short while");
  bench.advance(10_000);
  bench.ask("empty.example");
  assert.equal(bench.looked(), "a");
});

Deno.test("Forwarder hands out a TTL of zero, to all who wait and to nobody later", none, () => {
  const bench = new ForwarderBench({ serveStale: 3_600 });
  const clients = [bench.ask(N), bench.ask(N)];
  bench.answer(bench.last, { records: [a(N, 0)] });
  const want = `NOERROR rd ra; ${N} 0 A 192.0.2.1`;
  assert.deepEqual(clients.map(({ answer }) => answer), [want, want]);
  bench.looked();
  assert.equal(bench.ask(N).answer, "");
  assert.equal(bench.looked(), "a");
});
