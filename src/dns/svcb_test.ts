import assert from "node:assert/strict";
import { readJsonVector } from "../../tests/fuzz/dns_seeds.ts";
import { decodeHex, encodeHex } from "../bytes/mod.ts";
import {
  checkSvcb,
  formatSvcb,
  parseSvcb,
  readSvcParam,
  skipSvcbTarget,
  SvcParam,
  SvcParamView,
} from "./mod.ts";

const none = { permissions: "none" } as const;

interface SvcbVectors {
  readonly vectors: readonly { readonly text: string; readonly wire: string }[];
  readonly failure_cases: { readonly text: readonly string[] };
}
const vectors = readJsonVector<SvcbVectors>("svcb-rfc9460.json");
const withVectors = { ...none, ignore: vectors === null };

function bytes(hex: string): Uint8Array {
  const decoded = decodeHex(hex.replaceAll(" ", ""));
  assert.notEqual(decoded, null, hex);
  return decoded ?? new Uint8Array(0);
}

Deno.test("parseSvcb() and formatSvcb() read RFC 9460 appendix D", withVectors, () => {
  let records = 0;
  for (const { text, wire } of vectors?.vectors ?? []) {
    // A comment of the source stands among the vectors; the record is "1 ." of the next one.
    const parsed = parseSvcb(text);
    if (text.startsWith(";")) {
      assert.equal(parsed, null);
      continue;
    }
    assert.equal(parsed && encodeHex(parsed), wire, text);
    const rdata = bytes(wire);
    assert.equal(checkSvcb(rdata, 0, rdata.length), true, text);
    const formatted = formatSvcb(rdata, 0, rdata.length);
    assert.deepEqual(parseSvcb(formatted ?? ""), rdata, text);
    records++;
  }
  assert.equal(records, 10);
});

Deno.test("parseSvcb() refuses the failures of RFC 9460 appendix D.3", withVectors, () => {
  const texts = vectors?.failure_cases.text ?? [];
  assert.equal(texts.length, 10);
  for (const text of texts) {
    const rdata = text.replace(/^\S+ SVCB /, "");
    assert.notEqual(rdata, text);
    assert.equal(parseSvcb(rdata), null, text);
  }
});

Deno.test("formatSvcb() writes each parameter's form", none, () => {
  const rows = [
    ["0 svc.example", "0 svc.example"],
    ["1 .", "1 ."],
    ["1 . port=443 alpn=h2,h3", '1 . alpn="h2,h3" port=443'],
    ["1 . no-default-alpn alpn=h2", '1 . alpn="h2" no-default-alpn'],
    ["1 . ipv4hint=192.0.2.1,192.0.2.2", "1 . ipv4hint=192.0.2.1,192.0.2.2"],
    ["1 . ipv6hint=2001:db8:0::1", "1 . ipv6hint=2001:db8::1"],
    ["1 . ech=AEP+DQ==", "1 . ech=AEP+DQ=="],
    ["1 . dohpath=/dns-query{?dns}", '1 . dohpath="/dns-query{?dns}"'],
    ["1 . ohttp", "1 . ohttp"],
    ["1 . port=53 mandatory=port", "1 . mandatory=port port=53"],
    ["1 . key667", "1 . key667"],
    ['1 . key667="a b"', '1 . key667="a b"'],
    ["1 . key65534=x", '1 . key65534="x"'],
    ["1 . alpn=a\\\\,b,c", '1 . alpn="a\\\\,b,c"'],
  ];
  for (const [text, want] of rows) {
    const rdata = parseSvcb(text);
    assert(rdata !== null, text);
    assert.equal(formatSvcb(rdata, 0, rdata.length), want);
    assert.deepEqual(parseSvcb(want), rdata, want);
  }
});

