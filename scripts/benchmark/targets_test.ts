import assert from "node:assert/strict";
import type { DnsResults, Sample } from "./dns_runs.ts";
import type { MemoryResults } from "./memory_runs.ts";
import { readBuilt } from "./memory_runs.ts";
import type { LogResults } from "./log_runs.ts";
import type { RecursionResults, RecursionSample } from "./recursion_runs.ts";
import {
  dnsTargets,
  isMet,
  logTargets,
  memoryTargets,
  MIB_BYTES,
  recursionTargets,
  vrrpTargets,
} from "./targets.ts";

const none = { permissions: "none" } as const;

function sample(queriesPerSecond: number, userUs: number, systemUs: number): Sample {
  return {
    queriesPerSecond,
    userUs,
    systemUs,
    busyShare: 1,
    loadBusyShare: 0.8,
    p50Us: 500,
    p99Us: 900,
    residentBytes: MIB_BYTES,
    lostShare: 0,
    errorShare: 0,
  };
}

Deno.test("dnsTargets() compares within a round", none, () => {
  // The second round ran on a machine half as fast: no ratio may show that.
  const results: DnsResults = {
    runs: {
      mix: {
        echo: [sample(200, 0.25, 3.75), sample(100, 0.5, 7.5)],
        svc: [sample(150, 1, 4), sample(75, 2, 8)],
        unbound: [sample(100, 1, 4), sample(50, 2, 8)],
        dnsmasq: [sample(200, 1, 4), sample(100, 2, 8)],
      },
      cold: { svc: [sample(40, 5, 15)], unbound: [sample(100, 5, 5)] },
    },
    quiet: {},
  };
  const shown = dnsTargets(results).map((t) => `${t.name} ${t.value} ${isMet(t) ? "met" : "not"}`);
  assert.deepEqual(shown, [
    "mix: CPU per query, svc / unbound 1 met",
    "mix: queries a second, svc / unbound 1.5 met",
    "mix: queries a second, svc / dnsmasq 0.75 not",
    "mix: user time per query, svc - echo 1.125 not",
    "cold: queries a second, svc / unbound 0.4 not",
  ]);
});

Deno.test(
  "memoryTargets() has a limit for each time that memory is looked at, and takes the worst peak",
  none,
  () => {
    const memory = { peakBytes: 0, anonymousBytes: 0, fileBytes: 0, sharedBytes: 0 };
    const results: MemoryResults = {
      rules: 1_000_000,
      bytesPerRule: 64,
      firstCompileMs: 1_500,
      firstStartMs: 2_500,
      firstPeakBytes: 300 * MIB_BYTES,
      keptStartsMs: [900, 1_100, 800],
      idle: { ...memory, residentBytes: 110 * MIB_BYTES },
      loaded: { ...memory, residentBytes: 201 * MIB_BYTES },
      recompiled: { ...memory, residentBytes: 200 * MIB_BYTES },
      quietUs: [100, 200],
      busyUs: [],
      compilingUs: [100, 250],
      recompiles: [
        { tookMs: 1_600, beforeBytes: 161 * MIB_BYTES, peakBytes: 250 * MIB_BYTES, afterBytes: 0 },
        { tookMs: 2_500, beforeBytes: 250 * MIB_BYTES, peakBytes: 261 * MIB_BYTES, afterBytes: 0 },
      ],
    };
    assert.deepEqual(
      memoryTargets(results).map(isMet),
      [true, true, true, false, true, false, true, true],
    );
  },
);

const priced = (cpuUs: number, entryShare: number) => ({
  cpuUs,
  entryShare,
  queriesPerSecond: 1,
});

