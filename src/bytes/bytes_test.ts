import assert from "node:assert/strict";
import {
  decodeBase32hex,
  decodeBase64,
  decodeBase64url,
  decodeHex,
  encodeBase32hex,
  encodeBase64,
  encodeBase64url,
  encodeHex,
  equalBytes,
  equalConstantTime,
  getU16,
  getU32,
  setU16,
  setU32,
} from "./mod.ts";

const text = (s: string) => new TextEncoder().encode(s);

Deno.test(
  "getU16() and getU32() read what setU16() and setU32() wrote",
  { permissions: "none" },
  () => {
    const bytes = new Uint8Array(8);
    for (const value of [0, 1, 0x7fff, 0x8000, 0xffff]) {
      setU16(bytes, 1, value);
      assert.equal(getU16(bytes, 1), value);
    }
    for (const value of [0, 1, 0x7fffffff, 0x80000000, 0xffffffff]) {
      setU32(bytes, 3, value);
      assert.equal(getU32(bytes, 3), value);
    }
  },
);

Deno.test("encodeBase64() and encodeBase32hex() give the vectors of RFC 4648 §10", {
  permissions: "none",
}, () => {
  const rows = [
    ["", "", ""],
    ["f", "Zg==", "CO"],
    ["fo", "Zm8=", "CPNG"],
    ["foo", "Zm9v", "CPNMU"],
    [
      "foobar",
      "Zm9vYmFy",
      "CPNMUOJ1E8",
    ],
  ];
  for (const [plain, base64, base32] of rows) {
    assert.equal(encodeBase64(text(plain)), base64);
    assert.equal(encodeBase32hex(text(plain)), base32);
    assert.deepEqual(decodeBase32hex(base32.toLowerCase()), text(plain));
    assert.deepEqual(decodeBase64(base64), text(plain));
  }
});

Deno.test(
  "decodeBase64url(), decodeHex() and decodeBase32hex() refuse what is not theirs",
  { permissions: "none" },
  () => {
    assert.equal(encodeBase64url(new Uint8Array([0xfb, 0xff])), "-_8");
    assert.deepEqual(decodeBase64url("-_8"), new Uint8Array([0xfb, 0xff]));
    for (const bad of ["a", "+/8", "-_8=", "a b"]) assert.equal(decodeBase64url(bad), null, bad);
    assert.equal(encodeHex(new Uint8Array([0, 0xab])), "00ab");
    assert.deepEqual(decodeHex("00AB"), new Uint8Array([0, 0xab]));
    for (const bad of ["0", "0g", " 00"]) assert.equal(decodeHex(bad), null, bad);
    for (const bad of ["C", "CO=", "CW"]) assert.equal(decodeBase32hex(bad), null, bad);
  },
);

Deno.test("equalBytes() and equalConstantTime() agree", { permissions: "none" }, () => {
  for (const [a, b] of [["", ""], ["a", "a"], ["a", "b"], ["a", "ab"], ["abc", "abd"]]) {
    assert.equal(equalBytes(text(a), text(b)), a === b);
    assert.equal(equalConstantTime(text(a), text(b)), a === b);
  }
});
