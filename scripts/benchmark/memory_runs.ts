/** What a million rules cost svc: memory, compiling, starting. */
import { askUntil, freePort } from "./ask.ts";
import type { Cpus } from "./dns_runs.ts";
import { runLoad, runProbe } from "./dnsperf.ts";
import { mix, type QueryNames, writeQueries } from "./names.ts";
import {
  type Child,
  isInstalled,
  type Memory,
  pin,
  readMemory,
  resetPeak,
  weighAsService,
} from "./processes.ts";
import {
  BLOCKED,
  LIST_PATH,
  type Setup,
  START_MS_MAX,
  svcCommand,
  writeSvcConfig,
} from "./servers.ts";

/** After this a process has given back what it will by itself: it looks every five seconds. */
const SETTLE_MS = 10_000;
/** The same after the last recompilation: all that was compiled waits for V8 to find it unused. */
const RECOMPILED_SETTLE_MS = 30_000;
/** How often memory is looked at while rules are compiled. */
const LOOK_MS = 20;
/** Keeps a processor from ever resting, and gives way to everybody else. */
const SPIN = ["--idle", "0", "sh", "-c", "while :; do :; done"];
/** Recompilations: each is as costly as the one before. */
const RECOMPILES_MAX = 3;

export interface Recompile {
  readonly tookMs: number;
  /** Resident just before, the most in between, and once it has settled. */
  readonly beforeBytes: number;
  readonly peakBytes: number;
  readonly afterBytes: number;
}

export interface MemoryResults {
  readonly rules: number;
  /** Of the file of compiled rules, which is theirs in memory with a head of some hundred bytes. */
  readonly bytesPerRule: number;
  /** Compiling at the first start, and the start itself up to the first blocked answer. */
  readonly firstCompileMs: number;
  readonly firstStartMs: number;
  /** Most that was resident during the first start. */
  readonly firstPeakBytes: number;
  /** Starts from kept lists, up to the first blocked answer. */
  readonly keptStartsMs: readonly number[];
  /** Settled after such a start, and after queries for some seconds; `null` without dnsperf. */
  readonly idle: Memory;
  readonly loaded: Memory | null;
  readonly recompiles: readonly Recompile[];
  /** Half a minute after the last of them. */
  readonly recompiled: Memory;
  /**
   * Latency of a few queries a second, alone, beside a program that has but what nobody else wants of
   * the processor, and while rules are compiled, in microseconds. The second is the machine's own:
   * one that is shared goes away for milliseconds where it is busy.
   */
  readonly quietUs: readonly number[];
  readonly busyUs: readonly number[];
  readonly compilingUs: readonly number[];
}

export interface MemoryPlan {
  readonly names: QueryNames;
  readonly rounds: number;
  readonly seconds: number;
  /** Where server and load are while latency is measured. */
  readonly cpus: Cpus | null;
  readonly progress: (text: string) => void;
}

