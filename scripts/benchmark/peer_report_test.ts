import assert from "node:assert/strict";
import { parseH2loadLog } from "./paced_loads.ts";
import { formatPeers, peerTargets } from "./peer_report.ts";
import type { PeerFigures } from "./peer_runs.ts";
import { isMet, MIB_BYTES } from "./targets.ts";

const none = { permissions: "none" } as const;

function figures(cpuUs: number, doqGrowthMib: number | null): PeerFigures {
  const of = (us: number) => [{
    ...{ perSecond: 1e6 / us, userUs: us, systemUs: 0, busyShare: 1, loadBusyShare: 0.5 },
  }];
  return {
    version: "1.2.3",
    startsMs: [900, 1_100, 1_000],
    memory: {
      restBytes: 100 * MIB_BYTES,
      loadedBytes: 150 * MIB_BYTES,
      peakBytes: 300 * MIB_BYTES,
      reloadedBytes: 160 * MIB_BYTES,
    },
    doqGrowthBytes: doqGrowthMib === null ? null : doqGrowthMib * MIB_BYTES,
    runs: {
      udp: { cached: of(cpuUs) },
      ...doqGrowthMib === null ? {} : { doq: { cached: of(10 * cpuUs) } },
    },
    latency: { udp: { p50Us: 80, p99Us: 200 } },
  };
}

const RESULTS = { svc: figures(4, 40), adguard: figures(5, 90), blocky: figures(20, null) };

Deno.test("formatPeers() has each peer's figures and svc's share of them", none, () => {
  const lines = formatPeers(RESULTS).split("\n").map((line) => line.split(/ {2,}/));
  const row = (name: string) => lines.find(([first]) => first === name)?.slice(1);
  assert.deepEqual(row("CPU µs: udp, cached"), ["4.00", "5.00", "20.00", "0.80", "0.20"]);
  assert.deepEqual(row("CPU µs: doq, cached"), ["40.00", "50.00", "-", "0.80", "-"]);
  assert.deepEqual(row("ms from start to a blocked answer")?.[0], "1000");
  assert.deepEqual(row("MiB more after DoQ")?.slice(0, 3), ["40", "90", "-"]);
  assert.equal(formatPeers({ svc: RESULTS.svc }).includes("svc /"), false, "nobody beside it");
});

Deno.test("peerTargets() holds svc against each peer that is there", none, () => {
  const targets = peerTargets(RESULTS);
  const limits = new Map(targets.map((target) => [target.name, target]));
  const doq = limits.get("doq, cached: CPU a query, svc / adguard")!;
  assert.deepEqual([doq.limit, isMet(doq)], [0.85, true]);
  assert.equal(limits.has("doq, cached: CPU a query, svc / blocky"), false);
  assert.equal(isMet(limits.get("most resident while it reloads")!), false);
  assert.equal(isMet(limits.get("resident after DoQ, beyond at rest")!), true);
});

Deno.test("parseH2loadLog() reads the time of each answer", none, () => {
  const text = "1700000000000001\t200\t153\n1700000000005001\t200\t161\n1700000000009001\t503\t9\n";
  assert.deepEqual(parseH2loadLog(text), [153, 161]);
});
