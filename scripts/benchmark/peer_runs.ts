/**
 * svc beside what people run in its place: AdGuard Home and blocky, where their programs are on PATH.
 * Each has the same list of a million names, the same upstream and the same load; every figure comes of
 * rounds in which they take turns.
 */
import { makeAuthority, writePair } from "../../tests/e2e/certificates.ts";
import { BenchError } from "./bench_error.ts";
import { type Cpus, rotated } from "./dns_runs.ts";
import { runLoad } from "./dnsperf.ts";
import { mix, type QueryNames, writeQueries } from "./names.ts";
import { runPacedTransport } from "./paced_loads.ts";
import { hasPeer, Peer, PEER_PROGRAMS, type PeerName, PEERS, versionOf } from "./peers.ts";
import { isInstalled, readMemory, resetPeak } from "./processes.ts";
import type { Server, Setup } from "./servers.ts";
import { percentile } from "./stats.ts";
import {
  type LoadPlan,
  PROGRAM_OF,
  runTransportLoad,
  type TransportRun,
} from "./transport_loads.ts";
import { measureLoad, type TransportSample } from "./transport_runs.ts";

export const PEER_RUNS = ["udp", "tcp", "dot", "doh", "doq"] as const satisfies TransportRun[];
export type PeerRun = typeof PEER_RUNS[number];
/** What is asked for; h2load has one body, so nothing is mixed over DoH. */
export const PEER_LOADS = ["cached", "blocked", "mix"] as const;
export type PeerLoad = typeof PEER_LOADS[number];

const DOMAIN = "dns.svc.test";
/** Runs through the names that fill a cache: again for what was lost the first time. */
const FILL_RUNS = 2;
const FILL_S_MAX = 5;
/** Load over each transport before the first round, until V8 has compiled what it runs most. */
const WARM_UP_S = 2;
/** After this a process has given back what it will by itself. */
const SETTLE_MS = 10_000;
/** The peak of a reload is to be gone after this. */
const AFTER_RELOAD_MS = 10_000;
/** Loads that memory is looked at after last so many times a round's seconds: a minute by default. */
const MEMORY_LOADS = 20;

/** blocky closes a connection after 128 queries, and leaves what came behind them. */
const LOST_SHARE_MAX = 0.1;
/** A load whose client ends badly is begun anew: h2load now and then waits for ever. */
const ATTEMPTS_MAX = 3;

/** Resident memory of one peer at its milestones. */
export interface PeerMemory {
  readonly restBytes: number;
  readonly loadedBytes: number;
  readonly peakBytes: number;
  readonly reloadedBytes: number;
}

export interface PeerFigures {
  readonly version: string;
  /** From a start with what a former one left to the first blocked answer. */
  readonly startsMs: readonly number[];
  readonly memory: PeerMemory;
  /** What load over QUIC alone adds to a process at rest; `null`: there is no DoQ. */
  readonly doqGrowthBytes: number | null;
  /** `[transport][names]` has one sample a round. */
  readonly runs: Partial<Record<PeerRun, Partial<Record<PeerLoad, TransportSample[]>>>>;
  /** Of a client that asks now and then, in microseconds. */
  readonly latency: Partial<Record<PeerRun, Latency>>;
}

export interface Latency {
  readonly p50Us: number;
  readonly p99Us: number;
}

export type PeerResults = Partial<Record<PeerName, PeerFigures>>;

export interface PeerPlan {
  readonly names: QueryNames;
  readonly rounds: number;
  readonly seconds: number;
  /** `null` lets the system choose. */
  readonly cpus: Cpus | null;
  readonly progress: (text: string) => void;
}

/** Figures of one peer while they are collected. */
type Collected = {
  -readonly [Key in keyof PeerFigures]: PeerFigures[Key] extends readonly number[] ? number[]
    : PeerFigures[Key];
};

/** Measures whom this machine has; says who is not there. */
export async function measurePeers(plain: Setup, plan: PeerPlan): Promise<PeerResults> {
  const { workspace } = plain;
  const { progress } = plan;
  const names = PEERS.filter(hasPeer);
  for (const name of PEERS) {
    if (name === "svc" || names.includes(name)) continue;
    progress(`${PEER_PROGRAMS[name]} is not on PATH: measuring without it`);
  }
  const runs = PEER_RUNS.filter((run) => {
    const program = PROGRAM_OF[run];
    if (program === undefined || isInstalled(program)) return true;
    progress(`${program} is not installed: measuring without ${run}`);
    return false;
  });
  const authority = await makeAuthority();
  const caFile = await workspace.write("peers-ca.crt", authority.cert);
  const issued = await authority.issue({ names: [DOMAIN], ips: ["127.0.0.1"] });
  const certificate = { ...await writePair(workspace.directory, "peers", issued), name: DOMAIN };
  const setup: Setup = { ...plain, certificate };
  for (const load of PEER_LOADS) await writeQueries(queriesOf(setup, load), namesOf(plan, load));
  const cpu = plan.cpus?.load ?? null;
  const load: LoadPlan = {
    ...{ workspace, certificate, caFile, cpu, seconds: plan.seconds, lostShareMax: LOST_SHARE_MAX },
    queries: queriesOf(setup, "cached"),
  };
  const measuring = new Measuring(plan, load, setup, runs);
  const results: Partial<Record<PeerName, Collected>> = {};
  const peers: Peer[] = [];
  for (const name of names) {
    const peer = await Peer.prepare(name, setup);
    peers.push(peer);
    results[name] = {
      version: await versionOf(name, setup.program),
      ...{ startsMs: [], runs: {}, latency: {} },
      memory: await measuring.memory(peer),
      doqGrowthBytes: peer.tls.doq === 0 ? null : await measuring.doqGrowth(peer),
    };
  }
  await measuring.starts(peers, results);
  await measuring.transports(peers, results);
  return results;
}

