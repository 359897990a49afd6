/** What the figures are held against. */
import { type ApiResults, identificationNs, keptShare, p99 } from "./api_runs.ts";
import type { ClusterResults } from "./cluster_runs.ts";
import type { FairResults } from "./fair_runs.ts";
import type { FilterResults } from "./filter_runs.ts";
import { type DnsResults, type RunName, type Sample } from "./dns_runs.ts";
import { IDLE_RATES, type IdleResults, type IdleSample } from "./idle_runs.ts";
import { leastKept, LOG_ENTRIES, loggedShare, logPrice, type LogResults } from "./log_runs.ts";
import type { MemoryResults } from "./memory_runs.ts";
import { type RecursionResults, type RecursionSample, VISITS } from "./recursion_runs.ts";
import type { ServerName } from "./servers.ts";
import { ZONE_KINDS, type ZoneKind } from "./small_internet.ts";
import { addedMs, type StartResults } from "./start_runs.ts";
import { median, medianRatio, percentile } from "./stats.ts";
import type { TransportRun } from "./transport_loads.ts";
import type { TransportResults, TransportSample } from "./transport_runs.ts";
import type { UiResults } from "./ui_runs.ts";
import type { VrrpSample } from "./vrrp_runs.ts";

export const MIB_BYTES = 1_048_576;
export const KIB_BYTES = 1_024;

const CPU_RATIO_MAX = 1.15;
const RATE_RATIO_MIN = 1;
const COLD_RATE_RATIO_MIN = 0.5;
const USER_OVER_ECHO_US_MAX = 1;
const BYTES_PER_RULE_MAX = 64;
const COMPILE_MS_MAX = 2_000;
const RESIDENT_MIB_MAX = 110;
const LOADED_MIB_MAX = 200;
const RECOMPILE_MIB_MAX = 260;
const KEPT_START_MS_MAX = 1_000;
/** Of stage 1 and the sandbox together. */
const START_ADDED_MS_MAX = 120;

const HIT_NS_MAX = 500;
const MISS_NS_MAX = 700;
/** Whatever a decision made would be ten bytes at least. */
const DECISION_BYTES_MAX = 1;
const RULE_MS_MAX = 200;
const LARGE_MIB_MAX = 400;

const LOGGED_SHARE_MIN = 0.95;
const LOG_PRICE_MAX = 1.25;
const FLOOD_KEPT_SHARE_MIN = 0.2;
const SEARCH_MS_MAX = 100;
const STATISTICS_MS_MAX = 20;
const LOG_MIB_MAX = 250;
/** What the log may hold of memory beyond what it held before, under any load. */
const LOG_GROWTH_MIB_MAX = 16;

const COMPILING_P99_RATIO_MAX = 1.5;
const FAIR_P99_MS_MAX = 20;
const FAIR_RATIO_MAX = 2;
const API_READ_MS_MAX = 5;
const API_WRITE_MS_MAX = 25;
const API_KEPT_SHARE_MIN = 0.95;
const IDENTIFY_NS_MAX = 200;
const EDIT_MS_MAX = 100;
/** Flat, but for what a heap moves by itself. */
const API_GROWTH_MAX = 1.05;

const EFFECT_MS_MAX = 100;
const KILLED_MS_MAX = 2_000;
const CUT_OFF_MS_MAX = 4_000;
const WITNESS_MIB_MAX = 70;
/** What the channel may take from queries is less than can be measured. */
const MEMBER_RATE_RATIO_MIN = 0.95;

/** Of unbound's rate. What is held against nobody is in the table alone. */
const TRANSPORT_RATIO_MIN: Readonly<Partial<Record<TransportRun, number>>> = {
  tcp: 1.5,
  dot: 1.5,
  doh: 0.7,
  handshakes: 0.5,
};
const IDLE_KIB_MAX = 60;

