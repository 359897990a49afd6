import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { type Day, DAYS } from "../model/mod.ts";
import { Schedule } from "./mod.ts";

const none = { permissions: "none" } as const;

type WindowText = readonly [days: string, start: string, end: string];

function scheduleOf(time_zone: string, ...windows: readonly WindowText[]): Schedule {
  return new Schedule({
    name: "test",
    time_zone,
    windows: windows.map(([days, start, end]) => ({ days: days.split(" ") as Day[], start, end })),
  });
}

const EVERY_DAY = DAYS.join(" ");

// 2026-01-05 is a Monday.
const WEEK: readonly (readonly [WindowText, at: string, active: boolean])[] = [
  [["mon", "08:00", "12:00"], "2026-01-05T07:59:59.999Z", false],
  [["mon", "08:00", "12:00"], "2026-01-05T08:00:00Z", true],
  [["mon", "08:00", "12:00"], "2026-01-05T11:59:59.999Z", true],
  [["mon", "08:00", "12:00"], "2026-01-05T12:00:00Z", false],
  [["mon", "08:00", "12:00"], "2026-01-06T10:00:00Z", false],
  [["sat sun", "08:00", "12:00"], "2026-01-10T10:00:00Z", true],
  [["sat sun", "08:00", "12:00"], "2026-01-11T10:00:00Z", true],
  [["sat sun", "08:00", "12:00"], "2026-01-12T10:00:00Z", false],
  // Past midnight: the days are those it starts on.
  [["mon", "22:00", "06:00"], "2026-01-05T05:00:00Z", false],
  [["mon", "22:00", "06:00"], "2026-01-05T22:00:00Z", true],
  [["mon", "22:00", "06:00"], "2026-01-06T00:00:00Z", true],
  [["mon", "22:00", "06:00"], "2026-01-06T05:59:59Z", true],
  [["mon", "22:00", "06:00"], "2026-01-06T06:00:00Z", false],
  [["mon", "22:00", "06:00"], "2026-01-06T22:00:00Z", false],
  [["sun", "22:00", "06:00"], "2026-01-05T05:00:00Z", true],
  [["mon", "22:00", "00:00"], "2026-01-05T23:59:59Z", true],
  [["mon", "22:00", "00:00"], "2026-01-06T00:00:00Z", false],
  // 24:00 is the midnight that ends the day.
  [["mon", "00:00", "24:00"], "2026-01-04T23:59:59Z", false],
  [["mon", "00:00", "24:00"], "2026-01-05T00:00:00Z", true],
  [["mon", "00:00", "24:00"], "2026-01-05T23:59:59Z", true],
  [["mon", "00:00", "24:00"], "2026-01-06T00:00:00Z", false],
  [["mon", "22:00", "24:00"], "2026-01-05T23:00:00Z", true],
  // Ends when it starts: an end that is not earlier runs past no midnight.
  [["mon", "08:00", "08:00"], "2026-01-05T08:00:00Z", false],
  [["mon", "08:00", "08:00"], "2026-01-05T20:00:00Z", false],
];

Deno.test("Schedule.activeAt() reads days, times, midnight and 24:00", none, async (t) => {
  for (const [window, at, active] of WEEK) {
    await t.step(`${window.join(" ")} at ${at}`, () => {
      assert.equal(scheduleOf("UTC", window).activeAt(Date.parse(at)), active);
    });
  }
});

