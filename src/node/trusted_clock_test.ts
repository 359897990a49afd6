import assert from "node:assert/strict";
import { startedAt } from "./trusted_clock.ts";

Deno.test(
  "startedAt() dates the start by the clock as it is by now",
  { permissions: "none" },
  () => {
    let [nowMs, steadyMs] = [1_000_000, 500];
    const atMs = startedAt({ nowMs: () => nowMs }, () => steadyMs);
    const pass = (ms: number, stepMs = 0) => {
      steadyMs += ms;
      nowMs += ms + stepMs;
    };
    assert.equal(atMs(), 1_000_000);
    pass(60_000);
    assert.equal(atMs(), 1_000_000);
    pass(10_000, 900); // As time synchronisation does it.
    assert.equal(atMs(), 1_000_000);
    pass(1_000, 86_400_000);
    assert.equal(atMs(), 1_000_000 + 900 + 86_400_000);
    pass(3_600_000);
    assert.equal(atMs(), 1_000_000 + 900 + 86_400_000, "it stays");
  },
);
