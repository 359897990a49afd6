import assert from "node:assert/strict";
import { PARKED_MS } from "../isolate/mod.ts";
import { STOP_MS_MAX, StopTime } from "./stop_time.ts";

const none = { permissions: "none" } as const;

Deno.test("StopTime has everything end within two seconds, whatever takes all it may", none, () => {
  assert.equal(STOP_MS_MAX, 2_000);
  for (const lateMs of [0, 3, 250, PARKED_MS / 2]) {
    let nowMs = 7_000;
    const time = new StopTime(() => nowMs);
    const first = time.firstMs();
    assert.ok(first >= 500, "queries in flight have time");
    nowMs += first + lateMs; // As late as who waits for an isolate ever is.
    const last = time.lastMs();
    assert.ok(last >= 500, "and so has the log");
    nowMs += last;
    assert.ok(nowMs < 7_000 + STOP_MS_MAX);
  }
  // Nobody waits for less than nothing.
  let nowMs = 0;
  const time = new StopTime(() => nowMs);
  nowMs = 60_000;
  assert.deepEqual([time.firstMs(), time.lastMs()], [0, 0]);
});