/** Of unbound's latency at household rates, and of a CPU at 100 and at no queries a second. */
const IDLE_LATENCY_RATIO_MAX = 1;
const IDLE_BUSY_PERCENT_MAX = 0.5;
const IDLE_REST_PERCENT_MAX = 0.05;
const IDLE_REST_WAKE_UPS_MAX = 5;

/** Of unbound's rate of cold names; of zones proven to be unsigned the table tells. */
const RECURSION_RATE_RATIO_MIN: Readonly<Partial<Record<ZoneKind, number>>> = {
  unsigned: 0.7,
  signed: 0.4,
};
const RECURSION_MESSAGES_RATIO_MAX = 1;
const RECURSION_GROWTH_MIB_MAX = 60;
const KEYTRAP_P99_RATIO_MAX = 2;

/** One figure and its limit. */
export interface Target {
  readonly name: string;
  readonly value: number;
  readonly limit: number;
  /** Whether `limit` is the most or the least that is good. */
  readonly kind: "most" | "least";
  readonly unit: string;
}

/** A figure that could not be had is not met. */
export function isMet({ value, limit, kind }: Target): boolean {
  return kind === "most" ? value <= limit : value >= limit;
}

/** Ratios and differences are those of each round; the middle one counts. */
export function dnsTargets({ runs }: DnsResults): Target[] {
  const targets: Target[] = [];
  for (const run of ["mix", "cached", "blocked"] as const) {
    const samples = runs[run];
    const svc = samples?.svc;
    if (samples === undefined || svc === undefined) continue;
    const { unbound, dnsmasq, echo } = samples;
    if (unbound !== undefined) {
      const value = medianRatio(svc.map(cpuUs), unbound.map(cpuUs));
      targets.push(most(`${run}: CPU per query, svc / unbound`, value, CPU_RATIO_MAX));
      targets.push(rate(run, "unbound", svc, unbound, RATE_RATIO_MIN));
    }
    if (dnsmasq !== undefined) targets.push(rate(run, "dnsmasq", svc, dnsmasq, RATE_RATIO_MIN));
    if (echo !== undefined) {
      const value = median(svc.map(({ userUs }, i) => userUs - echo[i].userUs));
      const name = `${run}: user time per query, svc - echo`;
      targets.push(most(name, value, USER_OVER_ECHO_US_MAX, "µs"));
    }
  }
  const { svc, unbound } = runs.cold ?? {};
  if (svc !== undefined && unbound !== undefined) {
    targets.push(rate("cold", "unbound", svc, unbound, COLD_RATE_RATIO_MIN));
  }
  return targets;
}

export function transportTargets({ runs, idleBytes }: TransportResults): Target[] {
  const targets: Target[] = [];
  for (const [run, limit] of Object.entries(TRANSPORT_RATIO_MIN) as [TransportRun, number][]) {
    const { svc, unbound } = runs[run] ?? {};
    if (svc === undefined || unbound === undefined) continue;
    const value = medianRatio(
      svc.map(({ perSecond }) => perSecond),
      unbound.map((s) => s.perSecond),
    );
    const what = run === "handshakes" ? "full TLS handshakes" : `${run}: queries`;
    targets.push(least(`${what} a second, svc / unbound`, value, limit));
  }
  if (idleBytes.svc !== undefined) {
    const value = idleBytes.svc / KIB_BYTES;
    targets.push(most("memory of an idle TLS connection", value, IDLE_KIB_MAX, "KiB"));
  }
  return targets;
}

