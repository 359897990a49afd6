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

function latency(p50_ms: number | null): Counts["latency"] {
  return { p50_ms, p95_ms: null, p99_ms: null };
}

const NO_TOPS = { names: [], blocked: [], clients: [], blocked_clients: [], lists: [] };
const QUIET = { queries: 0, failures: 0, p50_ms: null, p95_ms: null };
const OWN: Counts = {
  total: 10,
  outcomes: outcomes(3, 7),
  latency: latency(5),
  previous: { total: 2, outcomes: outcomes(1, 1), latency: latency(null) },
  series: [
    { time: HOURS[0], ...outcomes(1, 2), latency: latency(5) },
    { time: HOURS[1], ...outcomes(2, 5), latency: latency(null) },
  ],
  top: {
    ...NO_TOPS,
    names: [{ name: "a.example", count: 6 }],
    clients: [{ name: "Tablet", count: 4, client: "cl_1", address: "192.0.2.1" }],
  },
  upstreams: [{
    address: "192.0.2.53",
    series: [{ ...QUIET, time: HOURS[0], queries: 3, p50_ms: 9 }, { ...QUIET, time: HOURS[1] }],
  }],
};

Deno.test("encodeQuestion() is read by decodeQuestion(), and nothing else is", alone, () => {
  const asked = { hours: 24, step: "10m", client: "cl_1", group: "gr_1" } as const;
  assert.deepEqual(decodeQuestion(encodeQuestion(asked)), asked);
  assert.deepEqual(decodeQuestion(encodeQuestion({ hours: 720, step: "1h" })), {
    ...{ hours: 720, step: "1h" },
  });
  for (const hours of [0, 721, 1.5, -1]) {
    assert.equal(decodeQuestion(encodeQuestion({ hours, step: "1h" })), null);
  }
  assert.equal(decodeQuestion(encodeQuestion({ hours: 25, step: "1m" })), null);
  for (const text of ["", "null", "[]", '{"statistics":7}', '{"hours":7,"step":"1h"}']) {
    assert.equal(decodeQuestion(new TextEncoder().encode(text)), null, text);
  }
});

Deno.test("addCounts() adds step by step, and merges top lists and upstreams", alone, () => {
  const theirs: Counts = {
    total: 5,
    outcomes: outcomes(1, 4),
    latency: latency(7),
    previous: null,
    // Its clock is an hour ahead: what this node has no hour for is in the total alone.
    series: [
      { time: HOURS[1], ...outcomes(1, 1), latency: latency(7) },
      { time: "2026-01-01T02:00:00.000Z", ...outcomes(0, 3), latency: latency(8) },
    ],
    top: {
      ...NO_TOPS,
      names: [{ name: "b.example", count: 7 }, { name: "a.example", count: 2 }],
      blocked: [{ name: "ads.example", count: 1 }],
      clients: [
        { name: "Phone", count: 9, client: null, address: "192.0.2.2" },
        { name: "Tablet", count: 1, client: "cl_1", address: null },
      ],
    },
    upstreams: [
      { address: "192.0.2.53", series: [{ ...QUIET, time: HOURS[0], queries: 2, p50_ms: 4 }] },
      { address: "192.0.2.54", series: [{ ...QUIET, time: HOURS[1], failures: 1 }] },
    ],
  };
  assert.deepEqual(addCounts(OWN, encodeCounts(theirs)), {
    total: 15,
    outcomes: outcomes(4, 11),
    latency: latency(7),
    previous: OWN.previous,
    series: [
      { time: HOURS[0], ...outcomes(1, 2), latency: latency(5) },
      { time: HOURS[1], ...outcomes(3, 6), latency: latency(7) },
    ],
    top: {
      ...NO_TOPS,
      names: [{ name: "a.example", count: 8 }, { name: "b.example", count: 7 }],
      blocked: [{ name: "ads.example", count: 1 }],
      clients: [
        { name: "Phone", count: 9, client: null, address: "192.0.2.2" },
        { name: "Tablet", count: 5, client: "cl_1", address: "192.0.2.1" },
      ],
    },
    upstreams: [
      {
        address: "192.0.2.53",
        series: [{ ...QUIET, time: HOURS[0], queries: 5, p50_ms: 9 }, { ...QUIET, time: HOURS[1] }],
      },
      {
        address: "192.0.2.54",
        series: [{ ...QUIET, time: HOURS[0] }, { ...QUIET, time: HOURS[1], failures: 1 }],
      },
    ],
  });
});

Deno.test(
  "encodeCounts() leaves upstreams out where the channel does not carry them",
  alone,
  () => {
    const points = Array.from({ length: 720 }, () => ({ ...QUIET, time: HOURS[0] }));
    const upstreams = Array.from({ length: 64 }, (_, i) => ({ address: `${i}`, series: points }));
    const answer = encodeCounts({ ...OWN, upstreams });
    assert.ok(answer.length < 1 << 20, `${answer.length} bytes`);
    assert.equal(addCounts(OWN, answer)?.total, 2 * OWN.total);
  },
);

Deno.test("addCounts() takes no answer that is none", alone, async (t) => {
  const rows: readonly (readonly [string, string])[] = [
    ["no JSON", "counts"],
    ["no object", "7"],
    ["no total", JSON.stringify({ ...OWN, total: "10" })],
    ["less than nothing", JSON.stringify({ ...OWN, total: -1 })],
    ["no series", JSON.stringify({ ...OWN, series: {} })],
    ["more steps than were asked for", JSON.stringify({ ...OWN, series: Array(4).fill({}) })],
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

Deno.test("addCounts() adds days by their dates, wherever these begin", alone, () => {
  const day = (time: string, date: string, blocked: number) => ({
    ...{ time, date, ...outcomes(blocked, 0), latency: latency(null) },
  });
  const own = { ...OWN, series: [day("2026-01-01T23:00:00.000Z", "2026-01-02", 1)], upstreams: [] };
  const theirs = {
    ...own,
    series: [
      day("2026-01-01T05:00:00.000Z", "2026-01-01", 8),
      day("2026-01-02T05:00:00.000Z", "2026-01-02", 2),
    ],
  };
  const sum = addCounts(own, encodeCounts(theirs));
  assert.deepEqual(sum?.series, [day("2026-01-01T23:00:00.000Z", "2026-01-02", 3)]);
  const asked = { hours: 8_760, step: "1d" } as const;
  assert.deepEqual(decodeQuestion(encodeQuestion(asked)), asked);
  assert.equal(decodeQuestion(encodeQuestion({ hours: 8_785, step: "1d" })), null);
});