// Berlin: 2026-03-29 02:00 is 03:00; 2026-10-25 03:00 is 02:00 again.
// New York: 2026-03-08 02:00 is 03:00; 2026-11-01 02:00 is 01:00 again.
// Apia: Thursday 2011-12-29 is followed by Saturday the 31st, and 2021-04-04 04:00 is 03:00 again.
const CLOCKS: readonly (readonly [string, WindowText, at: string, active: boolean])[] = [
  ["Europe/Berlin", ["mon", "08:00", "12:00"], "2026-01-05T06:59Z", false],
  ["Europe/Berlin", ["mon", "08:00", "12:00"], "2026-01-05T07:00Z", true],
  ["Europe/Berlin", ["mon", "08:00", "12:00"], "2026-07-06T06:00Z", true],
  ["Europe/Berlin", ["mon", "08:00", "12:00"], "2026-07-06T10:00Z", false],
  // The hour from two to three does not come.
  ["Europe/Berlin", ["sun", "02:15", "02:45"], "2026-03-29T00:59Z", false],
  ["Europe/Berlin", ["sun", "02:15", "02:45"], "2026-03-29T01:00Z", false],
  ["Europe/Berlin", ["sun", "01:30", "02:30"], "2026-03-29T00:59Z", true],
  ["Europe/Berlin", ["sun", "01:30", "02:30"], "2026-03-29T01:00Z", false],
  ["Europe/Berlin", ["sun", "02:30", "04:00"], "2026-03-29T00:59Z", false],
  ["Europe/Berlin", ["sun", "02:30", "04:00"], "2026-03-29T01:00Z", true],
  ["Europe/Berlin", ["sat", "22:00", "06:00"], "2026-03-29T03:59Z", true],
  ["Europe/Berlin", ["sat", "22:00", "06:00"], "2026-03-29T04:00Z", false],
  // The hour from two to three comes twice, and so do its windows.
  ["Europe/Berlin", ["sun", "02:00", "02:30"], "2026-10-25T00:15Z", true],
  ["Europe/Berlin", ["sun", "02:00", "02:30"], "2026-10-25T00:45Z", false],
  ["Europe/Berlin", ["sun", "02:00", "02:30"], "2026-10-25T01:15Z", true],
  ["Europe/Berlin", ["sun", "02:00", "02:30"], "2026-10-25T01:45Z", false],
  ["Europe/Berlin", ["sun", "02:00", "03:00"], "2026-10-25T00:45Z", true],
  ["Europe/Berlin", ["sun", "02:00", "03:00"], "2026-10-25T01:45Z", true],
  ["Europe/Berlin", ["sun", "02:00", "03:00"], "2026-10-25T02:00Z", false],
  ["Europe/Berlin", ["sat", "22:00", "04:00"], "2026-10-25T02:59Z", true],
  ["Europe/Berlin", ["sat", "22:00", "04:00"], "2026-10-25T03:00Z", false],
  ["America/New_York", ["sun", "02:15", "02:45"], "2026-03-08T06:59Z", false],
  ["America/New_York", ["sun", "02:15", "02:45"], "2026-03-08T07:00Z", false],
  ["America/New_York", ["sun", "01:00", "02:00"], "2026-11-01T05:30Z", true],
  ["America/New_York", ["sun", "01:00", "02:00"], "2026-11-01T06:30Z", true],
  ["America/New_York", ["sun", "01:00", "02:00"], "2026-11-01T07:00Z", false],
  ["America/New_York", ["sat", "23:00", "01:30"], "2026-11-01T05:29Z", true],
  ["America/New_York", ["sat", "23:00", "01:30"], "2026-11-01T05:30Z", false],
  ["America/New_York", ["sat", "23:00", "01:30"], "2026-11-01T06:29Z", true],
  ["Pacific/Apia", ["thu", "00:00", "24:00"], "2011-12-30T09:59Z", true],
  ["Pacific/Apia", ["thu", "00:00", "24:00"], "2011-12-30T10:00Z", false],
  ["Pacific/Apia", ["fri", "00:00", "24:00"], "2011-12-30T10:00Z", false],
  ["Pacific/Apia", ["sat", "00:00", "24:00"], "2011-12-30T10:00Z", true],
  // The night of Thursday ends on Saturday, and no night begins on the Friday that was not.
  ["Pacific/Apia", ["thu", "22:00", "06:00"], "2011-12-30T15:59Z", true],
  ["Pacific/Apia", ["thu", "22:00", "06:00"], "2011-12-30T16:00Z", false],
  ["Pacific/Apia", ["fri", "22:00", "06:00"], "2011-12-30T12:00Z", false],
  ["Pacific/Apia", ["sun", "03:00", "04:00"], "2021-04-03T13:30Z", true],
  ["Pacific/Apia", ["sun", "03:00", "04:00"], "2021-04-03T14:30Z", true],
  ["Pacific/Apia", ["sun", "03:00", "04:00"], "2021-04-03T15:00Z", false],
  ["Asia/Kathmandu", ["mon", "05:45", "06:00"], "2026-01-05T00:00Z", true],
];

Deno.test("Schedule.activeAt() goes by the clock on the wall", none, async (t) => {
  for (const [zone, window, at, active] of CLOCKS) {
    await t.step(`${zone}: ${window.join(" ")} at ${at}`, () => {
      assert.equal(scheduleOf(zone, window).activeAt(Date.parse(at)), active);
    });
  }
});

