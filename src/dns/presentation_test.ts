import assert from "node:assert/strict";
import { decodeHex } from "../bytes/mod.ts";
import { checkRdata, formatRdata, HEADER_BYTES, Qtype } from "./mod.ts";

const none = { permissions: "none" } as const;

/** `example` at offset 12, `ns.example` at 21, and RDATA behind them. */
const NAMES = "076578616d706c6500" + "026e73c00c";
const RDATA_OFFSET = HEADER_BYTES + NAMES.length / 2;

function packetOf(hex: string): Uint8Array {
  const packet = decodeHex("00".repeat(HEADER_BYTES) + NAMES + hex.replaceAll(" ", ""));
  assert.notEqual(packet, null, hex);
  return packet ?? new Uint8Array(0);
}

function format(type: number, hex: string): string {
  const packet = packetOf(hex);
  return formatRdata(packet, type, RDATA_OFFSET, packet.length - RDATA_OFFSET);
}

function check(type: number, hex: string): boolean {
  const packet = packetOf(hex);
  return checkRdata(packet, type, RDATA_OFFSET, packet.length - RDATA_OFFSET);
}

const WELL_FORMED: readonly (readonly [type: number, hex: string, want: string])[] = [
  [Qtype.A, "c0000201", "192.0.2.1"],
  [Qtype.AAAA, "20010db8000000000000000000000001", "2001:db8::1"],
  [Qtype.NS, "c015", "ns.example"],
  [Qtype.CNAME, "01 61 c00c", "a.example"],
  [Qtype.DNAME, "01 61 00", "a"],
  [Qtype.DNAME, "01 61 c00c", "a.example"],
  [Qtype.PTR, "00", "."],
  [
    Qtype.SOA,
    "c015 01 61 c00c 00000001 00000e10 00000258 00015180 ffffffff",
    "ns.example a.example 1 3600 600 86400 4294967295",
  ],
  [Qtype.MX, "000a 04 6d61696c c00c", "10 mail.example"],
  [Qtype.TXT, "03 612262 00 01 ff", '"a\\"b" "" "\\255"'],
  [Qtype.SPF, "06 763d73706631", '"v=spf1"'],
  [Qtype.HINFO, "07 52464338343832 00", '"RFC8482" ""'],
  [Qtype.SRV, "0001 0002 0035 c015", "1 2 53 ns.example"],
  [
    Qtype.NAPTR,
    "0064 000a 01 75 07 4532552b736970 03 21617e c015",
    '100 10 "u" "E2U+sip" "!a~" ns.example',
  ],
  [Qtype.CAA, "00 05 6973737565 6361 2e 6578616d706c65", '0 issue "ca.example"'],
  [Qtype.CAA, "80 03 746273", '128 tbs ""'],
  [Qtype.TLSA, "03 01 01 d2abde24", "3 1 1 d2abde24"],
  [Qtype.SSHFP, "04 02 0123", "4 2 0123"],
  [Qtype.DS, "ec45 05 01 2bb183af", "60485 5 1 2bb183af"],
  [Qtype.CDS, "0000 00 00 00", "0 0 0 00"],
  [Qtype.DNSKEY, "0101 03 08 03010001", "257 3 8 AwEAAQ=="],
  [Qtype.CDNSKEY, "0100 03 0d 0001", "256 3 13 AAE="],
  [
    Qtype.RRSIG,
    "0001 05 03 00015180 3e7c9dd7 3e5510d7 0a52 07 6578616d706c65 00 0a0b0c",
    "A 5 3 86400 20030322173103 20030220173103 2642 example CgsM",
  ],
  [
    Qtype.RRSIG,
    "ff00 08 00 00000000 ffffffff 00000000 0000 00 01",
    "TYPE65280 8 0 0 21060207062815 19700101000000 0 . AQ==",
  ],
  // RFC 4034 §4.3.
  [
    Qtype.NSEC,
    "04 686f7374 07 6578616d706c65 03 636f6d 00 0006 400100000003" +
    " 041b 000000000000000000000000000000000000000000000000000020",
    "host.example.com A MX RRSIG NSEC TYPE1234",
  ],
  [Qtype.NSEC, "00", "."],
  [
    Qtype.NSEC3,
    "01 01 000c 04 aabbccdd 14 174eb2409fe28bcb4887a1836f957f0a8425e27b 0007 22010000000290",
    "1 1 12 aabbccdd 2T7B4G4VSA5SMI47K61MV5BV1A22BOJR NS SOA MX RRSIG DNSKEY NSEC3PARAM",
  ],
  [Qtype.NSEC3, "01 00 0000 00 01 00", "1 0 0 - 00"],
  [Qtype.NSEC3PARAM, "01 00 000c 04 aabbccdd", "1 0 12 aabbccdd"],
  [Qtype.NSEC3PARAM, "01 00 0000 00", "1 0 0 -"],
  [Qtype.SVCB, "0001 01 61 00 0003 0002 01bb", "1 a port=443"],
  [Qtype.HTTPS, "0001 00 0001 0006 026832 026833", '1 . alpn="h2,h3"'],
  [65280, "c00c", "\\# 2 c00c"],
  [Qtype.NULL, "", "\\# 0"],
];

