// Goal: what an attacker has name servers say costs no more than the bounds, and is believed of nobody
// else. Method: an Internet of fake servers in this process, with a clock of its own; messages sent
// are counted.

import assert from "node:assert/strict";
import { encodeResponse, parseRecord } from "../../../tests/replay/records.ts";
import { getU16, setU16 } from "../../bytes/mod.ts";
import { AA_BIT, QR_BIT, Qtype, Rcode, TC_BIT } from "../../dns/mod.ts";
import {
  type BenchOptions,
  failing,
  type FakeQuery,
  type FakeServer,
  FakeZone,
  RecursorBench,
  says,
  serverOf,
} from "./fakes.ts";
import { QUERIES_MAX, SERVER_OPEN_MAX, ZONE_FLIGHTS_MAX } from "./limits.ts";

const none = { permissions: "none" } as const;
const ROOT = "198.41.0.4";
const [COM, NET, VICTIM, EVIL, GOOD] = [
  "192.0.2.1",
  "192.0.2.2",
  "192.0.2.9",
  "192.0.2.6",
  "192.0.2.3",
];

const rootZone = new FakeZone(".", [
  ". NS a.root-servers.net",
  `a.root-servers.net A ${ROOT}`,
  "com NS ns.com",
  `ns.com A ${COM}`,
  "net NS ns.net",
  `ns.net A ${NET}`,
]);
const comLines = [
  "com NS ns.com",
  "victim.com NS ns.victim.com",
  `ns.victim.com A ${VICTIM}`,
  "evil.com NS ns.evil.com",
  `ns.evil.com A ${EVIL}`,
  "good.com NS ns.good.com",
  `ns.good.com A ${GOOD}`,
];
const victimZone = new FakeZone("victim.com", [
  `ns.victim.com A ${VICTIM}`,
  "www.victim.com A 203.0.113.9",
]);
const goodZone = new FakeZone("good.com", ["www.good.com A 203.0.113.3"]);

function bench(evil: FakeServer, options: BenchOptions = {}, com: readonly string[] = comLines) {
  return new RecursorBench({
    servers: {
      [ROOT]: serverOf(rootZone),
      [COM]: serverOf(new FakeZone("com", com)),
      [NET]: serverOf(new FakeZone("net", [])),
      [VICTIM]: serverOf(victimZone),
      [EVIL]: evil,
      [GOOD]: serverOf(goodZone),
    },
    ...options,
  });
}

/** Nothing else is disturbed: another zone's name is answered. */
function checkOthers(b: RecursorBench): void {
  b.run();
  b.checkIdle();
  assert.match(b.resolve("www.good.com").answer, /203\.0\.113\.3/);
}

for (const count of [135, 1_000]) {
  Deno.test(`NXNSAttack with ${count} names costs the victim 10 messages at most`, none, () => {
    const names = Array.from({ length: count }, (_, i) => `sub.evil.com NS ns${i}.victim.com`);
    const b = bench((query) => [says(query, { authority: names })]);
    const { answer } = b.resolve("www.sub.evil.com", Qtype.A, { edns: {} });
    assert.match(
      answer,
      /^SERVFAIL.* more than 6 addresses of servers of sub\.evil\.com.*\(LOOKUPS_MAX\)/,
    );
    b.run();
    assert.ok(b.count(VICTIM) <= 10, `${b.count(VICTIM)} messages`);
    checkOthers(b);
  });
}

Deno.test("NXNSAttack over several levels is bounded all told", none, () => {
  // Each name leads to a zone whose servers' names lead to further zones.
  let next = 0;
  const b = bench((query) => {
    const zone = query.name.split(".").slice(-3).join(".");
    const names = Array.from({ length: 20 }, () => `${zone} NS ns.z${next++}.evil.com`);
    return [says(query, { authority: names })];
  });
  const { answer } = b.resolve("www.z.evil.com", Qtype.A, { edns: {} });
  assert.match(answer, /^SERVFAIL.*\((LOOKUPS_ALL_MAX|LOOKUP_DEPTH_MAX)\)/);
  b.run();
  assert.ok(b.count() <= 50, `${b.count()} messages`);
  checkOthers(b);
});

