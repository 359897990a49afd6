import assert from "node:assert/strict";
import { encodeHex } from "../../src/bytes/mod.ts";
import { parseName, Qclass, Qtype, qtypeName } from "../../src/dns/mod.ts";
import {
  deduce,
  parseTrustAnchors,
  publicKeySpki,
  readDenials,
  readSections,
  ROOT_ANCHORS_TEXT,
  type RrSet,
  type RrSetResponse,
  Security,
  TrustAnchors,
  Validator,
  verifySignature,
} from "../../src/dnssec/mod.ts";
import { Prng, seedFromEnv } from "../prng.ts";
import { encodeResponse, parseRecord } from "../replay/records.ts";
import { readSeedPackets } from "./dns_seeds.ts";
import { mutate } from "./mutate.ts";

// Goal: no bytes make a reader of DNSSEC's records, or the validator over them, throw, and nothing
// that is made of chance is secure. Method: captured packets changed by chance, and records of
// random bytes in forms that come close, from one seed.

const PACKETS = 20_000;
const RECORDS = 20_000;
const TYPES = [
  ...[Qtype.A, Qtype.CNAME, Qtype.DNAME, Qtype.SOA, Qtype.DS, Qtype.DNSKEY],
  ...[Qtype.RRSIG, Qtype.NSEC, Qtype.NSEC3, Qtype.NSEC3PARAM],
];
const NAMES = [
  ".",
  "example.",
  "a.example.",
  "*.example.",
  "b.a.example.",
  `${"0".repeat(32)}.example.`,
]
  .map((name) => parseName(name)!);
const { anchors } = parseTrustAnchors(ROOT_ANCHORS_TEXT);

/** RDATA that begins as its type's does, and ends by chance. */
function drawRdata(prng: Prng, type: number): Uint8Array {
  const rest = prng.bytes(prng.int(prng.pick([4, 40, 300])));
  const name = prng.pick(NAMES);
  const bitmap = Uint8Array.of(0, 1 + prng.int(33), ...rest);
  if (prng.chance(0.1)) return rest;
  switch (type) {
    case Qtype.DNSKEY: {
      const algorithm = prng.pick([5, 7, 8, 10, 13, 14, 15, 16, 253]);
      const key = prng.chance(0.5)
        ? prng.bytes(prng.pick([0, 1, 2, 3, 32, 57, 64, 96, 130, 260]))
        : Uint8Array.of(prng.pick([0, 1, 3, 4, 255]), ...rest);
      return Uint8Array.of(1, prng.pick([0, 1, 128, 129]), prng.pick([3, 3, 0]), algorithm, ...key);
    }
    case Qtype.RRSIG:
      return Uint8Array.of(
        0,
        prng.pick(TYPES),
        8,
        prng.int(4),
        ...prng.bytes(14),
        ...name,
        ...rest,
      );
    case Qtype.NSEC:
      return Uint8Array.of(...name, ...bitmap);
    case Qtype.NSEC3:
      return Uint8Array.of(1, prng.int(2), 0, prng.int(60), 0, 20, ...prng.bytes(20), ...bitmap);
    default:
      return prng.chance(0.5) ? name : rest;
  }
}

function drawRrSet(prng: Prng): RrSet {
  const type = prng.pick(TYPES);
  const many = <T>(make: () => T) => Array.from({ length: 1 + prng.int(3) }, make);
  return {
    owner: prng.pick(NAMES),
    type,
    cls: prng.chance(0.95) ? Qclass.IN : prng.int(0xffff),
    ttl: prng.int(0x7fffffff),
    rdatas: many(() => drawRdata(prng, type)),
    signatures: prng.chance(0.8)
      ? many(() => {
        const rdata = drawRdata(prng, Qtype.RRSIG);
        if (rdata.length > 1) rdata.set([0, type]);
        return rdata;
      })
      : [],
  };
}

