// Goal: what name servers say is proven with all that the way to it takes: aliases that were known
// before, denials of a part of a name, a second attempt. Method: the recursor over zones that are signed
// here, with a clock of its own.
import assert from "node:assert/strict";
import { encodeResponse, type TextRecord } from "../../../tests/replay/records.ts";
import { getU16, setU16 } from "../../bytes/mod.ts";
import { AA_BIT, decodeMessage, Qtype, qtypeName, Rcode } from "../../dns/mod.ts";
import { type RrSet, TrustAnchors } from "../../dnssec/mod.ts";
import { FakeKey } from "../../dnssec/fakes.ts";
import { Counter, sumRecursion } from "../../telemetry/mod.ts";
import { wire } from "../fakes.ts";
import {
  type BenchOptions,
  type Client,
  type FakeQuery,
  type FakeServer,
  FakeZone,
  RecursorBench,
  serverOf,
} from "../recursive/fakes.ts";
import { HOLD_MS } from "../flights/held.ts";
import { QUERIES_MAX } from "../recursive/limits.ts";
import { Trace } from "../trace.ts";
import { FAILED_CHECKS_MAX, FAILING_S_MIN } from "./failing_zones.ts";
import { checkingAtOnce, type Said, TIMES, ValidationBench } from "./fakes.ts";

const none = { permissions: "none" } as const;
const [ROOT, COM, ZONE, ISLAND, LAN] = [
  "198.41.0.4",
  "192.0.2.1",
  "192.0.2.10",
  "192.0.2.11",
  "192.0.2.77",
];
const SIGNED = "example.com";
const { plain } = ValidationBench;

function recordsOf(rrsets: readonly RrSet[]): TextRecord[] {
  return rrsets.flatMap(({ owner, type, cls, ttl, rdatas, signatures }) => [
    ...rdatas.map((rdata) => ({ owner, type, cls, ttl, rdata })),
    ...signatures.map((rdata) => ({ owner, type: Qtype.RRSIG, cls, ttl, rdata })),
  ]);
}

/** `example.com` is anchored, `island.com` is signed and has no DS, `corp.example` is an upstream's. */
class Bench {
  readonly key = new FakeKey(SIGNED);
  readonly island = new FakeKey("island.com");
  /** By `name TYPE`; what is not there is silence. */
  readonly said: Map<string, Said> = new Map();
  readonly recursor: RecursorBench;

  constructor(options: BenchOptions = {}) {
    const root = new FakeZone(".", [
      ". NS a.root-servers.net",
      `a.root-servers.net A ${ROOT}`,
      "com NS ns.com",
      `ns.com A ${COM}`,
    ]);
    const com = new FakeZone("com", [
      `${SIGNED} NS ns.${SIGNED}`,
      `ns.${SIGNED} A ${ZONE}`,
      "island.com NS ns.island.com",
      `ns.island.com A ${ISLAND}`,
    ]);
    const zone: FakeServer = (query) => {
      const said = this.said.get(`${query.name} ${qtypeName(query.type)}`);
      if (said === undefined) return [];
      const { rcode = Rcode.NoError, answer = [], authority = [] } = said;
      const sections = { answer: recordsOf(answer), authority: recordsOf(authority) };
      const message = encodeResponse({ name: query.wireName, type: query.type }, rcode, sections);
      setU16(message, 2, getU16(message, 2) | AA_BIT);
      return [message];
    };
    this.recursor = new RecursorBench({
      servers: {
        [ROOT]: serverOf(root),
        [COM]: serverOf(com),
        [ZONE]: zone,
        [ISLAND]: zone,
        [LAN]: zone,
      },
      upstreams: { [LAN]: ["corp.example"] },
      dnssecOk: true,
      judge: (made) => {
        const anchors = new TrustAnchors([this.key.anchor()], [wire("corp.example")]);
        return checkingAtOnce(made, anchors);
      },
      ...options,
    });
    this.said.set(`${SIGNED} DNSKEY`, { answer: [this.key.dnskeys([], TIMES)] });
  }

  /** An RRset of `example.com`, signed. */
  signed(...lines: string[]): RrSet {
    return this.key.rrset(lines, TIMES);
  }

