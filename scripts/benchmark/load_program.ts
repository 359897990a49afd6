/** Runs a program that puts load on a server, and sees how much of a CPU that takes itself. */
import { BenchError } from "./bench_error.ts";
import { readCpuTime } from "./processes.ts";

/** How often a program's own use of the CPU is looked at; it is gone when it has ended. */
const LOOK_MS = 100;

export interface LoadProgram {
  readonly program: string;
  readonly args: readonly string[];
  /** The CPU to run on; `null` lets the system choose. */
  readonly cpu: number | null;
  /** How long it puts load on the server. */
  readonly seconds: number;
  /** How much longer it may run before it is ended. */
  readonly slackMs: number;
}

export interface LoadOutput {
  /** What it wrote to standard output. */
  readonly text: string;
  /** Share of a CPU that it used while it put load on the server. */
  readonly busyShare: number;
  /** From its start to its end. */
  readonly tookMs: number;
}

/** @throws {BenchError} When it fails or does not end. */
export async function runLoadProgram(load: LoadProgram): Promise<LoadOutput> {
  const { cpu, seconds } = load;
  const [program, ...args] = cpu === null
    ? [load.program, ...load.args]
    : ["taskset", "--cpu-list", `${cpu}`, load.program, ...load.args];
  const startedMs = performance.now();
  const child = new Deno.Command(program, {
    args,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    signal: AbortSignal.timeout(1_000 * seconds + load.slackMs),
  }).spawn();
  let busyShare = NaN;
  const look = setInterval(() => {
    const time = readCpuTime(child.pid);
    const elapsedUs = 1_000 * (performance.now() - startedMs);
    // What it does after its load, such as waiting for lost queries, is none of its work.
    if (time === null || elapsedUs > 1_000_000 * seconds) return;
    busyShare = (time.userUs + time.systemUs) / elapsedUs;
  }, LOOK_MS);
  try {
    const { code, stdout, stderr } = await child.output();
    const tookMs = performance.now() - startedMs;
    const decoder = new TextDecoder();
    if (code !== 0) {
      throw new BenchError(`${load.program}: ended with ${code}: ${decoder.decode(stderr)}`);
    }
    return { text: decoder.decode(stdout), busyShare, tookMs };
  } finally {
    clearInterval(look);
  }
}
