import assert from "node:assert/strict";
import { formatDns, formatTable, formatTargets } from "./report.ts";

const none = { permissions: "none" } as const;

Deno.test("formatTable() aligns names left and figures right", none, () => {
  assert.equal(formatTable([["a", "b"], ["name", "12.5"]]), "a        b\nname  12.5");
});

Deno.test("formatTargets() marks what is met", none, () => {
  const text = formatTargets([
    { name: "ratio", value: 1.1, limit: 1.15, kind: "most", unit: "" },
    { name: "start", value: 1_200, limit: 1_000, kind: "most", unit: "ms" },
  ]);
  assert.equal(text, "✓ ratio    1.10      ≤ 1.15\n✗ start  1200 ms  ≤ 1000 ms");
});

Deno.test("formatDns() says when a figure is dnsperf's own, and what went wrong", none, () => {
  const sample = {
    queriesPerSecond: 150_000,
    userUs: 0.5,
    systemUs: 4,
    busyShare: 0.7,
    loadBusyShare: 0.99,
    p50Us: 500,
    p99Us: NaN,
    residentBytes: 0,
    lostShare: 0.02,
    errorShare: 0,
  };
  const text = formatDns({ runs: { mix: { unbound: [sample] } }, quiet: {} });
  assert.match(text, /^unbound +150000 +4\.50 +0\.50 +4\.00 +500 +- +0\.0 +70 % +99 %$/m);
  assert.match(text, /unbound: dnsperf set the pace/);
  assert.match(text, /unbound: 2\.00 % were lost/);
});
