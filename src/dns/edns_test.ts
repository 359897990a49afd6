import assert from "node:assert/strict";
import { decodeHex, encodeHex } from "../bytes/mod.ts";
import { InvariantError } from "../errors.ts";
import {
  closeOpt,
  Ede,
  EdnsOption,
  findOption,
  OptionView,
  OptRead,
  OptView,
  paddedLength,
  QUERY_BLOCK_BYTES,
  readEde,
  readEdeCode,
  readOpt,
  readOption,
  RESPONSE_BLOCK_BYTES,
  writeEde,
  writeOpt,
  writeOption,
  writePadding,
} from "./mod.ts";

const none = { permissions: "none" } as const;

function bytes(hex: string): Uint8Array {
  const decoded = decodeHex(hex.replaceAll(" ", ""));
  assert.notEqual(decoded, null, hex);
  return decoded ?? new Uint8Array(0);
}

const A = "00 0001 0001 00000000 0004 c0000201";
const OPT = "00 0029 04d0 01008000 0000";

Deno.test("readOpt() finds the one OPT", none, () => {
  const rows: [hex: string, count: number, want: number, what: string][] = [
    ["", 0, OptRead.None, "no record"],
    [A, 1, OptRead.None, "no OPT"],
    [OPT, 1, OptRead.Found, "OPT"],
    [A + OPT + A, 3, OptRead.Found, "OPT between others"],
    [A + OPT, 1, OptRead.None, "OPT behind the section"],
    [OPT + OPT, 2, OptRead.Malformed, "two OPT"],
    [OPT, 2, OptRead.Malformed, "a record missing"],
    [OPT, 0xffff, OptRead.Malformed, "65534 records missing"],
    ["0161" + OPT, 1, OptRead.Malformed, "OPT with a name"],
    ["c000" + OPT.slice(2), 1, OptRead.Malformed, "OPT with a compressed name"],
    ["00 0029 04d0 00000000 0004 000c 01f4", 1, OptRead.Malformed, "option over the end"],
    ["00 0029 04d0 00000000 0005 000c 0002 00", 1, OptRead.Malformed, "option cut by a byte"],
    ["00 0029 04d0 00000000 0003 000c 00", 1, OptRead.Malformed, "option header cut"],
    ["00 0029 04d0 00000000 01f4", 1, OptRead.Malformed, "RDLENGTH over the end"],
    ["00 0029 04d0 00000000 0004 fde9 0000", 1, OptRead.Found, "an empty option"],
    ["00 0029 0000 00000000 0000", 1, OptRead.Found, "payload 0"],
  ];
  for (const [hex, count, want, what] of rows) {
    const packet = bytes(hex);
    assert.equal(readOpt(packet, 0, packet.length, count, new OptView()), want, what);
  }
});

Deno.test("readOpt() reads what writeOpt() wrote", none, () => {
  const target = new Uint8Array(64);
  const view = new OptView();
  for (const payload of [0, 512, 1232, 65535]) {
    for (
      const [extendedRcode, version, dnssecOk] of [[0, 0, false], [1, 0, true], [255, 255, true]]
    ) {
      const fields = {
        payload,
        extendedRcode: Number(extendedRcode),
        version: Number(version),
        dnssecOk: Boolean(dnssecOk),
      };
      const end = writeOpt(target, 3, 64, fields);
      assert.equal(end, 14);
      assert.equal(readOpt(target, 3, end, 1, view), OptRead.Found);
      assert.deepEqual({ ...view }, { ...fields, optionsOffset: 14, optionsEnd: 14 });
    }
  }
});

