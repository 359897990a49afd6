/** What the API costs: its own latency, and what it takes from the queries beside it. */
import { Api, SIDE_BY_SIDE } from "./api_client.ts";
import { ApiLoad, writesIn } from "./api_load.ts";
import { address, askUntil, freePort } from "./ask.ts";
import { runLoad } from "./dnsperf.ts";
import { addressesOf, CLIENTS, GROUPS, timeIdentification } from "./identify_runs.ts";
import { mix, type QueryNames, writeQueries } from "./names.ts";
import type { Cpus } from "./dns_runs.ts";
import { allowedCpus, type Child, pin, readCpuTime, readMemory } from "./processes.ts";
import { BLOCKED, type Setup, START_MS_MAX, svcCommand, writeSvcConfig } from "./servers.ts";
import { median, medianRatio, percentile } from "./stats.ts";

/** So that the API's code is as warm as after an hour. */
const WARM_SECONDS = 5;
/** Of fewer than 100 the 99th percentile is the slowest one. */
const WRITES_MIN = 200;
/** Requests over which memory has to stay flat, and those before it, for the heap to settle. */
const MEMORY_REQUESTS = 100_000;
const WARM_REQUESTS = 10_000;
const EDITS = 20;
const ALLOWED_NAME = "api-bench.example";

export interface ApiResults {
  readonly readMs: readonly number[];
  readonly writeMs: readonly number[];
  /** DNS queries a second without requests and with them beside, a pair each round. */
  readonly quietRates: readonly number[];
  readonly busyRates: readonly number[];
  /** User time a query of a svc without clients, and of one with thousands of clients and groups. */
  readonly plainUs: readonly number[];
  readonly manyUs: readonly number[];
  /** What finding the client adds by itself, a figure a round. */
  readonly identificationNs: readonly number[];
  readonly importSeconds: number;
  /** From the request that changes a client to the first query that shows it. */
  readonly editMs: readonly number[];
  readonly memoryBefore: number;
  readonly memoryAfter: number;
}

export interface ApiPlan {
  readonly names: QueryNames;
  readonly rounds: number;
  readonly seconds: number;
  /** The server on one; queries and requests come from the other. */
  readonly cpus: Cpus | null;
  readonly progress: (text: string) => void;
}

/** A svc with an API, started for this measurement. */
interface Node {
  readonly child: Child;
  readonly port: number;
  readonly api: Api;
}

/** Measures a svc of its own with its API, beside a second one that gets no clients. */
export async function measureApi(setup: Setup, plan: ApiPlan): Promise<ApiResults> {
  const { cpus } = plan;
  const allowed = allowedCpus();
  const nodes: Node[] = [];
  for (const folder of ["api-svc", "api-plain"]) nodes.push(await start(folder, setup, plan));
  // On two cores whatever runs beside moves a server about, which costs it more than that takes.
  if (cpus !== null) await pin(Deno.pid, [cpus.load]);
  const load = new ApiLoad();
  try {
    return await measure(nodes[0], nodes[1], load, setup, plan);
  } finally {
    load.close();
    if (cpus !== null) await pin(Deno.pid, allowed);
    for (const { api, child } of nodes) {
      api.close();
      await setup.workspace.stop(child);
    }
  }
}

async function start(folder: string, setup: Setup, { names, cpus }: ApiPlan): Promise<Node> {
  const [port, apiPort] = [freePort(), freePort()];
  const config = await writeSvcConfig(folder, port, setup, apiPort);
  const [program, ...args] = await svcCommand(setup.program, config);
  const child = setup.workspace.start(folder, program, args);
  await askUntil(port, names.blocked[0], BLOCKED, START_MS_MAX);
  if (cpus !== null) await pin(child.pid, [cpus.server]);
  return { child, port, api: await Api.whenUp(apiPort, START_MS_MAX) };
}

