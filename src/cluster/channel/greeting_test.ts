import assert from "node:assert/strict";
import { decodeGreeting, encodeGreeting, isSameGreeting, PROTOCOL } from "./greeting.ts";

const alone = { permissions: "none" } as const;
const GREETING = { version: "0.7.0", clusterId: "c1", memberId: "m1", isWitness: false };

Deno.test("decodeGreeting() reads what encodeGreeting() wrote", alone, () => {
  for (const purpose of ["frames", "question"] as const) {
    const read = decodeGreeting(encodeGreeting(GREETING, purpose));
    assert.deepEqual(read, { kind: "greeting", greeting: GREETING, purpose });
  }
});

Deno.test("decodeGreeting() says what it can't take", alone, async (t) => {
  const good = JSON.parse(new TextDecoder().decode(encodeGreeting(GREETING, "frames")));
  const rows: readonly (readonly [string, string, RegExp])[] = [
    ["no JSON", "hello", /^greets without words$/],
    ["no object", "7", /^greets without words$/],
    ["null", "null", /^greets without words$/],
    [
      "another form",
      JSON.stringify({ protocol: 9, version: "9.0.0" }),
      /^speaks form 9 of the channel \(version 9.0.0\), this one form 1$/,
    ],
    ["no form", JSON.stringify({ ...good, protocol: "1" }), /^speaks another form/],
    ["a line break", JSON.stringify({ ...good, version: "1\n2" }), /can't be understood/],
    ["too long", JSON.stringify({ ...good, member: "m".repeat(129) }), /can't be understood/],
    ["no purpose", JSON.stringify({ ...good, purpose: "dns" }), /can't be understood/],
    ["no witness", JSON.stringify({ ...good, witness: 1 }), /whether it is a witness/],
  ];
  for (const [what, json, want] of rows) {
    await t.step(what, () => {
      const read = decodeGreeting(new TextEncoder().encode(json));
      assert.equal(read.kind, "incompatible");
      assert.match(read.kind === "incompatible" ? read.reason : "", want);
    });
  }
  await t.step("a key of a later release means nothing", () => {
    const json = JSON.stringify({ ...good, protocol: PROTOCOL, colour: "green" });
    assert.equal(decodeGreeting(new TextEncoder().encode(json)).kind, "greeting");
  });
});

Deno.test("isSameGreeting() looks at every part", alone, () => {
  assert.ok(isSameGreeting(GREETING, { ...GREETING }));
  assert.ok(isSameGreeting(null, null));
  assert.ok(!isSameGreeting(GREETING, null));
  for (
    const change of [{ version: "" }, { clusterId: "" }, { memberId: "" }, { isWitness: true }]
  ) {
    assert.ok(!isSameGreeting(GREETING, { ...GREETING, ...change }));
  }
});