  async wait(client: Client): Promise<string> {
    const isDone = () => client.answers.length > 0;
    for (let i = 0; i < 1_000 && !isDone(); i++) {
      this.recursor.run(isDone, 10);
      for (let k = 0; k < 50; k++) await Promise.resolve(); // What is validated goes on.
    }
    return client.answer;
  }

  async ask(
    name: string,
    type: number = Qtype.A,
    options: Parameters<RecursorBench["ask"]>[2] = {},
  ): Promise<string> {
    return await this.wait(this.recursor.ask(name, type, options));
  }
}

Deno.test(
  "an alias to a signed name that is known without its signatures is proven",
  none,
  async () => {
    const bench = new Bench();
    bench.said.set(`www.${SIGNED} A`, {
      answer: [bench.signed(`www.${SIGNED} 300 IN A 192.0.2.1`)],
    });
    for (const name of ["a", "b"]) {
      bench.said.set(`${name}.${SIGNED} A`, {
        answer: [bench.signed(`${name}.${SIGNED} 300 IN CNAME www.${SIGNED}.`)],
      });
    }
    const ends = new RegExp(`^NOERROR rd ra ad; .*www.${SIGNED} 300 A 192\\.0\\.2\\.1$`);
    assert.match(await bench.ask(`www.${SIGNED}`, Qtype.A, { ad: true }), ends);
    assert.match(await bench.ask(`a.${SIGNED}`, Qtype.A, { ad: true }), ends);
    // With them it need not be asked for.
    await bench.ask(`www.${SIGNED}`, Qtype.A, { edns: { dnssecOk: true } });
    const before = bench.recursor.count();
    assert.match(await bench.ask(`b.${SIGNED}`, Qtype.A, { ad: true }), ends);
    assert.equal(bench.recursor.count() - before, 1);
  },
);

Deno.test("an alias between an upstream's domain and a signed zone is proven", none, async () => {
  const bench = new Bench();
  const www = bench.signed(`www.${SIGNED} 300 IN A 192.0.2.1`);
  bench.said.set(`www.${SIGNED} A`, { answer: [www] });
  bench.said.set("out.corp.example A", {
    answer: [plain(`out.corp.example 300 IN CNAME www.${SIGNED}.`)],
  });
  bench.said.set("nas.corp.example A", { answer: [plain("nas.corp.example 300 IN A 192.0.2.3")] });
  bench.said.set(`in.${SIGNED} A`, {
    answer: [bench.signed(`in.${SIGNED} 300 IN CNAME nas.corp.example.`)],
  });
  for (const options of [{}, { edns: { dnssecOk: true } }]) {
    assert.match(
      await bench.ask("out.corp.example", Qtype.A, options),
      /^NOERROR .* A 192\.0\.2\.1/,
    );
    assert.match(await bench.ask(`in.${SIGNED}`, Qtype.A, options), /^NOERROR .* A 192\.0\.2\.3/);
  }
});

Deno.test(
  "a part of a name that is denied ends the whole where that is proven, and only there",
  none,
  async () => {
    for (const zone of [SIGNED, "island.com"]) {
      const bench = new Bench();
      const key = zone === SIGNED ? bench.key : bench.island;
      const soa = key.rrset([`${zone} 300 IN SOA ns.${zone}. h.${zone}. 1 2 3 4 60`], TIMES);
      const nsec = (owner: string, next: string, types: string) =>
        key.rrset([`${owner} 60 IN NSEC ${next}. ${types} RRSIG NSEC`], TIMES);
      const apex = nsec(zone, `www.ent.${zone}`, "NS SOA DNSKEY");
      const last = nsec(`www.ent.${zone}`, zone, "A");
      // The server takes a name between others for one that is not there.
      bench.said.set(`ent.${zone} A`, { rcode: Rcode.NXDomain, authority: [soa, apex] });
      bench.said.set(`www.ent.${zone} A`, {
        answer: [key.rrset([`www.ent.${zone} 300 IN A 192.0.2.1`], TIMES)],
      });
      const ad = zone === SIGNED ? " ad" : "";
      assert.equal(
        await bench.ask(`www.ent.${zone}`, Qtype.A, { ad: true }),
        `NOERROR rd ra${ad}; www.ent.${zone} 300 A 192.0.2.1`,
      );
      bench.said.set(`z.${zone} A`, { rcode: Rcode.NXDomain, authority: [soa, last, apex] });
      const before = bench.recursor.count();
      assert.match(
        await bench.ask(`a.b.z.${zone}`, Qtype.A, { ad: true }),
        new RegExp(`^NXDOMAIN rd ra${ad}; ${zone} 60 SOA`),
      );
      assert.equal(bench.recursor.count() - before, 1, zone);
    }
  },
);

