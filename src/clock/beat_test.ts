import assert from "node:assert/strict";
import { untilBeat } from "./beat.ts";

Deno.test("untilBeat() leads to multiples, and never to the one that is just there", {
  permissions: "none",
}, () => {
  const rows: readonly (readonly [number, number, number])[] = [
    [10_000, 0, 10_000],
    [10_000, 3_000, 7_000],
    [10_000, 5_000, 5_000],
    [10_000, 8_000, 12_000],
    [10_000, 9_999.5, 10_000.5], // Early by half a millisecond.
    [5_000, 60_001, 4_999],
  ];
  for (const [periodMs, nowMs, want] of rows) assert.equal(untilBeat(periodMs, nowMs), want);
});

Deno.test("untilBeat() has who begins at any time meet, and keeps their periods", {
  permissions: "none",
}, () => {
  const turns = (periodMs: number, beginMs: number) => {
    const at: number[] = [];
    for (let nowMs = beginMs; (nowMs += untilBeat(periodMs, nowMs)) <= 100_000;) at.push(nowMs);
    return at;
  };
  const [five, ten, fifteen] = [turns(5_000, 1_234), turns(10_000, 777), turns(15_000, 4_321)];
  for (const at of [...ten, ...fifteen]) assert.ok(five.includes(at), `${at}`);
  assert.deepEqual(ten, [
    10_000,
    20_000,
    30_000,
    40_000,
    50_000,
    60_000,
    70_000,
    80_000,
    90_000,
    100_000,
  ]);
});