Deno.test("logTargets() holds every query and the size of a million entries", none, () => {
  const results: LogResults = {
    withoutRates: [100, 200, 300],
    withRates: [96, 190, 294],
    blocked: {
      without: [priced(4, 0), priced(8, 0), priced(6, 0)],
      with: [priced(5, 0.3), priced(11, 0.2), priced(7.2, 0.5)],
    },
    kept: { without: [priced(40, 0)], with: [priced(41, 0.999)] },
    steady: {
      seconds: 60,
      queriesPerSecond: 99_000,
      asked: 6_000_000,
      counted: 5_999_999,
      dropped: 1_000,
      residentBefore: 100 * MIB_BYTES,
      residentMost: 110 * MIB_BYTES,
    },
    entries: 500_000,
    fileBytes: 126 * MIB_BYTES,
    searchMs: { "": [1, 2, 3], "name=com": [1, 101, 102] },
    statisticsMs: [19, 20, 40],
  };
  assert.deepEqual(
    logTargets(results).map(({ value }) => value),
    [0.96, 1.25, 0.2, 0.999, 1, 10, 101, 20, 252],
  );
  assert.deepEqual(
    logTargets(results).map(isMet),
    [true, true, true, false, false, true, false, true, false],
  );
});

Deno.test("isMet() holds no target that could not be measured for met", none, () => {
  assert.equal(isMet({ name: "", value: NaN, limit: 1, kind: "most", unit: "" }), false);
});

Deno.test("readBuilt() reads the one log line that is about built rules", none, () => {
  const line = '{"level":"info","message":"filter built","rules":3,"tookMs":12}';
  assert.deepEqual(readBuilt(line), { rules: 3, tookMs: 12 });
  assert.equal(readBuilt('{"message":"filter loaded","rules":3}'), null);
  assert.equal(readBuilt("svc.toml:7: a problem"), null);
});

Deno.test("vrrpTargets() takes the worst of each event that has a limit", none, () => {
  const row = (pair: string, event: string, gapMs: number, limitMs: number | null) => ({
    ...{ pair, event, gapMs, limitMs, lost: 0, asked: 100 },
  });
  const shown = vrrpTargets([
    row("svc, multicast", "stops", 640, 800),
    row("svc, multicast", "hangs", 3_200, null),
    row("svc, unicast", "stops", 810, 800),
    row("svc, unicast", "cut off", 3_200, 3_700),
  ]).map((t) => `${t.name} ${t.value} ${isMet(t) ? "met" : "not"}`);
  assert.deepEqual(shown, ["gap: stops 810 not", "gap: cut off 3200 met"]);
});

Deno.test(
  "recursionTargets() holds rate, messages, KeyTrap and memory, where unbound is beside",
  none,
  () => {
    const row = (namesPerSecond: number, messages: number): RecursionSample => ({
      ...{ namesPerSecond, messages, userUs: 1, systemUs: 1, busyShare: 1, loadBusyShare: 1 },
      ...{ failedShare: 0, p50Us: 1, p99Us: 2 },
    });
    const alone = { "a new zone each": { svc: [row(1, 9)] }, "ten names a zone": {} };
    const results: RecursionResults = {
      zones: 10,
      runs: {
        unsigned: {
          "a new zone each": { svc: [row(60, 2), row(30, 2)], unbound: [row(100, 2), row(50, 2)] },
          "ten names a zone": {},
        },
        insecure: alone,
        signed: {
          "a new zone each": {},
          "ten names a zone": { svc: [row(40, 1.3)], unbound: [row(100, 1.2)], kresd: [row(1, 1)] },
        },
      },
      keytrap: { svc: [{ quietP99Us: 100, attackedP99Us: 210, attackRate: 9 }] },
      memoryNames: 100,
      memoryBytes: { svc: 200 * MIB_BYTES, forwarding: 140 * MIB_BYTES, unbound: 50 * MIB_BYTES },
    };
    const shown = recursionTargets(results).map((t) =>
      `${t.name} ${t.value.toFixed(2)} ${isMet(t) ? "met" : "not"}`
    );
    assert.deepEqual(shown, [
      "unsigned, a new zone each: names a second, svc / unbound 0.60 not",
      "unsigned, a new zone each: messages, svc / unbound 1.00 met",
      "signed, ten names a zone: names a second, svc / unbound 0.40 met",
      "signed, ten names a zone: messages, svc / unbound 1.08 not",
      "cached, p99 under KeyTrap / alone 2.10 not",
      "resident with recursion - with forwarding 60.00 met",
    ]);
  },
);
