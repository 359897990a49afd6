/** The runs over UDP: every server in turn, in rounds, under the same load. */
import { askUntil } from "./ask.ts";
import { BenchError } from "./bench_error.ts";
import { type Load, runLoad, runProbe } from "./dnsperf.ts";
import { coldNames, mix, type QueryNames, spread, writeQueries } from "./names.ts";
import { pin, readCpuTime, readMemory } from "./processes.ts";
import {
  BLOCKED,
  DNSMASQ_COLD_ENTRIES,
  PASSED,
  type Server,
  type ServerName,
  type Setup,
  startServer,
} from "./servers.ts";
import { percentile } from "./stats.ts";
import type { Workspace } from "./workspace.ts";

export const RUNS = ["mix", "cached", "blocked", "cold"] as const;
export type RunName = typeof RUNS[number];

/** Load before the first round, until V8 has compiled what it runs most and caches are full. */
const WARM_UP_S = 2;
/** Runs through the names that fill a cache: again for what was lost the first time. */
const FILL_RUNS = 2;
/** Names of either kind whose answers are looked at before anything is measured. */
const CHECKED_NAMES = 100;
const CHECK_MS_MAX = 5_000;
/** How long the latency without other load is watched, in each round. */
const QUIET_S = 1;
/** Names for a cold run: more than any of the servers can forward in a second. */
const COLD_NAMES_PER_SECOND = 80_000;

/** One server under one load in one round. */
export interface Sample {
  readonly queriesPerSecond: number;
  /** Of the process and all its threads, per query. */
  readonly userUs: number;
  readonly systemUs: number;
  /** Share of one CPU that the server used, and that dnsperf did. */
  readonly busyShare: number;
  readonly loadBusyShare: number;
  /** Latencies beside the load. */
  readonly p50Us: number;
  readonly p99Us: number;
  readonly residentBytes: number;
  /** Share of the queries with no answer, and of the answers with another RCODE than NOERROR. */
  readonly lostShare: number;
  readonly errorShare: number;
}

/** Latency with nothing else to do. */
export interface Quiet {
  readonly p50Us: number;
  readonly p99Us: number;
}

export interface DnsResults {
  /** `[run][server]` has one sample a round. */
  readonly runs: Partial<Record<RunName, Partial<Record<ServerName, Sample[]>>>>;
  readonly quiet: Partial<Record<ServerName, Quiet[]>>;
}

/** Where the server under test runs, and where dnsperf does. */
export interface Cpus {
  readonly server: number;
  readonly load: number;
}

export interface DnsPlan {
  readonly runs: readonly RunName[];
  readonly servers: readonly ServerName[];
  readonly names: QueryNames;
  readonly rounds: number;
  readonly seconds: number;
  /** `null` lets the system choose. */
  readonly cpus: Cpus | null;
  readonly progress: (text: string) => void;
}

/** Measures what `plan` says. Servers stay up through all rounds; cold names never repeat. */
export async function measureDns(setup: Setup, plan: DnsPlan): Promise<DnsResults> {
  const results: DnsResults = { runs: {}, quiet: {} };
  const warm = plan.runs.some((run) => run !== "cold");
  const cold = plan.runs.includes("cold");
  const warmServers = warm ? await startWarm(setup, plan) : [];
  // Apart from the warm ones: what is asked only once would push the rest out of their caches.
  const coldServers = cold
    ? await startCold({ ...setup, dnsmasqEntries: DNSMASQ_COLD_ENTRIES }, plan)
    : [];
  for (let round = 0; round < plan.rounds; round++) {
    for (const run of plan.runs) {
      const queries = setup.workspace.path(`${run}.names`);
      const probeQueries = run === "cold" ? setup.workspace.path("probe.names") : queries;
      if (run === "cold") await writeColdNames(setup.workspace, plan, `r${round}`, plan.seconds);
      for (const server of rotated(run === "cold" ? coldServers : warmServers, round)) {
        plan.progress(`round ${round + 1} of ${plan.rounds}: ${run}, ${server.name}`);
        const sample = await measure(server, plan, run, queries, probeQueries);
        ((results.runs[run] ??= {})[server.name] ??= []).push(sample);
      }
    }
    for (const server of rotated(warmServers, round)) {
      plan.progress(`round ${round + 1} of ${plan.rounds}: latency without load, ${server.name}`);
      const load = loadOf(server, plan, setup.workspace.path("mix.names"), QUIET_S, false);
      const latencies = await runProbe(load);
      (results.quiet[server.name] ??= []).push({
        p50Us: percentile(latencies, 0.5),
        p99Us: percentile(latencies, 0.99),
      });
    }
  }
  return results;
}

/** Every server is first, second, and so on, equally often. */
export function rotated<T>(values: readonly T[], by: number): T[] {
  const at = values.length === 0 ? 0 : by % values.length;
  return [...values.slice(at), ...values.slice(0, at)];
}

