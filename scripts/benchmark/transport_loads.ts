/** Load over each transport: who sends it, and how what came of it is read. */
import { encodeQuery, Qtype } from "../../src/dns/mod.ts";
import { BenchError } from "./bench_error.ts";
import { runLoad } from "./dnsperf.ts";
import { type LoadOutput, runLoadProgram } from "./load_program.ts";
import type { Certificate, Server } from "./servers.ts";
import { ROOT, type Workspace } from "./workspace.ts";

/** The order of the report; UDP is what DoQ is held against. */
export const TRANSPORT_RUNS = ["udp", "tcp", "dot", "doh", "handshakes", "doq"] as const;
export type TransportRun = typeof TRANSPORT_RUNS[number];

/** What each load needs on PATH besides dnsperf. */
export const PROGRAM_OF: Readonly<Partial<Record<TransportRun, string>>> = {
  doh: "h2load",
  handshakes: "openssl",
};

/** Connections over HTTP/2, and requests on their way on each. */
const HTTP_CONNECTIONS = 10;
const HTTP_STREAMS = 10;
/** Clients that make connections, each one after the other. */
const HANDSHAKE_CLIENTS = 4;
/** Longest time a program may take beside its load. */
export const SLACK_MS = 15_000;

/** What a load came to. */
export interface Loaded {
  /** Queries answered with NOERROR, requests with 2xx, or handshakes. */
  readonly completed: number;
  readonly perSecond: number;
  /** Share of a CPU that the clients used. */
  readonly loadBusyShare: number;
}

export interface LoadPlan {
  readonly workspace: Workspace;
  readonly certificate: Certificate;
  /** PEM file of the authority behind the certificate. */
  readonly caFile: string;
  /** Names as dnsperf reads them; all are in the caches. */
  readonly queries: string;
  readonly seconds: number;
  readonly cpu: number | null;
  /** What may be lost of the queries on connections; left out: nothing. */
  readonly lostShareMax?: number;
}

/**
 * Puts as much load on a server as it takes.
 *
 * @throws {BenchError} When something was not answered well, or the server lacks the transport.
 */
export async function runTransportLoad(
  run: TransportRun,
  server: Server<string>,
  plan: LoadPlan,
): Promise<Loaded> {
  if (run === "udp") return await loadByDnsperf(run, server.port, server, plan);
  if (run === "tcp") return await loadByDnsperf(run, server.port, server, plan);
  const { tls } = server;
  if (tls === null) throw new BenchError(`${server.name}: started without a certificate`);
  if (run === "dot") return await loadByDnsperf(run, tls.dot, server, plan);
  if (run === "doh") return await loadByH2load(tls.doh, server, plan);
  if (run === "handshakes") return await loadByHandshakes(tls.dot, plan);
  return await loadOverQuic(tls.doq, plan);
}

async function loadByDnsperf(
  mode: "udp" | "tcp" | "dot",
  port: number,
  { name }: Server<string>,
  { queries, seconds, cpu, lostShareMax = 0 }: LoadPlan,
): Promise<Loaded> {
  const load = await runLoad({ mode, port, queries, once: false, seconds, cpu });
  // Over UDP under full load a few are lost; connections lose none.
  if (
    load.noError < load.completed ||
    (mode !== "udp" && load.sent - load.completed > lostShareMax * load.sent)
  ) {
    throw new BenchError(
      `${name}, ${mode}: ${load.sent} sent, ${load.completed} answered, ${load.noError} NOERROR`,
    );
  }
  return {
    completed: load.completed,
    perSecond: load.queriesPerSecond,
    loadBusyShare: load.busyShare,
  };
}

/**
 * One query again and again: h2load has one body. dnsperf over HTTPS waits for timers of its own
 * between the parts of an answer, whatever the server does.
 */
async function loadByH2load(
  port: number,
  { name }: Server<string>,
  plan: LoadPlan,
): Promise<Loaded> {
  const { seconds, cpu } = plan;
  const many = ["-c", `${HTTP_CONNECTIONS}`, "-m", `${HTTP_STREAMS}`];
  const args = await h2loadArgs(port, plan, many);
  const output = await runLoadProgram({ program: "h2load", args, cpu, seconds, slackMs: SLACK_MS });
  const figures = parseH2load(output.text);
  if (figures === null) throw new BenchError(`h2load: can't read its output:\n${output.text}`);
  if (figures.good === 0 || figures.bad > 0) {
    throw new BenchError(`${name}, doh: ${figures.bad} requests failed, ${figures.good} did not`);
  }
  return {
    completed: figures.good,
    perSecond: figures.perSecond,
    loadBusyShare: output.busyShare,
  };
}

