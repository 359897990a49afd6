import assert from "node:assert/strict";
import { OdohKeys } from "./odoh_keys.ts";

Deno.test("OdohKeys rotate daily and keep the former one", { permissions: "none" }, () => {
  const keys = new OdohKeys();
  const first = keys.seeds[0];
  assert.deepEqual([keys.seeds.length, first.length], [1, 32]);
  const told: (readonly Uint8Array[])[] = [];
  let rotate = () => {};
  let everyMs = 0;
  let isEnded = false;
  const end = keys.rotateDaily((seeds) => told.push(seeds), {
    every: (ms, work) => {
      rotate = work;
      everyMs = ms;
      return () => isEnded = true;
    },
  });
  assert.equal(everyMs, 86_400_000);
  rotate();
  const [second] = keys.seeds;
  assert.deepEqual(keys.seeds, [second, first]);
  assert.notDeepEqual(second, first);
  rotate();
  assert.deepEqual(keys.seeds.slice(1), [second]);
  assert.deepEqual(told, [[second, first], keys.seeds]);
  end();
  assert.ok(isEnded);
});
