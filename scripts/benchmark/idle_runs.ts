/** Households ask little: what a server costs, and how soon it answers, at a few queries a second. */
import { askUntil } from "./ask.ts";
import { BenchError } from "./bench_error.ts";
import type { Cpus } from "./dns_runs.ts";
import { runPaced } from "./dnsperf.ts";
import { type QueryNames, writeQueries } from "./names.ts";
import { pin, readActivity } from "./processes.ts";
import { PASSED, type Server, type Setup, startServer } from "./servers.ts";
import { percentile } from "./stats.ts";

/** Queries a second, one after another. */
export const IDLE_RATES = [0, 10, 100] as const;
export type IdleRate = typeof IDLE_RATES[number];
export const IDLE_SERVERS = ["svc", "unbound", "dnsmasq"] as const;
export type IdleServer = typeof IDLE_SERVERS[number];

/** A household's names, which every cache holds. */
const NAMES = 50;
const START_MS_MAX = 10_000;
/** Until what a start leaves to be done is done: the log, collections of garbage. */
const SETTLE_MS = 10_000;

/** One server at one rate in one round. */
export interface IdleSample {
  /** Share of one CPU, all threads. */
  readonly cpuShare: number;
  /** Times a second that a thread was let onto a CPU. */
  readonly wakeUps: number;
  /** Not a number at rate 0. */
  readonly p50Us: number;
  readonly p99Us: number;
}

export interface IdleResults {
  readonly servers: Partial<Record<IdleServer, Record<IdleRate, IdleSample[]>>>;
}

export interface IdlePlan {
  readonly servers: readonly IdleServer[];
  readonly names: QueryNames;
  readonly rounds: number;
  readonly seconds: number;
  readonly cpus: Cpus | null;
  readonly progress: (text: string) => void;
}

/** Measures one server after another; only one runs at a time, so that no other wakes the CPU. */
export async function measureIdle(setup: Setup, plan: IdlePlan): Promise<IdleResults> {
  const { workspace } = setup;
  const { names, rounds, cpus, progress } = plan;
  const queries = workspace.path("idle.names");
  const asked = names.passed.slice(0, NAMES);
  await writeQueries(queries, asked);
  const servers: IdleResults["servers"] = {};
  for (const name of plan.servers) {
    progress(`starting ${name}`);
    const server = await startServer(name, `idle-${name}`, setup);
    try {
      if (cpus !== null) await pin(server.child.pid, [cpus.server]);
      for (const one of asked) await askUntil(server.port, one, PASSED, START_MS_MAX);
      await sleep(SETTLE_MS);
      const samples: Record<IdleRate, IdleSample[]> = { 0: [], 10: [], 100: [] };
      for (let round = 0; round < rounds; round++) {
        for (const rate of IDLE_RATES) {
          progress(`round ${round + 1} of ${rounds}: ${name}, ${rate} queries a second`);
          samples[rate].push(await sample(server, queries, rate, plan));
        }
      }
      servers[name] = samples;
    } finally {
      await workspace.stop(server.child);
    }
  }
  return { servers };
}

async function sample(
  { child, port }: Server,
  queries: string,
  rate: IdleRate,
  { seconds, cpus }: IdlePlan,
): Promise<IdleSample> {
  const before = readActivity(child.pid);
  const startMs = performance.now();
  const load = { port, queries, once: false, seconds, cpu: cpus?.load ?? null };
  const latencies = rate === 0 ? await rest(seconds) : await runPaced(load, rate);
  const tookMs = performance.now() - startMs;
  const after = readActivity(child.pid);
  if (before === null || after === null) throw child.failure("ended by itself");
  if (rate > 0 && latencies.length < rate * seconds * 0.9) {
    throw new BenchError(`port ${port}: ${latencies.length} answers in ${seconds} s at ${rate}`);
  }
  return {
    cpuShare: (after.cpuNs - before.cpuNs) / 1e6 / tookMs,
    wakeUps: (after.switches - before.switches) / (tookMs / 1_000),
    p50Us: percentile(latencies, 0.5),
    p99Us: percentile(latencies, 0.99),
  };
}

async function rest(seconds: number): Promise<number[]> {
  await sleep(1_000 * seconds);
  return [];
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
