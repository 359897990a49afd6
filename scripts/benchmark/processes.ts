/** Child processes of a measurement: started, watched by the system's own accounting, ended. */
import { messageOf } from "../../src/errors.ts";
import { BenchError } from "./bench_error.ts";

/** What one tick of `/proc/PID/stat` stands for; USER_HZ is 100 on every Linux. */
const TICK_US = 10_000;
const KIB_BYTES = 1024;
/** Lines of standard error kept of a child; svc writes a few dozen, the others next to none. */
const LINES_MAX = 5_000;
/** How long a child may take to end after SIGTERM before it is killed. */
const STOP_MS = 5_000;
/** Longest run of a program that only looks or sets something up. */
const TOOL_MS = 10_000;
const PIN_ATTEMPTS_MAX = 5;

export interface CpuTime {
  readonly userUs: number;
  readonly systemUs: number;
}

/** CPU time of a process with all its threads; `null` when it has ended. */
export function readCpuTime(pid: number): CpuTime | null {
  const text = readProc(pid, "stat");
  if (text === null) return null;
  // The program's name, in parentheses, may hold spaces; the third field follows it.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return { userUs: Number(fields[11]) * TICK_US, systemUs: Number(fields[12]) * TICK_US };
}

/** What the threads of a process have done so far. */
export interface Activity {
  /** Time on a CPU, in nanoseconds: finer than the ticks of `readCpuTime`. */
  readonly cpuNs: number;
  /** Times that a thread was let onto a CPU. */
  readonly switches: number;
}

/** Sums over the threads there are; `null` when the process has ended. */
export function readActivity(pid: number): Activity | null {
  let [cpuNs, switches] = [0, 0];
  try {
    for (const { name } of Deno.readDirSync(`/proc/${pid}/task`)) {
      // Nanoseconds on a CPU, nanoseconds waiting for one, times on one: sched-stats.
      const text = readProc(pid, `task/${name}/schedstat`);
      if (text === null) continue; // This thread has ended.
      const fields = text.trim().split(" ").map(Number);
      cpuNs += fields[0];
      switches += fields[2];
    }
  } catch {
    return null;
  }
  return { cpuNs, switches };
}

export interface Memory {
  readonly residentBytes: number;
  /** The most that was resident since the start, or since `resetPeak`. */
  readonly peakBytes: number;
  readonly anonymousBytes: number;
  /** Mapped files, the runtime's own code above all; shared with its other processes. */
  readonly fileBytes: number;
  /** Shared memory, such as a snapshot may lie in. */
  readonly sharedBytes: number;
}

/** Some ten times the weight of others, as `CPUWeight=1000`: sched(7). */
const SERVICE_NICE = "-10";

/** Resident memory of a process; `null` when it has ended. */
export function readMemory(pid: number): Memory | null {
  const text = readProc(pid, "status");
  if (text === null) return null;
  const field = (name: string) => {
    const found = new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(text);
    return found === null ? NaN : Number(found[1]) * KIB_BYTES;
  };
  return {
    residentBytes: field("VmRSS"),
    peakBytes: field("VmHWM"),
    anonymousBytes: field("RssAnon"),
    fileBytes: field("RssFile"),
    sharedBytes: field("RssShmem"),
  };
}

/** Has the peak of a process counted from now on; false where the system does not let us. */
export function resetPeak(pid: number): boolean {
  try {
    Deno.writeTextFileSync(`/proc/${pid}/clear_refs`, "5"); // 5 resets VmHWM: proc(5).
    return true;
  } catch (error) {
    console.error(`the peak of process ${pid} can't be reset: ${messageOf(error)}`);
    return false;
  }
}

/**
 * Gives a session the weight beside others that a service has from its unit; where the system does
 * not let us, it stays as it is.
 */
export function weighAsService(pid: number): void {
  try {
    Deno.writeTextFileSync(`/proc/${pid}/autogroup`, SERVICE_NICE);
  } catch (error) {
    console.error(`process ${pid} has the weight of all others: ${messageOf(error)}`);
  }
}

function readProc(pid: number, file: string): string | null {
  try {
    return Deno.readTextFileSync(`/proc/${pid}/${file}`);
  } catch {
    return null; // The process has ended; whoever waits for it says how.
  }
}

