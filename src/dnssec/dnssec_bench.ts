import { wireName } from "../../tests/replay/records.ts";
import { Qtype, Rcode } from "../dns/mod.ts";
import { canonicalRdatas, signedData } from "./canonical.ts";
import { FakeKey, FakeWorld, rrsetsOf, TIMES } from "./fakes.ts";
import { readSections, TrustAnchors, Validator, verifySignature } from "./mod.ts";
import { HashedDenials, nsec3Hash, nsec3NameError } from "./nsec3.ts";
import { Allowance, NSEC3_ITERATIONS_MAX } from "./limits.ts";
import { readDenials } from "./aggressive.ts";
import { readDnskey, readRrsig } from "./records.ts";
import { createHash } from "node:crypto";
import { encodeResponse, parseRecord } from "../../tests/replay/records.ts";

const key = new FakeKey("example.");
const lines = Array.from({ length: 4 }, (_, i) => `www.example. 300 IN A 192.0.2.${i}`);
const rrset = key.rrset(lines);
const rrsig = readRrsig(rrset.signatures[0])!;
const { publicKey } = readDnskey(key.rdata)!;
const data = signedData(rrset, canonicalRdatas(rrset), rrsig)!;
const { signature } = rrsig;

// What of a validation is the check of the signature: the rest is to be small beside the cheapest.
const four = { group: "an RRset of four addresses, by Ed25519", permissions: "none" } as const;

Deno.bench("verifySignature", { ...four, baseline: true }, () => {
  verifySignature({ algorithm: 15, publicKey, data, signature });
});

Deno.bench("canonicalRdatas, signedData", four, () => {
  signedData(rrset, canonicalRdatas(rrset), rrsig);
});

const packet = encodeResponse({ name: rrset.owner, type: Qtype.A }, Rcode.NoError, {
  answer: lines.map(parseRecord),
});

Deno.bench("readSections", four, () => void readSections(packet));

const fake = new FakeWorld();
fake.addZone(key, null);
const validator = new Validator(fake.ports, new TrustAnchors([key.anchor()]));
const question = { name: rrset.owner, type: Qtype.A };
const response = { rcode: Rcode.NoError, answer: [rrset], authority: [] };

Deno.bench("Validator, the zone's keys known", four, async () => {
  await validator.validate(question, response, TIMES.nowS);
});

const hash = {
  group: "a hash of NSEC3, with as many iterations as are followed",
  permissions: "none",
} as const;
const parameters = { salt: Uint8Array.of(0xab, 0xcd), iterations: NSEC3_ITERATIONS_MAX };
const name = wireName("a.name.of.some.length.example.");

Deno.bench("node:crypto", { ...hash, baseline: true }, () => {
  let digest: Uint8Array = createHash("sha1").update(name).update(parameters.salt).digest();
  for (let i = 0; i < parameters.iterations; i++) {
    digest = createHash("sha1").update(digest).update(parameters.salt).digest();
  }
});

Deno.bench("nsec3Hash", hash, () => void nsec3Hash(name, parameters));

// The most that an answer can make us hash, beside one check.
const worst = { group: "the rounds of NSEC3 of one answer", permissions: "none" } as const;
const denials = readDenials(
  wireName("example."),
  rrsetsOf([`${"0".repeat(32)}.example. NSEC3 1 0 50 abcd ${"0".repeat(31)}1 A`]),
);
const long = wireName(`${"a.".repeat(120)}example.`);

Deno.bench("verifySignature", { ...worst, baseline: true }, () => {
  verifySignature({ algorithm: 15, publicKey, data, signature });
});

Deno.bench("nsec3NameError, used up", worst, () => {
  nsec3NameError(new HashedDenials(denials, new Allowance("HASH_ROUNDS_MAX")), long);
});