/** What h2load is to do, with `more` of it. */
export async function h2loadArgs(
  port: number,
  { workspace, queries, seconds }: LoadPlan,
  more: readonly string[],
): Promise<string[]> {
  const body = workspace.path("query.bin");
  const [first] = (await Deno.readTextFile(queries)).split("\n", 1);
  await Deno.writeFile(body, encodeQuery(first.split(" ")[0], Qtype.A, { id: 0 }));
  const url = `https://127.0.0.1:${port}/dns-query`;
  const type = "content-type: application/dns-message";
  return ["-D", `${seconds}`, "-t", "1", ...more, "-H", type, "-d", body, url];
}

/** Reads what `h2load` says at its end; `null` when it is not all there. */
export function parseH2load(
  text: string,
): { readonly good: number; readonly bad: number; readonly perSecond: number } | null {
  const rate = /^finished in .*?, ([\d.]+) req\/s/m.exec(text);
  const codes = /^status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx/m.exec(text);
  const failures = /^requests: .* (\d+) failed, (\d+) errored, (\d+) timeout/m.exec(text);
  if (rate === null || codes === null || failures === null) return null;
  const [good, ...others] = codes.slice(1).map(Number);
  const bad = [...others, ...failures.slice(1).map(Number)].reduce((sum, n) => sum + n, 0);
  return { good, bad, perSecond: Number(rate[1]) };
}

/** New connections with full handshakes: openssl keeps no session between them. */
async function loadByHandshakes(port: number, plan: LoadPlan): Promise<Loaded> {
  const { seconds, cpu } = plan;
  const args = ["s_time", "-connect", `127.0.0.1:${port}`, "-new", "-time", `${seconds}`];
  const program = "openssl";
  const outputs: LoadOutput[] = await Promise.all(
    Array.from(
      { length: HANDSHAKE_CLIENTS },
      () => runLoadProgram({ program, args, cpu, seconds, slackMs: SLACK_MS }),
    ),
  );
  const counts = outputs.map(({ text }) => parseSTime(text));
  const completed = counts.reduce<number>((sum, count) => sum + (count ?? NaN), 0);
  if (!(completed > 0)) throw new BenchError(`openssl s_time: ${outputs[0].text.slice(-400)}`);
  return {
    completed,
    // Its own seconds are whole ones.
    perSecond: completed / (Math.max(...outputs.map(({ tookMs }) => tookMs)) / 1_000),
    loadBusyShare: outputs.reduce((sum, { busyShare }) => sum + busyShare, 0),
  };
}

/** Reads how many connections `openssl s_time` made; `null` when it does not say. */
export function parseSTime(text: string): number | null {
  const found = /^(\d+) connections in \d+ real seconds/m.exec(text);
  return found === null ? null : Number(found[1]);
}

async function loadOverQuic(port: number, plan: LoadPlan): Promise<Loaded> {
  const { seconds, cpu } = plan;
  const program = Deno.execPath();
  const args = doqLoadArgs(port, plan);
  const output = await runLoadProgram({ program, args, cpu, seconds, slackMs: SLACK_MS });
  const completed = Number(output.text.trim());
  if (!(completed > 0)) throw new BenchError(`the QUIC client counted ${output.text.trim()}`);
  return { completed, perSecond: completed / seconds, loadBusyShare: output.busyShare };
}

/** What Deno is to run for the QUIC client; see `doq_load.ts`. */
export function doqLoadArgs(
  port: number,
  { certificate, caFile, queries, seconds }: LoadPlan,
  rate?: number,
): string[] {
  const args = ["run", "--no-prompt", "--frozen", "--config", `${ROOT}/deno.json`];
  args.push("--allow-net", "--allow-read", `${ROOT}/scripts/benchmark/doq_load.ts`);
  args.push(`${port}`, certificate.name, caFile, queries, `${seconds}`);
  return rate === undefined ? args : [...args, `${rate}`];
}
