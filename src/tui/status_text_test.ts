import assert from "node:assert/strict";
import type { Statistics, Status } from "../api/mod.ts";
import { clusterLines, filteringText, formatStatus } from "./status_text.ts";

const none = { permissions: "none" } as const;
const NOW = new Date("2026-01-02T03:04:05Z");

const MEMBER = {
  address: null,
  this_node: true,
  membership: "voter",
  witness: false,
  reachable: true,
  state: "leader",
  version: "0.7.0",
};
const STATUS = {
  version: "0.7.0",
  node: "node1",
  started_at: "2026-01-01T03:04:05.000Z",
  protection: true,
  paused_until: null,
  problems: ["lists: Ads\n\x1b[31m: the server does not answer"],
  cluster: {
    cluster: "c1",
    leader: "node1",
    term: 7,
    writable: true,
    members: [
      { ...MEMBER, node: "node1", matched: 42 },
      { ...MEMBER, node: "node2", state: "unknown", reachable: false, version: null },
      { ...MEMBER, node: "node3", state: "follower", witness: true },
    ],
  },
  filter: { rules: 120_345 },
  cache: { entries: 1_204, hits: 900, misses: 100 },
  forwarding: { strategy: "order" },
  dns64: null,
  upstreams: [
    { address: "tls://9.9.9.9", healthy: true, latency_ms: 11.5, failures: 0 },
    { address: "192.0.2.1:53", healthy: false, latency_ms: null, failures: 1_200 },
  ],
  querylog: { entries: 10_620, dropped: 3 },
} as unknown as Status;
const DAY = {
  total: 1_000,
  outcomes: { blocked: 310, failed: 2 },
  latency: { p50_ms: 0.05 },
} as unknown as Statistics;

Deno.test("formatStatus() has a line for each fact, and nothing in it acts", none, () => {
  assert.deepEqual(formatStatus(STATUS, DAY, NOW).split("\n"), [
    "node: node1",
    "version: 0.7.0",
    "running: 1 d, since 2026-01-01T03:04:05.000Z",
    "state: degraded",
    "filtering: on",
    "queries: 1,000 in 24 hours, 310 blocked (31 %), 2 failed, median 0.1 ms",
    "rules: 120,345",
    "cache: 1,204 answers, 90 % of queries",
    "log: 10,620 entries, 3 dropped",
    "upstream: ok     12 ms  tls://9.9.9.9",
    "upstream: DOWN       -  192.0.2.1:53, 1,200 failures",
    "cluster: leader node1, term 7, writable",
    "cluster: node1  leader  voter  reachable  0.7.0  at 42",
    "cluster: node2  unknown  voter  NOT REACHABLE",
    "cluster: node3  follower  witness  reachable  0.7.0",
    "problem: lists: Ads\\010\\027[31m: the server does not answer",
  ]);
});

Deno.test("filteringText() tells what holds at the moment", none, () => {
  const rows = [
    [true, null, "filtering"],
    [true, "2026-01-02T03:09:05Z", "paused 5:00"],
    [true, "2026-01-02T03:00:00Z", "filtering"],
    [false, "2026-01-02T03:09:05Z", "protection off"],
  ] as const;
  for (const [protection, paused_until, want] of rows) {
    assert.equal(filteringText({ protection, paused_until }, NOW.getTime()), want);
  }
});

Deno.test("clusterLines() says nothing of a node that is in none", none, () => {
  const cluster = { ...STATUS.cluster, cluster: "" };
  assert.deepEqual(clusterLines({ ...STATUS, cluster }), []);
});
