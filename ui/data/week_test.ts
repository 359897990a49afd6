import assert from "node:assert/strict";
import {
  copyDay,
  exchange,
  onDay,
  paint,
  stateAt,
  type Stretch,
  stretchAt,
  stretchesOf,
  type Window,
  windowsOf,
  withEnd,
} from "./week.ts";

const unasked = { permissions: "none" } as const;
const school: Window = { days: ["mon", "tue"], start: "08:00", end: "13:00" };
const party: Window = { days: ["fri", "sat"], start: "22:00", end: "06:00" };

Deno.test("windowsOf() says what stretchesOf() read", unasked, () => {
  const rows: readonly (readonly Window[])[] = [
    [],
    [school],
    [school, party],
    [{ days: ["sun"], start: "22:00", end: "06:00" }], // Over the end of the week.
    [{ days: ["wed"], start: "00:00", end: "24:00" }],
    [{ days: ["thu"], start: "09:07", end: "09:08" }],
  ];
  for (const windows of rows) {
    const again = windowsOf(stretchesOf(windows));
    assert.deepEqual(stretchesOf(again), stretchesOf(windows));
    assert.ok(again.length <= windows.length, JSON.stringify(again));
  }
});

Deno.test("windowsOf() has no window that is over when it begins", unasked, () => {
  const rows: readonly (readonly Stretch[])[] = [
    [[480, 480 + 1_440]], // A day and a night, to the minute.
    [[0, 7 * 1_440]],
    [[600, 5_000]],
  ];
  for (const stretches of rows) {
    const windows = windowsOf(stretches);
    assert.deepEqual(stretchesOf(windows), stretches);
    for (const { start, end } of windows) assert.notEqual(start, end);
  }
});

Deno.test("paint() joins what touches and cuts what it takes away", unasked, () => {
  assert.deepEqual(paint([[0, 60]], [60, 90], true), [[0, 90]]);
  assert.deepEqual(paint([[0, 90]], [30, 60], false), [[0, 30], [60, 90]]);
  assert.deepEqual(paint([[0, 90]], [0, 90], false), []);
  assert.deepEqual(onDay([[1_380, 1_800]], 1), [[0, 360]]);
});

Deno.test(
  "exchange() takes a stretch elsewhere, around the end of the week as well",
  unasked,
  () => {
    const sunday = stretchesOf([{ days: ["sun"], start: "22:00", end: "06:00" }]);
    const whole = stretchAt(sunday, 60)!;
    assert.deepEqual(whole, [6 * 1_440 + 1_320, 7 * 1_440 + 360]);
    assert.deepEqual(stretchAt(sunday, 6 * 1_440 + 1_400), whole);
    assert.equal(stretchAt(sunday, 7 * 60), null);
    const moved = exchange(sunday, whole, [whole[0] + 1_440, whole[1] + 1_440]);
    assert.deepEqual(windowsOf(moved), [{ days: ["mon"], start: "22:00", end: "06:00" }]);
    const back = exchange([[0, 60]], [0, 60], [-30, 30]);
    assert.deepEqual(windowsOf(back), [{ days: ["sun"], start: "23:30", end: "00:30" }]);
  },
);

Deno.test("withEnd() moves an end no further than the other one", unasked, () => {
  assert.deepEqual(withEnd([60, 180], "to", 240, 30), [60, 240]);
  assert.deepEqual(withEnd([60, 180], "to", 0, 30), [60, 90]);
  assert.deepEqual(withEnd([60, 180], "from", 400, 30), [150, 180]);
  assert.deepEqual(withEnd([60, 180], "from", 0, 30), [0, 180]);
  const night: Stretch = [10_000, 10_440]; // Behind the end of the week, which is at 10,080.
  assert.deepEqual(withEnd(night, "to", 480, 30), [10_000, 10_560]);
});

Deno.test("copyDay() has one day be as another", unasked, () => {
  const stretches = stretchesOf([school, { days: ["wed"], start: "01:00", end: "02:00" }]);
  assert.deepEqual(windowsOf(copyDay(stretches, 0, 2)), [
    { days: ["mon", "tue", "wed"], start: "08:00", end: "13:00" },
  ]);
});

Deno.test("stateAt() tells until when it holds, and when it does next", unasked, () => {
  const stretches = stretchesOf([school, party]);
  assert.deepEqual(stateAt(stretches, 9 * 60), { isActive: true, until: 13 * 60 });
  assert.deepEqual(stateAt(stretches, 14 * 60), { isActive: false, until: 1_440 + 8 * 60 });
  const night = stretchesOf([{ days: ["sun"], start: "22:00", end: "06:00" }]);
  assert.deepEqual(stateAt(night, 6 * 1_440 + 23 * 60), { isActive: true, until: 6 * 60 });
  assert.deepEqual(stateAt(stretchesOf([]), 0), { isActive: false, until: null });
});
