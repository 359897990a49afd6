/**
 * What one client's flood of a transport does to another client's answers over UDP: svc and unbound
 * in turn, in rounds. The flood comes from an address that svc limits, as it does by default.
 */
import { makeAuthority, writePair } from "../../tests/e2e/certificates.ts";
import { BenchError } from "./bench_error.ts";
import { type Cpus, rotated } from "./dns_runs.ts";
import { FLOOD_KINDS, type FloodKind } from "./floods.ts";
import { runLoadProgram } from "./load_program.ts";
import { isInstalled, pin } from "./processes.ts";
import { type Certificate, type Server, type Setup, startServer } from "./servers.ts";
import { percentile } from "./stats.ts";
import { ROOT } from "./workspace.ts";

export const FAIR_SERVERS = ["svc", "unbound"] as const;
export type FairServer = typeof FAIR_SERVERS[number];
/** Without a flood first: what the machine itself does to the answers. */
export const FAIR_RUNS = ["none", ...FLOOD_KINDS] as const;
export type FairRun = typeof FAIR_RUNS[number];

/** The domain in the servers' certificate, and a name that both have in their caches. */
const DOMAIN = "dns.svc.test";
const NAME = "ready.net";
/** A flood is at its full rate after this, and goes on until the last answer is in. */
const BEFORE_MS = 1_500;
const BEHIND_S = 2;
const SLACK_MS = 20_000;
/** The flood gives way to the client whose answers are timed, where both share a processor. */
const FLOOD_NICE = "10";

/** The answers of one client beside one flood. */
export interface FairSample {
  readonly p99Ms: number;
  readonly mostMs: number;
  readonly lost: number;
}

/** `[run][server]` has one sample a round. */
export type FairResults = Partial<
  Record<FairRun, Partial<Record<FairServer, FairSample[]>>>
>;

export interface FairPlan {
  readonly rounds: number;
  readonly seconds: number;
  /** `null` lets the system choose. */
  readonly cpus: Cpus | null;
  readonly progress: (text: string) => void;
}

/** Measures every flood beside every server that has its transport. */
export async function measureFairness(plain: Setup, plan: FairPlan): Promise<FairResults> {
  const { workspace } = plain;
  const { cpus, progress, rounds } = plan;
  const authority = await makeAuthority();
  const caFile = await workspace.write("fair-ca.crt", authority.cert);
  const issued = await authority.issue({ names: [DOMAIN], ips: ["127.0.0.1"] });
  const certificate = { ...await writePair(workspace.directory, "fair", issued), name: DOMAIN };
  const setup: Setup = { ...plain, certificate, blocked: [], limitsFloods: true };
  const servers: Server[] = [];
  for (const name of FAIR_SERVERS) {
    if (name !== "svc" && !isInstalled(name)) continue;
    const server = await startServer(name, `fair-${name}`, setup);
    if (cpus !== null) await pin(server.child.pid, [cpus.server]);
    servers.push(server);
  }
  const results: FairResults = {};
  for (let round = 0; round < rounds; round++) {
    for (const run of FAIR_RUNS) {
      for (const server of rotated(servers, round)) {
        if (run === "doq" && server.name !== "svc") continue; // Debian's unbound has none.
        progress(`round ${round + 1} of ${rounds}: ${run}, ${server.name}`);
        const sample = await measure(run, server, certificate, caFile, plan);
        ((results[run] ??= {})[server.name as FairServer] ??= []).push(sample);
        server.child.checkRuns();
      }
    }
  }
  await Promise.all(servers.map(({ child }) => workspace.stop(child)));
  return results;
}

async function measure(
  run: FairRun,
  server: Server,
  certificate: Certificate,
  caFile: string,
  { seconds, cpus }: FairPlan,
): Promise<FairSample> {
  const cpu = cpus?.load ?? null;
  const start = (nice: string, file: string, args: readonly string[], forSeconds: number) => {
    const deno = ["run", "--no-prompt", "--frozen", "--config", `${ROOT}/deno.json`, "--allow-all"];
    return runLoadProgram({
      program: "nice",
      args: ["-n", nice, Deno.execPath(), ...deno, `${ROOT}/scripts/benchmark/${file}`, ...args],
      cpu,
      seconds: forSeconds,
      slackMs: SLACK_MS,
    });
  };
  const floodSeconds = seconds + BEFORE_MS / 1_000 + BEHIND_S;
  const flood = run === "none" ? null : start(
    FLOOD_NICE,
    "flood.ts",
    [run, `${portOf(server, run)}`, certificate.name, caFile, `${floodSeconds}`],
    floodSeconds,
  );
  await new Promise((resolve) => setTimeout(resolve, BEFORE_MS));
  const { text } = await start(
    "0",
    "paced_client.ts",
    [`${server.port}`, `${seconds}`, NAME],
    seconds,
  );
  await flood;
  const took = JSON.parse(text) as (number | null)[];
  const answered = took.filter((ms) => ms !== null);
  if (answered.length === 0) throw new BenchError(`${server.name}, ${run}: nothing was answered`);
  return {
    p99Ms: percentile(took.map((ms) => ms ?? Infinity), 0.99),
    mostMs: Math.max(...answered),
    lost: took.length - answered.length,
  };
}

function portOf({ name, port, tls }: Server, kind: FloodKind): number {
  if (kind === "tcp") return port;
  if (tls === null) throw new BenchError(`${name}: started without a certificate`);
  if (kind === "dot" || kind === "handshakes") return tls.dot;
  return kind === "doq" ? tls.doq : tls.doh;
}