/** A response that holds a record of each type. */
function ownPacket(): Uint8Array {
  const hash = "0".repeat(32);
  const signature = "8 2 3600 20231201000000 20231101000000 1 example. QUJDREVG";
  const lines = [
    ...["www.example. CNAME a.example.", `www.example. RRSIG CNAME ${signature}`],
    ...[
      "b.example. DNAME c.example.",
      "example. DNSKEY 257 3 8 AwEAAaz/tAm8yTn4",
      "a.example. DS 1 8 2 00ff",
    ],
    ...["example. SOA a.example. b.example. 1 2 3 4 5", "a.example. NSEC b.example. A RRSIG NSEC"],
    ...[`a.example. RRSIG NSEC ${signature}`, `${hash}.example. NSEC3 1 1 5 abcd ${hash} A`],
    ...["example. NSEC3PARAM 1 0 5 -", "example. MX 10 mail.example."],
  ];
  const question = { name: parseName("www.example.")!, type: Qtype.A };
  return encodeResponse(question, 0, {
    answer: lines.map(parseRecord),
    authority: lines.map(parseRecord),
  });
}

const NOTHING: RrSetResponse = { rcode: 0, answer: [], authority: [] };

/** A validator whose records to look up are `answer`'s, under the root's anchors or without any. */
function validatorOf(prng: Prng, answer: () => RrSetResponse | null): Validator {
  const ports = {
    lookUp: () => Promise.resolve(answer()),
    check: (check: Parameters<typeof verifySignature>[0]) =>
      Promise.resolve(verifySignature(check)),
    cuts: { get: () => undefined, set: () => {} },
  };
  const zone = prng.pick(NAMES);
  const keys = { zone, type: Qtype.DNSKEY, rdata: drawRdata(prng, Qtype.DNSKEY) };
  return new Validator(ports, new TrustAnchors(prng.chance(0.5) ? anchors : [keys]));
}

Deno.test(
  "records of chance are never secure, and nothing throws",
  { permissions: { env: true } },
  async () => {
    const prng = new Prng(seedFromEnv());
    const nowS = 1_700_000_000;
    const seen = new Set<Security>();
    for (let i = 0; i < RECORDS; i++) {
      const sets = (count: number) =>
        Array.from({ length: prng.int(count) }, () => drawRrSet(prng));
      const drawn = () => ({
        rcode: prng.pick([0, 0, 3, 6, 2]),
        answer: sets(4),
        authority: sets(6),
      });
      const validator = validatorOf(prng, () => prng.chance(0.1) ? null : drawn());
      const question = { name: prng.pick(NAMES), type: prng.pick([...TYPES, Qtype.ANY]) };
      const response = drawn();
      const place = `record ${i}, ${qtypeName(question.type)}`;
      const { finding } = await validator.validate(question, response, nowS);
      assert.notEqual(finding.security, Security.Secure, place);
      assert.equal(typeof finding.reason, "string");
      seen.add(finding.security);
      const denials = readDenials(prng.pick(NAMES), response.authority);
      deduce(denials, question);
      for (const rrset of response.answer) {
        for (const rdata of rrset.rdatas) publicKeySpki(rdata[3], rdata.subarray(4));
      }
    }
    assert(seen.size > 1);
  },
);

Deno.test("readSections() takes packets apart that were changed by chance", {
  permissions: { env: true, read: true },
}, async () => {
  const prng = new Prng(seedFromEnv());
  const seeds = [ownPacket(), ...readSeedPackets().map(({ packet }) => packet)];
  let read = 0;
  for (let i = 0; i < PACKETS; i++) {
    const packet = mutate(prng, prng.pick(seeds).slice(), seeds);
    try {
      const sections = readSections(packet);
      if (sections === null) continue;
      read++;
      const [first] = sections.answer;
      if (first === undefined) continue;
      const response = { rcode: 0, answer: sections.answer, authority: sections.authority };
      const validator = validatorOf(prng, () => prng.chance(0.5) ? response : NOTHING);
      const question = { name: first.owner, type: first.type };
      const { finding } = await validator.validate(question, response, 1_700_000_000);
      // Captured answers are years old.
      assert.notEqual(finding.security, Security.Secure);
    } catch (error) {
      throw new Error(`packet ${i}: ${encodeHex(packet)}`, { cause: error });
    }
  }
  assert(read > PACKETS / 10);
});
