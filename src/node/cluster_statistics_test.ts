import assert from "node:assert/strict";
import { OUTCOME_NAMES } from "../logqueue/mod.ts";
import {
  addCounts,
  type Counts,
  decodeQuestion,
  encodeCounts,
  encodeQuestion,
} from "./cluster_statistics.ts";

const alone = { permissions: "none" } as const;

function outcomes(blocked: number, cached: number): Counts["outcomes"] {
  const none = Object.fromEntries(OUTCOME_NAMES.map((name) => [name, 0]));
  return { ...none, blocked, cached } as Counts["outcomes"];
}

const HOURS = ["2026-01-01T00:00:00.000Z", "2026-01-01T01:00:00.000Z"] as const;

const OWN: Counts = {
  total: 10,
  outcomes: outcomes(3, 7),
  series: [{ time: HOURS[0], ...outcomes(1, 2) }, { time: HOURS[1], ...outcomes(2, 5) }],
  top: { names: [{ name: "a.example", count: 6 }], blocked: [], clients: [] },
};

Deno.test("encodeQuestion() is read by decodeQuestion(), and nothing else is", alone, () => {
  assert.equal(decodeQuestion(encodeQuestion(24)), 24);
  for (const hours of [0, 721, 1.5, -1]) assert.equal(decodeQuestion(encodeQuestion(hours)), null);
  for (const text of ["", "null", "[]", '{"statistics":7}', '{"hours":7}']) {
    assert.equal(decodeQuestion(new TextEncoder().encode(text)), null, text);
  }
});

Deno.test("addCounts() adds hour by hour, and merges top lists", alone, () => {
  const theirs: Counts = {
    total: 5,
    outcomes: outcomes(1, 4),
    // Its clock is an hour ahead: what this node has no hour for is in the total alone.
    series: [
      { time: HOURS[1], ...outcomes(1, 1) },
      { time: "2026-01-01T02:00:00.000Z", ...outcomes(0, 3) },
    ],
    top: {
      names: [{ name: "b.example", count: 7 }, { name: "a.example", count: 2 }],
      blocked: [{ name: "ads.example", count: 1 }],
      clients: [],
    },
  };
  assert.deepEqual(addCounts(OWN, encodeCounts(theirs)), {
    total: 15,
    outcomes: outcomes(4, 11),
    series: [{ time: HOURS[0], ...outcomes(1, 2) }, { time: HOURS[1], ...outcomes(3, 6) }],
    top: {
      names: [{ name: "a.example", count: 8 }, { name: "b.example", count: 7 }],
      blocked: [{ name: "ads.example", count: 1 }],
      clients: [],
    },
  });
});

Deno.test("addCounts() takes no answer that is none", alone, async (t) => {
  const rows: readonly (readonly [string, string])[] = [
    ["no JSON", "counts"],
    ["no object", "7"],
    ["no total", JSON.stringify({ ...OWN, total: "10" })],
    ["less than nothing", JSON.stringify({ ...OWN, total: -1 })],
    ["no series", JSON.stringify({ ...OWN, series: {} })],
    ["more hours than are kept", JSON.stringify({ ...OWN, series: Array(721).fill({}) })],
  ];
  for (const [what, text] of rows) {
    await t.step(what, () => {
      assert.equal(addCounts(OWN, new TextEncoder().encode(text)), null);
    });
  }
  await t.step("rows that are none are left out", () => {
    const top = { names: [null, 7, { name: 7, count: 1 }, { name: "b.example", count: 1.5 }] };
    const text = JSON.stringify({ total: 1, series: [null, { time: HOURS[0], cached: "1" }], top });
    assert.deepEqual(addCounts(OWN, new TextEncoder().encode(text)), { ...OWN, total: 11 });
  });
  await t.step("a name that is longer than any", () => {
    const top = { names: [{ name: "x".repeat(513), count: 1 }] };
    const answer = new TextEncoder().encode(JSON.stringify({ ...OWN, top }));
    assert.deepEqual(addCounts(OWN, answer)?.top.names, OWN.top.names);
  });
});
