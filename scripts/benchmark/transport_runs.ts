/**
 * The ways to ask beside plain UDP: svc and unbound in turn, in rounds, under the same load with
 * answers from the cache; and what an idle TLS connection holds in memory.
 */
import { connect as connectTcp } from "node:net";
import { connect, type TLSSocket } from "node:tls";
import { makeAuthority, writePair } from "../../tests/e2e/certificates.ts";
import { BenchError } from "./bench_error.ts";
import { type Cpus, rotated } from "./dns_runs.ts";
import { runLoad } from "./dnsperf.ts";
import { type QueryNames, writeQueries } from "./names.ts";
import { isInstalled, pin, readCpuTime, readMemory } from "./processes.ts";
import { type Server, type Setup, startBare, startServer } from "./servers.ts";
import {
  type LoadPlan,
  PROGRAM_OF,
  runTransportLoad,
  TRANSPORT_RUNS,
  type TransportRun,
} from "./transport_loads.ts";

const DNS_SERVERS = ["svc", "unbound"] as const;
/** The last shows what of DoQ's cost is the runtime's. */
export const TRANSPORT_SERVERS = [...DNS_SERVERS, "bare"] as const;
export type TransportServer = typeof TRANSPORT_SERVERS[number];
type AnyServer = Server | Server<"bare">;

/** The domain in the servers' certificate. */
const DOMAIN = "dns.svc.test";
/** Runs through the names that fill a cache: again for what was lost the first time. */
const FILL_RUNS = 2;
const FILL_S_MAX = 5;
/** Load over each transport before the first round, until V8 has compiled what it runs most. */
const WARM_UP_S = 2;
/** Idle connections: as many devices as a busy network has. */
const IDLE_CONNECTIONS = 500;
/** Connections of one address; a client of svc may have 128. */
const CONNECTIONS_PER_ADDRESS = 100;
/** Connections opened and closed before, so that what is only made once is not counted. */
const FIRST_CONNECTIONS = 20;
const CONNECT_MS_MAX = 10_000;
/** After this a process has given back what it will by itself. */
const SETTLE_MS = 3_000;

/** One server under load over one transport in one round. */
export interface TransportSample {
  /** Queries, or handshakes, a second. */
  readonly perSecond: number;
  /** CPU time of the server for each of them. */
  readonly userUs: number;
  readonly systemUs: number;
  /** Share of one CPU that the server used, and that its clients did. */
  readonly busyShare: number;
  readonly loadBusyShare: number;
}

export interface TransportResults {
  /** `[run][server]` has one sample a round. */
  readonly runs: Partial<
    Record<TransportRun, Partial<Record<TransportServer, TransportSample[]>>>
  >;
  /** Resident bytes that an idle DoT connection adds. */
  readonly idleBytes: Partial<Record<TransportServer, number>>;
}

export interface TransportPlan {
  readonly names: QueryNames;
  readonly rounds: number;
  readonly seconds: number;
  /** `null` lets the system choose. */
  readonly cpus: Cpus | null;
  readonly progress: (text: string) => void;
}

/** Measures what this machine has the programs for. */
export async function measureTransports(
  plain: Setup,
  plan: TransportPlan,
): Promise<TransportResults> {
  const { workspace } = plain;
  const { progress, rounds } = plan;
  const authority = await makeAuthority();
  const caFile = await workspace.write("ca.crt", authority.cert);
  const issued = await authority.issue({ names: [DOMAIN], ips: ["127.0.0.1"] });
  const certificate = { ...await writePair(workspace.directory, "server", issued), name: DOMAIN };
  // Blocked names cost unbound a different way for each; here the transport is what counts.
  const setup: Setup = { ...plain, certificate, blocked: [] };
  const queries = workspace.path("transports.names");
  await writeQueries(queries, plan.names.passed);
  const load: LoadPlan = {
    workspace,
    certificate,
    caFile,
    queries,
    seconds: plan.seconds,
    cpu: plan.cpus?.load ?? null,
  };
  const runs = TRANSPORT_RUNS.filter((run) => {
    const program = PROGRAM_OF[run];
    if (program === undefined || isInstalled(program)) return true;
    progress(`${program} is not installed: measuring without ${run}`);
    return false;
  });
  const names = DNS_SERVERS.filter((name) => name === "svc" || isInstalled(name));
  const results: TransportResults = { runs: {}, idleBytes: {} };
  for (const name of names) {
    progress(`memory of idle connections: ${name}`);
    // A server of its own: one that was under load has memory to spare.
    const server = await start(name, `idle-${name}`, setup, plan);
    results.idleBytes[name] = await measureIdle(server);
    await workspace.stop(server.child);
  }
  const servers: AnyServer[] = [];
  for (const name of names) {
    progress(`starting ${name}, filling its cache, warming up`);
    const server = await start(name, `transports-${name}`, setup, plan);
    const { port } = server;
    for (let i = 0; i < FILL_RUNS; i++) {
      await runLoad({ port, queries, once: true, seconds: FILL_S_MAX, cpu: load.cpu });
    }
    for (const run of runs.filter((run) => serves(server, run))) {
      await runTransportLoad(run, server, { ...load, seconds: WARM_UP_S });
    }
    servers.push(server);
  }
  if (runs.includes("doq")) {
    progress("starting the bare server, warming up");
    const bare = await startBare(workspace, certificate);
    if (plan.cpus !== null) await pin(bare.child.pid, [plan.cpus.server]);
    await runTransportLoad("doq", bare, { ...load, seconds: WARM_UP_S });
    servers.push(bare);
  }
  for (let round = 0; round < rounds; round++) {
    for (const run of runs) {
      for (const server of rotated(servers, round)) {
        if (!serves(server, run)) continue;
        progress(`round ${round + 1} of ${rounds}: ${run}, ${server.name}`);
        const sample = await measureLoad(run, server, load);
        const name = server.name as TransportServer;
        ((results.runs[run] ??= {})[name] ??= []).push(sample);
      }
    }
  }
  await Promise.all(servers.map(({ child }) => workspace.stop(child)));
  return results;
}