export function idleTargets({ servers: { svc, unbound } }: IdleResults): Target[] {
  if (svc === undefined) return [];
  const targets: Target[] = [];
  const of = (samples: readonly IdleSample[], take: (sample: IdleSample) => number) =>
    samples.map(take);
  for (const rate of IDLE_RATES) {
    if (unbound === undefined || rate === 0) continue;
    for (const [name, take] of [["50th", p50], ["99th", p99OfIdle]] as const) {
      const value = medianRatio(of(svc[rate], take), of(unbound[rate], take));
      const what = `${rate} queries a second: ${name} percentile, svc / unbound`;
      targets.push(most(what, value, IDLE_LATENCY_RATIO_MAX));
    }
  }
  const percent = ({ cpuShare }: IdleSample) => 100 * cpuShare;
  const busy = median(of(svc[100], percent));
  targets.push(most("100 queries a second: of a CPU", busy, IDLE_BUSY_PERCENT_MAX, "%"));
  const rest = median(of(svc[0], percent));
  targets.push(most("no queries: of a CPU", rest, IDLE_REST_PERCENT_MAX, "%"));
  const wakeUps = median(of(svc[0], (sample) => sample.wakeUps));
  targets.push(most("no queries: wake-ups a second", wakeUps, IDLE_REST_WAKE_UPS_MAX));
  return targets;
}

const p50 = ({ p50Us }: IdleSample) => p50Us;
const p99OfIdle = ({ p99Us }: IdleSample) => p99Us;

export function fairTargets(results: FairResults): Target[] {
  return Object.entries(results).flatMap(([run, { svc, unbound }]) => {
    if (run === "none" || svc === undefined) return [];
    const p99s = svc.map(({ p99Ms }) => p99Ms);
    const name = `UDP beside a flood, 99th percentile: ${run}`;
    const targets = [most(name, median(p99s), FAIR_P99_MS_MAX, "ms")];
    if (unbound !== undefined) {
      const value = medianRatio(p99s, unbound.map(({ p99Ms }) => p99Ms));
      targets.push(most(`${name}, svc / unbound`, value, FAIR_RATIO_MAX));
    }
    return targets;
  });
}

/** The worst of a kind, whoever the second node is. */
export function vrrpTargets(samples: readonly VrrpSample[]): Target[] {
  const limited = samples.flatMap((sample) => {
    const { limitMs } = sample;
    return limitMs === null ? [] : [{ ...sample, limitMs }];
  });
  return [...Map.groupBy(limited, ({ event }) => event)].map(([event, alike]) =>
    most(`gap: ${event}`, Math.max(...alike.map(({ gapMs }) => gapMs)), alike[0].limitMs, "ms")
  );
}

export function clusterTargets(cluster: ClusterResults): Target[] {
  const { effectMs, killedMs, cutOffMs, queries, witnessBytes } = cluster;
  const effect = percentile(effectMs, 0.99);
  return [
    most(
      "cluster: a change until it holds elsewhere, 99th percentile",
      effect,
      EFFECT_MS_MAX,
      "ms",
    ),
    most("cluster: the leader is killed, median", median(killedMs), KILLED_MS_MAX, "ms"),
    most("cluster: the leader is cut off, median", median(cutOffMs), CUT_OFF_MS_MAX, "ms"),
    least(
      "cluster: rate of queries, member / alone",
      medianRatio(queries.member, queries.alone),
      MEMBER_RATE_RATIO_MIN,
    ),
    most("cluster: a witness, resident", witnessBytes / MIB_BYTES, WITNESS_MIB_MAX, "MiB"),
  ];
}

export function apiTargets(api: ApiResults): Target[] {
  const growth = api.memoryAfter / api.memoryBefore;
  return [
    most("API: a read, 99th percentile", p99(api.readMs), API_READ_MS_MAX, "ms"),
    most("API: a durable write, 99th percentile", p99(api.writeMs), API_WRITE_MS_MAX, "ms"),
    least("API: rate of queries that stays beside requests", keptShare(api), API_KEPT_SHARE_MIN),
    most("10,000 clients: time added to a query", identificationNs(api), IDENTIFY_NS_MAX, "ns"),
    most("10,000 clients: an edit until it holds", Math.max(...api.editMs), EDIT_MS_MAX, "ms"),
    most("API: memory after 100,000 requests / before", growth, API_GROWTH_MAX),
  ];
}

