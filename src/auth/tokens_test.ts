import assert from "node:assert/strict";
import { SvcError } from "../errors.ts";
import { newTokenChange, stateAfter } from "../model/fakes.ts";
import type { Credential } from "../model/mod.ts";
import { FakeClock } from "./fakes.ts";
import type { Identity } from "./mod.ts";
import { checkNewToken, findToken, TokenUses, USE_STEP_MS, USES_WRITE_MS } from "./tokens.ts";

const none = { permissions: "none" } as const;
const IN_AN_HOUR = "2026-01-02T04:04:05.000Z";
const { tokens } = stateAfter(newTokenChange(1, "phone"), newTokenChange(2, "tv", IN_AN_HOUR))
  .credentials;
const [phone, tv] = [...tokens.values()];

function callerOf(token: Credential<"tokens"> | null, role: Identity["role"] = "admin"): Identity {
  const actor = { kind: "token", name: token?.spec.name ?? null, address: "192.0.2.1" } as const;
  return { actor, role, user: null, session: null, token };
}

Deno.test("findToken() finds a token by its hash alone", none, () => {
  assert.equal(findToken(tokens, phone.secret.sha256), phone);
  assert.equal(findToken(tokens, tv.secret.sha256), tv);
  assert.equal(findToken(tokens, "ab".repeat(32)), null);
  assert.equal(findToken(stateAfter().credentials.tokens, phone.secret.sha256), null);
});

Deno.test("checkNewToken() gives nobody more than they have", none, () => {
  const nowMs = new FakeClock().ms;
  const check = (caller: Identity, role: "admin" | "viewer", expires_at: string | null) => {
    try {
      checkNewToken({ name: "new", role, expires_at }, caller, nowMs);
      return "taken";
    } catch (error) {
      assert.ok(error instanceof SvcError);
      return error.code;
    }
  };
  assert.equal(check(callerOf(null), "admin", null), "taken");
  assert.equal(check(callerOf(phone), "admin", null), "taken");
  assert.equal(check(callerOf(phone, "viewer"), "admin", null), "forbidden");
  assert.equal(check(callerOf(tv), "viewer", null), "forbidden");
  assert.equal(check(callerOf(tv), "viewer", "2026-01-02T04:04:06.000Z"), "forbidden");
  assert.equal(check(callerOf(tv), "viewer", IN_AN_HOUR), "taken");
  assert.equal(check(callerOf(null), "viewer", "2026-01-02T03:04:05.000Z"), "invalid");
});

Deno.test(
  "TokenUses tells the minute of the last use, and writes once in a while",
  none,
  async () => {
    const clock = new FakeClock();
    const written: unknown[] = [];
    let kept: unknown = null;
    let failures = 0;
    const store = {
      localValue: () => Promise.resolve(kept),
      putLocalValue: async (_: string, value: unknown) => {
        await undefined;
        if (failures-- > 0) throw new SvcError("unavailable", "the disk is full");
        written.push(kept = value);
      },
    };
    const uses = await TokenUses.open(store, clock, () => tokens);
    const minute = clock.ms - clock.ms % USE_STEP_MS;
    for (let i = 0; i < 1_000; i++) uses.used(callerOf(phone));
    uses.used(callerOf(null));
    assert.equal(uses.lastUsedMs(phone.id), minute);
    assert.equal(uses.lastUsedMs(tv.id), null);
    assert.deepEqual(written, []);
    clock.ms += USES_WRITE_MS;
    failures = 1;
    uses.used(callerOf(tv));
    await uses.save();
    assert.deepEqual(written, [{ [phone.id]: minute, [tv.id]: minute + USES_WRITE_MS }]);
    await uses.save();
    assert.equal(written.length, 1, "nothing is new");
    const again = await TokenUses.open(store, clock, () => tokens);
    assert.equal(again.lastUsedMs(phone.id), minute);
    kept = "text";
    assert.equal((await TokenUses.open(store, clock, () => tokens)).lastUsedMs(phone.id), null);
  },
);
