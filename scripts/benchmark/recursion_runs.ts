/**
 * Cold answers of recursive, validating resolvers: every name is new to them, as what they have
 * learned is forgotten before each pass through the names.
 */
import { askUntil, freePort } from "./ask.ts";
import { BenchError } from "./bench_error.ts";
import { type Cpus, rotated } from "./dns_runs.ts";
import { runLoad, runPaced } from "./dnsperf.ts";
import { writeQueries } from "./names.ts";
import { type KeytrapResults, measureKeytrap } from "./keytrap_runs.ts";
import { type Child, pin, readCpuTime, readMemory } from "./processes.ts";
import {
  canRecurse,
  type Recursor,
  type RecursorName,
  RECURSORS,
  type RecursorSetup,
  startPlainSvc,
  startRecursor,
} from "./recursors.ts";
import { PASSED, START_MS_MAX, startUpstream } from "./servers.ts";
import {
  hostName,
  HOSTS,
  SmallInternet,
  ZONE_KINDS,
  type ZoneKind,
  zoneName,
} from "./small_internet.ts";
import { percentile } from "./stats.ts";
import type { Workspace } from "./workspace.ts";

/** Names of the one kind or the other after each other. */
export const VISITS = ["a new zone each", "ten names a zone"] as const;
export type Visit = typeof VISITS[number];

/** What can be measured alone. */
export const RECURSION_FIGURES = ["rates", "keytrap", "memory"] as const;
export type RecursionFigures = typeof RECURSION_FIGURES[number];

/** Names that the memory of a resolver is looked at after. */
const MEMORY_NAMES = 100_000;
/** Longest time that is waited for all of them. */
const MEMORY_S_MAX = 600;
/**
 * After this a process has given back what it will by itself: svc looks every five seconds, waits until
 * few ask, collects its heaps twice, and then has the C library return what is free.
 */
const SETTLE_MS = 40_000;
/** Zones whose names are asked for side by side, where there are several of each. */
const ZONES_AT_ONCE = 100;
/** Names one after another whose latency counts, a second. */
const PACED_RATE = 200;
/** Passes through all zones before anything is measured, until V8 has compiled what it runs most. */
const WARM_UP_PASSES = 2;
const PASS_S_MAX = 120;

/** One resolver under one load in one round. */
export interface RecursionSample {
  readonly namesPerSecond: number;
  /** Of the process and all its threads, per name. */
  readonly userUs: number;
  readonly systemUs: number;
  /** Queries that name servers were sent, per name. */
  readonly messages: number;
  /** Share of one CPU that the resolver used, and that dnsperf and the name servers did. */
  readonly busyShare: number;
  readonly loadBusyShare: number;
  /** Share of the names without an answer, or with another RCODE than NOERROR. */
  readonly failedShare: number;
  /** Latency of one name after another, with nothing else to do. */
  readonly p50Us: number;
  readonly p99Us: number;
}

export interface RecursionResults {
  readonly zones: number;
  /** `[kind][visit][resolver]` has one sample a round. */
  readonly runs: Readonly<
    Record<ZoneKind, Record<Visit, Partial<Record<RecursorName, RecursionSample[]>>>>
  >;
  /** Answers from the cache without and with an attack by signatures, a sample a round. */
  readonly keytrap: KeytrapResults;
  /** Resident memory after so many names of every kind; `forwarding` is svc that forwards them. */
  readonly memoryNames: number;
  readonly memoryBytes: Readonly<Partial<Record<RecursorName | "forwarding", number>>>;
}

export interface RecursionPlan {
  readonly rounds: number;
  readonly seconds: number;
  /** Zones of each kind. */
  readonly zones: number;
  /** `null`: all of them. */
  readonly only: RecursionFigures | null;
  /** A built svc to run in place of the checkout's. */
  readonly program: string | null;
  /** `null` lets the system choose. */
  readonly cpus: Cpus | null;
  readonly progress: (text: string) => void;
}

