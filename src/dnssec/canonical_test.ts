import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { parseRecord, wireName } from "../../tests/replay/records.ts";
import { concat, encodeHex } from "../bytes/mod.ts";
import { formatName, Qtype } from "../dns/mod.ts";
import { canonicalRdata, canonicalRdatas, signedData } from "./canonical.ts";
import { rrsetsOf } from "./fakes.ts";
import { commonLabels, compareNames, wildcardOf } from "./names.ts";
import { hasType, keyTag, readNsec, readNsec3, readNsec3Param, readRrsig } from "./records.ts";
import { sha1, SHA1_INPUT_MAX } from "./sha1.ts";

const none = { permissions: "none" } as const;

Deno.test("compareNames() orders as RFC 4034 §6.1 does", none, () => {
  const ordered = [
    "example.",
    "a.example.",
    "yljkjljk.a.example.",
    "Z.a.example.",
    "zABC.a.EXAMPLE.",
    "z.example.",
    "\\001.z.example.",
    "*.z.example.",
    "\\200.z.example.",
  ].map(wireName);
  for (const [i, a] of ordered.entries()) {
    for (const [j, b] of ordered.entries()) {
      assert.equal(
        Math.sign(compareNames(a, b)),
        Math.sign(i - j),
        `${formatName(a)} ${formatName(b)}`,
      );
    }
  }
  const common = (a: string, b: string) => commonLabels(wireName(a), wireName(b));
  assert.equal(common("a.B.example.", "x.b.EXAMPLE."), 2);
  assert.equal(common("example.", "."), 0);
  assert.equal(common("a.example.", "a.example."), 2);
  assert.equal(wildcardOf(new Uint8Array(254)), null);
});

Deno.test(
  "canonicalRdata() lowers names of the types of RFC 6840 §5.1, and of no others",
  none,
  async (t) => {
    const rows: readonly (readonly [string, boolean])[] = [
      ["NS NS.Example.", true],
      ["CNAME A.Example.", true],
      ["SOA A.Example. B.Example. 1 2 3 4 5", true],
      ["MX 10 MAIL.Example.", true],
      ["SRV 1 2 3 A.Example.", true],
      ["NAPTR 1 2 S SIP+D2U R A.Example.", true],
      ["RP A.Example. B.Example.", true],
      ["DNAME A.Example.", true],
      ["RRSIG A 8 2 1 2 3 4 Example. QUJD", true],
      ["NSEC A.Example. A", false],
      ["TXT ABC", false],
      ["SVCB \\# 12 0001 0141 07 4578616d706c65 00", false],
    ];
    for (const [text, isLowered] of rows) {
      await t.step(text, () => {
        const { type, rdata } = parseRecord(`a. IN ${text}`);
        const canonical = canonicalRdata(type, rdata);
        assert.equal(encodeHex(canonical) !== encodeHex(rdata), isLowered);
        if (type === Qtype.NAPTR) assert.match(String.fromCharCode(...canonical), /SIP\+D2U/);
        if (type === Qtype.RRSIG) assert.match(String.fromCharCode(...canonical), /ABC$/);
        // Cut anywhere, it is left as it is.
        for (let end = 0; end < rdata.length; end++) canonicalRdata(type, rdata.subarray(0, end));
      });
    }
  },
);

Deno.test("canonicalRdatas() sorts, and leaves equal ones out", none, () => {
  const [rrset] = rrsetsOf(["a. MX 10 B.", "a. MX 5 c.", "a. MX 10 b.", "a. MX 5 C."]);
  const want = ["a. MX 5 c.", "a. MX 10 b."].map((line) => encodeHex(parseRecord(line).rdata));
  assert.deepEqual(canonicalRdatas(rrset).map(encodeHex), want);
});

Deno.test("signedData() lowers owner and signer, and knows a wildcard by its labels", none, () => {
  const data = (owner: string, labels: number, signer: string) => {
    const [rrset] = rrsetsOf([
      `${owner} A 192.0.2.1`,
      `${owner} RRSIG A 8 ${labels} 60 1 1 1 ${signer} QQ==`,
    ]);
    const made = signedData(rrset, canonicalRdatas(rrset), readRrsig(rrset.signatures[0])!);
    return made && encodeHex(made);
  };
  const want = data("www.example.", 2, "example.");
  assert.equal(data("WWW.Example.", 2, "EXAMPLE."), want);
  assert.notEqual(data("www.example.", 1, "example."), want);
  const wildcard = data("*.example.", 1, "example.");
  assert.equal(data("www.example.", 1, "example."), wildcard);
  assert.equal(data("A.b.c.EXAMPLE.", 1, "example."), wildcard);
  // More labels than there are; of an asterisk, one less counts.
  assert.equal(data("www.example.", 3, "example."), null);
  assert.equal(data("*.example.", 2, "example."), null);
});

Deno.test("sha1() hashes as node:crypto does, at every length", none, () => {
  const input = Uint8Array.from({ length: SHA1_INPUT_MAX }, (_, i) => i * 7);
  const hash = new Uint8Array(20);
  for (let length = 0; length <= SHA1_INPUT_MAX; length++) {
    sha1(input, length, hash);
    const want = createHash("sha1").update(input.subarray(0, length)).digest("hex");
    assert.equal(encodeHex(hash), want, `${length}`);
  }
  sha1(hash, 20, hash);
  const longest = createHash("sha1").update(input).digest();
  assert.equal(encodeHex(hash), createHash("sha1").update(longest).digest("hex"), "in place");
});

Deno.test("keyTag() adds carries once", none, () => {
  assert.equal(keyTag(Uint8Array.of(0xff, 0xff, 0xff, 0xff)), 0xffff);
  assert.equal(keyTag(Uint8Array.of(0xff, 0xff, 0, 2)), 2);
  assert.equal(keyTag(Uint8Array.of(1)), 256);
});

Deno.test("readers of NSEC and NSEC3 refuse what has not their form", none, () => {
  const nsec = parseRecord("a. NSEC b. A TYPE1234").rdata;
  const types = readNsec(nsec)!.types;
  assert(hasType(types, Qtype.A) && hasType(types, 1234));
  assert(
    !hasType(types, Qtype.NS) && !hasType(types, 1235) && !hasType(types, 256) &&
      !hasType(types, 0xffff),
  );
  const nsec3 = parseRecord(`a. NSEC3 1 0 5 ${"ab".repeat(255)} ${"0".repeat(32)} A`).rdata;
  assert.equal(readNsec3(nsec3)!.salt.length, 255);
  assert.equal(readNsec3Param(parseRecord("a. NSEC3PARAM 1 0 5 abcd").rdata)!.iterations, 5);
  const bad = [[0, 0], [0, 33], [1, 1, 0x40, 0, 1, 0x40], [0, 2, 1]];
  for (const bitmap of bad) {
    assert.equal(readNsec(concat(wireName("b."), Uint8Array.from(bitmap))), null);
  }
  for (let end = 0; end < nsec3.length - 3; end++) {
    assert.equal(readNsec3(nsec3.subarray(0, end)), null);
  }
});