Deno.test("both attempts at what is bogus take no more queries than one may", none, async () => {
  const bench = new Bench();
  const labels = Array.from({ length: 30 }, (_, i) => `l${i}`).join(".");
  let next = 0;
  // A long way over five aliases, and to no signature.
  bench.recursor.servers.set(ZONE, (query) => {
    const isKey = query.type === Qtype.DNSKEY;
    const isWhole = query.name.startsWith("l0.");
    const answer = [plain(
      next % 6 === 5
        ? `${query.name} 300 IN A 192.0.2.1`
        : `${query.name} 300 IN CNAME ${labels}.c${next}.${SIGNED}.`,
    )];
    const soa = plain(`${SIGNED} 0 IN SOA ns.${SIGNED}. h.${SIGNED}. 1 2 3 4 0`);
    if (isWhole) next++;
    const sections = isKey
      ? { answer: recordsOf([bench.key.dnskeys([], TIMES)]) }
      : isWhole
      ? { answer: recordsOf(answer) }
      : { authority: recordsOf([soa]) };
    const message = encodeResponse({ name: query.wireName, type: query.type }, 0, sections);
    setU16(message, 2, getU16(message, 2) | AA_BIT);
    return [message];
  });
  assert.match(await bench.ask(`${labels}.c.${SIGNED}`), /^SERVFAIL/);
  bench.recursor.run();
  const sent = bench.recursor.sent.filter(({ name, type }) => name !== "." || type !== Qtype.NS);
  assert.ok(next > 6, "it was asked for once more");
  assert.ok(sent.length <= QUERIES_MAX, `${sent.length} messages`);
  bench.recursor.checkIdle();
});

/** What a server that drops EDNS, or loses a packet with it where `loses` says so, lets through. */
function dropping(zone: FakeServer, loses: () => boolean = () => true): FakeServer {
  return (query) => {
    if (query.message.opt === null) {
      // Who is not asked with DO sends no signatures (RFC 4035 §3.1).
      return zone(query).map((packet) => withoutSignatures(packet, query));
    }
    return loses() ? [] : zone(query);
  };
}

function withoutSignatures(packet: Uint8Array, { wireName, type }: FakeQuery): Uint8Array {
  const { answers, rcode } = decodeMessage(packet)!;
  const answer = answers.filter((record) => record.type !== Qtype.RRSIG)
    .map(({ name, ...record }) => ({ ...record, owner: wire(name) }));
  const message = encodeResponse({ name: wireName, type }, rcode, { answer });
  setU16(message, 2, getU16(message, 2) | AA_BIT);
  return message;
}

Deno.test("what is signed is not believed of a server that drops EDNS", none, async () => {
  const bench = new Bench();
  const { servers } = bench.recursor;
  const honest = servers.get(ZONE)!;
  servers.set(ZONE, dropping(honest));
  servers.set(ISLAND, dropping(honest));
  bench.said.set(`www.${SIGNED} A`, { answer: [bench.signed(`www.${SIGNED} 300 IN A 192.0.2.1`)] });
  bench.said.set("www.island.com A", { answer: [plain("www.island.com 300 IN A 192.0.2.2")] });
  assert.match(await bench.ask(`www.${SIGNED}`), /^SERVFAIL/);
  assert.match(await bench.ask("www.island.com"), /^NOERROR rd ra; .* A 192\.0\.2\.2$/);
  bench.recursor.run();
  bench.recursor.checkIdle();
});