export async function measureRecursion(
  workspace: Workspace,
  plan: RecursionPlan,
): Promise<RecursionResults> {
  const { rounds, seconds, zones, only, program, cpus, progress } = plan;
  progress(`making ${ZONE_KINDS.length * zones} zones`);
  const internet = await SmallInternet.start(workspace, { zones, cpu: cpus?.load ?? null });
  const setup: RecursorSetup = { workspace, internet, program };
  const names = RECURSORS.filter(canRecurse);
  for (const name of RECURSORS) {
    if (!names.includes(name)) progress(`${name} is not installed: measuring without it`);
  }
  const wants = (figures: RecursionFigures) => only === null || only === figures;
  const memory = wants("memory")
    ? await measureMemory(setup, plan, names)
    : { memoryNames: 0, memoryBytes: {} };
  const runs = Object.fromEntries(ZONE_KINDS.map((kind) => [
    kind,
    Object.fromEntries(VISITS.map((visit) => [visit, {}])),
  ])) as RecursionResults["runs"];
  for (const kind of ZONE_KINDS) {
    for (const visit of VISITS) {
      await writeQueries(namesFile(workspace, kind, visit), visited(kind, visit, zones));
    }
  }
  const recursors: Recursor[] = [];
  for (const name of only === "memory" ? [] : names) {
    progress(`starting ${name}`);
    const recursor = await startRecursor(name, name, setup);
    if (cpus !== null) await pin(recursor.child.pid, [cpus.server]);
    for (let i = 0; i < WARM_UP_PASSES; i++) {
      for (const kind of ZONE_KINDS) {
        await recursor.flush();
        await pass(recursor, setup, plan, namesFile(workspace, kind, VISITS[0]));
      }
    }
    recursors.push(recursor);
  }
  for (let round = 0; wants("rates") && round < rounds; round++) {
    for (const kind of ZONE_KINDS) {
      for (const visit of VISITS) {
        for (const recursor of rotated(recursors, round)) {
          const { name } = recursor;
          progress(`round ${round + 1} of ${rounds}: ${kind}, ${visit}, ${name}`);
          const sample = await measure(recursor, setup, plan, namesFile(workspace, kind, visit));
          (runs[kind][visit][name] ??= []).push(sample);
        }
      }
    }
  }
  const keytrap: KeytrapResults = {};
  for (let round = 0; wants("keytrap") && round < rounds; round++) {
    for (const recursor of rotated(recursors, round)) {
      const { name } = recursor;
      progress(`round ${round + 1} of ${rounds}: signatures that do not fit, ${name}`);
      const cpu = cpus?.load ?? null;
      (keytrap[name] ??= []).push(await measureKeytrap(workspace, recursor, seconds, cpu));
    }
  }
  return { zones, runs, keytrap, ...memory };
}

function namesFile(workspace: Workspace, kind: ZoneKind, visit: Visit): string {
  return workspace.path(`${kind}-${VISITS.indexOf(visit)}.names`);
}

/** The names of one pass, in order. */
export function* visited(kind: ZoneKind, visit: Visit, zones: number): Generator<string> {
  const hosts = visit === "ten names a zone" ? HOSTS : 1;
  for (let first = 0; first < zones; first += ZONES_AT_ONCE) {
    const end = Math.min(first + ZONES_AT_ONCE, zones);
    for (let host = 0; host < hosts; host++) {
      for (let i = first; i < end; i++) yield hostName(zoneName(kind, i), host);
    }
  }
}

/** What one pass through a file of names took. */
interface Pass {
  readonly sent: number;
  readonly noError: number;
  readonly seconds: number;
  readonly userUs: number;
  readonly systemUs: number;
  readonly serversUs: number;
  readonly loadBusyShare: number;
  readonly messages: number;
}

