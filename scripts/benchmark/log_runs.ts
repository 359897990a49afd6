/** What the query log costs, and whether it keeps up: it beside itself without one. */
import { Api } from "./api_client.ts";
import { askUntil, freePort } from "./ask.ts";
import { BenchError } from "./bench_error.ts";
import type { Cpus } from "./dns_runs.ts";
import { type Load, runLoad } from "./dnsperf.ts";
import { mix, type QueryNames, writeQueries } from "./names.ts";
import { type Child, pin, readCpuTime, readMemory } from "./processes.ts";
import { BLOCKED, type Setup, START_MS_MAX, svcCommand, writeSvcConfig } from "./servers.ts";
import { medianRatio } from "./stats.ts";

/** A rate that the log has to bear, and how many of a round's seconds it is borne. */
const STEADY_RATE = 100_000;
const STEADY_ROUNDS = 20;
/** A rate of which every query has its entry. */
const KEPT_RATE = 20_000;
/** Entries that searches are timed over, and a rate at which next to each query gets one. */
export const LOG_ENTRIES = 1_000_000;
const FILL_RATE = 15_000;
const FILL_SECONDS = 10;
const FILL_ROUNDS_MAX = 20;
/** Times that each request is sent. */
const REQUESTS = 15;
/** Until what waits is written: the log does so every few seconds. */
const SETTLE_MS = 7_000;
const SEARCHES = [
  "",
  "outcome=blocked",
  "outcome=failed",
  "client=127.0.0.1",
  "client=192.0.2.1",
  "name=ads",
  "name=com",
  "name=no-such-name",
  "name=ad&outcome=blocked&client=127.0.0.1",
] as const;

export interface LogResults {
  /** DNS queries a second without a log and with one, a pair each round. */
  readonly withoutRates: readonly number[];
  readonly withRates: readonly number[];
  /** Blocked names as fast as may be, and then at a rate of which all is kept. */
  readonly blocked: Readonly<Record<"without" | "with", readonly Priced[]>>;
  readonly kept: Readonly<Record<"without" | "with", readonly Priced[]>>;
  readonly steady: {
    readonly seconds: number;
    readonly queriesPerSecond: number;
    /** Queries that the service counted, those that the statistics did, and those without an entry. */
    readonly asked: number;
    readonly counted: number;
    readonly dropped: number;
    readonly residentBefore: number;
    readonly residentMost: number;
  };
  readonly entries: number;
  readonly fileBytes: number;
  /** By search, in milliseconds. */
  readonly searchMs: Readonly<Record<string, readonly number[]>>;
  readonly statisticsMs: readonly number[];
}

/** What a query cost a service, all its threads together. */
export interface Priced {
  readonly cpuUs: number;
  readonly queriesPerSecond: number;
  /** Of its queries, those with an entry; 0 without a log. */
  readonly entryShare: number;
}

export interface LogPlan {
  readonly names: QueryNames;
  readonly rounds: number;
  readonly seconds: number;
  readonly cpus: Cpus | null;
  readonly progress: (text: string) => void;
}

interface Logged {
  readonly queryLog: boolean;
  readonly child: Child;
  readonly port: number;
  readonly api: Api;
  readonly folder: string;
}

/** Measures a svc of its own with a query log, beside one without. */
export async function measureLog(setup: Setup, plan: LogPlan): Promise<LogResults> {
  const { workspace } = setup;
  const { cpus, progress, rounds, seconds } = plan;
  const started: Logged[] = [];
  try {
    for (const queryLog of [false, true]) {
      progress(`starting svc ${queryLog ? "with" : "without"} its query log`);
      started.push(await start({ ...setup, queryLog }, plan));
    }
    const [without, logged] = started;
    const queries = workspace.path("log.names");
    await writeQueries(queries, mix(plan.names));
    const cpu = cpus === null ? null : cpus.load;
    const rate = async ({ port }: Logged) =>
      (await runLoad({ port, queries, once: false, seconds, cpu })).queriesPerSecond;
    for (const one of started) await rate(one); // Fills the caches.
    const [withoutRates, withRates]: number[][] = [[], []];
    for (let round = 0; round < rounds; round++) {
      progress(`round ${round + 1} of ${rounds}: queries without a log, then with one`);
      withoutRates.push(await rate(without));
      withRates.push(await rate(logged));
    }
    const blockedQueries = workspace.path("log-blocked.names");
    await writeQueries(blockedQueries, plan.names.blocked);
    const prices = async (what: string, pace: Pick<Load, "rate"> = {}) => {
      const load = { queries: blockedQueries, once: false, seconds, cpu, ...pace };
      const priced: Record<"without" | "with", Priced[]> = { without: [], with: [] };
      for (let round = 0; round < rounds; round++) {
        progress(`round ${round + 1} of ${rounds}: blocked names, ${what}`);
        priced.without.push(await price(without, load));
        priced.with.push(await price(logged, load));
      }
      return priced;
    };
    const blocked = await prices("as fast as may be");
    const kept = await prices(`${KEPT_RATE} a second`, { rate: KEPT_RATE });
    await workspace.stop(without.child);
    await sleep(SETTLE_MS);
    progress(`${STEADY_RATE} queries a second for ${STEADY_ROUNDS * seconds} seconds`);
    const steady = await bear(logged, queries, STEADY_ROUNDS * seconds, cpu);
    for (let round = 0; round < FILL_ROUNDS_MAX; round++) {
      const entries = await entriesOf(logged.api);
      if (entries >= LOG_ENTRIES) break;
      progress(
        `${entries} entries: ${FILL_RATE} queries a second for ${FILL_SECONDS} seconds more`,
      );
      const load = { port: logged.port, queries, once: false, seconds: FILL_SECONDS, cpu };
      await runLoad({ ...load, rate: FILL_RATE });
    }
    await sleep(SETTLE_MS);
    progress("searching");
    const searchMs: Record<string, number[]> = {};
    for (const search of SEARCHES) {
      searchMs[search] = await time(logged.api, `/querylog?limit=100&${search}`);
    }
    const statisticsMs = await time(logged.api, "/stats?hours=24");
    const entries = await entriesOf(logged.api);
    const file = `${logged.folder}/store/querylog/querylog.db`;
    const fileBytes = (await Deno.stat(file)).size;
    return {
      withoutRates,
      withRates,
      blocked,
      kept,
      steady,
      entries,
      fileBytes,
      searchMs,
      statisticsMs,
    };
  } finally {
    for (const { api, child } of started) {
      api.close();
      await workspace.stop(child);
    }
  }
}