Deno.test("NRDelegation with 1,500 servers that refuse or are silent is bounded", none, () => {
  const names = Array.from({ length: 1_500 }, (_, i) => `sub.evil.com NS ns${i}.victim.com`);
  for (const isSilent of [true, false]) {
    const b = bench((query) => [says(query, { authority: names })]);
    b.servers.set(
      VICTIM,
      (query) =>
        /^ns\d/.test(query.name)
          ? [says(query, { answer: [`${query.name} A 203.0.113.66`] }, AA_BIT)]
          : serverOf(victimZone)(query),
    );
    b.servers.set("203.0.113.66", (query) => isSilent ? [] : [failing(query, Rcode.Refused)]);
    assert.match(b.resolve("www.sub.evil.com").answer, /^SERVFAIL/);
    b.run();
    assert.ok(b.count() <= 30, `${b.count()} messages`);
    checkOthers(b);
  }
});

Deno.test("TsuNAME: name servers in a circle are given up, and that is remembered", none, () => {
  const com = [...comLines, "a.com NS ns.b.com", "b.com NS ns.a.com"];
  const b = bench(() => [], {}, com);
  assert.match(b.resolve("www.a.com").answer, /^SERVFAIL/);
  b.run();
  assert.ok(b.count() < 20, `${b.count()} messages`);
  const before = b.count();
  assert.match(b.resolve("www.a.com").answer, /^SERVFAIL/);
  assert.equal(b.count(), before);
  checkOthers(b);
});

Deno.test("glue that points to this host, to a link or a group is never asked", none, () => {
  const glue = ["127.0.0.1", "0.0.0.0", "169.254.1.1", "224.0.0.1", "255.255.255.255"];
  const glue6 = ["::1", "::", "fe80::1", "ff02::1", "::ffff:127.0.0.1"];
  const com = [
    ...comLines,
    "self.com NS ns.self.com",
    ...glue.map((ip) => `ns.self.com A ${ip}`),
    ...glue6.map((ip) => `ns.self.com AAAA ${ip}`),
  ];
  const b = bench(() => [], {}, com);
  assert.match(b.resolve("www.self.com").answer, /^SERVFAIL/);
  assert.deepEqual([...new Set(b.sent.map(({ address }) => address))].sort(), [COM, ROOT].sort());
  checkOthers(b);
});

for (const isCut of [false, true]) {
  const how = isCut ? ", every answer cut," : "";
  Deno.test(
    `CAMP: long chains over many servers${how} end at the bound, which is told`,
    none,
    () => {
      /** Over UDP: each question is sent twice. */
      const spoil = (query: FakeQuery, answer: Uint8Array) => {
        if (isCut && !query.tcp) setU16(answer, 2, getU16(answer, 2) | TC_BIT);
        return answer;
      };
      const servers = Array.from({ length: 10 }, (_, i) => `192.0.2.${100 + i}`);
      const labels = Array.from({ length: 32 }, (_, i) => `l${i}`).join(".");
      let next = 0;
      // A name short of the whole is there and has nothing; a whole one is an alias of the next.
      const evil = (query: FakeQuery) =>
        query.name.split(".").length < 34
          ? says(query, { authority: ["camp.com SOA n0.camp.com h 1 2 3 4 60"] }, AA_BIT)
          : says(query, { answer: [`${query.name} CNAME ${labels}.c${next++}.camp.com`] }, AA_BIT);
      const com = servers.flatMap((
        ip,
        i,
      ) => [`camp.com NS n${i}.camp.com`, `n${i}.camp.com A ${ip}`]);
      const b = bench(() => [], {}, [...comLines, ...com]);
      const answerOfCom = b.servers.get(COM)!;
      b.servers.set(COM, (query) => [spoil(query, answerOfCom(query)[0])]); // An odd number before.
      for (const [i, ip] of servers.entries()) {
        const isWhole = ({ name }: FakeQuery) => name.split(".").length >= 34;
        b.servers.set(ip, (query) => [
          i % 2 > 0 && isWhole(query) ? failing(query, Rcode.ServFail) : spoil(query, evil(query)),
        ]);
      }
      const { answer } = b.resolve(`${labels}.c.camp.com`, Qtype.A, { edns: {} });
      assert.match(answer, /^SERVFAIL.*OPT.*\(QUERIES_MAX\)/);
      b.run();
      const sent = b.sent.filter(({ name, type }) => name !== "." || type !== Qtype.NS); // Priming.
      assert.ok(sent.length > 50 && sent.length <= QUERIES_MAX, `${sent.length} messages`);
      checkOthers(b);
    },
  );
}