Deno.test("beside a server that drops EDNS, what is signed is asked of another", none, async () => {
  const bench = new Bench();
  const { servers } = bench.recursor;
  const honest = servers.get(ZONE)!;
  const other = "192.0.2.12";
  const lines = [[`ns.${SIGNED}`, ZONE], [`ns2.${SIGNED}`, other]];
  const com = lines.flatMap(([name, ip]) => [`${SIGNED} NS ${name}`, `${name} A ${ip}`]);
  servers.set(COM, serverOf(new FakeZone("com", com)));
  servers.set(ZONE, dropping(honest));
  servers.set(other, () => []);
  const ask = async (name: string) => {
    bench.said.set(`${name}.${SIGNED} A`, {
      answer: [bench.signed(`${name}.${SIGNED} 300 IN A 192.0.2.1`)],
    });
    return await bench.ask(`${name}.${SIGNED}`, Qtype.A, { ad: true });
  };
  assert.match(await ask("a"), /^SERVFAIL/, "nobody says what is signed");
  servers.set(other, honest);
  bench.recursor.advance(60_000);
  for (const name of ["b", "c", "d", "e"]) assert.match(await ask(name), /^NOERROR rd ra ad/);
});

Deno.test("packets that are lost leave no signed zone without its signatures", none, async () => {
  for (let lost = 1; lost <= 3; lost++) {
    const bench = new Bench();
    bench.said.set(`ns.${SIGNED} A`, { answer: [bench.signed(`ns.${SIGNED} 300 IN A ${ZONE}`)] });
    bench.said.set(`ns.${SIGNED} AAAA`, {
      authority: [bench.signed(`ns.${SIGNED} 60 IN NSEC z.${SIGNED}. A RRSIG NSEC`)],
    });
    const { servers } = bench.recursor;
    let left = lost;
    servers.set(ZONE, dropping(servers.get(ZONE)!, () => left-- > 0));
    for (const name of ["a", "b"]) {
      bench.said.set(`${name}.${SIGNED} A`, {
        answer: [bench.signed(`${name}.${SIGNED} 300 IN A 192.0.2.1`)],
      });
      bench.said.set(`${name}.${SIGNED} DS`, {
        authority: [bench.signed(`${name}.${SIGNED} 60 IN NSEC z.${SIGNED}. A RRSIG NSEC`)],
      });
      assert.match(
        await bench.ask(`${name}.${SIGNED}`, Qtype.A, { ad: true }),
        /^NOERROR rd ra ad/,
      );
    }
  }
});

Deno.test("what the root denies without proof is asked for anew, and forgotten", none, async () => {
  const bench = new Bench();
  for (const name of ["a", "b"]) {
    bench.said.set(`${name}.${SIGNED} A`, {
      answer: [bench.signed(`${name}.${SIGNED} 300 IN A 192.0.2.1`)],
    });
    bench.said.set(`${name}.${SIGNED} DS`, {
      authority: [bench.signed(`${name}.${SIGNED} 60 IN NSEC z.${SIGNED}. A RRSIG NSEC`)],
    });
  }
  const { recursor } = bench;
  const root = recursor.servers.get(ROOT)!;
  recursor.servers.set(ROOT, (query) => {
    if (query.type === Qtype.NS) return root(query);
    recursor.servers.set(ROOT, root);
    return serverOf(new FakeZone(".", []))(query);
  });
  assert.match(await bench.ask(`a.${SIGNED}`), /^NOERROR/);
  const trace = new Trace(() => recursor.nowMs);
  const client = recursor.ask(`b.${SIGNED}`, Qtype.A, { trace });
  assert.match(await bench.wait(client), /^NOERROR/);
  const asked = trace.steps.filter(({ event }) => event === "asked");
  assert.deepEqual(asked.map(({ question }) => question), [`b.${SIGNED} A`]);
  assert.ok(trace.steps.every(({ detail = "" }) => !/NXDOMAIN|bogus/.test(detail)));
});

