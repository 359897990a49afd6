import assert from "node:assert/strict";
import { addOn } from "./fakes.ts";
import {
  HASHES_AT_ONCE_MAX,
  HASHES_WAITING_MAX,
  hashPassword,
  PASSWORD_LENGTH_MAX,
  preparePasswords,
  verifyPassword,
} from "./passwords.ts";

const VECTORS = new URL("../../../shared/vectors/argon2.json", import.meta.url);

interface Vector {
  readonly type: string;
  readonly version: number;
  readonly password: string;
  readonly phc: string;
}

function readVectors(): Vector[] | null {
  try {
    return JSON.parse(Deno.readTextFileSync(VECTORS)).phc_reference;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotCapable) {
      return null;
    }
    throw error;
  }
}
const vectors = readVectors();

Deno.test("hashPassword() makes Argon2id with OWASP's parameters", addOn, async () => {
  await preparePasswords();
  const [a, b] = await Promise.all([hashPassword("password"), hashPassword("password")]);
  const form = /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[\w+/]{22}\$[\w+/]{43}$/;
  assert.match(a, form);
  assert.match(b, form);
  assert.notEqual(a, b, "each has a salt of its own");
  assert.deepEqual(await verifyPassword(a, "password"), { isRight: true, isRehashDue: false });
  assert.deepEqual(await verifyPassword(a, "Password"), { isRight: false, isRehashDue: false });
});

Deno.test("hashPassword() takes 8 to 256 characters", addOn, async (t) => {
  const rows: [string, string, boolean][] = [
    ["none", "", false],
    ["7", "1234567", false],
    ["8", "12345678", true],
    ["8 of two UTF-16 units", "😀".repeat(8), true],
    ["7 of two UTF-16 units", "😀".repeat(7), false],
    ["256", "a".repeat(256), true],
    ["256 of two UTF-16 units", "😀".repeat(256), true],
    ["257", "a".repeat(257), false],
    ["a million", "a".repeat(1_000_000), false],
  ];
  for (const [name, password, isTaken] of rows) {
    await t.step(name, async () => {
      if (!isTaken) {
        await assert.rejects(() => hashPassword(password), { code: "invalid" });
        return;
      }
      const { isRight } = await verifyPassword(await hashPassword(password), password);
      assert.equal(isRight, true);
    });
  }
});

Deno.test("verifyPassword() takes every composition of the same letters", addOn, async () => {
  const hash = await hashPassword("Zo\u00eb's key");
  assert.equal((await verifyPassword(hash, "Zoe\u0308's key")).isRight, true);
  assert.equal((await verifyPassword(hash, "Zoe's key")).isRight, false);
});

Deno.test({
  name: "verifyPassword() gives the reference vectors (needs the shared vectors)",
  ...addOn,
  ignore: vectors === null,
  fn: async (t) => {
    let rightCount = 0;
    for (const { type, version, password, phc } of vectors!) {
      if (password.length < 8) continue;
      await t.step(phc, async () => {
        const ours = type === "argon2id" && version === 19;
        const { isRight } = await verifyPassword(phc, password);
        assert.equal(isRight, ours, "nothing but Argon2id of version 19 is taken");
        if (ours) rightCount++;
        assert.equal((await verifyPassword(phc, `${password}x`)).isRight, false);
      });
    }
    assert.ok(rightCount > 0);
  },
});

Deno.test("verifyPassword() says when a hash was made with less", addOn, async (t) => {
  const { hash } = await import("@node-rs/argon2");
  const rows: [string, { memoryCost: number; timeCost: number; parallelism: number }, boolean][] = [
    ["less memory", { memoryCost: 4_096, timeCost: 2, parallelism: 1 }, true],
    ["fewer passes", { memoryCost: 19_456, timeCost: 1, parallelism: 1 }, true],
    ["as much", { memoryCost: 19_456, timeCost: 2, parallelism: 1 }, false],
    ["more of everything", { memoryCost: 20_480, timeCost: 3, parallelism: 2 }, false],
  ];
  for (const [name, options, isRehashDue] of rows) {
    await t.step(name, async () => {
      const check = await verifyPassword(await hash("password", options), "password");
      assert.deepEqual(check, { isRight: true, isRehashDue });
    });
  }
});

Deno.test("verifyPassword() is right for nobody", addOn, async () => {
  for (const password of ["password", "", "a".repeat(PASSWORD_LENGTH_MAX)]) {
    assert.equal((await verifyPassword(null, password)).isRight, false);
  }
});

Deno.test("verifyPassword() works as much for nobody as for somebody", addOn, async () => {
  // What takes a place among those at work is a whole check: only then can there be too many.
  const refusedOf = async (hash: string | null): Promise<number> => {
    const checks = Array.from(
      { length: HASHES_AT_ONCE_MAX + HASHES_WAITING_MAX + 3 },
      () => verifyPassword(hash, "wrong password"),
    );
    const ended = await Promise.allSettled(checks);
    return ended.filter(({ status }) => status === "rejected").length;
  };
  assert.deepEqual([await refusedOf(await hashPassword("password")), await refusedOf(null)], [
    3,
    3,
  ]);
});
