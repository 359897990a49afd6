/** Results as text. */
import type { ApiResults } from "./api_runs.ts";
import { median, medianRatio, percentile } from "./stats.ts";
import type { DnsResults, Sample } from "./dns_runs.ts";
import { FAIR_SERVERS, type FairResults } from "./fair_runs.ts";
import type { FilterResults } from "./filter_runs.ts";
import { IDLE_RATES, IDLE_SERVERS, type IdleResults, type IdleSample } from "./idle_runs.ts";
import type { LogResults, Priced } from "./log_runs.ts";
import type { MemoryResults } from "./memory_runs.ts";
import type { KeytrapSample } from "./keytrap_runs.ts";
import { type RecursionResults, type RecursionSample, VISITS } from "./recursion_runs.ts";
import { RECURSORS } from "./recursors.ts";
import { SERVERS } from "./servers.ts";
import { ZONE_KINDS } from "./small_internet.ts";
import { START_KINDS, type StartResults } from "./start_runs.ts";
import { cpuUs, isMet, KIB_BYTES, MIB_BYTES, type Target } from "./targets.ts";
import {
  TRANSPORT_SERVERS,
  type TransportResults,
  type TransportSample,
} from "./transport_runs.ts";
import { type ClusterResults, PLACES } from "./cluster_runs.ts";
import type { UiResults } from "./ui_runs.ts";
import type { VrrpSample } from "./vrrp_runs.ts";

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

