import assert from "node:assert/strict";
import { type Account, ByteBudget } from "./byte_budget.ts";

const none = { permissions: "none" } as const;

/** A connection for which so much is held. */
class Held implements Account {
  isCut = false;
  constructor(readonly network: string, public heldBytes = 0) {}

  cut(): void {
    this.isCut = true;
    this.heldBytes = 0;
  }
}

Deno.test(
  "ByteBudget ends what the client holds that holds most, and leaves the others",
  none,
  () => {
    const budget = new ByteBudget(1_000);
    const many = Array.from({ length: 20 }, () => new Held("192.0.2.1"));
    const [one, idle] = [new Held("192.0.2.2"), new Held("192.0.2.1")];
    for (const account of [...many, one, idle]) budget.open(account);
    one.heldBytes = 100; // More than each of the others, and less than all of them.
    budget.grew(100);
    for (const account of many) {
      account.heldBytes = 50;
      budget.grew(50);
    }
    assert.deepEqual([one.isCut, idle.isCut], [false, false]);
    assert.ok(many.slice(0, 18).every(({ isCut }) => isCut));
    assert.equal(budget.cutOff, 19, "up to the one that went over");
  },
);

Deno.test("ByteBudget ends nobody while what was held is gone again", none, () => {
  const budget = new ByteBudget(1_000);
  const account = new Held("192.0.2.1");
  budget.open(account);
  for (let i = 0; i < 100; i++) {
    account.heldBytes = 700;
    budget.grew(700);
    account.heldBytes = 0;
  }
  account.heldBytes = 700;
  budget.grew(700);
  assert.equal(account.isCut, false);
});

Deno.test("ByteBudget forgets a connection that is closed", none, () => {
  const budget = new ByteBudget(1_000);
  const account = new Held("192.0.2.1", 2_000);
  budget.open(account);
  budget.close(account);
  budget.grew(2_000);
  assert.equal(account.isCut, false);
});
