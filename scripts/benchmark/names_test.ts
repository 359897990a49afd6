import assert from "node:assert/strict";
import { coldNames, hasParentIn, isAskable, mix, spread } from "./names.ts";

const none = { permissions: "none" } as const;

const ASKABLE = [
  ["www.shop.example.net", true],
  ["_dmarc.shop.net", true],
  ["com", false],
  ["shop.local", false],
  ["1.2.0.192.in-addr.arpa", false],
  ["sh op.net", false],
  ["# a comment", false],
  [`${"a".repeat(60)}.`.repeat(4) + "net", false],
] as const;

Deno.test("isAskable() leaves out what servers treat each in its own way", none, async (t) => {
  for (const [name, want] of ASKABLE) {
    await t.step(name, () => assert.equal(isAskable(name), want));
  }
});

Deno.test("hasParentIn() looks at whole labels", none, () => {
  const names = new Set(["ads.net"]);
  assert.equal(hasParentIn("a.b.ads.net", names), true);
  assert.equal(hasParentIn("ads.net", names), false);
  assert.equal(hasParentIn("myads.net", names), false);
});

Deno.test("mix() has one name in ten blocked, and every name once", none, () => {
  const passed = Array.from({ length: 18 }, (_, i) => `p${i}.net`);
  const blocked = ["b0.net", "b1.net"];
  const mixed = mix({ passed, blocked });
  assert.deepEqual([mixed[9], mixed[19]], blocked);
  assert.deepEqual(new Set(mixed), new Set([...passed, ...blocked]));
  assert.equal(mixed.length, 20);
});

Deno.test("spread() takes values at even distances", none, () => {
  assert.deepEqual(spread([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 3), [0, 3, 6]);
});

Deno.test("coldNames() repeats no name", none, () => {
  const names = [...coldNames(["a.net", "b.net"], "r1", 5)];
  assert.equal(names[2], "r1-2.a.net");
  assert.equal(new Set(names).size, 5);
});
