import assert from "node:assert/strict";
import {
  isSameSha256,
  newPassword,
  newRecoveryCodes,
  newSecret,
  newToken,
  recoveryCodeSha256,
  sha256Hex,
  tokenSha256,
} from "./secrets.ts";

const none = { permissions: "none" } as const;
/** Few drawn secrets show a wrong form; that they differ shows that they are drawn at all. */
const DRAWS = 200;

Deno.test("new secrets have their form and differ", none, async (t) => {
  const rows = [
    ["newToken", newToken, /^svc_[0-9a-f]{64}$/],
    ["newSecret", newSecret, /^[\w-]{43}$/],
    ["newPassword", newPassword, /^[0-9a-hjkmnp-tv-z]{5}(-[0-9a-hjkmnp-tv-z]{5}){3}$/],
    [
      "newRecoveryCodes",
      () => newRecoveryCodes()[9],
      /^[0-9a-hjkmnp-tv-z]{5}(-[0-9a-hjkmnp-tv-z]{5}){2}$/,
    ],
  ] as const;
  for (const [name, draw, form] of rows) {
    await t.step(name, () => {
      const drawn = Array.from({ length: DRAWS }, draw);
      for (const secret of drawn) assert.match(secret, form);
      assert.equal(new Set(drawn).size, DRAWS);
    });
  }
  assert.equal(new Set(newRecoveryCodes()).size, 10);
});

Deno.test("sha256Hex() gives the vector of FIPS 180-2", none, () => {
  const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  assert.equal(sha256Hex("abc"), abc);
  assert.equal(tokenSha256("abc"), abc);
});

Deno.test("isSameSha256() compares hashes and nothing else", none, () => {
  const [a, b] = [sha256Hex("a"), sha256Hex("b")];
  const rows = [
    [a, a, true],
    [a, a.toUpperCase(), true],
    [a, b, false],
    [a, "", false],
    ["", "", false],
    ["ab", "ab", false],
    ["no hex", "no hex", false],
  ] as const;
  for (const [left, right, want] of rows) assert.equal(isSameSha256(left, right), want, right);
});

Deno.test("recoveryCodeSha256() takes a code as people type it", none, () => {
  const want = recoveryCodeSha256("01abc-defgh-jkmnp");
  for (const typed of ["01ABC-DEFGH-JKMNP", "oiabcdefghjkmnp", " OLabc defgh jkmnp "]) {
    assert.equal(recoveryCodeSha256(typed), want, typed);
  }
  assert.notEqual(recoveryCodeSha256("01abc-defgh-jkmnq"), want);
});