Deno.test("options are read as they were written, and filled exactly", none, () => {
  const target = new Uint8Array(128);
  const fields = { payload: 1232, extendedRcode: 0, version: 0, dnssecOk: false };
  let at = writeOpt(target, 0, 128, fields);
  at = writeOption(target, at, 128, EdnsOption.Cookie, bytes("0102030405060708"));
  at = writeEde(target, at, 128, Ede.Blocked, new TextEncoder().encode("by a röle"));
  at = writePadding(target, at, 128, 5);
  closeOpt(target, 0, at);
  assert.equal(encodeHex(target.subarray(11, 23)), "000a00080102030405060708");

  const [opt, option] = [new OptView(), new OptionView()];
  assert.equal(readOpt(target, 0, at, 1, opt), OptRead.Found);
  const codes: number[] = [];
  for (let next = opt.optionsOffset; next < opt.optionsEnd;) {
    next = readOption(target, next, opt.optionsEnd, option);
    assert.ok(next > 0);
    codes.push(option.code, option.dataLength);
  }
  assert.deepEqual(codes, [EdnsOption.Cookie, 8, EdnsOption.Ede, 12, EdnsOption.Padding, 5]);
  assert.equal(readEdeCode(target, opt), Ede.Blocked);
  assert.equal(findOption(target, opt, EdnsOption.Nsid, option), false);
  assert.equal(findOption(target, opt, EdnsOption.Ede, option), true);
  assert.deepEqual(readEde(target, option), { code: Ede.Blocked, text: "by a röle" });
});

Deno.test("readEde() takes texts with and without a zero byte, and none", none, () => {
  const rows: [hex: string, want: ReturnType<typeof readEde>][] = [
    ["0006 616200", { code: 6, text: "ab" }],
    ["0006 6162", { code: 6, text: "ab" }],
    ["ffff", { code: 65535, text: "" }],
    ["0006 ff", { code: 6, text: "\ufffd" }],
    ["00", null],
    ["", null],
  ];
  for (const [hex, want] of rows) {
    const data = bytes(hex);
    const target = new Uint8Array(64);
    const fields = { payload: 512, extendedRcode: 0, version: 0, dnssecOk: false };
    const at = writeOption(target, writeOpt(target, 0, 64, fields), 64, EdnsOption.Ede, data);
    closeOpt(target, 0, at);
    const [opt, option] = [new OptView(), new OptionView()];
    assert.equal(readOpt(target, 0, at, 1, opt), OptRead.Found);
    assert.equal(findOption(target, opt, EdnsOption.Ede, option), true);
    assert.deepEqual(readEde(target, option), want, hex);
    assert.equal(readEdeCode(target, opt), want?.code ?? -1, hex);
  }
});

Deno.test("writers write up to the limit and nothing at all beyond it", none, () => {
  const text = bytes("616263");
  const fields = { payload: 1232, extendedRcode: 0, version: 0, dnssecOk: false };
  const rows: [what: string, lengthBytes: number, write: (t: Uint8Array, l: number) => number][] = [
    ["writeOpt", 11, (target, limit) => writeOpt(target, 2, limit, fields)],
    ["writeOption", 7, (target, limit) => writeOption(target, 2, limit, 65001, text)],
    ["writeEde", 9, (target, limit) => writeEde(target, 2, limit, 15, text)],
    ["writePadding", 24, (target, limit) => writePadding(target, 2, limit, 20)],
  ];
  for (const [what, lengthBytes, write] of rows) {
    const target = new Uint8Array(64).fill(0xee);
    assert.equal(write(target, 2 + lengthBytes - 1), -1, what);
    assert.ok(target.every((byte) => byte === 0xee), what);
    assert.equal(write(target, 2 + lengthBytes), 2 + lengthBytes, what);
    assert.ok(target.every((byte, i) => byte === 0xee || (i >= 2 && i < 2 + lengthBytes)), what);
  }
});

Deno.test("paddedLength() fills blocks up to the limit", none, () => {
  const rows = [
    [1, QUERY_BLOCK_BYTES, 65535, 128],
    [128, QUERY_BLOCK_BYTES, 65535, 128],
    [129, QUERY_BLOCK_BYTES, 65535, 256],
    [468, RESPONSE_BLOCK_BYTES, 65535, 468],
    [469, RESPONSE_BLOCK_BYTES, 65535, 936],
    [469, RESPONSE_BLOCK_BYTES, 500, 500],
    [65535, RESPONSE_BLOCK_BYTES, 65535, 65535],
  ];
  for (const [length, block, limit, want] of rows) {
    assert.equal(paddedLength(length, block, limit), want);
  }
  assert.throws(() => paddedLength(501, RESPONSE_BLOCK_BYTES, 500), InvariantError);
});