Deno.test("parseSvcb() refuses what has no form", none, () => {
  const rows = [
    "",
    "1",
    "x .",
    "65536 .",
    "01 .",
    "1 a..b",
    "1 . port=65536",
    "1 . port=-1",
    "1 . port=0x35",
    "1 . alpn=h2,,h3",
    "1 . alpn=,",
    `1 . alpn=${"a".repeat(256)}`,
    "1 . ipv4hint=192.0.2.256",
    "1 . ipv4hint=2001:db8::1",
    "1 . ipv6hint=192.0.2.1",
    "1 . ech=*",
    "1 . ohttp=1",
    "1 . unknown=1",
    "1 . key65535=1",
    "1 . key65536=1",
    "1 . key01=1",
    "1 . mandatory=port",
    "1 . mandatory=unknown port=1",
    '1 . key667="a',
    "1 . key667=\\",
    "1 . key667=\\999",
    `1 . key667=${"a".repeat(65_536)}`,
    "1 . ".padEnd(400_000, " "),
  ];
  for (const text of rows) assert.equal(parseSvcb(text), null, text.slice(0, 60));
});

Deno.test("checkSvcb() tells well-formed RDATA", none, () => {
  const rows: [hex: string, want: boolean, what: string][] = [
    ["0001 00", true, "no parameter"],
    ["0001", false, "no target"],
    ["", false, "nothing"],
    ["0001 0161", false, "target cut"],
    ["0001 c00c", false, "compressed target"],
    ["0001 00 0003 0002 01bb", true, "port"],
    ["0001 00 0003 0002 01", false, "value cut"],
    ["0001 00 0003 00", false, "parameter header cut"],
    ["0001 00 0003 0001 01", false, "port of one byte"],
    ["0001 00 0003 0002 01bb 0001 0003 026832", false, "keys out of order"],
    ["0001 00 0003 0002 01bb 0003 0002 01bb", false, "key twice"],
    ["0001 00 0001 0003 026832", true, "alpn"],
    ["0001 00 0001 0000", false, "alpn empty"],
    ["0001 00 0001 0001 00", false, "alpn with an empty protocol"],
    ["0001 00 0001 0003 036832", false, "alpn over its value"],
    ["0001 00 0004 0003 c00002", false, "ipv4hint of 3 bytes"],
    ["0001 00 0004 0000", false, "ipv4hint empty"],
    ["0001 00 0006 0004 c0000201", false, "ipv6hint of 4 bytes"],
    ["0001 00 0005 0000", false, "ech empty"],
    ["0001 00 0000 0002 0003 0003 0002 01bb", true, "mandatory port"],
    ["0001 00 0000 0002 0003", false, "mandatory port missing"],
    ["0001 00 0000 0002 0003 0004 0004 c0000201", false, "mandatory port passed over"],
    ["0001 00 0000 0004 0003 0004 0003 0002 01bb", false, "second mandatory missing"],
    ["0001 00 0000 0004 0004 0003 0003 0002 01bb", false, "mandatory out of order"],
    ["0001 00 0000 0004 0003 0003 0003 0002 01bb", false, "mandatory port twice"],
    ["0001 00 0000 0002 0000", false, "mandatory mandatory"],
    ["0001 00 0000 0004 0000 0003 0003 0002 01bb", false, "mandatory mandatory and port"],
    ["0001 00 0000 0003 000300 0003 0002 01bb", false, "mandatory of odd length"],
    ["0001 00 0000 0000", false, "mandatory empty"],
  ];
  for (const [hex, want, what] of rows) {
    const rdata = bytes(hex);
    assert.equal(checkSvcb(rdata, 0, rdata.length), want, what);
    assert.equal(formatSvcb(rdata, 0, rdata.length) !== null, want, what);
  }
});

Deno.test("readSvcParam() walks the parameters in place", none, () => {
  const rdata = parseSvcb("1 svc.example alpn=h2 port=443 ipv4hint=192.0.2.1");
  assert(rdata !== null);
  const view = new SvcParamView();
  const met: [number, number][] = [];
  for (let at = skipSvcbTarget(rdata, 0, rdata.length); at < rdata.length;) {
    at = readSvcParam(rdata, at, rdata.length, view);
    assert.ok(at > 0);
    met.push([view.key, view.valueLength]);
  }
  assert.deepEqual(met, [[SvcParam.Alpn, 3], [SvcParam.Port, 2], [SvcParam.Ipv4Hint, 4]]);
});
