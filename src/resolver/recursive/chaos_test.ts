// Goal: whatever an attacker's name servers say, everybody is answered once and within bounds, nothing is
// believed of other zones, and nobody is asked who is not to be. Method: an Internet with two honest
// zones and one whose servers say anything, all of it drawn from one seed.
import assert from "node:assert/strict";
import { mutate } from "../../../tests/fuzz/mutate.ts";
import { Prng, seedFromEnv } from "../../../tests/prng.ts";
import { encodeResponse, parseRecord } from "../../../tests/replay/records.ts";
import { parseIp } from "../../addr/mod.ts";
import { getU16, setU16 } from "../../bytes/mod.ts";
import { AA_BIT, Qtype, RA_BIT, Rcode, TC_BIT } from "../../dns/mod.ts";
import { isAskable } from "./delegations.ts";
import { type FakeServer, FakeZone, RecursorBench, serverOf } from "./fakes.ts";
import { QUERIES_MAX } from "./limits.ts";

const RUNS = 25;
const QUESTIONS = 12;
const [ROOT, COM, GOOD, EVIL, OTHER] = [
  "198.41.0.4",
  "192.0.2.1",
  "192.0.2.3",
  "192.0.2.6",
  "192.0.2.7",
];
const ZONES = [".", "com", "good.com", "evil.com", "sub.evil.com", "a.sub.evil.com", "net"];
const NAMES = [
  ...["evil.com", "www.evil.com", "a.b.c.d.evil.com", "sub.evil.com", "x.sub.evil.com"],
  ...["*.evil.com", "www.good.com", "ns.good.com", "ns.com", "com", "x.localhost", "."],
];
const ADDRESSES = [EVIL, OTHER, GOOD, "127.0.0.1", "0.0.0.0", "224.0.0.1", "203.0.113.66"];
const ADDRESSES6 = ["::1", "fe80::1", "ff02::1", "2001:db8::66"];
const LONG = `${"l".repeat(60)}.${"m".repeat(60)}.${"n".repeat(60)}.evil.com`;

/** A record of any kind, about the name that was asked for more often than not. */
function anyRecord(prng: Prng, asked: string): string {
  const owner = prng.chance(0.5) ? asked : prng.pick(NAMES);
  const ttl = prng.pick([0, 1, 300, 86_400, 2_147_483_647]);
  const name = () => prng.pick([...NAMES, asked, LONG]);
  const head = `${owner} ${ttl}`;
  switch (prng.int(10)) {
    case 0:
    case 1:
      return `${prng.pick(ZONES)} ${ttl} NS ${name()}`;
    case 2:
      return `${head} A ${prng.pick(ADDRESSES)}`;
    case 3:
      return `${name()} ${ttl} A ${prng.pick(ADDRESSES)}`;
    case 4:
      return `${name()} ${ttl} AAAA ${prng.pick(ADDRESSES6)}`;
    case 5:
      return `${head} CNAME ${name()}`;
    case 6:
      return `${prng.pick(ZONES)} ${ttl} DNAME ${name()}`;
    case 7:
      return `${prng.pick(ZONES)} ${ttl} SOA ns.evil.com h.evil.com 1 2 3 4 ${prng.int(1e6)}`;
    case 8:
      return `${head} NSEC ${name()} A NS RRSIG NSEC`;
    default:
      return `${head} DS 4711 13 2 ${"00".repeat(32)}`;
  }
}

function hostile(prng: Prng): FakeServer {
  const one = ({ name, wireName, type, packet }: Parameters<FakeServer>[0]): Uint8Array => {
    const records = () =>
      Array.from({ length: prng.pick([0, 0, 1, 2, 5]) }, () => parseRecord(anyRecord(prng, name)));
    const authority = records();
    const additional = records();
    if (prng.chance(0.4)) {
      const server = prng.pick(["ns.evil.com", "ns.sub.evil.com", "ns.good.com", "ns.com"]);
      const zone = prng.chance(0.7) ? name : prng.pick(ZONES);
      authority.unshift(parseRecord(`${zone} 300 NS ${server}`));
      additional.push(parseRecord(`${server} 300 A ${prng.pick(ADDRESSES)}`));
    }
    const rcode = prng.chance(0.7) ? prng.pick([0, 0, Rcode.NXDomain]) : prng.int(16);
    const sections = { answer: records(), authority, additional };
    const message = encodeResponse({ name: wireName, type }, rcode, sections);
    let flags = getU16(message, 2);
    if (prng.chance(0.7)) flags |= AA_BIT;
    if (prng.chance(0.1)) flags |= TC_BIT;
    if (prng.chance(0.1)) flags |= RA_BIT;
    setU16(message, 2, flags);
    if (prng.chance(0.2)) return mutate(prng, message, [packet]);
    return message;
  };
  return (query) => Array.from({ length: prng.pick([0, 1, 1, 1, 1, 3]) }, () => one(query));
}

function makeBench(prng: Prng, dnssecOk: boolean): RecursorBench {
  const zone = (name: string, ...lines: string[]) => serverOf(new FakeZone(name, lines));
  const evil = hostile(prng);
  const com = [`good.com NS ns.good.com`, `ns.good.com A ${GOOD}`];
  const evilNs = [`evil.com NS ns.evil.com`, `ns.evil.com A ${EVIL}`];
  return new RecursorBench({
    prngSeed: prng.int(1e9),
    dnssecOk,
    servers: {
      [ROOT]: zone(".", ". NS a.root-servers.net", "com NS ns.com", `ns.com A ${COM}`),
      [COM]: zone("com", ...com, ...evilNs),
      [GOOD]: zone("good.com", "*.good.com A 203.0.113.1", "www.good.com A 203.0.113.1"),
      [EVIL]: evil,
      [OTHER]: evil,
      "203.0.113.66": evil,
    },
  });
}

Deno.test("Recursor keeps its bounds and others' truth, whatever servers say, seeded", {
  permissions: { env: ["SVC_SEED"] },
}, () => {
  const prng = new Prng(seedFromEnv());
  for (let run = 0; run < RUNS; run++) {
    const b = makeBench(prng, prng.chance(0.5));
    for (let i = 0; i < QUESTIONS; i++) {
      const before = b.count();
      const name = prng.pick(["", "a.", "a.b.c.", "x.sub.", `${prng.int(9)}.a.sub.`]) + "evil.com";
      const type = prng.pick([Qtype.A, Qtype.AAAA, Qtype.NS, Qtype.DS, Qtype.CNAME, Qtype.DNAME]);
      assert.match(b.resolve(name, type).answer, /^[A-Z]+ /, name);
      // What is left on its way is for the cache's sake; the root is asked for its servers once.
      assert.ok(b.count() - before <= QUERIES_MAX + 1, `${b.count() - before} queries: ${name}`);
      const good = prng.chance(0.5) ? "www.good.com" : `n${i}.good.com`;
      const { answer } = b.resolve(good);
      if (good === "www.good.com") {
        assert.match(answer, /^NOERROR rd ra; www\.good\.com \d+ A 203\.0\.113\.1$/);
      } else assert.match(answer, /^NXDOMAIN rd ra; good\.com \d+ SOA/);
      if (prng.chance(0.2)) b.advance(prng.pick([1_000, 61_000, 90_000_000]));
    }
    b.run();
    b.checkIdle();
    for (const { address, name } of b.sent) {
      assert.ok(isAskable(parseIp(address)!), address);
      const isTheirs = ![ROOT, COM, GOOD].includes(address);
      if (isTheirs) assert.match(name, /(^|\.)evil\.com$/, `${address} is asked for ${name}`);
    }
  }
});
