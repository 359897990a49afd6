// Goal: the examples of the RFCs hold. Method: keys, signatures, hashes and whole responses of RFC
// 4035 appendix B, 5155 appendix B, 5702, 6605 and 8080, and each with something spoilt.

import assert from "node:assert/strict";
import { parseRecord, wireName } from "../../tests/replay/records.ts";
import { decodeHex, encodeBase32hex, encodeHex } from "../bytes/mod.ts";
import { parseQtype, Qtype, Rcode } from "../dns/mod.ts";
import { canonicalRdatas, signedData } from "./canonical.ts";
import { digestKey } from "./digest.ts";
import { FakePorts, responseOf, rrsetsOf } from "./fakes.ts";
import {
  Security,
  TrustAnchors,
  Validator,
  type Verdict,
  verifySignature,
  verifySignatureAsync,
} from "./mod.ts";
import { nsec3Hash } from "./nsec3.ts";
import { readDnskey, readDs, readRrsig } from "./records.ts";

const SHARED = new URL("../../../shared/vectors/", import.meta.url);
const ABSENT = await Deno.stat(new URL("dnssec-zones.json", SHARED)).then(() => false, () => true);
if (ABSENT) console.warn("skipped: the RFCs' examples of DNSSEC need ../shared/vectors");
const OPTIONS = { ignore: ABSENT, permissions: { read: [SHARED] } };

interface AlgorithmVector {
  readonly algorithm: number;
  readonly owner: string;
  readonly dnskey: string;
  readonly dnskey_wire: string;
  readonly key_tag: number;
  readonly ds: string | null;
  readonly ds_matches: boolean | null;
  readonly rrset: readonly string[];
  readonly rrsig: string;
  readonly verified_here: string;
}

interface ZoneVectors {
  readonly verify_at: number;
  readonly dnskey: readonly string[];
  readonly zone: readonly string[];
  readonly responses: readonly {
    readonly section: string;
    readonly title: string;
    readonly header: string;
    readonly question: readonly [string, string, string];
    readonly answer: readonly string[];
    readonly authority: readonly string[];
  }[];
  readonly nsec3_hashes?: readonly {
    readonly name: string;
    readonly salt: string;
    readonly iterations: number;
    readonly hash: string;
  }[];
}

const read = <T>(file: string) => JSON.parse(Deno.readTextFileSync(new URL(file, SHARED))) as T;

Deno.test(
  "verifySignature() takes the examples of each algorithm, and none spoilt",
  OPTIONS,
  async (t) => {
    const { vectors } = read<{ vectors: AlgorithmVector[] }>("dnssec-algorithms.json");
    for (const [i, vector] of vectors.entries()) {
      await t.step(`${i}: algorithm ${vector.algorithm}, ${vector.verified_here}`, async () => {
        const wire = parseRecord(`${vector.owner} IN DNSKEY ${vector.dnskey}`).rdata;
        assert.equal(encodeHex(wire), vector.dnskey_wire);
        const key = readDnskey(wire);
        assert(key !== null);
        assert.equal(key.tag, vector.key_tag);
        if (vector.ds !== null && vector.ds !== undefined) {
          const ds = readDs(parseRecord(`${vector.owner} IN DS ${vector.ds}`).rdata);
          assert(ds !== null);
          const digest = digestKey(wireName(vector.owner), wire, ds.digestType);
          assert.equal(encodeHex(digest!) === encodeHex(ds.digest), vector.ds_matches);
        }
        const line = `${vector.rrset[0].split(" ")[0]} IN RRSIG ${vector.rrsig}`;
        const [rrset] = rrsetsOf([...vector.rrset, line]);
        const rrsig = readRrsig(rrset.signatures[0]);
        assert(rrsig !== null);
        const data = signedData(rrset, canonicalRdatas(rrset), rrsig);
        assert(data !== null);
        const { algorithm, publicKey } = key;
        const { signature } = rrsig;
        const check = { algorithm, publicKey, data, signature };
        const isGood = vector.verified_here === "valid";
        assert.equal(verifySignature(check), isGood);
        assert.equal(await verifySignatureAsync(check), isGood);
        for (const [what, bytes] of Object.entries({ data, signature })) {
          const spoilt = bytes.slice();
          spoilt[bytes.length >> 1] ^= 1;
          assert.equal(verifySignature({ ...check, [what]: spoilt }), false, what);
          assert.equal(await verifySignatureAsync({ ...check, [what]: spoilt }), false, what);
        }
      });
    }
  },
);

