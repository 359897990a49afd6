/**
 * Measures the program beside other servers on this machine: `scripts/bench --help`.
 *
 * dnsperf asks svc, unbound, dnsmasq and a bare echo loop the same names, one after the other and in
 * several rounds, so that what else the machine does meets all of them alike. CPU time is what the
 * system accounts to each process; ratios are taken within a round. A second part follows one svc
 * with a million rules through its first start, starts from kept lists, and recompilations.
 * A third holds TCP and the encrypted transports against unbound's.
 *
 * @module
 */

import { parseArgs } from "node:util";
import { messageOf } from "../src/errors.ts";
import { type ApiResults, measureApi } from "./benchmark/api_runs.ts";
import { BenchError } from "./benchmark/bench_error.ts";
import { measureCluster } from "./benchmark/cluster_runs.ts";
import { type Cpus, type DnsResults, measureDns, type RunName } from "./benchmark/dns_runs.ts";
import { type FairResults, measureFairness } from "./benchmark/fair_runs.ts";
import { type FilterResults, measureFilter } from "./benchmark/filter_runs.ts";
import { IDLE_SERVERS, type IdleResults, measureIdle } from "./benchmark/idle_runs.ts";
import { type LogResults, measureLog } from "./benchmark/log_runs.ts";
import { measureMemory, type MemoryResults } from "./benchmark/memory_runs.ts";
import { BLOCKED_EVERY, pickNames, type QueryNames, unpackMillion } from "./benchmark/names.ts";
import { allowedCpus } from "./benchmark/processes.ts";
import { formatPeers, peerTargets } from "./benchmark/peer_report.ts";
import { measurePeers } from "./benchmark/peer_runs.ts";
import { hasPeer, PEER_SETUPS, PEERS } from "./benchmark/peers.ts";
import {
  measureRecursion,
  RECURSION_FIGURES,
  type RecursionFigures,
} from "./benchmark/recursion_runs.ts";
import { canRecurse, RECURSOR_SETUPS, RECURSORS } from "./benchmark/recursors.ts";
import {
  formatApi,
  formatCluster,
  formatDns,
  formatFair,
  formatFilter,
  formatIdle,
  formatLog,
  formatMemory,
  formatRecursion,
  formatSetups,
  formatStarts,
  formatTargets,
  formatTransports,
  formatUi,
  formatVrrp,
} from "./benchmark/report.ts";
import {
  canRun,
  DNSMASQ_ENTRIES,
  SERVERS,
  type Setup,
  SETUPS,
  startUpstream,
} from "./benchmark/servers.ts";
import { HOSTS } from "./benchmark/small_internet.ts";
import {
  apiTargets,
  clusterTargets,
  dnsTargets,
  fairTargets,
  filterTargets,
  idleTargets,
  isMet,
  logTargets,
  memoryTargets,
  recursionTargets,
  startTargets,
  type Target,
  transportTargets,
  uiTargets,
  vrrpTargets,
} from "./benchmark/targets.ts";
import { measureStarts } from "./benchmark/start_runs.ts";
import { measureTransports, type TransportResults } from "./benchmark/transport_runs.ts";
import { measureUi } from "./benchmark/ui_runs.ts";
import { measureVrrp } from "./benchmark/vrrp_runs.ts";
import { missingPrograms, ROOT, Workspace } from "./benchmark/workspace.ts";

const PARTS = [
  "dns",
  "cold",
  "transports",
  "fair",
  "filter",
  "memory",
  "api",
  "log",
  "idle",
  "vrrp",
  "cluster",
  "ui",
  "recursion",
  "peers",
  "start",
  "all",
] as const;
type Part = typeof PARTS[number];