/** Measures a svc of its own, from its first start to a recompilation. */
export async function measureMemory(setup: Setup, plan: MemoryPlan): Promise<MemoryResults> {
  const { workspace } = setup;
  const { progress } = plan;
  const folder = "memory-svc";
  const port = freePort();
  const blocked = plan.names.blocked[0];
  const [program, ...args] = await svcCommand(
    setup.program,
    await writeSvcConfig(folder, port, setup),
  );
  /** Starts svc; its rules are in force when this returns. */
  const start = async (): Promise<{ child: Child; tookMs: number }> => {
    const startedMs = performance.now();
    const child = workspace.start(folder, program, args);
    await askUntil(port, blocked, BLOCKED, START_MS_MAX);
    return { child, tookMs: performance.now() - startedMs };
  };

  progress("first start of svc");
  const first = await start();
  const built = await builtLine(first.child, 0);
  const firstPeakBytes = memoryOf(first.child).peakBytes;
  await sleep(SETTLE_MS); // Rules are kept after they are in force.
  const { size } = await Deno.stat(workspace.path(`${folder}/store/rules.bin`));
  await workspace.stop(first.child);

  const keptStartsMs: number[] = [];
  let child = first.child;
  for (let round = 0; round < plan.rounds; round++) {
    progress(`start ${round + 1} of ${plan.rounds} from kept lists`);
    if (round > 0) await workspace.stop(child);
    const kept = await start();
    child = kept.child;
    keptStartsMs.push(kept.tookMs);
  }
  progress("memory at rest");
  await sleep(SETTLE_MS);
  const idle = memoryOf(child);
  let loaded: Memory | null = null;
  if (isInstalled("dnsperf")) {
    progress("memory after queries");
    const queries = workspace.path("memory.names");
    await writeQueries(queries, mix(plan.names));
    await runLoad({ port, queries, once: false, seconds: plan.seconds, cpu: null });
    await sleep(SETTLE_MS);
    loaded = memoryOf(child);
  }
  const recompiles: Recompile[] = [];
  const count = Math.min(plan.rounds, RECOMPILES_MAX);
  for (let i = 0; i < count; i++) {
    progress(`recompilation ${i + 1} of ${count}`);
    const list = workspace.path(`${folder}/${LIST_PATH}`);
    recompiles.push(await recompile(child, list, `changed-${i}.net`, port, SETTLE_MS));
  }
  const [quietUs, busyUs, compilingUs]: number[][] = [[], [], []];
  if (isInstalled("dnsperf")) {
    const queries = workspace.path("memory.names");
    const list = workspace.path(`${folder}/${LIST_PATH}`);
    const { cpus } = plan;
    const cpu = cpus === null ? null : cpus.load;
    // Whoever asks is no part of what it asks about.
    if (cpus !== null) await pin(child.pid, [cpus.server]);
    weighAsService(child.pid);
    for (let round = 0; round < plan.rounds; round++) {
      progress(
        `round ${
          round + 1
        } of ${plan.rounds}: queries alone, beside a program that gives way, then ` +
          "while rules are compiled",
      );
      const probe = () => runProbe({ port, queries, once: false, seconds: plan.seconds, cpu });
      quietUs.push(...await probe());
      if (cpus !== null) {
        const spinner = workspace.start("spinner", "chrt", SPIN);
        await pin(spinner.pid, [cpus.server]);
        busyUs.push(...await probe());
        await workspace.stop(spinner);
      }
      let isDone = false;
      const probing = probe().finally(() => isDone = true);
      for (let i = 0; !isDone; i++) {
        await recompile(child, list, `probed-${round}-${i}.net`, port, 0);
      }
      compilingUs.push(...await probing);
    }
  }
  progress("memory after recompilations");
  await sleep(RECOMPILED_SETTLE_MS);
  const recompiled = memoryOf(child);
  await workspace.stop(child);
  return {
    rules: built.rules,
    bytesPerRule: size / built.rules,
    firstCompileMs: built.tookMs,
    firstStartMs: first.tookMs,
    firstPeakBytes,
    keptStartsMs,
    idle,
    loaded,
    recompiles,
    recompiled,
    quietUs,
    busyUs,
    compilingUs,
  };
}

/** Adds a name to the list and has svc take it; the name is blocked at the end. */
async function recompile(
  child: Child,
  list: string,
  name: string,
  port: number,
  settleMs: number,
): Promise<Recompile> {
  const beforeBytes = memoryOf(child).residentBytes;
  const from = child.lines.length;
  const peakIsExact = resetPeak(child.pid);
  let peakBytes = 0;
  const look = setInterval(() => {
    peakBytes = Math.max(peakBytes, readMemory(child.pid)?.residentBytes ?? 0);
  }, LOOK_MS);
  try {
    await Deno.writeTextFile(list, `${name}\n`, { append: true });
    child.signal("SIGHUP");
    const { tookMs } = await builtLine(child, from);
    await askUntil(port, name, BLOCKED, START_MS_MAX);
    await sleep(settleMs); // The old rules go, the new ones are written to disk.
    const after = memoryOf(child);
    if (peakIsExact) peakBytes = Math.max(peakBytes, after.peakBytes);
    return { tookMs, beforeBytes, peakBytes, afterBytes: after.residentBytes };
  } finally {
    clearInterval(look);
  }
}

/** Waits for what svc logs of built rules, from line `from` on. */
async function builtLine(
  child: Child,
  from: number,
): Promise<{ readonly rules: number; readonly tookMs: number }> {
  const line = await child.line((line) => readBuilt(line) !== null, from, START_MS_MAX);
  const built = readBuilt(line);
  if (built === null) throw child.failure(`logged what can't be read: ${line}`);
  return built;
}

/** Reads a log line; `null` when it is not about built rules. */
export function readBuilt(line: string): { rules: number; tookMs: number } | null {
  if (!line.startsWith("{")) return null;
  const { message, rules, tookMs } = JSON.parse(line);
  if (message !== "filter built" || typeof rules !== "number" || typeof tookMs !== "number") {
    return null;
  }
  return { rules, tookMs };
}

function memoryOf(child: Child): Memory {
  const memory = readMemory(child.pid);
  if (memory === null) throw child.failure("ended by itself");
  return memory;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