export function filterTargets(filter: FilterResults): Target[] {
  const { hitNs, missNs, everyFormHitNs, everyFormMissNs } = filter;
  return [
    most("filter: compiled rules, per rule", filter.bytesPerRule, BYTES_PER_RULE_MAX, "bytes"),
    most("filter: compiling", median(filter.compileMs), COMPILE_MS_MAX, "ms"),
    most("filter: a random hit", median(hitNs), HIT_NS_MAX, "ns"),
    most("filter: a miss of five labels", median(missNs), MISS_NS_MAX, "ns"),
    most("filter: a random hit, every form", median(everyFormHitNs), HIT_NS_MAX, "ns"),
    most("filter: a miss of five labels, every form", median(everyFormMissNs), MISS_NS_MAX, "ns"),
    most("filter: bytes left by a decision", filter.bytesPerDecision, DECISION_BYTES_MAX, "bytes"),
    most("filter: a custom rule until it holds", median(filter.customRuleMs), RULE_MS_MAX, "ms"),
    most(
      "filter: resident with five million names",
      filter.large.residentBytes / MIB_BYTES,
      LARGE_MIB_MAX,
      "MiB",
    ),
  ];
}

/** The size is that of a million entries, whatever number of them there came to be. */
export function logTargets(log: LogResults): Target[] {
  const { asked, counted, residentMost, residentBefore } = log.steady;
  const slowest = Math.max(...Object.values(log.searchMs).map((times) => percentile(times, 0.5)));
  const fileMib = log.fileBytes / MIB_BYTES * (LOG_ENTRIES / log.entries);
  return [
    least("query log: rate of queries that stays with it", loggedShare(log), LOGGED_SHARE_MIN),
    most(
      "query log: CPU of a blocked name with it / without",
      logPrice(log.blocked),
      LOG_PRICE_MAX,
    ),
    least("query log: entries a query, of a flood", leastKept(log.blocked), FLOOD_KEPT_SHARE_MIN),
    least("query log: entries a query, 20,000 a second", leastKept(log.kept), 1),
    most("query log: queries neither in it nor counted", Math.abs(asked - counted), 0),
    most(
      "query log: memory it takes under load",
      (residentMost - residentBefore) / MIB_BYTES,
      LOG_GROWTH_MIB_MAX,
      "MiB",
    ),
    most(
      `query log: the slowest search of ${log.entries} entries, the median`,
      slowest,
      SEARCH_MS_MAX,
      "ms",
    ),
    most("query log: statistics, the median", median(log.statisticsMs), STATISTICS_MS_MAX, "ms"),
    most("query log: a million entries on disk", fileMib, LOG_MIB_MAX, "MiB"),
  ];
}

export function recursionTargets(results: RecursionResults): Target[] {
  const { runs, keytrap, memoryBytes } = results;
  const targets: Target[] = [];
  for (const kind of ZONE_KINDS) {
    for (const visit of VISITS) {
      const { svc, unbound } = runs[kind][visit];
      if (svc === undefined || unbound === undefined) continue;
      const name = `${kind}, ${visit}`;
      const ratio = (take: (sample: RecursionSample) => number) =>
        medianRatio(svc.map(take), unbound.map(take));
      const limit = RECURSION_RATE_RATIO_MIN[kind];
      if (limit !== undefined) {
        targets.push(
          least(
            `${name}: names a second, svc / unbound`,
            ratio((sample) => sample.namesPerSecond),
            limit,
          ),
        );
      }
      // To hundredths: what begins with a query a zone above all is no difference.
      const messages = ratio((sample) => Number(sample.messages.toFixed(2)));
      targets.push(
        most(`${name}: messages, svc / unbound`, messages, RECURSION_MESSAGES_RATIO_MAX),
      );
    }
  }
  if (keytrap.svc !== undefined) {
    const ratio = medianRatio(
      keytrap.svc.map(({ attackedP99Us }) => attackedP99Us),
      keytrap.svc.map(({ quietP99Us }) => quietP99Us),
    );
    targets.push(most("cached, p99 under KeyTrap / alone", ratio, KEYTRAP_P99_RATIO_MAX));
  }
  if (Object.keys(memoryBytes).length === 0) return targets;
  const growth = ((memoryBytes.svc ?? NaN) - (memoryBytes.forwarding ?? NaN)) / MIB_BYTES;
  targets.push(
    most("resident with recursion - with forwarding", growth, RECURSION_GROWTH_MIB_MAX, "MiB"),
  );
  return targets;
}