const CHANGES: readonly (readonly [string, WindowText, from: string, next: string])[] = [
  ["UTC", ["mon", "08:00", "12:00"], "2026-01-05T07:00:00.001Z", "2026-01-05T08:00Z"],
  ["UTC", ["mon", "08:00", "12:00"], "2026-01-05T08:00Z", "2026-01-05T12:00Z"],
  ["UTC", ["mon", "08:00", "12:00"], "2026-01-05T12:00Z", "2026-01-12T08:00Z"],
  ["UTC", ["mon", "22:00", "06:00"], "2026-01-05T23:00Z", "2026-01-06T06:00Z"],
  ["Europe/Berlin", ["sun", "01:30", "02:30"], "2026-03-29T00:45Z", "2026-03-29T01:00Z"],
  ["Europe/Berlin", ["sun", "02:30", "04:00"], "2026-03-29T00:00Z", "2026-03-29T01:00Z"],
  ["Europe/Berlin", ["sun", "02:15", "02:45"], "2026-03-29T00:00Z", "2026-04-05T00:15Z"],
  ["Europe/Berlin", ["sun", "02:00", "02:30"], "2026-10-25T00:15Z", "2026-10-25T00:30Z"],
  ["Europe/Berlin", ["sun", "02:00", "02:30"], "2026-10-25T00:30Z", "2026-10-25T01:00Z"],
  ["Europe/Berlin", ["sun", "02:00", "02:30"], "2026-10-25T01:00Z", "2026-10-25T01:30Z"],
  ["America/New_York", ["mon", "09:00", "17:00"], "2026-03-06T12:00Z", "2026-03-09T13:00Z"],
  ["Pacific/Apia", ["fri", "00:00", "24:00"], "2011-12-29T00:00Z", "2012-01-05T10:00Z"],
];

Deno.test("Schedule.nextChangeMs() finds the next switch", none, async (t) => {
  for (const [zone, window, from, next] of CHANGES) {
    await t.step(`${zone}: ${window.join(" ")} from ${from}`, () => {
      const schedule = scheduleOf(zone, window);
      const found = schedule.nextChangeMs(Date.parse(from));
      assert.equal(new Date(found).toISOString(), new Date(next).toISOString());
      assert.equal(
        schedule.nextChangeMs(Date.parse(from), Date.parse(from) + 1),
        Date.parse(from) + 1,
      );
    });
  }
  for (const window of [[EVERY_DAY, "00:00", "24:00"], ["mon", "08:00", "08:00"]] as const) {
    const from = Date.parse("2026-03-28T00:00Z");
    const schedule = scheduleOf("Europe/Berlin", window);
    assert.equal(schedule.nextChangeMs(from), Infinity);
    assert.equal(schedule.nextChangeMs(from, from + 5), from + 5);
  }
});

Deno.test("Schedule switches when nextChangeMs() says, and at no minute between", none, () => {
  const prng = new Prng(seedFromEnv());
  const zones = ["UTC", "Europe/Berlin", "America/New_York", "Pacific/Apia", "Australia/Lord_Howe"];
  const time = () => {
    const minutes = prng.int(24 * 12) * 5;
    return [Math.floor(minutes / 60), minutes % 60].map((n) => String(n).padStart(2, "0")).join(
      ":",
    );
  };
  // Around changes of these clocks, and anywhere.
  const around = [
    "2011-12-29",
    "2026-03-28",
    "2026-10-24",
    "2026-03-07",
    "2026-10-31",
    "2026-04-04",
  ];
  for (let round = 0; round < 40; round++) {
    const windows = Array.from({ length: 1 + prng.int(3) }, (): WindowText => {
      const days = DAYS.filter(() => prng.chance(0.5));
      return [
        days.length === 0 ? "sat" : days.join(" "),
        time(),
        prng.chance(0.2) ? "24:00" : time(),
      ];
    });
    const zone = prng.pick(zones);
    const schedule = scheduleOf(zone, ...windows);
    let at = Date.parse(prng.pick(around)) + prng.int(86_400_000);
    const endMs = at + 2 * 86_400_000;
    while (at < endMs) {
      const next = Math.min(schedule.nextChangeMs(at), endMs);
      const active = schedule.activeAt(at);
      for (let ms = at; ms < next; ms = Math.min(next, Math.floor(ms / 60_000) * 60_000 + 60_000)) {
        const what = `round ${round}: ${zone} ${windows.join("; ")} at ${
          new Date(ms).toISOString()
        }`;
        assert.equal(schedule.activeAt(ms), active, what);
      }
      if (next < endMs) assert.equal(schedule.activeAt(next), !active);
      at = next;
    }
  }
});