async function measure(
  node: Node,
  plain: Node,
  load: ApiLoad,
  setup: Setup,
  plan: ApiPlan,
): Promise<ApiResults> {
  const { progress, rounds, seconds, cpus } = plan;
  const { api, child } = node;
  const cpu = cpus === null ? null : cpus.load;
  const queries = setup.workspace.path("api.names");
  await writeQueries(queries, mix(plan.names));
  const rate = async ({ port }: Node) =>
    (await runLoad({ port, queries, once: false, seconds, cpu })).queriesPerSecond;
  for (const each of [node, plain]) await rate(each); // Fills the caches.
  await load.time({ port: api.port, seconds: WARM_SECONDS });

  const [readMs, writeMs]: number[][] = [[], []];
  const [quietRates, busyRates]: number[][] = [[], []];
  const pairs = Math.max(rounds, Math.ceil(WRITES_MIN / Math.max(1, writesIn(seconds))));
  for (let pair = 0; pair < pairs; pair++) {
    progress(`round ${pair + 1} of ${pairs}: queries alone, and with requests beside them`);
    // Each is first in turn, so that a machine that gets slower or faster favours neither.
    if (pair % 2 === 0) quietRates.push(await rate(node));
    const [busy, times] = await Promise.all([
      rate(node),
      load.time({ port: api.port, seconds }),
    ]);
    if (pair % 2 === 1) quietRates.push(await rate(node));
    busyRates.push(busy);
    readMs.push(...times.readMs);
    writeMs.push(...times.writeMs);
  }
  progress(`making ${CLIENTS} clients and ${GROUPS} groups`);
  const startedMs = performance.now();
  const edited = await makeMany(api);
  const importSeconds = (performance.now() - startedMs) / 1_000;
  const userUs = async ({ port, child }: Node) => {
    const before = readCpuTime(child.pid);
    const { completed } = await runLoad({ port, queries, once: false, seconds, cpu });
    const after = readCpuTime(child.pid);
    if (before === null || after === null) throw child.failure("ended under load");
    return (after.userUs - before.userUs) / completed;
  };
  const [plainUs, manyUs]: number[][] = [[], []];
  for (let pair = 0; pair < pairs; pair++) {
    progress(`round ${pair + 1} of ${pairs}: queries without and with as many clients`);
    if (pair % 2 === 0) plainUs.push(await userUs(plain));
    manyUs.push(await userUs(node));
    if (pair % 2 === 1) plainUs.push(await userUs(plain));
  }
  progress("editing a client");
  const editMs = await timeEdits(api, node.port, edited);
  progress(`${MEMORY_REQUESTS} requests`);
  await read(api, WARM_REQUESTS);
  const memoryBefore = residentOf(child);
  await read(api, MEMORY_REQUESTS);
  const memoryAfter = residentOf(child);
  return {
    readMs,
    writeMs,
    quietRates,
    busyRates,
    plainUs,
    manyUs,
    identificationNs: timeIdentification(pairs),
    importSeconds,
    editMs,
    memoryBefore,
    memoryAfter,
  };
}

/** The client of 127.0.0.1, and two groups that differ in filtering. */
interface Edited {
  readonly client: string;
  readonly filtered: string;
  readonly free: string;
}

async function makeMany(api: Api): Promise<Edited> {
  const groups: string[] = [];
  await sideBySide(GROUPS, async (i) => {
    const { id } = await api.must("POST", "/groups", {
      name: `group ${i}`,
      filtering: i % 2 === 0,
    });
    groups[i] = id as string;
  });
  await sideBySide(CLIENTS, async (i) => {
    await api.must("POST", "/clients", {
      name: `client ${i}`,
      addresses: addressesOf(i),
      group: groups[i % GROUPS],
    });
  });
  const spec = { name: "loopback", addresses: ["127.0.0.1"], group: groups[0] };
  const { id } = await api.must("POST", "/clients", spec);
  await api.must("POST", "/rules", { rule: `||${ALLOWED_NAME}^` });
  return { client: id as string, filtered: groups[0], free: groups[1] };
}

async function timeEdits(api: Api, port: number, edited: Edited): Promise<number[]> {
  const times: number[] = [];
  for (let i = 0; i < EDITS; i++) {
    const free = i % 2 === 0;
    const startedMs = performance.now();
    await api.must("PUT", `/clients/${edited.client}`, {
      name: "loopback",
      addresses: ["127.0.0.1"],
      group: free ? edited.free : edited.filtered,
    });
    const wanted = free ? address("192.0.2.1") : BLOCKED;
    await askUntil(port, ALLOWED_NAME, wanted, START_MS_MAX);
    times.push(performance.now() - startedMs);
  }
  return times;
}

function read(api: Api, count: number): Promise<void> {
  return sideBySide(count, async () => void await api.must("GET", "/health"));
}

async function sideBySide(count: number, work: (i: number) => Promise<void>): Promise<void> {
  let next = 0;
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, async () => {
    while (next < count) await work(next++);
  }));
}

function residentOf(child: Child): number {
  const memory = readMemory(child.pid);
  if (memory === null) throw child.failure("ended by itself");
  return memory.residentBytes;
}

/** The 99th percentile, in milliseconds. */
export const p99 = (values: readonly number[]): number => percentile(values, 0.99);

/** What share of its rate DNS keeps beside requests. */
export const keptShare = ({ busyRates, quietRates }: ApiResults): number =>
  medianRatio(busyRates, quietRates);

/** Time that so many clients and groups add to a query, in nanoseconds. */
export const identificationNs = ({ identificationNs }: ApiResults): number =>
  median(identificationNs);