Deno.test("nsec3Hash() gives the hashes of RFC 5155 appendix A", OPTIONS, () => {
  const hashes = read<Record<string, ZoneVectors>>("dnssec-zones.json").rfc5155.nsec3_hashes!;
  assert(hashes.length > 10);
  for (const { name, salt, iterations, hash } of hashes) {
    const made = nsec3Hash(wireName(name.toUpperCase()), { salt: decodeHex(salt)!, iterations });
    assert.equal(encodeBase32hex(made).toLowerCase(), hash, name);
  }
});

/**
 * What comes of each response. RFC 5155's zone has opt-out everywhere (§9.2: no AD), and DS of the
 * anchored zone itself is its parent's, of which nothing is known.
 */
const WANT: Readonly<Record<string, readonly [security: Security, rcode: number]>> = {
  "rfc4035 B.1": [Security.Secure, Rcode.NoError],
  "rfc4035 B.2": [Security.Secure, Rcode.NXDomain],
  "rfc4035 B.3": [Security.Secure, Rcode.NoError],
  "rfc4035 B.6": [Security.Secure, Rcode.NoError],
  "rfc4035 B.7": [Security.Secure, Rcode.NoError],
  "rfc4035 B.8": [Security.Insecure, Rcode.NoError],
  "rfc5155 B.1": [Security.Insecure, Rcode.NXDomain],
  "rfc5155 B.2": [Security.Secure, Rcode.NoError],
  "rfc5155 B.2.1": [Security.Secure, Rcode.NoError],
  "rfc5155 B.4": [Security.Insecure, Rcode.NoError],
  "rfc5155 B.5": [Security.Insecure, Rcode.NoError],
  "rfc5155 B.6": [Security.Insecure, Rcode.NoError],
};

Deno.test(
  "Validator proves the responses of the RFCs, and none that lacks a record",
  OPTIONS,
  async (t) => {
    const files = read<Record<string, ZoneVectors>>("dnssec-zones.json");
    let seen = 0;
    for (const rfc of ["rfc4035", "rfc5155"]) {
      const { verify_at: nowS, dnskey, zone, responses } = files[rfc];
      const keys = [...dnskey, ...zone.filter((line) => / RRSIG DNSKEY /.test(line))];
      const anchors = new TrustAnchors(
        dnskey.map(parseRecord).map((record) => ({
          zone: record.owner,
          type: Qtype.DNSKEY,
          rdata: record.rdata,
        })),
      );
      const ports = () =>
        new FakePorts((_, type) =>
          type === Qtype.DNSKEY ? responseOf("example.", type, { answer: keys }) : null
        );
      for (const { section, title, header, question, answer, authority } of responses) {
        const want = WANT[`${rfc} ${section}`];
        if (want === undefined) continue; // Referrals: DS is asked for by itself.
        seen++;
        const asked = { name: wireName(question[0]), type: parseQtype(question[2])! };
        const rcode = Number(/RCODE=(\d+)/.exec(header)![1]);
        const validate = async (answer: readonly string[], authority: readonly string[]) => {
          const response = responseOf(question[0], asked.type, { answer, authority }, rcode);
          return await new Validator(ports(), anchors).validate(asked, response, nowS);
        };
        await t.step(`${rfc} ${section}: ${title}`, async () => {
          const verdict = await validate(answer, authority);
          const got = [verdict.finding.security, verdict.rcode];
          assert.deepEqual(got, want, verdict.finding.reason);
        });
        // Less than secure what was secure, and no better than insecure what was that; unsigned data
        // leads to a question for DS, which has no answer here.
        const isWeak = ({ finding }: Verdict) =>
          finding.security >= (want[0] === Security.Secure ? Security.Indeterminate : want[0]);
        for (const [i, line] of answer.entries()) {
          await t.step(`without ${line.slice(0, 60)}`, async () => {
            assert(isWeak(await validate(answer.filter((_, j) => j !== i), authority)));
          });
        }
        for (const [i, line] of authority.entries()) {
          // SOA proves nothing, and NS has no part in an answer.
          if (/ (NS|SOA) /.test(line)) continue;
          await t.step(`without ${line.slice(0, 60)}`, async () => {
            assert(isWeak(await validate(answer, authority.filter((_, j) => j !== i))));
          });
        }
      }
    }
    assert.equal(seen, Object.keys(WANT).length);
  },
);
