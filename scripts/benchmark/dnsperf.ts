/** Runs dnsperf: as the load, and beside it as a probe that times every answer. */
import { BenchError } from "./bench_error.ts";
import { readCpuTime } from "./processes.ts";

/** Sockets the load is sent from, as that many clients would. */
const CLIENTS = 10;
/** Queries on their way at a time: enough that the server never waits for dnsperf. */
const OUTSTANDING = 100;
/** Queries a second of the probe: too few to count, enough for a 99th percentile in seconds. */
const PROBE_RATE = 500;
/** Seconds after which a query counts as lost; dnsperf waits that long at the end of a run. */
const LOST_S = 2;
/** How much longer than its load dnsperf may run before it is ended. */
const SLACK_MS = 10_000;
/** How often dnsperf's own use of the CPU is looked at; it is gone when it has ended. */
const LOOK_MS = 100;

export interface Load {
  readonly port: number;
  /** File of names, which is read again and again, or once. */
  readonly queries: string;
  readonly once: boolean;
  /** The run ends after this, or when a file to be read once has been. */
  readonly seconds: number;
  /** The CPU to run on; `null` lets the system choose. */
  readonly cpu: number | null;
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

/** Sends as much as the server takes. */
export async function runLoad(load: Load): Promise<LoadResult> {
  const { text, busyShare } = await dnsperf(load, [
    "-c",
    `${CLIENTS}`,
    "-q",
    `${OUTSTANDING}`,
  ]);
  const figures = parseStatistics(text);
  if (figures === null) throw new BenchError(`dnsperf: its output can't be read:\n${text}`);
  return { ...figures, busyShare };
}

/** Sends a few queries a second; returns the latency of each answer, in microseconds. */
export async function runProbe(load: Load): Promise<number[]> {
  const { text } = await dnsperf(load, ["-v", "-c", "1", "-Q", `${PROBE_RATE}`]);
  return parseLatencies(text);
}

async function dnsperf(
  { port, queries, once, seconds, cpu }: Load,
  more: readonly string[],
): Promise<{ text: string; busyShare: number }> {
  const args = ["-s", "127.0.0.1", "-p", `${port}`, "-d", queries, "-T", "1", "-t", `${LOST_S}`];
  args.push("-l", `${seconds}`, ...(once ? ["-n", "1"] : []), ...more);
  const [program, ...rest] = cpu === null
    ? ["dnsperf", ...args]
    : ["taskset", "--cpu-list", `${cpu}`, "dnsperf", ...args];
  const startedMs = performance.now();
  const child = new Deno.Command(program, {
    args: rest,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    signal: AbortSignal.timeout(1_000 * (seconds + LOST_S) + SLACK_MS),
  }).spawn();
  let busyShare = NaN;
  const look = setInterval(() => {
    const time = readCpuTime(child.pid);
    const elapsedUs = 1_000 * (performance.now() - startedMs);
    // The wait for lost queries at the end is none of its work.
    if (time === null || elapsedUs > 1_000_000 * seconds) return;
    busyShare = (time.userUs + time.systemUs) / elapsedUs;
  }, LOOK_MS);
  try {
    const { code, stdout, stderr } = await child.output();
    const decoder = new TextDecoder();
    if (code !== 0) throw new BenchError(`dnsperf: ended with ${code}: ${decoder.decode(stderr)}`);
    return { text: decoder.decode(stdout), busyShare };
  } finally {
    clearInterval(look);
  }
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
