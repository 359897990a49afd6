import assert from "node:assert/strict";
import { checkRdata, copyRdata, formatRdata, parseName, Qtype } from "./mod.ts";

const none = { permissions: "none" } as const;

// `ns.example` at 12, and two pointers that lead into it: to itself, and to `example` in it.
const NAME = parseName("ns.example")!;
const [WHOLE, REST] = [[0xc0, 12], [0xc0, 15]];
const NUMBERS = [0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5];
const ROWS: readonly (readonly [string, number, readonly number[], string])[] = [
  ["A", Qtype.A, [192, 0, 2, 1], "192.0.2.1"],
  ["CNAME", Qtype.CNAME, WHOLE, "ns.example"],
  ["CNAME of more labels", Qtype.CNAME, [3, 119, 119, 119, ...REST], "www.example"],
  ["MX", Qtype.MX, [0, 10, ...REST], "10 example"],
  ["SOA", Qtype.SOA, [...WHOLE, ...REST, ...NUMBERS], "ns.example example 1 2 3 4 5"],
  ["SRV", Qtype.SRV, [0, 1, 0, 2, 0, 3, ...WHOLE], "1 2 3 ns.example"],
  ["RP", Qtype.RP, [...WHOLE, ...REST], "ns.example example"],
  ["AFSDB", Qtype.AFSDB, [0, 1, ...WHOLE], "1 ns.example"],
  ["TXT", Qtype.TXT, [2, 0xc0, 12], '"\\192\\012"'],
  ["a type not known", 65_280, [0xc0, 12], "\\# 2 c00c"],
];

Deno.test("copyRdata() writes names uncompressed and the rest as it is", none, async (t) => {
  for (const [what, type, rdata, want] of ROWS) {
    await t.step(what, () => {
      const packet = Uint8Array.of(...new Array(12).fill(0), ...NAME, ...rdata);
      const offset = 12 + NAME.length;
      assert.ok(checkRdata(packet, type, offset, rdata.length));
      const target = new Uint8Array(100).fill(0xee);
      const end = copyRdata(packet, type, offset, rdata.length, target, 7);
      // Nothing but itself is needed to read it.
      assert.equal(formatRdata(target.slice(7, end), type, 0, end - 7), want);
      assert.ok(target.subarray(end).every((byte) => byte === 0xee));
      const exact = new Uint8Array(end);
      assert.equal(copyRdata(packet, type, offset, rdata.length, exact, 7), end);
      assert.equal(copyRdata(packet, type, offset, rdata.length, exact.subarray(1), 7), -1);
    });
  }
});