const WARM_RUNS = ["mix", "cached", "blocked"] as const;
const RUNS_OF: Readonly<Record<Part, readonly RunName[]>> = {
  dns: WARM_RUNS,
  cold: ["cold"],
  transports: [],
  fair: [],
  filter: [],
  memory: [],
  api: [],
  log: [],
  idle: [],
  vrrp: [],
  cluster: [],
  ui: [],
  recursion: [],
  peers: [],
  start: [],
  all: [...WARM_RUNS, "cold"],
};

const DEFAULT_SECONDS = 3;
const DEFAULT_ROUNDS = 5;
/** What the caches of all servers hold, dnsmasq's 10,000 entries included. */
const DEFAULT_NAMES = 10_000;
const DEFAULT_FAILOVERS = 20;
/** Of each kind; with ten names in each, more than memory is looked at after. */
const DEFAULT_ZONES = 4_000;
const ZONES_MAX = 50_000;
const SECONDS_MAX = 600;
const ROUNDS_MAX = 100;
/** One of each kind at least; the list of popular names is 100,000 long. */
const NAMES_MIN = 100;
const NAMES_MAX = 90_000;

const USAGE = `usage: scripts/bench [${PARTS.join("|")}] [options]

Measures svc beside unbound, dnsmasq and a bare echo loop (default: all).

  dns          cached and blocked names: rate, CPU time, latency, memory
  cold         names asked once, forwarded to a local server
  transports   TCP, DoT, DoH and DoQ beside unbound: rate, CPU time, handshakes, memory
  fair         one client's UDP while another floods a transport, beside unbound
  filter       decisions of the filter alone: time, memory; how soon a rule holds
  memory       a million rules: memory, compiling, starting
  api          the API: latency, memory, what it takes from queries; thousands of clients
  log          the query log: what it takes from queries, search, statistics, size
  idle         none, 10 and 100 queries a second: CPU, wake-ups, latency; svc keeps its log
  vrrp         gaps of the floating address, in namespaces, beside keepalived: needs root; by itself
  cluster      changes, failover and a witness's memory, in namespaces: needs root; by itself
  ui           the dashboard in Chromium on a slow machine: weight, paint, keys, heap; by itself
  recursion    names found from the root down, beside unbound and Knot Resolver, in a namespace of
               its own: rate, CPU time, messages, latency, memory, cached answers under KeyTrap; by
               itself
  peers        beside AdGuard Home and blocky, where they are on PATH: CPU time and rate of each
               transport, latency, memory, starts; by itself
  start        what stage 1 and the sandbox add to a start; by itself

  --seconds N  seconds of load for each server, run and round (default: ${DEFAULT_SECONDS})
  --rounds N   rounds, whose median counts (default: ${DEFAULT_ROUNDS})
  --failovers N  times that a cluster's leader is lost in each way (default: ${DEFAULT_FAILOVERS})
  --names N    names asked for, a tenth of them blocked (default: ${DEFAULT_NAMES})
  --zones N    zones of each kind that recursion finds names in (default: ${DEFAULT_ZONES})
  --only WHAT  of recursion, ${RECURSION_FIGURES.join(", ")} alone (default: all)
  --unpinned   lets the system place processes; else the server under test has the first CPU, and
               dnsperf and what is forwarded to the last
  --query-log  has svc keep its query log, which the others have none of
  --svc FILE   a built svc to measure (default: this checkout)
  --lists DIR  folder of the lists (default: ../shared/lists)
  --json FILE  writes every figure of every round there
`;

interface Options {
  readonly part: Part;
  readonly seconds: number;
  readonly rounds: number;
  readonly failovers: number;
  readonly names: number;
  readonly zones: number;
  readonly only: RecursionFigures | null;
  readonly unpinned: boolean;
  readonly queryLog: boolean;
  readonly svc: string | null;
  readonly lists: string;
  readonly json: string | null;
}

