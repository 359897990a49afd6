import assert from "node:assert/strict";
import type { SecondStage } from "./second_stage.ts";
import { Upgrade, type UpgradeOptions } from "./upgrade.ts";

/** An upgrade that comes as far as asking what the next program is to inherit, and counts that. */
function counted(): { readonly upgrade: Upgrade; readonly asked: () => number } {
  let asked = 0;
  const node = {
    get named(): never {
      asked++;
      throw new Error("this far");
    },
  } as unknown as UpgradeOptions["node"];
  const stage = { notes: {} } as SecondStage;
  return { upgrade: new Upgrade({ node, stage, onReady: () => {} }), asked: () => asked };
}

// The C library makes the memory that is handed over.
const options = { permissions: { ffi: true, read: true } } as const;

Deno.test("Upgrade.run() makes one next program for who asks twice at once", options, async () => {
  const { upgrade, asked } = counted();
  const both = [upgrade.run(), upgrade.run()];
  assert.deepEqual(await Promise.all(both), [false, false]);
  assert.equal(asked(), 1);
  assert.equal(await upgrade.run(), false);
  assert.equal(asked(), 2, "and another for who asks again");
  assert.match(upgrade.problems.join(), /came to nothing, the former program goes on: this far$/);
});

Deno.test("Upgrade.cancel() starts none any more", options, async () => {
  const { upgrade, asked } = counted();
  const running = upgrade.run();
  upgrade.cancel();
  assert.equal(await running, false);
  assert.equal(asked(), 0);
});
