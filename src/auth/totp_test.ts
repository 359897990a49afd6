import assert from "node:assert/strict";
import { newOtpSecret, otpCode, otpStep, otpUri } from "./totp.ts";

const none = { permissions: "none" } as const;
const VECTORS = new URL("../../../shared/vectors/totp-rfc6238.json", import.meta.url);

function readVectors() {
  try {
    return JSON.parse(Deno.readTextFileSync(VECTORS));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotCapable) {
      return null;
    }
    throw error;
  }
}
const vectors = readVectors();

const SECRET = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";
/** A moment 10 s into its step. */
const NOW_MS = 1_111_111_120_000;
const STEP = Math.floor(NOW_MS / 30_000);

Deno.test({
  name: "otpCode() gives the vectors of RFC 6238, appendix B, for SHA-1 (needs the shared vectors)",
  ...none,
  ignore: vectors === null,
  fn: () => {
    const rows = vectors.totp.filter(({ mode }: { mode: string }) => mode === "SHA1");
    assert.ok(rows.length >= 6);
    for (const { time, totp6, secret_base32 } of rows) {
      assert.equal(otpCode(secret_base32, time * 1_000), totp6, String(time));
      assert.equal(otpStep(secret_base32, totp6, time * 1_000, -1), Math.floor(time / 30));
    }
    for (const { counter, hotp6 } of vectors.hotp) {
      assert.equal(otpCode(SECRET, counter * 30_000), hotp6, `step ${counter}`);
    }
  },
});

Deno.test("otpStep() takes a step around now, and each once", none, async (t) => {
  const code = (step: number) => otpCode(SECRET, step * 30_000);
  const rows: [string, string, number, number | null][] = [
    ["now", code(STEP), -1, STEP],
    ["one step ago", code(STEP - 1), -1, STEP - 1],
    ["one step ahead", code(STEP + 1), -1, STEP + 1],
    ["two steps ago", code(STEP - 2), -1, null],
    ["two steps ahead", code(STEP + 2), -1, null],
    ["a code that was used", code(STEP), STEP, null],
    ["an earlier one than was used", code(STEP - 1), STEP, null],
    ["the next after one that was used", code(STEP + 1), STEP, STEP + 1],
    ["now after an earlier one", code(STEP), STEP - 1, STEP],
    ["with a space", `${code(STEP).slice(0, 3)} ${code(STEP).slice(3)}`, -1, STEP],
    ["nothing", "", -1, null],
    ["five digits", code(STEP).slice(1), -1, null],
    ["seven digits", `0${code(STEP)}`, -1, null],
    ["no digits", "abcdef", -1, null],
    ["digits of another script", "١٢٣٤٥٦", -1, null],
  ];
  for (const [name, typed, lastStep, want] of rows) {
    await t.step(name, () => assert.equal(otpStep(SECRET, typed, NOW_MS, lastStep), want));
  }
});

Deno.test("newOtpSecret() draws 160 bits, otpUri() is what authenticators read", none, () => {
  const secret = newOtpSecret();
  assert.match(secret, /^[A-Z2-7]{32}$/);
  assert.notEqual(newOtpSecret(), secret);
  const uri = new URL(otpUri(secret, "Zoë of node@home"));
  assert.equal(uri.protocol, "otpauth:");
  assert.match(uri.href, /^otpauth:\/\/totp\/svc:Zo%C3%AB%20of%20node%40home\?/);
  assert.deepEqual(Object.fromEntries(uri.searchParams), {
    issuer: "svc",
    secret,
    algorithm: "SHA1",
    digits: "6",
    period: "30",
  });
});
