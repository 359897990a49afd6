// Goal: a turn takes on little of what validation asks for, and the last turns all of it.
import assert from "node:assert/strict";
import { Cache } from "../../cache/mod.ts";
import type { BeginLine } from "../../resolver/mod.ts";
import { CounterBlock, COUNTERS_BYTES } from "../../telemetry/mod.ts";
import { ValidationSide } from "./validation_side.ts";

Deno.test("ValidationSide.goOn() takes on little, or all there is", { permissions: "none" }, () => {
  const side = new ValidationSide({ anchors: [], negative: [], pastS: null }, {
    seed: 1,
    cache: new Cache({ sizeBytes: 1024 * 1024, serveStale: 0 }),
    counters: new CounterBlock(new ArrayBuffer(COUNTERS_BYTES)),
    nowMs: () => 0,
    nowSeconds: () => 0,
    beginTurn: () => {},
  });
  let [waiting, between] = [50, 0];
  const line = {
    get waiting() {
      return waiting;
    },
    next: () => waiting-- > 0,
  };
  side.line = line as unknown as BeginLine;
  side.goOn(() => between++, false);
  assert.equal(between, 50 - waiting);
  assert.ok(side.hasMore && side.isActive, `${waiting} are for the next turns`);
  side.goOn(() => between++, true);
  assert.deepEqual([waiting, between], [0, 50]);
  assert.ok(!side.hasMore && !side.isActive);
});
