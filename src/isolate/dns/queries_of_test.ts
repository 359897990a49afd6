import assert from "node:assert/strict";
import { Counter, CounterBlock, COUNTERS_BYTES } from "../../telemetry/mod.ts";
import { queriesOf } from "./queries_of.ts";

Deno.test("queriesOf() counts what has come over every transport", { permissions: "none" }, () => {
  const block = new SharedArrayBuffer(COUNTERS_BYTES);
  const { values } = new CounterBlock(block);
  values[Counter.QueriesUdp] = 3;
  values[Counter.QueriesDoq] = 4;
  values[Counter.Dropped] = 100;
  assert.equal(queriesOf(block), 7);
});
