import assert from "node:assert/strict";
import { parseRecord, wireName } from "../../tests/replay/records.ts";
import { encodeHex } from "../bytes/mod.ts";
import { formatName, Qtype } from "../dns/mod.ts";
import { digestKey } from "./digest.ts";
import { parseTrustAnchors, ROOT_ANCHORS_TEXT, TrustAnchors } from "./mod.ts";
import { readDnskey, readDs } from "./records.ts";

const none = { permissions: "none" } as const;

/** The root's key-signing keys, as the zone publishes them. */
const KSK_2017 =
  "AwEAAaz/tAm8yTn4Mfeh5eyI96WSVexTBAvkMgJzkKTOiW1vkIbzxeF3+/4RgWOq7HrxRixHlFlExOLAJr5emLvN7SWX" +
  "gnLh4+B5xQlNVz8Og8kvArMtNROxVQuCaSnIDdD5LKyWbRd2n9WGe2R8PzgCmr3EgVLrjyBxWezF0jLHwVN8efS3rCj/" +
  "EWgvIWgb9tarpVUDK/b58Da+sqqls3eNbuv7pr+eoZG+SrDK6nWeL3c6H5Apxz7LjVc1uTIdsIXxuOLYA4/ilBmSVIzu" +
  "DWfdRUfhHdY6+cn8HFRm+2hM8AnXGXws9555KrUB5qihylGa8subX2Nn6UwNR1AkUTV74bU=";
const KSK_2024 =
  "AwEAAa96jeuknZlaeSrvyAJj6ZHv28hhOKkx3rLGXVaC6rXTsDc449/cidltpkyGwCJNnOAlFNKF2jBosZBU5eeHspaQ" +
  "WOmOElZsjICMQMC3aeHbGiShvZsx4wMYSjH8e7Vrhbu6irwCzVBApESjbUdpWWmEnhathWu1jo+siFUiRAAxm9qyJNg/" +
  "wOZqqzL/dL/q8PkcRU5oUKEpUge71M3ej2/7CPqpdVwuMoTvoB+ZOT4YeGyxMvHmbrxlFzGOHOijtzN+u1TQNatX2XBu" +
  "zZNQ1K+s2CXkPIZo7s6JgZyvaBevYtxPvYLw4z9mR7K2vaF18UYH9Z9GNUUeayffKC73PYc=";

Deno.test("ROOT_ANCHORS_TEXT holds the digests of both keys of the root", none, () => {
  const { anchors, problems } = parseTrustAnchors(ROOT_ANCHORS_TEXT);
  assert.deepEqual(problems, []);
  const want = [[KSK_2017, 20326], [KSK_2024, 38696]] as const;
  assert.equal(anchors.length, want.length);
  for (const [i, [key, tag]] of want.entries()) {
    const { rdata } = parseRecord(`. IN DNSKEY 257 3 8 ${key}`);
    const ds = readDs(anchors[i].rdata);
    assert(ds !== null);
    assert.equal(readDnskey(rdata)?.tag, tag);
    assert.deepEqual([ds.tag, ds.algorithm, ds.digestType], [tag, 8, 2]);
    assert.equal(encodeHex(ds.digest), encodeHex(digestKey(Uint8Array.of(0), rdata, 2)!));
  }
});

Deno.test("parseTrustAnchors() reads what zone files and other resolvers write", none, () => {
  const text = [
    "; comment",
    "",
    "example.com. 3600 IN DS 1 RSASHA256 2 ( 00 11",
    "  22 ) ; the rest",
    "Example.NET IN 300 ds 65535 8 2 AABB",
    ". IN DNSKEY 257 3 8 AwEAAaz/tAm8 yTn4Mfeh ;;state=2 [  VALID  ]",
    "corp DNSKEY 257 3 253 AAAA",
  ].join("\r\n");
  const { anchors, problems } = parseTrustAnchors(text);
  const got = anchors.map(({ zone, type, rdata }) =>
    `${formatName(zone)} ${type} ${encodeHex(rdata).slice(0, 14)}`
  );
  assert.deepEqual(problems, [{ line: 6, message: "the key has not the form of algorithm 8" }]);
  assert.deepEqual(got, [
    `example.com ${Qtype.DS} 00010802001122`,
    `Example.NET ${Qtype.DS} ffff0802aabb`,
    `corp ${Qtype.DNSKEY} 010103fd000000`,
  ]);
});

const BAD: readonly (readonly [string, number, RegExp])[] = [
  ["", 1, /holds no DS or DNSKEY record/],
  ["; nothing\n", 1, /holds no DS or DNSKEY record/],
  ["\n. IN A 192.0.2.1", 2, /type "A": trust anchors are DS or DNSKEY/],
  ["a..b IN DS 1 8 2 00", 1, /"a..b", which is no name/],
  [". IN DS 1 8 00", 1, /no hexadecimal|three numbers/],
  [". IN DS 65536 8 2 00", 1, /three numbers/],
  [". IN DS 1 8 2 0", 1, /no hexadecimal/],
  [". IN DS 1 8 2", 1, /no hexadecimal/],
  [". IN DNSKEY 257 3 8 !", 1, /no base64/],
  [". IN DNSKEY 257 3 8", 1, /no base64/],
  [". IN DNSKEY 257 3 15 AAAA", 1, /not the form of algorithm 15/],
  [". IN DNSKEY 1 3 250 AAAA", 1, /flag 256/],
  [". IN DNSKEY 385 3 250 AAAA", 1, /revoked/],
  [". IN DNSKEY 257 2 250 AAAA", 1, /protocol is 2/],
  [". IN DS 1 8 2 (\n00", 1, /not closed/],
  [". IN DS 1 8 2 00)", 1, /not opened/],
  [".", 1, /type ""/],
  [Array(9).fill(". IN DS 1 8 2 00").join("\n"), 9, /one more than the 8/],
];

Deno.test("parseTrustAnchors() names the line and what is wrong with it", none, async (t) => {
  for (const [text, line, message] of BAD) {
    await t.step(JSON.stringify(text.slice(0, 40)), () => {
      const { problems } = parseTrustAnchors(text);
      assert.equal(problems.length, 1, JSON.stringify(problems));
      assert.equal(problems[0].line, line);
      assert.match(problems[0].message, message);
    });
  }
});

Deno.test("TrustAnchors find the closest point above a name", none, async (t) => {
  const { anchors } = parseTrustAnchors("a.example DS 1 8 2 00\nexample DS 1 8 2 00\n");
  const points = new TrustAnchors(anchors, ["n.example.", "a.example."].map(wireName));
  const rows = [
    ["example.", "anchor example"],
    ["www.EXAMPLE.", "anchor example"],
    ["x.n.example.", "negative n.example"],
    // Of one name with both, the exemption counts.
    ["x.a.example.", "negative a.example"],
    ["aexample.", null],
    [".", null],
  ] as const;
  for (const [name, want] of rows) {
    await t.step(name, () => {
      const point = points.closest(wireName(name));
      assert.equal(point && `${point.kind} ${formatName(point.zone)}`, want);
    });
  }
  assert.deepEqual(points.zones().map((zone) => formatName(zone)), ["example"]);
});