export function memoryTargets(memory: MemoryResults): Target[] {
  const { idle, loaded, recompiles, recompiled } = memory;
  const peakBytes = Math.max(...recompiles.map((recompile) => recompile.peakBytes));
  const compilesMs = [memory.firstCompileMs, ...recompiles.map(({ tookMs }) => tookMs)];
  return [
    most("compiled rules, per rule", memory.bytesPerRule, BYTES_PER_RULE_MAX, "bytes"),
    most("compiling, the median", median(compilesMs), COMPILE_MS_MAX, "ms"),
    most("resident at rest", idle.residentBytes / MIB_BYTES, RESIDENT_MIB_MAX, "MiB"),
    ...(loaded === null ? [] : [
      most("resident after queries", loaded.residentBytes / MIB_BYTES, LOADED_MIB_MAX, "MiB"),
    ]),
    most(
      "resident half a minute after recompiling",
      recompiled.residentBytes / MIB_BYTES,
      LOADED_MIB_MAX,
      "MiB",
    ),
    most("resident while recompiling", peakBytes / MIB_BYTES, RECOMPILE_MIB_MAX, "MiB"),
    ...(memory.quietUs.length === 0 ? [] : [most(
      "99th percentile of a query while compiling / alone",
      p99(memory.compilingUs) / p99(memory.quietUs),
      COMPILING_P99_RATIO_MAX,
    )]),
    most(
      "start from kept lists to the first blocked answer, the median",
      median(memory.keptStartsMs),
      KEPT_START_MS_MAX,
      "ms",
    ),
  ];
}

export function cpuUs({ userUs, systemUs }: Sample | TransportSample | RecursionSample): number {
  return userUs + systemUs;
}

function rate(
  run: RunName,
  server: ServerName,
  svc: readonly Sample[],
  other: readonly Sample[],
  limit: number,
): Target {
  const of = (samples: readonly Sample[]) => samples.map((sample) => sample.queriesPerSecond);
  const value = medianRatio(of(svc), of(other));
  return least(`${run}: queries a second, svc / ${server}`, value, limit);
}

export function startTargets(results: StartResults): Target[] {
  const added = addedMs(results, "whole", ({ wallMs }) => wallMs);
  return [most("stage 1 and sandbox: added to a start", added, START_ADDED_MS_MAX, "ms")];
}

export function most(name: string, value: number, limit: number, unit = ""): Target {
  return { name, value, limit, kind: "most", unit };
}

function least(name: string, value: number, limit: number): Target {
  return { name, value, limit, kind: "least", unit: "" };
}

export function uiTargets(ui: UiResults): Target[] {
  return [
    most("dashboard: first view, gzipped", ui.firstViewKib, 75, "KiB"),
    most("dashboard: all scripts, gzipped", ui.scriptsKib, 150, "KiB"),
    most("dashboard: a language, gzipped", ui.localeKib, 12, "KiB"),
    most("dashboard: first paint", ui.firstPaintMs, 1_000, "ms"),
    most("dashboard: usable", ui.usableMs, 1_500, "ms"),
    most("dashboard: a key in the running log, 95th percentile", ui.inputP95Ms, 100, "ms"),
    most("dashboard: heap of an hour of the log", ui.heapGrownMib, 10, "MiB"),
    most("dashboard: nodes of the page", ui.nodes, 3_000, "nodes"),
    most("dashboard: a filter over a million entries", ui.filterMs, 300, "ms"),
    most("dashboard: 10,000 clients open", ui.clientsMs, 500, "ms"),
  ];
}