Deno.test("an alias to a name that is answered here is proven like any other", none, async () => {
  const bench = new Bench();
  const alias = (name: string, target: string) => `${name}.${SIGNED} 300 IN CNAME ${target}.`;
  for (const [name, target] of [["a", "x.invalid"], ["b", "localhost"]]) {
    bench.said.set(`${name}.${SIGNED} A`, { answer: [bench.signed(alias(name, target))] });
  }
  bench.said.set(`forged.${SIGNED} A`, { answer: [plain(alias("forged", "x.invalid"))] });
  bench.said.set(`forged.${SIGNED} DS`, {
    authority: [bench.signed(`forged.${SIGNED} 60 IN NSEC z.${SIGNED}. A RRSIG NSEC`)],
  });
  const ask = (name: string, dnssecOk: boolean) =>
    bench.ask(`${name}.${SIGNED}`, Qtype.A, { edns: { dnssecOk } });
  assert.match(await ask("a", true), /^NXDOMAIN rd ra; .*invalid \d+ SOA/);
  assert.match(await ask("b", true), /^NOERROR rd ra; .* A 127\.0\.0\.1/);
  assert.match(await ask("forged", false), /^SERVFAIL .*forged\.example\.com CNAME: not signed/);
});

Deno.test(
  "queries for the chain of trust count with the question that they are for",
  none,
  async () => {
    const bench = new Bench();
    bench.said.set(`www.${SIGNED} A`, {
      answer: [bench.signed(`www.${SIGNED} 300 IN A 192.0.2.1`)],
    });
    await bench.ask(`www.${SIGNED}`);
    await bench.ask("nothing.local");
    const { sent, took } = sumRecursion([bench.recursor.front.counters]);
    const asked = bench.recursor.log.filter((line) => line.startsWith(ZONE));
    assert.deepEqual(asked, [`${ZONE} www.${SIGNED} A`, `${ZONE} ${SIGNED} DNSKEY`]);
    assert.equal(sent.sum, bench.recursor.count(), "the root's own servers are asked for as well");
    assert.ok(took.sumMs >= 40);
  },
);

Deno.test("an answer past its time, and past that of its signatures, has no AD", none, async () => {
  const bench = new Bench({ serveStale: 86_400 });
  bench.said.set(`www.${SIGNED} A`, { answer: [bench.signed(`www.${SIGNED} 300 IN A 192.0.2.1`)] });
  const options = { edns: { dnssecOk: true } };
  assert.match(await bench.ask(`www.${SIGNED}`, Qtype.A, options), /^NOERROR rd ra ad; /);
  bench.said.delete(`www.${SIGNED} A`);
  bench.recursor.advance(400_000);
  const stale = await bench.ask(`www.${SIGNED}`, Qtype.A, options);
  assert.match(stale, /^NOERROR rd ra; www\.example\.com 30 A .*OPT do Stale Answer/);
});

Deno.test("who traces a name sees it asked, whatever is proven of it", none, async () => {
  const bench = new Bench();
  const soa = bench.signed(`${SIGNED} 300 IN SOA ns.${SIGNED}. h.${SIGNED}. 1 2 3 4 60`);
  const gap = bench.signed(`${SIGNED} 60 IN NSEC ns.${SIGNED}. NS SOA RRSIG NSEC DNSKEY`);
  for (const name of ["a", "b"]) {
    bench.said.set(`${name}.${SIGNED} A`, { rcode: Rcode.NXDomain, authority: [soa, gap] });
  }
  await bench.ask(`a.${SIGNED}`);
  const before = bench.recursor.count();
  assert.match(await bench.ask(`b.${SIGNED}`), /^NXDOMAIN/);
  assert.equal(bench.recursor.count(), before, "it follows from what is known");
  const { recursor } = bench;
  const trace = new Trace(() => recursor.nowMs);
  const client = recursor.ask(`b.${SIGNED}`, Qtype.A, { edns: { dnssecOk: true }, trace });
  assert.match(await bench.wait(client), /^NXDOMAIN/);
  assert.equal(recursor.count(), before + 1);
  assert.ok(trace.steps.some(({ event }) => event === "asked"));
});