async function start(setup: Setup, { names, cpus }: LogPlan): Promise<Logged> {
  const { workspace, queryLog } = setup;
  const folder = queryLog ? "log-svc" : "no-log-svc";
  const [port, apiPort] = [freePort(), freePort()];
  const config = await writeSvcConfig(folder, port, setup, apiPort);
  const [program, ...args] = await svcCommand(setup.program, config);
  const child = workspace.start(folder, program, args);
  await askUntil(port, names.blocked[0], BLOCKED, START_MS_MAX);
  if (cpus !== null) await pin(child.pid, [cpus.server]);
  const api = await Api.whenUp(apiPort, START_MS_MAX);
  return { queryLog, child, port, api, folder: workspace.path(folder) };
}

async function entriesOf(api: Api): Promise<number> {
  const { querylog } = await api.must("GET", "/status");
  return (querylog as { entries: number }).entries;
}

/** Puts a load on a service until all that comes of it is done; what that took of the processors. */
async function price(
  { queryLog, child, port, api }: Logged,
  load: Omit<Load, "port">,
): Promise<Priced> {
  const [counts, time] = [await countsOf(api), readCpuTime(child.pid)];
  const { queriesPerSecond } = await runLoad({ ...load, port });
  await sleep(SETTLE_MS);
  const [countsAfter, timeAfter] = [await countsOf(api), readCpuTime(child.pid)];
  if (time === null || timeAfter === null) throw child.failure("ended by itself");
  const asked = countsAfter.asked - counts.asked;
  const cpuUs = timeAfter.userUs + timeAfter.systemUs - time.userUs - time.systemUs;
  return {
    cpuUs: cpuUs / asked,
    queriesPerSecond,
    entryShare: queryLog ? 1 - (countsAfter.dropped - counts.dropped) / asked : 0,
  };
}

/** Puts the log under a rate, and sees that nothing is lost uncounted. */
async function bear(
  { child, port, api }: Logged,
  queries: string,
  seconds: number,
  cpu: number | null,
): Promise<LogResults["steady"]> {
  const before = await countsOf(api);
  const residentBefore = residentOf(child);
  let residentMost = residentBefore;
  const watch = setInterval(() => residentMost = Math.max(residentMost, residentOf(child)), 250);
  const load = { port, queries, once: false, seconds, cpu, rate: STEADY_RATE };
  const { queriesPerSecond } = await runLoad(load).finally(() => clearInterval(watch));
  await sleep(SETTLE_MS);
  const after = await countsOf(api);
  return {
    seconds,
    queriesPerSecond,
    asked: after.asked - before.asked,
    counted: after.counted - before.counted,
    dropped: after.dropped - before.dropped,
    residentBefore,
    residentMost,
  };
}

/** What the service has counted by itself, what its statistics have, and what has no entry. */
async function countsOf(api: Api): Promise<{ asked: number; counted: number; dropped: number }> {
  const text = await (await fetch(`http://127.0.0.1:${api.port}/metrics`)).text();
  let asked = 0;
  for (const [, value] of text.matchAll(/^svc_queries_total\{.*\} (\d+)$/gm)) {
    asked += Number(value);
  }
  // A week: a run may pass the end of an hour.
  const { total } = await api.must("GET", "/stats?hours=168");
  const { querylog } = await api.must("GET", "/status");
  const { dropped } = querylog as { dropped: number };
  return { asked, counted: Number(total), dropped };
}

async function time(api: Api, path: string): Promise<number[]> {
  const times: number[] = [];
  for (let i = 0; i < REQUESTS; i++) {
    const { status, tookMs } = await api.call("GET", path);
    if (status !== 200) throw new BenchError(`GET ${path}: ${status}`);
    times.push(tookMs);
  }
  return times;
}

function residentOf(child: Child): number {
  const memory = readMemory(child.pid);
  if (memory === null) throw child.failure("ended by itself");
  return memory.residentBytes;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** What a query costs with the log for each time that it costs without. */
export const logPrice = (priced: LogResults["blocked"]): number =>
  medianRatio(priced.with.map(({ cpuUs }) => cpuUs), priced.without.map(({ cpuUs }) => cpuUs));

/** The least share of its queries that had an entry in any round. */
export const leastKept = (priced: LogResults["blocked"]): number =>
  Math.min(...priced.with.map(({ entryShare }) => entryShare));

/** What share of its rate DNS keeps beside the log. */
export const loggedShare = ({ withRates, withoutRates }: LogResults): number =>
  medianRatio(withRates, withoutRates);