export function figure(value: number, digits = 0): string {
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

/** A row a transport and server, with the medians of the rounds. */
export function formatTransports({ runs, idleBytes }: TransportResults): string {
  const rows: Row[] = [["", "a second", "µs each", "user", "system", "busy", "clients"]];
  const remarks: string[] = [];
  for (const [run, samples] of Object.entries(runs)) {
    for (const name of TRANSPORT_SERVERS) {
      const rounds = samples[name];
      if (rounds === undefined) continue;
      const of = (take: (sample: TransportSample) => number) => median(rounds.map(take));
      const busy = of((s) => s.busyShare);
      rows.push([
        `${run}, ${name}`,
        figure(of((s) => s.perSecond)),
        figure(of(cpuUs), 2),
        figure(of((s) => s.userUs), 2),
        figure(of((s) => s.systemUs), 2),
        percent(busy),
        percent(of((s) => s.loadBusyShare)),
      ]);
      if (of((s) => s.loadBusyShare) > LOAD_BUSY_SHARE && busy < SERVER_IDLE_SHARE) {
        remarks.push(`  ${run}, ${name}: the clients set the pace; the server could answer more`);
      }
    }
    const { svc, unbound } = samples;
    if (svc !== undefined && unbound !== undefined) {
      const value = medianRatio(svc.map(cpuUs), unbound.map(cpuUs));
      remarks.push(`  ${run}: CPU time, svc / unbound: ${figure(value, 2)}`);
    }
  }
  const [doq, udp, bare] = [runs.doq?.svc, runs.udp?.svc, runs.doq?.bare];
  if (doq !== undefined && udp !== undefined) {
    const value = medianRatio(doq.map((s) => s.perSecond), udp.map((s) => s.perSecond));
    remarks.push(`  svc: queries a second, DoQ / UDP: ${figure(value, 3)}`);
  }
  if (doq !== undefined && bare !== undefined) {
    const value = medianRatio(doq.map(cpuUs), bare.map(cpuUs));
    remarks.push(`  doq: CPU time, svc / a bare server on the runtime's QUIC: ${figure(value, 2)}`);
  }
  for (const name of TRANSPORT_SERVERS) {
    const bytes = idleBytes[name];
    if (bytes === undefined) continue;
    remarks.push(`  ${name}: an idle TLS connection holds ${figure(bytes / KIB_BYTES, 1)} KiB`);
  }
  return [formatTable(rows), ...remarks].join("\n");
}

/** One client's answers over UDP while another one floods a transport, the medians of the rounds. */
export function formatFair(results: FairResults): string {
  const rows: Row[] = [["ms, UDP beside a flood", "p99", "longest", "lost"]];
  for (const [run, samples] of Object.entries(results)) {
    for (const name of FAIR_SERVERS) {
      const rounds = samples[name];
      if (rounds === undefined) continue;
      rows.push([
        `${run}, ${name}`,
        figure(median(rounds.map(({ p99Ms }) => p99Ms)), 2),
        figure(median(rounds.map(({ mostMs }) => mostMs)), 2),
        figure(median(rounds.map(({ lost }) => lost))),
      ]);
    }
  }
  return formatTable(rows);
}

/** Every event once: what a client missed of the floating address. */
export function formatVrrp(samples: readonly VrrpSample[]): string {
  const rows = samples.map(({ pair, event, gapMs, lost, asked }): Row => [
    `${pair}: ${event}`,
    figure(gapMs),
    `${lost} of ${asked}`,
  ]);
  return formatTable([["DNS through the address", "gap, ms", "queries lost"], ...rows]);
}

/** What a cluster costs, and how long it is without a leader. */
export function formatCluster(cluster: ClusterResults): string {
  const { writes, effectMs, killedMs, cutOffMs, queries, witnessBytes } = cluster;
  const changes = PLACES.map((place): Row => {
    const { rates, tookMs } = writes[place];
    const of = (share: number) => figure(percentile(tookMs, share), 1);
    return [`through ${place}`, figure(median(rates)), of(0.5), of(0.99)];
  });
  const times = ([
    ["a change through the leader until it holds on the other node", effectMs],
    ["the leader is killed until a change is answered", killedMs],
    ["the leader is cut off until a change is answered", cutOffMs],
  ] as const).map(([name, ms]): Row => [
    name,
    `${ms.length}`,
    ...[0.5, 0.99, 1].map((share) => figure(percentile(ms, share), 1)),
  ]);
  return [
    formatTable([["durable changes", "a second", "p50, ms", "p99, ms"], ...changes]),
    formatTable([["time", "runs", "p50, ms", "p99, ms", "most, ms"], ...times]),
    `queries a second: alone ${figure(median(queries.alone))}, member ${
      figure(median(queries.member))
    }; witness: ${mib(witnessBytes)} MiB resident`,
  ].join("\n\n");
}

/** The filter by itself, the medians of the rounds. */
export function formatFilter(filter: FilterResults): string {
  const rows: Row[] = [["ns, from the bytes of the name on", "hit", "miss"]];
  const ns = (name: string, hit: readonly number[], miss: readonly number[]) =>
    rows.push([name, figure(median(hit)), figure(median(miss))]);
  ns("lists alone", filter.hitNs, filter.missNs);
  ns("rules of every form, a service", filter.everyFormHitNs, filter.everyFormMissNs);
  ns("hashing alone", filter.hashNs, []);
  const { large, customRuleMs } = filter;
  return [
    `${filter.rules} rules in 16 lists, 50 groups: ${figure(filter.bytesPerRule, 1)} bytes each, ` +
    `compiled in ${figure(median(filter.compileMs))} ms; ` +
    `${figure(filter.bytesPerDecision, 3)} bytes left by a decision`,
    `custom rules and overlay compiled in ${
      figure(median(filter.overlayMs), 1)
    } ms; a rule holds ` +
    `after ${figure(median(customRuleMs))} ms (most ${figure(percentile(customRuleMs, 1))})`,
    `${filter.largeRules} names: ${mib(large.residentBytes)} MiB resident (${
      mib(large.peakBytes)
    } at most)`,
    "",
    formatTable(rows),
  ].join("\n");
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
    ...(memory.quietUs.length === 0 ? [] : ["", formatCompiling(memory)]),
  ].join("\n");
}

function formatCompiling({ quietUs, busyUs, compilingUs }: MemoryResults): string {
  const row = (name: string, us: readonly number[]): Row => [
    name,
    figure(percentile(us, 0.5)),
    figure(percentile(us, 0.99)),
  ];
  return formatTable([
    ["a query", "p50 µs", "p99 µs"],
    row("alone", quietUs),
    ...(busyUs.length === 0 ? [] : [row("beside a program that gives way", busyUs)]),
    row("while rules are compiled", compilingUs),
  ]);
}