/** Reads the command line; `null` after `--help`. */
function readOptions(args: string[]): Options | null {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      seconds: { type: "string", default: `${DEFAULT_SECONDS}` },
      rounds: { type: "string", default: `${DEFAULT_ROUNDS}` },
      failovers: { type: "string", default: `${DEFAULT_FAILOVERS}` },
      names: { type: "string", default: `${DEFAULT_NAMES}` },
      zones: { type: "string", default: `${DEFAULT_ZONES}` },
      only: { type: "string" },
      unpinned: { type: "boolean", default: false },
      "query-log": { type: "boolean", default: false },
      svc: { type: "string" },
      lists: { type: "string", default: `${ROOT}/../shared/lists` },
      json: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return null;
  const part = PARTS.find((part) => part === (positionals[0] ?? "all"));
  if (part === undefined || positionals.length > 1) {
    throw new BenchError(`unknown argument ${positionals.join(" ")}: see scripts/bench --help`);
  }
  const only = RECURSION_FIGURES.find((figures) => figures === values.only) ?? null;
  if (values.only !== undefined && (only === null || part !== "recursion")) {
    throw new BenchError(`--only ${values.only}: see scripts/bench --help`);
  }
  return {
    part,
    seconds: readCount("--seconds", values.seconds, 1, SECONDS_MAX),
    rounds: readCount("--rounds", values.rounds, 1, ROUNDS_MAX),
    failovers: readCount("--failovers", values.failovers, 1, ROUNDS_MAX),
    names: readCount("--names", values.names, NAMES_MIN, NAMES_MAX),
    zones: readCount("--zones", values.zones, 1, ZONES_MAX),
    only,
    unpinned: values.unpinned,
    queryLog: values["query-log"],
    svc: values.svc === undefined ? null : Deno.realPathSync(values.svc),
    lists: values.lists,
    json: values.json ?? null,
  };
}

function readCount(name: string, text: string, min: number, max: number): number {
  const count = Number(text);
  if (Number.isInteger(count) && count >= min && count <= max) return count;
  throw new BenchError(`${name}: is ${text}: write a whole number from ${min} to ${max}`);
}

function progress(text: string): void {
  console.error(`${new Date().toTimeString().slice(0, 8)} ${text}`);
}

