/** Results as text. */
import type { ApiResults } from "./api_runs.ts";
import { median, percentile } from "./stats.ts";
import type { DnsResults, Sample } from "./dns_runs.ts";
import type { MemoryResults } from "./memory_runs.ts";
import { SERVERS, SETUPS } from "./servers.ts";
import { cpuUs, isMet, MIB_BYTES, type Target } from "./targets.ts";

/** Above this share of its CPU, dnsperf rather than an idler server set the pace. */
const LOAD_BUSY_SHARE = 0.95;
const SERVER_IDLE_SHARE = 0.9;
/** Shares of lost or failed queries worth a line. */
const TROUBLE_SHARE = 0.001;
const NO_FIGURE = "-";

type Row = readonly string[];

/** Aligns columns: the first to the left, figures to the right. */
export function formatTable(rows: readonly Row[]): string {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  return rows.map((row) =>
    row.map((cell, column) =>
      column === 0 ? cell.padEnd(widths[column]) : cell.padStart(widths[column])
    ).join("  ")
  ).join("\n");
}

function figure(value: number, digits = 0): string {
  return Number.isNaN(value) ? NO_FIGURE : value.toFixed(digits);
}

function mib(bytes: number): string {
  return figure(bytes / MIB_BYTES, 1);
}

function percent(share: number): string {
  return Number.isNaN(share) ? NO_FIGURE : `${(100 * share).toFixed(0)} %`;
}

/** A table a run, with the medians of its rounds. */
export function formatDns({ runs, quiet }: DnsResults): string {
  const blocks: string[] = [];
  for (const [run, samples] of Object.entries(runs)) {
    const rows: Row[] = [[
      run,
      "queries/s",
      "µs/query",
      "user",
      "system",
      "p50 µs",
      "p99 µs",
      "MiB",
      "busy",
      "dnsperf",
    ]];
    const remarks: string[] = [];
    for (const name of SERVERS) {
      const rounds = samples[name];
      if (rounds === undefined) continue;
      const of = (take: (sample: Sample) => number) => median(rounds.map(take));
      const [busy, loadBusy] = [of((s) => s.busyShare), of((s) => s.loadBusyShare)];
      rows.push([
        name,
        figure(of((s) => s.queriesPerSecond)),
        figure(of(cpuUs), 2),
        figure(of((s) => s.userUs), 2),
        figure(of((s) => s.systemUs), 2),
        figure(of((s) => s.p50Us)),
        figure(of((s) => s.p99Us)),
        mib(of((s) => s.residentBytes)),
        percent(busy),
        percent(loadBusy),
      ]);
      if (loadBusy > LOAD_BUSY_SHARE && busy < SERVER_IDLE_SHARE) {
        remarks.push(`  ${name}: dnsperf set the pace; the server could answer more`);
      }
      const [lost, failed] = [of((s) => s.lostShare), of((s) => s.errorShare)];
      if (lost > TROUBLE_SHARE) remarks.push(`  ${name}: ${figure(100 * lost, 2)} % were lost`);
      if (failed > TROUBLE_SHARE) {
        remarks.push(`  ${name}: ${figure(100 * failed, 2)} % of the answers were not NOERROR`);
      }
    }
    blocks.push([formatTable(rows), ...remarks].join("\n"));
  }
  const quietRows = SERVERS.flatMap((name): Row[] => {
    const rounds = quiet[name];
    if (rounds === undefined) return [];
    const [p50, p99] = [rounds.map((r) => r.p50Us), rounds.map((r) => r.p99Us)];
    return [[name, figure(median(p50)), figure(median(p99))]];
  });
  if (quietRows.length > 0) {
    blocks.push(formatTable([["no other load", "p50 µs", "p99 µs"], ...quietRows]));
  }
  return blocks.join("\n\n");
}

export function formatMemory(memory: MemoryResults): string {
  const { idle, loaded, recompiles, recompiled } = memory;
  const rows: Row[] = [["svc, resident MiB", "all", "anonymous", "files", "shared"]];
  for (
    const [name, m] of [
      ["at rest", idle],
      ["after queries", loaded],
      ["half a minute after recompiling", recompiled],
    ] as const
  ) {
    if (m === null) continue;
    const parts = [m.residentBytes, m.anonymousBytes, m.fileBytes, m.sharedBytes];
    rows.push([name, ...parts.map(mib)]);
  }
  const recompileRows: Row[] = [["recompiling", "ms", "MiB before", "most", "after"]];
  for (const [i, r] of recompiles.entries()) {
    const sizes = [r.beforeBytes, r.peakBytes, r.afterBytes];
    recompileRows.push([`${i + 1}`, figure(r.tookMs), ...sizes.map(mib)]);
  }
  const starts = memory.keptStartsMs.map((ms) => figure(ms)).join(", ");
  return [
    `${memory.rules} rules, ${figure(memory.bytesPerRule, 1)} bytes each when compiled`,
    `first start: ${figure(memory.firstStartMs)} ms to the first blocked answer, compiling ` +
    `${figure(memory.firstCompileMs)} ms of it, at most ${mib(memory.firstPeakBytes)} MiB resident`,
    `starts from kept lists, to the first blocked answer: ${starts} ms`,
    "",
    formatTable(rows),
    "",
    formatTable(recompileRows),
  ].join("\n");
}

export function formatTargets(targets: readonly Target[]): string {
  const rows = targets.map((target): Row => {
    const { name, value, limit, kind, unit } = target;
    const digits = unit === "ms" ? 0 : 2;
    const bound = `${kind === "most" ? "≤" : "≥"} ${limit} ${unit}`.trimEnd();
    return [`${isMet(target) ? "✓" : "✗"} ${name}`, `${figure(value, digits)} ${unit}`, bound];
  });
  return rows.length === 0 ? "nothing to hold against a target" : formatTable(rows);
}

/** How each server of the runs is configured. */
export function formatSetups(servers: readonly (typeof SERVERS[number])[]): string {
  return servers.map((name) => `  ${name.padEnd(8)} ${SETUPS[name]}`).join("\n");
}

export function formatApi(api: ApiResults): string {
  const latency = (values: readonly number[]) => [
    percentile(values, 0.5).toFixed(2),
    percentile(values, 0.99).toFixed(2),
    Math.max(...values).toFixed(2),
  ];
  const rates = (values: readonly number[]) => median(values).toFixed(0);
  return [
    formatTable([
      ["API", "p50 ms", "p99 ms", "most"],
      ["read", ...latency(api.readMs)],
      ["durable write", ...latency(api.writeMs)],
      ["edit to effect", ...latency(api.editMs)],
    ]),
    `queries a second: ${rates(api.quietRates)} alone, ${rates(api.busyRates)} beside requests; ` +
    `${rates(api.plainRates)} before and ${rates(api.manyRates)} with 10,000 clients`,
    `making 10,000 clients and 1,000 groups: ${api.importSeconds.toFixed(1)} s`,
    `resident: ${(api.memoryBefore / MIB_BYTES).toFixed(1)} MiB, ` +
    `${(api.memoryAfter / MIB_BYTES).toFixed(1)} MiB 100,000 requests later`,
  ].join("\n");
}
