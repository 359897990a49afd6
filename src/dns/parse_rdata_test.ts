import assert from "node:assert/strict";
import { encodeHex } from "../bytes/mod.ts";
import { checkRdata, formatRdata, parseRdata, Qtype } from "./mod.ts";

const none = { permissions: "none" } as const;

/** Text, and how it is shown where that is another. */
const WELL_FORMED: readonly (readonly [type: number, text: string, shown?: string])[] = [
  [Qtype.A, "192.0.2.1"],
  [Qtype.AAAA, "2001:DB8::1", "2001:db8::1"],
  [Qtype.CNAME, "a.example.", "a.example"],
  [Qtype.PTR, "nas.example"],
  [Qtype.MX, "10 mail.example"],
  [Qtype.MX, "0 ."],
  [Qtype.SRV, "1 2 65535 ldap.example"],
  [Qtype.TXT, "v=spf1 include:a.example -all", '"v=spf1 include:a.example -all"'],
  [Qtype.TXT, '"a b" c', '"a b" "c"'],
  [Qtype.TXT, '""'],
  [Qtype.TXT, "", '""'],
  [Qtype.TXT, "\\255\\\\", '"\\255\\\\"'],
  [Qtype.TXT, "ü", '"\\195\\188"'],
  [Qtype.TXT, "x".repeat(300), `"${"x".repeat(255)}" "${"x".repeat(45)}"`],
  [Qtype.CAA, '0 issue "letsencrypt.org; validationmethods=dns-01"'],
  [Qtype.CAA, "128 iodef mailto:a@a.example", '128 iodef "mailto:a@a.example"'],
  [Qtype.HTTPS, "1 . alpn=h2,h3 port=8443", '1 . alpn="h2,h3" port=8443'],
  [Qtype.SVCB, "0 b.example"],
];

Deno.test("parseRdata() reads what formatRdata() shows, and what people write", none, async (t) => {
  for (const [type, text, shown = text] of WELL_FORMED) {
    await t.step(`${type} ${text.slice(0, 40)}`, () => {
      const rdata = parseRdata(type, text);
      assert.ok(rdata !== null);
      assert.ok(checkRdata(rdata, type, 0, rdata.length));
      assert.equal(formatRdata(rdata, type, 0, rdata.length), shown);
      assert.equal(encodeHex(parseRdata(type, shown) ?? new Uint8Array()), encodeHex(rdata));
    });
  }
});

Deno.test("parseRdata() takes nothing else", none, async (t) => {
  const rows: readonly (readonly [number, string])[] = [
    [Qtype.A, "2001:db8::1"],
    [Qtype.A, "192.0.2.1 192.0.2.2"],
    [Qtype.A, ""],
    [Qtype.MX, "mail.example"],
    [Qtype.MX, "65536 mail.example"],
    [Qtype.MX, "010 mail.example"],
    [Qtype.MX, "10 mail.example x"],
    [Qtype.SRV, "1 2 3"],
    [Qtype.PTR, `${"a".repeat(64)}.example`],
    [Qtype.TXT, '"a'],
    [Qtype.TXT, `"${"x".repeat(256)}"`],
    [Qtype.TXT, "\\256"],
    [Qtype.CAA, "0 issue ü"],
    [Qtype.TXT, "x".repeat(20_000)],
    [Qtype.CAA, "0 is-sue x"],
    [Qtype.CAA, "0 issue"],
    [Qtype.CAA, "256 issue x"],
    [Qtype.HTTPS, "1 . alpn="],
    [Qtype.HTTPS, "."],
    [Qtype.DS, "1 2 3 abcd"],
    [65_280, "abcd"],
  ];
  for (const [type, text] of rows) {
    await t.step(`${type} ${text.slice(0, 40)}`, () => assert.equal(parseRdata(type, text), null));
  }
});