Deno.test("formatRdata() shows each type in its form", none, () => {
  for (const [type, hex, want] of WELL_FORMED) {
    assert.equal(format(type, hex), want);
    assert.equal(check(type, hex), true, want);
  }
});

Deno.test("checkRdata() refuses RDATA cut or continued at any byte", none, () => {
  // What takes all that is left can be cut in it, and continued.
  const open: readonly number[] = [
    Qtype.TXT,
    Qtype.SPF,
    Qtype.CAA,
    Qtype.TLSA,
    Qtype.SSHFP,
    Qtype.DS,
    Qtype.CDS,
    Qtype.DNSKEY,
    Qtype.CDNSKEY,
    Qtype.RRSIG,
    Qtype.NSEC,
    Qtype.NSEC3,
    Qtype.SVCB,
    Qtype.HTTPS,
    Qtype.NULL,
    65280,
  ];
  let cuts = 0;
  for (const [type, hex, want] of WELL_FORMED) {
    if (open.includes(type)) continue;
    const packet = packetOf(hex + "00");
    for (let length = 0; RDATA_OFFSET + length <= packet.length; length++) {
      const whole = RDATA_OFFSET + length === packet.length - 1;
      assert.equal(checkRdata(packet, type, RDATA_OFFSET, length), whole, `${want}: ${length}`);
      const text = formatRdata(packet, type, RDATA_OFFSET, length);
      assert.equal(text.startsWith(`\\# ${length}`), !whole, `${want}: ${length}`);
      cuts++;
    }
  }
  assert.ok(cuts > 100);
});

Deno.test("formatRdata() shows malformed RDATA as RFC 3597 does", none, () => {
  const rows: [type: number, hex: string, what: string][] = [
    [Qtype.A, "", "no address"],
    [Qtype.A, "c00002", "address of 3 bytes"],
    [Qtype.A, "c000020100", "address of 5 bytes"],
    [Qtype.AAAA, "c0000201", "AAAA of 4 bytes"],
    [Qtype.CNAME, "c01a", "pointer to itself"],
    [Qtype.CNAME, "c000", "pointer into the header"],
    [Qtype.MX, "000a", "no exchange"],
    [Qtype.TXT, "", "no string"],
    [Qtype.TXT, "05 6162", "string over RDLENGTH"],
    [Qtype.CAA, "00 00", "no tag"],
    [Qtype.NSEC, "c00c 0001 40", "compressed next name"],
    [Qtype.NSEC, "00 0001", "window cut"],
    [Qtype.NSEC, "00 0000", "window without bytes"],
    [Qtype.NSEC, "00 0021" + "00".repeat(33), "window of 33 bytes"],
    [Qtype.NSEC, "00 0001 40 0001 40", "window twice"],
    [Qtype.NSEC, "00 0101 40 0001 40", "windows out of order"],
    [Qtype.NSEC3, "01 00 0000 05 aa", "salt over the end"],
    [Qtype.NSEC3, "01 00 0000 00 00", "no hash"],
    [Qtype.RRSIG, "0001 05 03 00015180 3e7d2c57 3e559f57 0a52 c00c 01", "compressed signer"],
    [Qtype.HTTPS, "0001 c00c", "compressed target"],
  ];
  for (const [type, hex, what] of rows) {
    const plain = hex.replaceAll(" ", "");
    assert.equal(format(type, hex), `\\# ${plain.length / 2} ${plain}`.trimEnd(), what);
    assert.equal(check(type, hex), false, what);
  }
});

Deno.test("formatRdata() shows the bytes where a form could not be read again", none, () => {
  const rows: [type: number, hex: string, what: string][] = [
    [Qtype.DNSKEY, "0100 03 08", "empty key"],
    [Qtype.DS, "0001 08 02", "empty digest"],
    [Qtype.CAA, "00 02 6120 61", "tag with a blank"],
    [
      Qtype.NSEC,
      "00" + [0, 1, 2, 3, 4].map((w) => `0${w}20` + "ff".repeat(32)).join(""),
      "1280 types",
    ],
  ];
  for (const [type, hex, what] of rows) {
    const plain = hex.replaceAll(" ", "");
    assert.equal(format(type, hex), `\\# ${plain.length / 2} ${plain}`, what);
    assert.equal(check(type, hex), true, what);
  }
});
