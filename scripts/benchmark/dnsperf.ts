/** Runs dnsperf: as the load, and beside it as a probe that times every answer. */
import { BenchError } from "./bench_error.ts";
import { type LoadOutput, runLoadProgram } from "./load_program.ts";

/** Sockets the load is sent from, as that many clients would. */
const CLIENTS = 10;
/** Queries on their way at a time: enough that the server never waits for dnsperf. */
const OUTSTANDING = 100;
/** Connections, and queries on their way on all of them: as forwarders and busy clients keep them. */
const CONNECTIONS = 20;
const OUTSTANDING_ON_CONNECTIONS = 200;
/** Queries a second of the probe: too few to count, enough for a 99th percentile in seconds. */
const PROBE_RATE = 500;
/** Seconds after which a query counts as lost; dnsperf waits that long at the end of a run. */
const LOST_S = 2;
/** How much longer than its load dnsperf may run before it is ended. */
const SLACK_MS = 10_000;

export interface Load {
  readonly port: number;
  /** File of names, which is read again and again, or once. */
  readonly queries: string;
  readonly once: boolean;
  /** The run ends after this, or when a file to be read once has been. */
  readonly seconds: number;
  /** The CPU to run on; `null` lets the system choose. */
  readonly cpu: number | null;
  /** Queries a second; left out: as many as the server takes. */
  readonly rate?: number;
  /** Left out: UDP. */
  readonly mode?: "udp" | "tcp" | "dot";
}

export interface LoadResult {
  readonly sent: number;
  readonly completed: number;
  /** Completed with RCODE NOERROR. */
  readonly noError: number;
  readonly queriesPerSecond: number;
  /** Share of a CPU that dnsperf itself used; near 1 it, and not the server, sets the pace. */
  readonly busyShare: number;
}

/** Sends as much as the server takes, unless the load says how much. */
export async function runLoad(load: Load): Promise<LoadResult> {
  const isUdp = (load.mode ?? "udp") === "udp";
  const [clients, outstanding] = isUdp
    ? [CLIENTS, OUTSTANDING]
    : [CONNECTIONS, OUTSTANDING_ON_CONNECTIONS];
  const more = ["-c", `${clients}`, "-q", `${outstanding}`];
  if (load.rate !== undefined) more.push("-Q", `${load.rate}`);
  const { text, busyShare } = await dnsperf(load, more);
  const figures = parseStatistics(text);
  if (figures === null) throw new BenchError(`dnsperf: its output can't be read:\n${text}`);
  return { ...figures, busyShare };
}

/** Sends a few queries a second; returns the latency of each answer, in microseconds. */
export async function runProbe(load: Load): Promise<number[]> {
  const { text } = await dnsperf(load, ["-v", "-c", "1", "-Q", `${PROBE_RATE}`]);
  return parseLatencies(text);
}

/**
 * Sends so many queries a second, of which so many wait for an answer at most: one after another, or
 * at their times, whatever the others take. Returns each latency, in microseconds.
 */
export async function runPaced(load: Load, rate: number, waiting = 1): Promise<number[]> {
  const { text } = await dnsperf(load, ["-v", "-c", "1", "-q", `${waiting}`, "-Q", `${rate}`]);
  return parseLatencies(text);
}

function dnsperf(
  { port, queries, once, seconds, cpu, mode = "udp" }: Load,
  more: readonly string[],
): Promise<LoadOutput> {
  const args = ["-m", mode, "-s", "127.0.0.1", "-p", `${port}`, "-d", queries, "-T", "1"];
  args.push("-t", `${LOST_S}`, "-l", `${seconds}`, ...(once ? ["-n", "1"] : []), ...more);
  const slackMs = 1_000 * LOST_S + SLACK_MS;
  return runLoadProgram({ program: "dnsperf", args, cpu, seconds, slackMs });
}

/** Reads the figures at the end of dnsperf's output; `null` when they are not all there. */
export function parseStatistics(text: string): Omit<LoadResult, "busyShare"> | null {
  const figure = (name: string) => {
    const found = new RegExp(`^ {2}${name}:\\s+([\\d.]+)`, "m").exec(text);
    return found === null ? NaN : Number(found[1]);
  };
  const figures = {
    sent: figure("Queries sent"),
    completed: figure("Queries completed"),
    noError: Number(/^ {2}Response codes:.*\bNOERROR (\d+)/m.exec(text)?.[1] ?? 0),
    queriesPerSecond: figure("Queries per second"),
  };
  return Object.values(figures).some(Number.isNaN) ? null : figures;
}

/** Reads the lines of `dnsperf -v`; a query that was lost has no latency, and no place here. */
export function parseLatencies(text: string): number[] {
  const lines = text.matchAll(/^> \S+ \S+ \S+ (\d+\.\d+)$/gm);
  return Array.from(lines, ([, seconds]) => Math.round(1e6 * Number(seconds)));
}