Deno.test(
  "a zone whose signatures fail again and again is left alone (KeyTrap)",
  none,
  async () => {
    const bench = new Bench({ serveStale: 86_400 });
    const { recursor } = bench;
    const addressOf = (name: string) => bench.signed(`${name}.${SIGNED} 300 IN A 192.0.2.1`);
    const spoilt = (name: string): RrSet => {
      const rrset = addressOf(name);
      const [signature] = rrset.signatures;
      const last = signature.at(-1)!;
      return { ...rrset, signatures: [1, 2, 3, 4].map((i) => signature.with(-1, last ^ i)) };
    };
    const say = (name: string, rrset: RrSet) =>
      bench.said.set(`${name}.${SIGNED} A`, { answer: [rrset] });
    const refused = /^SERVFAIL .*OPT DNSSEC Bogus: too many signatures of example\.com do not fit/;
    const ask = (name: string) => bench.ask(`${name}.${SIGNED}`, Qtype.A, { edns: {} });
    for (const name of ["good", "new"]) say(name, addressOf(name));
    assert.match(await ask("good"), /^NOERROR/);
    let asked = 0;
    for (; asked < 100; asked++) {
      say(`n${asked}`, spoilt(`n${asked}`));
      if (refused.test(await ask(`n${asked}`))) break;
    }
    assert.equal(asked, Math.floor(FAILED_CHECKS_MAX / 4) + 1);
    // Nothing is asked any more, however often; what is known and what is not of the zone is answered.
    const before = recursor.count();
    const first = recursor.nowMs;
    assert.match(await ask("new"), refused);
    assert.ok(recursor.nowMs - first >= HOLD_MS, "it is told in a while");
    assert.match(await ask("good"), /^NOERROR/);
    assert.equal(recursor.count(), before);
    bench.said.set("www.island.com A", { answer: [plain("www.island.com 300 IN A 192.0.2.8")] });
    assert.match(await bench.ask("www.island.com"), /^NOERROR/);
    const counts = recursor.front.counters.values;
    assert.equal(counts[Counter.FailingRefused], 2);
    const trace = new Trace(() => recursor.nowMs);
    await bench.wait(recursor.ask(`n.${SIGNED}`, Qtype.A, { trace }));
    assert.match(trace.steps[0].detail ?? "", /^too many signatures of example\.com/);
    assert.match(await bench.ask(`new.${SIGNED}`, Qtype.A, { cd: true }), /^NOERROR/);
    // It is sound again by the first answer that holds; what is not looked at shows nothing. That the
    // system's clock is set back meanwhile makes it no longer.
    recursor.startSeconds -= 600;
    recursor.advance(1_000 * FAILING_S_MIN);
    say("unseen", addressOf("unseen"));
    assert.match(await bench.ask(`unseen.${SIGNED}`, Qtype.A, { cd: true }), /^NOERROR/);
    assert.match(await ask("new"), /^NOERROR/);
    say("later", addressOf("later"));
    assert.match(await ask("later"), /^NOERROR/);
    recursor.run();
    recursor.checkIdle();
  },
);

Deno.test(
  "a zone that signs in another's name has nobody but itself left alone",
  none,
  async () => {
    const com = new FakeKey("com");
    const anchors = new TrustAnchors([com.anchor()]);
    const bench = new Bench({ judge: (made) => checkingAtOnce(made, anchors) });
    const { recursor } = bench;
    bench.said.set("com DNSKEY", { answer: [com.dnskeys([], TIMES)] });
    // As a signature of the domain above it would be, which has a key of this tag.
    const asOf = (name: string): RrSet => {
      const rrset = com.rrset([`${name} 300 IN A 192.0.2.66`], TIMES);
      const [signature] = rrset.signatures;
      return { ...rrset, signatures: [signature.with(-1, signature.at(-1)! ^ 1)] };
    };
    const zone = recursor.servers.get(ZONE)!;
    const parent = recursor.servers.get(COM)!;
    recursor.servers.set(COM, (query) => query.type === Qtype.DNSKEY ? zone(query) : parent(query));
    for (let i = 0; i < 60; i++) {
      bench.said.set(`n${i}.${SIGNED} A`, { answer: [asOf(`n${i}.${SIGNED}`)] });
      await bench.ask(`n${i}.${SIGNED}`);
    }
    const counts = recursor.front.counters.values;
    assert.ok(counts[Counter.FailingRefused] > 0, "it is left alone");
    bench.said.set("www.island.com A", {
      answer: [com.rrset(["www.island.com 300 IN A 192.0.2.8"], TIMES)],
    });
    assert.match(await bench.ask("www.island.com"), /^NOERROR/);
  },
);