Deno.test("MaginotDNS: what an upstream says of other zones is not believed", none, () => {
  const upstream = "203.0.113.53";
  const b = bench(() => [], { upstreams: { [upstream]: ["corp.example"] } });
  b.servers.set(upstream, (query) => [
    says(query, {
      answer: [`${query.name} A 203.0.113.10`],
      authority: ["com NS ns.corp.example", ". NS ns.corp.example"],
      additional: [`ns.corp.example A ${EVIL}`],
    }, AA_BIT),
  ]);
  assert.match(b.resolve("www.corp.example").answer, /203\.0\.113\.10/);
  assert.equal(b.recursor.delegations.count, 0);
  assert.match(b.resolve("www.good.com").answer, /203\.0\.113\.3/);
  assert.equal(b.count(EVIL), 0);
});

Deno.test("TuDoor: malformed packets before the true answer change nothing", none, () => {
  const truth = serverOf(victimZone);
  const malformed: readonly ((id: number, packet: Uint8Array) => Uint8Array)[] = [
    (id) => Uint8Array.of(id >> 8, id & 255, 0x80, 0, 0, 0, 0, 0, 0, 0, 0),
    (id) => Uint8Array.of(id >> 8, id & 255, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    (id) => Uint8Array.of(id >> 8, id & 255, 0x82, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    ...[11, 12, 13, 14, 15].map((rcode) => (id: number) =>
      Uint8Array.of(id >> 8, id & 255, 0x80, rcode, 0, 0, 0, 0, 0, 0, 0, 0)
    ),
    (_, packet) => withFlags(packet, QR_BIT | (5 << 11)),
    (_, packet) => withFlags(packet, 0),
    (_, packet) => packet.subarray(0, packet.length - 3),
    () => new Uint8Array(0),
  ];
  for (const [i, make] of malformed.entries()) {
    const b = bench(() => []);
    b.servers.set(VICTIM, (query) => {
      const [answer] = truth(query);
      const id = getU16(query.packet, 0);
      setU16(answer, 0, id);
      return [make(id, answer.slice()), answer];
    });
    assert.match(b.resolve("www.victim.com").answer, /203\.0\.113\.9/, `${i}`);
    assert.equal(b.sent.filter(({ address, tcp }) => address === VICTIM && !tcp).length, 1, `${i}`);
    b.run();
    b.checkIdle();
  }
});

function withFlags(packet: Uint8Array, flags: number): Uint8Array {
  setU16(packet, 2, flags);
  return packet;
}

Deno.test("ghost domains are gone within the time of the zone above", none, () => {
  const ttl = 3_600;
  const com = [...comLines, `ghost.com ${ttl} NS ns.ghost.com`, `ns.ghost.com ${ttl} A ${EVIL}`];
  // It says of itself that it is there for a day, and of a zone below it as well.
  const b = bench(
    (query) => {
      if (query.name.endsWith("deep.ghost.com") && !query.name.startsWith("ns.")) {
        return query.name === "deep.ghost.com"
          ? [says(query, {
            authority: ["deep.ghost.com 86400 NS ns.deep.ghost.com"],
            additional: [`ns.deep.ghost.com 86400 A ${EVIL}`],
          })]
          : [says(query, { answer: [`${query.name} 60 A 203.0.113.66`] }, AA_BIT)];
      }
      return [says(query, {
        answer: [
          query.type === Qtype.NS
            ? "ghost.com 86400 NS ns.ghost.com"
            : `${query.name} 60 A 203.0.113.66`,
        ],
        authority: ["ghost.com 86400 NS ns.ghost.com", "ghost.com 86400 NS more.ghost.com"],
        additional: [`ns.ghost.com 86400 A ${EVIL}`, `more.ghost.com 86400 A ${EVIL}`],
      }, AA_BIT)];
    },
    {},
    com,
  );
  assert.match(b.resolve("www.ghost.com").answer, /203\.0\.113\.66/);
  assert.match(b.resolve("www.deep.ghost.com").answer, /203\.0\.113\.66/);
  b.servers.set(COM, serverOf(new FakeZone("com", comLines)));
  for (let s = 0; s < ttl + 120; s += 300) {
    b.advance(300_000);
    b.resolve("ghost.com", Qtype.NS);
    b.resolve(`a${s}.ghost.com`);
    b.resolve(`a${s}.deep.ghost.com`);
  }
  for (const name of ["late.ghost.com", "late.deep.ghost.com"]) {
    assert.match(b.resolve(name).answer, /^NXDOMAIN/, name);
  }
});

Deno.test("records of other zones are neither kept nor used", none, () => {
  const b = bench((query) => [
    says(query, {
      answer: [
        `${query.name} A 203.0.113.6`,
        "www.good.com A 203.0.113.66",
        "www.victim.com A 203.0.113.66",
      ],
      authority: [
        "com NS ns.evil.com",
        "good.com NS ns.evil.com",
        ". NS ns.evil.com",
        "evil.com NS ns.good.com",
      ],
      additional: [`ns.good.com A ${EVIL}`, `ns.com A ${EVIL}`, `ns.evil.com A ${EVIL}`],
    }, AA_BIT),
  ]);
  assert.match(
    b.resolve("www.evil.com").answer,
    /^NOERROR rd ra; www\.evil\.com 3600 A 203\.0\.113\.6$/,
  );
  assert.match(b.resolve("www.good.com").answer, /203\.0\.113\.3$/);
  assert.match(b.resolve("www.victim.com").answer, /203\.0\.113\.9$/);
  assert.equal(
    b.sent.filter(({ address, name }) => address === EVIL && !name.includes("evil")).length,
    0,
  );
});

Deno.test("a referral up, sideways or to the zone itself is no referral", none, () => {
  for (
    const [zone, glue] of [["com", "ns.com"], ["good.com", "ns.good.com"], [".", "ns."], [
      "evil.com",
      "ns.evil.com",
    ]]
  ) {
    const b = bench((query) => [
      says(query, { authority: [`${zone} NS ${glue}`], additional: [`${glue} A ${EVIL}`] }),
    ]);
    assert.match(b.resolve("www.evil.com").answer, /^SERVFAIL/, zone);
    b.run();
    assert.ok(b.count() < 20, `${zone}: ${b.count()} messages`);
    checkOthers(b);
  }
});

for (const kind of ["dead", "slow"]) {
  Deno.test(`water torture below a ${kind} zone takes nothing from other zones`, none, () => {
    const slow: FakeServer = (query) => [failing(query, Rcode.NXDomain)];
    const b = bench(kind === "dead" ? () => [] : slow);
    b.latencyMs.set(EVIL, 4_000);
    let most = 0;
    for (let i = 0; i < 12_000; i++) {
      b.ask(`r${i}.evil.com`);
      if (i % 5 === 0) b.advance(1); // 5,000 a second.
      most = Math.max(most, b.flights.inFlight);
      if (i % 200 !== 0) continue;
      // Names that nobody has asked for before, amid the flood.
      const client = b.ask(`w${i}.good.com`);
      b.run(() => client.answers.length > 0, 100);
      assert.match(client.answer, /^NXDOMAIN/, `${i}`);
    }
    // Some were on their way before the zone was known.
    assert.ok(most <= ZONE_FLIGHTS_MAX + 64, `${most} questions waited`);
    b.run(() => false, 10_000);
    b.checkIdle();
  });
}

Deno.test("a silent server of many zones has no more than its queries, which is told", none, () => {
  const count = SERVER_OPEN_MAX + 100;
  const zones = Array.from({ length: count }, (_, i) => [
    `z${i}.com NS ns.z${i}.com`,
    `ns.z${i}.com A ${EVIL}`,
  ]);
  const b = bench(() => [], {}, [...comLines, ...zones.flat()]);
  b.resolve("www.good.com");
  const clients = [];
  for (let i = 0; i < count; i++) {
    clients.push(b.ask(`www.z${i}.com`, Qtype.A, { edns: {} }));
    if (i % 100 === 99) b.advance(15);
  }
  b.run(() => false, 50);
  const refused = clients.filter(({ answer }) => answer !== "");
  assert.equal(refused.length, count - SERVER_OPEN_MAX);
  for (const { answer } of refused) assert.match(answer, /^SERVFAIL.*\(SERVER_OPEN_MAX\)/);
  checkOthers(b);
});

Deno.test("a name that takes too long ends in time, which is told", none, () => {
  const b = bench(() => []);
  b.latencyMs.set(COM, 2_400);
  const { answer, tookMs } = b.resolve("www.evil.com", Qtype.A, { edns: {} });
  assert.match(answer, /^SERVFAIL.*\(FLIGHT_MS\)/);
  assert.ok(tookMs <= 4_850, `${tookMs} ms of the clock of this test`);
  checkOthers(b);
});

Deno.test("names below thousands of dead zones take nothing from who else asks", none, () => {
  const b = bench(() => []);
  const com = serverOf(new FakeZone("com", comLines));
  b.servers.set(COM, (query) => {
    const [, zone, number] = /\b(d(\d+)\.com)$/.exec(query.name) ?? [];
    if (zone === undefined) return com(query);
    const i = Number(number);
    return [says(query, {
      authority: [`${zone} NS ns.${zone}`],
      additional: [`ns.${zone} A 203.1.${i >> 8}.${i & 255}`],
    })];
  });
  b.resolve("www.good.com");
  for (let i = 0; i < 4_600; i++) {
    b.ask(`www.d${i}.com`, Qtype.A, { from: "192.0.2.66" });
    if (i % 4 === 0) b.advance(1);
    if (i % 200 !== 0) continue;
    const client = b.ask(`w${i}.good.com`, Qtype.A, { from: "192.0.2.7" });
    b.run(() => client.answers.length > 0, 100);
    assert.match(client.answer, /^NXDOMAIN/, `${i}`);
  }
  b.run(() => false, 10_000);
  b.checkIdle();
});

Deno.test("Kaminsky: forged answers are never kept, and a name is asked for once", none, () => {
  const b = bench(() => []);
  b.resolve("warm.victim.com");
  const forged = (query: FakeQuery, id: number, name = query.wireName) => {
    const message = encodeResponse({ name, type: query.type }, 0, {
      answer: [parseRecord(`${query.name} A 203.0.113.66`)],
    });
    setU16(message, 0, id === 0 ? 1 : id);
    return message;
  };
  b.servers.set(VICTIM, (query) => {
    const id = getU16(query.packet, 0);
    const other = Array.from({ length: 20 }, (_, i) => forged(query, id ^ (i + 1)));
    return query.tcp ? serverOf(victimZone)(query) : [...other, ...serverOf(victimZone)(query)];
  });
  const before = b.count(VICTIM);
  const clients = Array.from({ length: 50 }, () => b.ask("www.victim.com"));
  b.run();
  for (const { answer } of clients) assert.match(answer, /203\.0\.113\.9/);
  assert.equal(b.count(VICTIM) - before, 1);
  assert.match(b.resolve("www.victim.com").answer, /203\.0\.113\.9/);
});

Deno.test("after a flood of wrong IDs the question goes over TCP", none, () => {
  const b = bench(() => []);
  b.servers.set(VICTIM, (query) => {
    if (query.tcp) return serverOf(victimZone)(query);
    const id = getU16(query.packet, 0);
    return Array.from({ length: 40 }, (_, i) => {
      const [message] = serverOf(victimZone)(query);
      setU16(message, 0, id ^ (i + 1));
      return message;
    });
  });
  assert.match(b.resolve("www.victim.com").answer, /203\.0\.113\.9/);
  assert.ok(b.log.some((line) => line.endsWith(" TCP")));
});

Deno.test(
  "an answer in another case is asked for again over TCP, and one that is cut",
  none,
  () => {
    for (const kind of ["case", "cut"]) {
      const b = bench(() => []);
      b.servers.set(VICTIM, (query) => {
        const [message] = serverOf(victimZone)(query);
        if (!query.tcp && kind === "cut") setU16(message, 2, getU16(message, 2) | TC_BIT);
        if (!query.tcp && kind === "case") {
          const folded = {
            ...query,
            wireName: query.wireName.map((c) => c > 64 && c < 91 ? c + 32 : c),
          };
          return serverOf(victimZone)(folded);
        }
        return [message];
      });
      assert.match(b.resolve("www.victim.com").answer, /203\.0\.113\.9/, kind);
      assert.ok(b.log.at(-1)?.endsWith(" TCP"), kind);
    }
  },
);