/** Runs what is asked for and prints it. */
async function bench(options: Options, workspace: Workspace): Promise<void> {
  const { part, seconds, rounds } = options;
  if (part === "ui") {
    const results = await measureUi(progress);
    console.log(`\n${formatUi(results)}\n\n${formatTargets(uiTargets(results))}`);
    return;
  }
  if (part === "vrrp") {
    const samples = await measureVrrp(progress);
    console.log(`\n${formatVrrp(samples)}\n\n${formatTargets(vrrpTargets(samples))}`);
    return;
  }
  if (part === "cluster") {
    const { failovers } = options;
    const results = await measureCluster({ rounds, seconds, failovers, progress });
    console.log(`\n${formatCluster(results)}\n\n${formatTargets(clusterTargets(results))}`);
    return;
  }
  if (part === "recursion") {
    await benchRecursion(options, workspace);
    return;
  }
  if (part === "start") {
    const results = await measureStarts(workspace, { rounds, program: options.svc, progress });
    console.log(`\n${formatStarts(results)}\n\n${formatTargets(startTargets(results))}`);
    return;
  }
  const runs = RUNS_OF[part];
  if (part !== "memory" && part !== "filter" && missingPrograms(["dnsperf"]).length > 0) {
    throw new BenchError(
      "dnsperf is not installed: install it, or run scripts/bench memory or filter",
    );
  }
  if (part === "peers") {
    await benchPeers(options, workspace);
    return;
  }
  const servers = SERVERS.filter(canRun);
  for (const name of SERVERS) {
    if (!servers.includes(name)) progress(`${name} is not installed: measuring without it`);
  }
  const { cpus, names, setup, upstream } = await prepare(options, workspace);
  const head = [
    await machine(),
    roundsOf(options, names),
    `upstream: ${upstream}; svc's query log is ${
      options.queryLog || part === "idle" ? "on" : "off"
    }`,
    ...(runs.length > 0 || part === "transports" || part === "fair" ? [placement(cpus)] : []),
    ...(runs.length > 0 ? [formatSetups(SETUPS, servers)] : []),
  ].join("\n");

  let dns: DnsResults | null = null;
  let memory: MemoryResults | null = null;
  let api: ApiResults | null = null;
  let log: LogResults | null = null;
  let idle: IdleResults | null = null;
  let filter: FilterResults | null = null;
  let transports: TransportResults | null = null;
  let fair: FairResults | null = null;
  const targets: Target[] = [];
  if (part === "filter" || part === "all") {
    filter = await measureFilter(setup, { names, rounds, progress });
    targets.push(...filterTargets(filter));
  }
  if (part === "memory" || part === "all") {
    // First, while no other server is there.
    memory = await measureMemory(setup, { names, rounds, seconds, cpus, progress });
    targets.push(...memoryTargets(memory));
  }
  if (part === "api" || part === "all") {
    api = await measureApi(setup, { names, rounds, seconds, cpus, progress });
    targets.push(...apiTargets(api));
  }
  if (part === "log" || part === "all") {
    log = await measureLog(setup, { names, rounds, seconds, cpus, progress });
    targets.push(...logTargets(log));
  }
  if (part === "idle" || part === "all") {
    const idleServers = IDLE_SERVERS.filter(canRun);
    const logged = { ...setup, queryLog: true };
    const plan = { servers: idleServers, names, rounds, seconds, cpus, progress };
    idle = await measureIdle(logged, plan);
    targets.push(...idleTargets(idle));
  }
  if (part === "transports" || part === "all") {
    transports = await measureTransports(setup, { names, rounds, seconds, cpus, progress });
    targets.push(...transportTargets(transports));
  }
  if (part === "fair" || part === "all") {
    fair = await measureFairness(setup, { rounds, seconds, cpus, progress });
    targets.push(...fairTargets(fair));
  }
  if (runs.length > 0) {
    dns = await measureDns(setup, { runs, servers, names, rounds, seconds, cpus, progress });
    targets.unshift(...dnsTargets(dns));
  }
  const blocks = [head];
  if (dns !== null) blocks.push(formatDns(dns));
  if (transports !== null) blocks.push(formatTransports(transports));
  if (fair !== null) blocks.push(formatFair(fair));
  if (filter !== null) blocks.push(formatFilter(filter));
  if (memory !== null) blocks.push(formatMemory(memory));
  if (api !== null) blocks.push(formatApi(api));
  if (log !== null) blocks.push(formatLog(log));
  if (idle !== null) blocks.push(formatIdle(idle));
  blocks.push(formatTargets(targets));
  console.log(`\n${blocks.join("\n\n")}`);
  if (options.json !== null) {
    const results = { head, options, dns, transports, fair, filter, memory, api, log, idle };
    await writeJson(options.json, results, targets);
  }
}

/** What most measurements begin with: the lists, names to ask for, and who answers behind. */
async function prepare(options: Options, workspace: Workspace) {
  const cpus = chooseCpus(options);
  progress("unpacking lists, picking names");
  const million = workspace.path("million.txt");
  await unpackMillion(options.lists, million);
  const names = await pickNames(options.lists, million, options.names);
  const upstream = await startUpstream(workspace, cpus?.load ?? null);
  const setup: Setup = {
    workspace,
    upstreamPort: upstream.port,
    blocked: names.blocked,
    dnsmasqEntries: DNSMASQ_ENTRIES,
    program: options.svc,
    queryLog: options.queryLog,
  };
  return { cpus, names, setup, upstream: upstream.setup };
}