/** A row a server and rate, with the medians of the rounds. */
export function formatIdle({ servers }: IdleResults): string {
  const rows: Row[] = [["one query after another", "% of a CPU", "wake-ups/s", "p50 µs", "p99 µs"]];
  for (const rate of IDLE_RATES) {
    for (const name of IDLE_SERVERS) {
      const rounds = servers[name]?.[rate];
      if (rounds === undefined) continue;
      const of = (take: (sample: IdleSample) => number) => median(rounds.map(take));
      rows.push([
        `${rate} a second, ${name}`,
        figure(of((s) => 100 * s.cpuShare), 2),
        figure(of((s) => s.wakeUps)),
        figure(of((s) => s.p50Us)),
        figure(of((s) => s.p99Us)),
      ]);
    }
  }
  return formatTable(rows);
}

/** The fastest and the middle start of each kind. */
export function formatStarts(results: StartResults): string {
  const rows: Row[] = [["start to the first answer", "ms", "median", "CPU ms", "median"]];
  for (const kind of START_KINDS) {
    const [wall, cpu] = [results[kind].map((s) => s.wallMs), results[kind].map((s) => s.cpuMs)];
    rows.push([
      kind,
      ...[wall, cpu].flatMap((ms) => [figure(Math.min(...ms)), figure(median(ms))]),
    ]);
  }
  return formatTable(rows);
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
export function formatSetups<Name extends string>(
  setups: Readonly<Record<Name, string>>,
  names: readonly Name[],
): string {
  return names.map((name) => `  ${name.padEnd(8)} ${setups[name]}`).join("\n");
}

/** A table a kind of zone and visit, with the medians of the rounds. */
export function formatRecursion(results: RecursionResults): string {
  const { runs, keytrap, memoryNames, memoryBytes } = results;
  const blocks: string[] = [];
  for (const kind of ZONE_KINDS) {
    for (const visit of VISITS) {
      if (Object.keys(runs[kind][visit]).length === 0) continue;
      const rows: Row[] = [[
        `${kind}, ${visit}`,
        "names/s",
        "µs/name",
        "user",
        "system",
        "messages",
        "p50 µs",
        "p99 µs",
        "busy",
        "others",
      ]];
      const remarks: string[] = [];
      for (const name of RECURSORS) {
        const rounds = runs[kind][visit][name];
        if (rounds === undefined) continue;
        const of = (take: (sample: RecursionSample) => number) => median(rounds.map(take));
        rows.push([
          name,
          figure(of((s) => s.namesPerSecond)),
          figure(of(cpuUs)),
          figure(of((s) => s.userUs)),
          figure(of((s) => s.systemUs)),
          figure(of((s) => s.messages), 2),
          figure(of((s) => s.p50Us)),
          figure(of((s) => s.p99Us)),
          percent(of((s) => s.busyShare)),
          percent(of((s) => s.loadBusyShare)),
        ]);
        const failed = of((s) => s.failedShare);
        if (failed > TROUBLE_SHARE) {
          remarks.push(`  ${name}: ${figure(100 * failed, 2)} % of the names got no answer`);
        }
      }
      blocks.push([formatTable(rows), ...remarks].join("\n"));
    }
  }
  const trapped = RECURSORS.flatMap((name): Row[] => {
    const rounds = keytrap[name];
    if (rounds === undefined) return [];
    const of = (take: (sample: KeytrapSample) => number) => figure(median(rounds.map(take)));
    return [[
      name,
      of((s) => s.quietP99Us),
      of((s) => s.attackedP99Us),
      of((s) => s.attackRate),
    ]];
  });
  const head = ["cached, p99 µs", "alone", "under KeyTrap", "attack/s"];
  if (trapped.length > 0) blocks.push(formatTable([head, ...trapped]));
  const sizes = Object.entries(memoryBytes).map(([name, bytes]): Row => [
    name === "forwarding" ? "svc, which forwards them" : name,
    mib(bytes),
  ]);
  if (sizes.length > 0) {
    blocks.push(formatTable([[`resident after ${memoryNames} names`, "MiB"], ...sizes]));
  }
  return blocks.join("\n\n");
}

export function formatLog(log: LogResults): string {
  const { steady } = log;
  const latency = (values: readonly number[]) =>
    [0.5, 1].map((part) => percentile(values, part).toFixed(1));
  return [
    formatTable([
      ["query log", "p50 ms", "most"],
      ...Object.entries(log.searchMs).map(([search, times]): Row => [
        search === "" ? "the newest 100" : search,
        ...latency(times),
      ]),
      ["statistics of a day", ...latency(log.statisticsMs)],
    ]),
    `queries a second: ${median(log.withoutRates).toFixed(0)} without a log, ` +
    `${median(log.withRates).toFixed(0)} with one`,
    ...([["as fast as may be", log.blocked], ["at a steady rate", log.kept]] as const).map(
      ([what, priced]) => {
        const of = (which: "without" | "with", figure: keyof Priced) =>
          median(priced[which].map((one) => one[figure]));
        return `blocked names, ${what}: ${of("without", "cpuUs").toFixed(2)} µs of CPU without a ` +
          `log, ${of("with", "cpuUs").toFixed(2)} with one; ` +
          `${of("without", "queriesPerSecond").toFixed(0)} and ` +
          `${of("with", "queriesPerSecond").toFixed(0)} a second; ` +
          `${(100 * of("with", "entryShare")).toFixed(1)} of a hundred have an entry`;
      },
    ),
    `${steady.queriesPerSecond.toFixed(0)} queries a second for ${steady.seconds} s: ` +
    `${steady.asked} asked, ${steady.counted} counted, ${steady.dropped} of them without an entry`,
    `${log.entries} entries in ${mib(log.fileBytes)} MiB`,
  ].join("\n");
}

export function formatApi(api: ApiResults): string {
  const latency = (values: readonly number[]) => [
    percentile(values, 0.5).toFixed(2),
    percentile(values, 0.99).toFixed(2),
    Math.max(...values).toFixed(2),
  ];
  const rate = (values: readonly number[]) => median(values).toFixed(0);
  return [
    formatTable([
      ["API", "p50 ms", "p99 ms", "most"],
      ["read", ...latency(api.readMs)],
      ["durable write", ...latency(api.writeMs)],
      ["edit to effect", ...latency(api.editMs)],
    ]),
    `queries a second: ${rate(api.quietRates)} alone, ${rate(api.busyRates)} beside requests`,
    `user time a query, µs: ${figure(median(api.plainUs), 2)} without clients, ` +
    `${figure(median(api.manyUs), 2)} with 10,000 in 1,000 groups`,
    `making 10,000 clients and 1,000 groups: ${api.importSeconds.toFixed(1)} s`,
    `resident: ${(api.memoryBefore / MIB_BYTES).toFixed(1)} MiB, ` +
    `${(api.memoryAfter / MIB_BYTES).toFixed(1)} MiB 100,000 requests later`,
  ].join("\n");
}

/** What the dashboard weighs, and how soon it is there on a slow machine. */
export function formatUi(ui: UiResults): string {
  const rows: Row[] = [
    ["first view without its language, gzipped", `${figure(ui.firstViewKib, 1)} KiB`],
    ["all scripts, gzipped", `${figure(ui.scriptsKib, 1)} KiB`],
    ["first paint, usable", `${figure(ui.firstPaintMs)} ms, ${figure(ui.usableMs)} ms`],
    ["a key while the log runs, 95th percentile", `${figure(ui.inputP95Ms)} ms`],
    ["a key where nothing comes, 95th percentile", `${figure(ui.quietP95Ms)} ms`],
    ["an hour of the log", `${figure(ui.heapGrownMib, 1)} MiB, ${figure(ui.nodes)} nodes`],
    ["a filter over a million entries, from the last key", `${figure(ui.filterMs)} ms`],
    ["10,000 clients open", `${figure(ui.clientsMs)} ms`],
  ];
  return formatTable([["the dashboard", "here"], ...rows]);
}