/** CPUs that this process may use, in ascending order. */
export function allowedCpus(): number[] {
  const status = Deno.readTextFileSync("/proc/self/status");
  const list = /^Cpus_allowed_list:\s+(.*)$/m.exec(status)?.[1] ?? "0";
  return list.split(",").flatMap((range) => {
    const [first, last = first] = range.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
}

/** Keeps every thread of a running process on some CPUs. Its thread pools keep the size they have. */
export async function pin(pid: number, cpus: readonly number[]): Promise<void> {
  for (let attempt = 1;; attempt++) {
    try {
      await runTool("taskset", ["--all-tasks", "--cpu-list", "--pid", cpus.join(), `${pid}`]);
      return;
    } catch (error) {
      // A thread that ended after it was listed fails the rest.
      const isGone = error instanceof BenchError && /No such process/.test(error.message);
      if (!isGone || attempt === PIN_ATTEMPTS_MAX) throw error;
    }
  }
}

/** Runs a program to its end; returns what it wrote to standard output. */
export async function runTool(program: string, args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await new Deno.Command(program, {
    args: [...args],
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    signal: AbortSignal.timeout(TOOL_MS),
  }).output();
  const decoder = new TextDecoder();
  if (code !== 0) throw new BenchError(`${program}: ended with ${code}: ${decoder.decode(stderr)}`);
  return decoder.decode(stdout);
}

/** Says whether a program is on PATH. */
export function isInstalled(program: string): boolean {
  return (Deno.env.get("PATH") ?? "").split(":").some((folder) => {
    try {
      return Deno.statSync(`${folder}/${program}`).isFile;
    } catch {
      return false;
    }
  });
}

/**
 * A running server and what it says on standard error. It has a session of its own, as from a manager
 * of services: Linux (`sched_autogroup`) weighs all of a session as one, and load and server in one
 * held others off the server's processor, the kernel's own threads of a durable write too, for up to
 * 95 ms.
 */
export class Child {
  readonly lines: string[] = [];
  readonly #process: Deno.ChildProcess;
  readonly #name: string;
  #ended: Deno.CommandStatus | null = null;
  #heard: () => void = () => {};

  constructor(name: string, program: string, args: readonly string[]) {
    this.#name = name;
    this.#process = new Deno.Command(program, {
      args: [...args],
      stdin: "null",
      stdout: "null",
      stderr: "piped",
      detached: true,
    }).spawn();
    this.#process.status.then((status) => {
      this.#ended = status;
      this.#heard();
    });
    void this.#listen();
  }

  get pid(): number {
    return this.#process.pid;
  }

  signal(signal: Deno.Signal): void {
    this.#process.kill(signal);
  }

  /**
   * The first line from line `from` on that `wanted` takes.
   *
   * @throws {BenchError} When there is none within `timeoutMs`, or the process ends before.
   */
  async line(wanted: (line: string) => boolean, from: number, timeoutMs: number): Promise<string> {
    const endsAtMs = performance.now() + timeoutMs;
    for (let at = from;;) {
      for (; at < this.lines.length; at++) if (wanted(this.lines[at])) return this.lines[at];
      const leftMs = endsAtMs - performance.now();
      if (leftMs <= 0) throw this.failure(`did not say in ${timeoutMs} ms what was waited for`);
      if (this.#ended !== null) throw this.failure(`ended with ${this.#ended.code}`);
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#heard = resolve;
      const timer = setTimeout(resolve, leftMs);
      await promise;
      clearTimeout(timer);
    }
  }

  /** @throws {BenchError} When the process has ended by itself. */
  checkRuns(): void {
    if (this.#ended !== null) throw this.failure(`ended with ${this.#ended.code}`);
  }

  /** A failure of this process, with the last it said. */
  failure(what: string): BenchError {
    return new BenchError([`${this.#name}: ${what}`, ...this.lines.slice(-5)].join("\n  "));
  }

  /** Ends the process, in order or by force. */
  async stop(): Promise<void> {
    if (this.#ended !== null) return;
    this.#process.kill("SIGTERM");
    const timer = setTimeout(() => this.#process.kill("SIGKILL"), STOP_MS);
    await this.#process.status;
    clearTimeout(timer);
  }

  async #listen(): Promise<void> {
    const text = this.#process.stderr.pipeThrough(new TextDecoderStream());
    for await (const line of splitLines(text)) {
      if (this.lines.length < LINES_MAX) this.lines.push(line);
      this.#heard();
    }
  }
}

/** The lines of a text that comes in pieces. */
export async function* splitLines(pieces: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = "";
  for await (const piece of pieces) {
    const lines = (rest + piece).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  if (rest !== "") yield rest;
}