async function pass(
  { name, child, port }: Recursor,
  { internet }: RecursorSetup,
  { cpus }: RecursionPlan,
  queries: string,
): Promise<Pass> {
  await internet.takeQueries();
  const serversBeforeUs = internet.cpuUs();
  const before = readCpuTime(child.pid);
  const cpu = cpus?.load ?? null;
  const load = await runLoad({ port, queries, once: true, seconds: PASS_S_MAX, cpu });
  const after = readCpuTime(child.pid);
  if (before === null || after === null) throw child.failure("ended under load");
  if (load.completed === 0) throw new BenchError(`${name}: answered nothing of ${queries}`);
  return {
    sent: load.sent,
    noError: load.noError,
    seconds: load.completed / load.queriesPerSecond,
    userUs: after.userUs - before.userUs,
    systemUs: after.systemUs - before.systemUs,
    serversUs: internet.cpuUs() - serversBeforeUs,
    loadBusyShare: load.busyShare,
    messages: await internet.takeQueries(),
  };
}

/** Passes until the time is over; then the latency of one name after another. */
async function measure(
  recursor: Recursor,
  setup: RecursorSetup,
  plan: RecursionPlan,
  queries: string,
): Promise<RecursionSample> {
  const passes: Pass[] = [];
  const sum = (take: (pass: Pass) => number) =>
    passes.reduce((total, pass) => total + take(pass), 0);
  while (sum(({ seconds }) => seconds) < plan.seconds) {
    await recursor.flush();
    passes.push(await pass(recursor, setup, plan, queries));
  }
  await recursor.flush();
  const { port } = recursor;
  const paced = { port, queries, once: true, seconds: plan.seconds, cpu: plan.cpus?.load ?? null };
  const latencies = await runPaced(paced, PACED_RATE);
  const sent = sum((pass) => pass.sent);
  const [seconds, userUs, systemUs] = [
    sum((pass) => pass.seconds),
    sum((pass) => pass.userUs),
    sum((pass) => pass.systemUs),
  ];
  return {
    namesPerSecond: sent / seconds,
    userUs: userUs / sent,
    systemUs: systemUs / sent,
    messages: sum((pass) => pass.messages) / sent,
    busyShare: (userUs + systemUs) / (1e6 * seconds),
    loadBusyShare: sum((pass) => pass.serversUs) / (1e6 * seconds) +
      sum((pass) => pass.loadBusyShare) / passes.length,
    failedShare: 1 - sum((pass) => pass.noError) / sent,
    p50Us: percentile(latencies, 0.5),
    p99Us: percentile(latencies, 0.99),
  };
}

/** Memory of each by itself, after names of every kind. */
async function measureMemory(
  setup: RecursorSetup,
  { zones, cpus, progress }: RecursionPlan,
  names: readonly RecursorName[],
): Promise<Pick<RecursionResults, "memoryNames" | "memoryBytes">> {
  const { workspace } = setup;
  const queries = workspace.path("memory.names");
  const asked = ZONE_KINDS.map((kind) => visited(kind, "ten names a zone", zones).toArray());
  const all = asked[0].flatMap((_, i) => asked.map((ofKind) => ofKind[i]));
  const memoryNames = Math.min(MEMORY_NAMES, all.length);
  await writeQueries(queries, all.slice(0, memoryNames));
  const residentAfter = async (child: Child, port: number): Promise<number> => {
    const cpu = cpus?.load ?? null;
    await runLoad({ port, queries, once: true, seconds: MEMORY_S_MAX, cpu });
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    const memory = readMemory(child.pid);
    if (memory === null) throw child.failure("ended under load");
    await workspace.stop(child);
    return memory.residentBytes;
  };
  const memoryBytes: Partial<Record<RecursorName | "forwarding", number>> = {};
  for (const name of names) {
    progress(`memory of ${name} after ${memoryNames} names`);
    const { child, port } = await startRecursor(name, `memory-${name}`, setup);
    memoryBytes[name] = await residentAfter(child, port);
  }
  progress(`memory of svc after ${memoryNames} names, forwarded`);
  const upstream = await startUpstream(workspace, cpus?.load ?? null);
  const [folder, port] = ["memory-forwarding", freePort()];
  await workspace.makeFolder(folder);
  const resolution = `[[upstream]]\naddress = "127.0.0.1:${upstream.port}"\n`;
  const { child } = await startPlainSvc(setup, folder, port, resolution);
  await askUntil(port, "ready.net", PASSED, START_MS_MAX);
  memoryBytes.forwarding = await residentAfter(child, port);
  return { memoryNames, memoryBytes };
}