async function startWarm(setup: Setup, plan: DnsPlan): Promise<Server[]> {
  const { workspace } = setup;
  const { passed, blocked } = plan.names;
  await writeQueries(workspace.path("mix.names"), mix(plan.names));
  await writeQueries(workspace.path("cached.names"), passed);
  await writeQueries(workspace.path("blocked.names"), blocked);
  const servers: Server[] = [];
  for (const name of plan.servers) {
    plan.progress(`starting ${name}, filling its cache`);
    const server = await start(name, name, setup, plan);
    for (let i = 0; i < FILL_RUNS; i++) {
      await runLoad(loadOf(server, plan, workspace.path("cached.names"), CHECK_MS_MAX, true));
    }
    if (name !== "echo") await checkAnswers(server, plan.names);
    await runLoad(loadOf(server, plan, workspace.path("mix.names"), WARM_UP_S, false));
    servers.push(server);
  }
  return servers;
}

async function startCold(setup: Setup, plan: DnsPlan): Promise<Server[]> {
  const { workspace } = setup;
  const servers: Server[] = [];
  await writeColdNames(workspace, plan, "warm", WARM_UP_S);
  for (const name of plan.servers.filter((name) => name !== "echo")) {
    plan.progress(`starting ${name} for cold names`);
    const server = await start(name, `cold-${name}`, setup, plan);
    await runLoad(loadOf(server, plan, workspace.path("cold.names"), WARM_UP_S, true));
    servers.push(server);
  }
  return servers;
}

async function start(
  name: ServerName,
  folder: string,
  setup: Setup,
  { cpus }: DnsPlan,
): Promise<Server> {
  const server = await startServer(name, folder, setup);
  // Not from the start: Deno sizes its thread pools by the CPUs it finds then.
  if (cpus !== null) await pin(server.child.pid, [cpus.server]);
  return server;
}

async function writeColdNames(
  workspace: Workspace,
  { names }: DnsPlan,
  label: string,
  seconds: number,
): Promise<void> {
  const count = Math.ceil(seconds * COLD_NAMES_PER_SECOND);
  await writeQueries(workspace.path("cold.names"), coldNames(names.passed, label, count));
  const probes = Math.ceil(count / 10);
  await writeQueries(
    workspace.path("probe.names"),
    coldNames(names.passed, `probe-${label}`, probes),
  );
}

/** Sees that cached names are answered from upstream and blocked ones are not. */
async function checkAnswers({ port, name, child }: Server, names: QueryNames): Promise<void> {
  for (const [kind, wanted] of [["passed", PASSED], ["blocked", BLOCKED]] as const) {
    for (const asked of spread(names[kind], CHECKED_NAMES)) {
      await askUntil(port, asked, wanted, CHECK_MS_MAX).catch((error: BenchError) => {
        throw child.failure(`${name} answers a name that is ${kind} otherwise: ${error.message}`);
      });
    }
  }
}

function loadOf(
  { port }: Server,
  { cpus }: DnsPlan,
  queries: string,
  seconds: number,
  once: boolean,
): Load {
  return { port, queries, once, seconds, cpu: cpus === null ? null : cpus.load };
}

async function measure(
  server: Server,
  plan: DnsPlan,
  run: RunName,
  queries: string,
  probeQueries: string,
): Promise<Sample> {
  const { pid } = server.child;
  const once = run === "cold";
  const before = readCpuTime(pid);
  const startedMs = performance.now();
  const [load, latencies] = await Promise.all([
    runLoad(loadOf(server, plan, queries, plan.seconds, once)),
    runProbe(loadOf(server, plan, probeQueries, plan.seconds, once)),
  ]);
  const elapsedUs = 1_000 * (performance.now() - startedMs);
  const after = readCpuTime(pid);
  const memory = readMemory(pid);
  if (before === null || after === null || memory === null) {
    throw server.child.failure("ended under load");
  }
  if (load.completed === 0) throw new BenchError(`${server.name}: answered nothing in ${run}`);
  const queriesAnswered = load.completed + latencies.length;
  const userUs = after.userUs - before.userUs;
  const systemUs = after.systemUs - before.systemUs;
  return {
    queriesPerSecond: load.queriesPerSecond,
    userUs: userUs / queriesAnswered,
    systemUs: systemUs / queriesAnswered,
    busyShare: (userUs + systemUs) / elapsedUs,
    loadBusyShare: load.busyShare,
    p50Us: percentile(latencies, 0.5),
    p99Us: percentile(latencies, 0.99),
    residentBytes: memory.residentBytes,
    lostShare: 1 - load.completed / load.sent,
    errorShare: 1 - load.noError / load.completed,
  };
}