async function benchPeers(options: Options, workspace: Workspace): Promise<void> {
  const { rounds, seconds, json } = options;
  const { cpus, names, setup, upstream } = await prepare(options, workspace);
  const peers = await measurePeers(setup, { names, rounds, seconds, cpus, progress });
  const targets = peerTargets(peers);
  const head = [
    await machine(),
    roundsOf(options, names),
    `upstream: ${upstream}`,
    placement(cpus),
    formatSetups(PEER_SETUPS, PEERS.filter(hasPeer)),
    ...PEERS.filter((name) => !hasPeer(name)).map((name) => `  ${name.padEnd(8)} is not on PATH`),
  ].join("\n");
  console.log(`\n${[head, formatPeers(peers), formatTargets(targets)].join("\n\n")}`);
  if (json !== null) await writeJson(json, { head, options, peers }, targets);
}

async function benchRecursion(options: Options, workspace: Workspace): Promise<void> {
  const { rounds, seconds, zones, only, svc: program, json } = options;
  const missing = missingPrograms(["dnsperf", "nsd", "nsd-control", "ip"]);
  if (missing.length > 0) throw new BenchError(`${missing.join(", ")}: not installed`);
  const cpus = chooseCpus(options);
  const plan = { rounds, seconds, zones, only, program, cpus, progress };
  const recursion = await measureRecursion(workspace, plan);
  const targets = recursionTargets(recursion);
  const head = [
    await machine(),
    `${rounds} rounds of ${seconds} s; ${zones} zones of each kind, ${HOSTS} names in each`,
    placement(cpus, "name servers"),
    formatSetups(RECURSOR_SETUPS, RECURSORS.filter(canRecurse)),
  ].join("\n");
  console.log(`\n${[head, formatRecursion(recursion), formatTargets(targets)].join("\n\n")}`);
  if (json !== null) await writeJson(json, { head, options, recursion }, targets);
}

/** Everything that was measured, and what came of the targets. */
async function writeJson(path: string, results: object, targets: readonly Target[]): Promise<void> {
  const judged = targets.map((target) => ({ ...target, met: isMet(target) }));
  await Deno.writeTextFile(path, `${JSON.stringify({ ...results, targets: judged }, null, 2)}\n`);
}

function roundsOf({ rounds, seconds }: Options, { passed, blocked }: QueryNames): string {
  return `${rounds} rounds of ${seconds} s; ${passed.length} names that pass, ` +
    `${blocked.length} blocked; in mix, one in ${BLOCKED_EVERY} is blocked`;
}

function chooseCpus({ unpinned }: Options): Cpus | null {
  const all = allowedCpus();
  const pinned = !unpinned && all.length > 1 && missingPrograms(["taskset"]).length === 0;
  return pinned ? { server: all[0], load: all[all.length - 1] } : null;
}

async function machine(): Promise<string> {
  const now = new Date().toISOString();
  return `${now}, ${await cpuModel()}, ${allowedCpus().length} CPUs, Deno ${Deno.version.deno}`;
}

function placement(cpus: Cpus | null, behind = "upstream"): string {
  if (cpus === null) return "processes run on any CPU";
  return `server on CPU ${cpus.server}; dnsperf and ${behind} on CPU ${cpus.load}`;
}

async function cpuModel(): Promise<string> {
  const text = await Deno.readTextFile("/proc/cpuinfo");
  return /^model name\s*: (.*)$/m.exec(text)?.[1] ?? Deno.build.arch;
}

async function main(): Promise<number> {
  let options: Options | null;
  try {
    options = readOptions(Deno.args);
  } catch (error) {
    console.error(messageOf(error));
    return 2;
  }
  if (options === null) {
    console.log(USAGE);
    return 0;
  }
  await using workspace = new Workspace();
  for (const [signal, code] of [["SIGINT", 130], ["SIGTERM", 143]] as const) {
    Deno.addSignalListener(signal, async () => {
      await workspace[Symbol.asyncDispose]();
      Deno.exit(code);
    });
  }
  try {
    await bench(options, workspace);
    return 0;
  } catch (error) {
    if (!(error instanceof BenchError)) throw error;
    console.error(error.message);
    return 1;
  }
}

Deno.exit(await main());