/** Debian's unbound has no DoQ. */
function serves({ name }: AnyServer, run: TransportRun): boolean {
  return run === "doq" ? name !== "unbound" : name !== "bare";
}

async function start(
  name: typeof DNS_SERVERS[number],
  folder: string,
  setup: Setup,
  { cpus }: TransportPlan,
): Promise<Server> {
  const server = await startServer(name, folder, setup);
  // Not from the start: Deno sizes its thread pools by the CPUs it finds then.
  if (cpus !== null) await pin(server.child.pid, [cpus.server]);
  return server;
}

/** Puts one load on a server, and sees what that costs it. */
export async function measureLoad(
  run: TransportRun,
  server: Server<string>,
  plan: LoadPlan,
): Promise<TransportSample> {
  const { pid } = server.child;
  const before = readCpuTime(pid);
  const loaded = await runTransportLoad(run, server, plan);
  const after = readCpuTime(pid);
  if (before === null || after === null) throw server.child.failure("ended under load");
  const userUs = (after.userUs - before.userUs) / loaded.completed;
  const systemUs = (after.systemUs - before.systemUs) / loaded.completed;
  return {
    perSecond: loaded.perSecond,
    userUs,
    systemUs,
    // Of the time under load, not of that in which the clients start and end.
    busyShare: (userUs + systemUs) * loaded.perSecond / 1_000_000,
    loadBusyShare: loaded.loadBusyShare,
  };
}

/** Resident bytes that each of many idle connections adds. */
async function measureIdle({ child, tls }: Server): Promise<number> {
  if (tls === null) throw new BenchError("memory of connections: started without a certificate");
  const resident = () => {
    const memory = readMemory(child.pid);
    if (memory === null) throw child.failure("ended under idle connections");
    return memory.residentBytes;
  };
  closeAll(await openIdle(tls.dot, FIRST_CONNECTIONS));
  await sleep(SETTLE_MS);
  const before = resident();
  const open = await openIdle(tls.dot, IDLE_CONNECTIONS);
  try {
    await sleep(SETTLE_MS);
    const after = resident();
    const closed = open.filter((socket) => socket.destroyed).length;
    if (closed > 0) throw child.failure(`closed ${closed} of ${open.length} connections`);
    return (after - before) / open.length;
  } finally {
    closeAll(open);
  }
}

/** Opens connections one after the other; the handshakes are done when this returns. */
async function openIdle(port: number, count: number): Promise<TLSSocket[]> {
  const sockets: TLSSocket[] = [];
  try {
    for (let i = 0; i < count; i++) {
      sockets.push(await openOne(port, 1 + Math.floor(i / CONNECTIONS_PER_ADDRESS)));
    }
  } catch (error) {
    closeAll(sockets);
    throw error;
  }
  return sockets;
}

function openOne(port: number, lastByte: number): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({
      socket: connectTcp({ host: "127.0.0.1", port, localAddress: `127.0.0.${lastByte}` }),
      servername: DOMAIN,
      ALPNProtocols: ["dot"],
      rejectUnauthorized: false, // What it holds is measured, not who it is.
    });
    const late = setTimeout(
      () => socket.destroy(new BenchError(`port ${port}: no handshake in ${CONNECT_MS_MAX} ms`)),
      CONNECT_MS_MAX,
    );
    socket.once("secureConnect", () => {
      clearTimeout(late);
      resolve(socket);
    });
    socket.on("error", (error) => {
      clearTimeout(late);
      reject(error);
    });
    socket.resume();
  });
}

function closeAll(sockets: readonly TLSSocket[]): void {
  for (const socket of sockets) socket.destroy();
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