function namesOf({ names }: PeerPlan, load: PeerLoad): readonly string[] {
  if (load === "mix") return mix(names);
  return load === "cached" ? names.passed : names.blocked;
}

function queriesOf({ workspace }: Setup, load: PeerLoad): string {
  return workspace.path(`peers-${load}.names`);
}

class Measuring {
  readonly #blocked: string;

  constructor(
    private readonly plan: PeerPlan,
    private readonly load: LoadPlan,
    private readonly setup: Setup,
    private readonly runs: readonly PeerRun[],
  ) {
    this.#blocked = plan.names.blocked[0];
  }

  /** Starts a peer twice, the second time with what the first left; then load, then a reload. */
  async memory(peer: Peer): Promise<PeerMemory> {
    this.plan.progress(`memory: ${peer.name}`);
    await this.#start(peer);
    await sleep(SETTLE_MS); // Rules are kept after they are in force.
    await peer.stop();
    await this.#start(peer);
    await sleep(SETTLE_MS);
    const restBytes = residentOf(peer);
    await this.#fill(peer);
    const queries = queriesOf(this.setup, "mix");
    const seconds = MEMORY_LOADS * this.plan.seconds;
    await runTransportLoad("udp", serverOf(peer), { ...this.load, queries, seconds });
    await sleep(SETTLE_MS);
    const loadedBytes = residentOf(peer);
    resetPeak(peer.child.pid);
    await peer.reload("reloaded.peers.net");
    const peakBytes = readMemory(peer.child.pid)?.peakBytes ?? NaN;
    await sleep(AFTER_RELOAD_MS);
    const reloadedBytes = residentOf(peer);
    await peer.stop();
    return { restBytes, loadedBytes, peakBytes, reloadedBytes };
  }

  async doqGrowth(peer: Peer): Promise<number> {
    this.plan.progress(`memory under DoQ: ${peer.name}`);
    await this.#start(peer);
    await this.#fill(peer);
    await sleep(SETTLE_MS);
    const restBytes = residentOf(peer);
    const seconds = MEMORY_LOADS * this.plan.seconds;
    await runTransportLoad("doq", serverOf(peer), { ...this.load, seconds });
    await sleep(SETTLE_MS);
    const grownBytes = residentOf(peer) - restBytes;
    await peer.stop();
    return grownBytes;
  }

  /** Starts them in turn, and leaves them running after the last round. */
  async starts(peers: readonly Peer[], results: Partial<Record<PeerName, Collected>>) {
    const { rounds, progress } = this.plan;
    for (let round = 0; round < rounds; round++) {
      for (const peer of rotated(peers, round)) {
        progress(`start ${round + 1} of ${rounds}: ${peer.name}`);
        await peer.stop();
        results[peer.name]?.startsMs.push(await this.#start(peer));
        if (round < rounds - 1) await peer.stop();
      }
    }
  }

  /** Every transport with every load, one peer after the other. */
  async transports(peers: readonly Peer[], results: Partial<Record<PeerName, Collected>>) {
    const { rounds, progress } = this.plan;
    for (const peer of peers) {
      progress(`filling the cache, warming up: ${peer.name}`);
      await this.#fill(peer);
      for (const run of this.runs.filter((run) => serves(peer, run))) {
        await runTransportLoad(run, serverOf(peer), { ...this.load, seconds: WARM_UP_S });
      }
    }
    for (let round = 0; round < rounds; round++) {
      for (const run of this.runs) {
        for (const load of PEER_LOADS) {
          if (run === "doh" && load === "mix") continue;
          for (const peer of rotated(peers, round)) {
            if (!serves(peer, run)) continue;
            progress(`round ${round + 1} of ${rounds}: ${run}, ${load}, ${peer.name}`);
            const plan = { ...this.load, queries: queriesOf(this.setup, load) };
            const sample = await this.#tried(() => measureLoad(run, serverOf(peer), plan));
            ((results[peer.name]!.runs[run] ??= {})[load] ??= []).push(sample);
          }
        }
      }
    }
    for (const run of this.runs) {
      for (const peer of peers) {
        if (!serves(peer, run)) continue;
        progress(`latency without load: ${run}, ${peer.name}`);
        const us = await this.#tried(() => runPacedTransport(run, peer, this.load));
        const [p50Us, p99Us] = [percentile(us, 0.5), percentile(us, 0.99)];
        results[peer.name]!.latency[run] = { p50Us, p99Us };
      }
    }
    await Promise.all(peers.map((peer) => peer.stop()));
  }

  async #tried<T>(work: () => Promise<T>): Promise<T> {
    for (let attempt = 1;; attempt++) {
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof BenchError) || attempt === ATTEMPTS_MAX) throw error;
        this.plan.progress(`once more: ${error.message}`);
      }
    }
  }

  async #fill({ port }: Peer): Promise<void> {
    const { queries, cpu } = this.load;
    for (let i = 0; i < FILL_RUNS; i++) {
      await runLoad({ port, queries, once: true, seconds: FILL_S_MAX, cpu });
    }
  }

  #start(peer: Peer): Promise<number> {
    return peer.start(this.#blocked, this.plan.cpus?.server ?? null);
  }
}

/** blocky has no DoQ. */
function serves({ tls }: Peer, run: PeerRun): boolean {
  return run !== "doq" || tls.doq !== 0;
}

function serverOf({ name, child, port, tls }: Peer): Server<PeerName> {
  return { name, child, port, tls };
}

function residentOf({ name, child }: Peer): number {
  const memory = readMemory(child.pid);
  if (memory === null) throw new BenchError(`${name}: ended by itself`);
  return memory.residentBytes;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
