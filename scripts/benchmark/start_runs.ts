/** What stage 1 and the sandbox add to a start of svc, up to the first blocked answer. */
import { askUntil, freePort } from "./ask.ts";
import { BLOCKED, START_MS_MAX, svcCommand } from "./servers.ts";
import { readCpuTime } from "./processes.ts";
import type { Workspace } from "./workspace.ts";

/** With both, without the sandbox, and as stage 2 from the first line on. */
export const START_KINDS = ["whole", "no sandbox", "no stage 1"] as const;
export type StartKind = typeof START_KINDS[number];

export interface StartSample {
  readonly wallMs: number;
  /** User and system time of the process, whatever it executes. */
  readonly cpuMs: number;
}

export type StartResults = Readonly<Record<StartKind, readonly StartSample[]>>;

export interface StartPlan {
  readonly rounds: number;
  /** A built svc to run in place of the checkout's. */
  readonly program: string | null;
  readonly progress: (text: string) => void;
}

const BLOCKED_NAME = "blocked.net";
/** What a stage 1 would leave that opened no sockets and raised no fence. */
export const NOTHING_LEFT = JSON.stringify({
  descriptors: [],
  notes: {
    sockets: [],
    user: "nobody",
    fence: { landlock: false, seccomp: false, rules: [], problems: [] },
  },
});

/** Starts each kind in turn, in several rounds; one start before them fills the runtime's caches. */
export async function measureStarts(
  workspace: Workspace,
  { rounds, program, progress }: StartPlan,
): Promise<StartResults> {
  const results: Record<StartKind, StartSample[]> = {
    ...{ "whole": [], "no sandbox": [], "no stage 1": [] },
  };
  await measureStart(workspace, "whole", program);
  for (let round = 0; round < rounds; round++) {
    progress(`round ${round + 1} of ${rounds}: starts`);
    for (const kind of START_KINDS) {
      results[kind].push(await measureStart(workspace, kind, program));
    }
  }
  return results;
}

async function measureStart(
  workspace: Workspace,
  kind: StartKind,
  program: string | null,
): Promise<StartSample> {
  const port = freePort();
  await workspace.makeFolder("start");
  const config = await workspace.write(
    "start/svc.toml",
    `[server]
listen = ["127.0.0.1:${port}"]
workers = 1
[filter]
rules = ["||${BLOCKED_NAME}^"]
default_lists = false
services = false
directory = false
[security]
sandbox = ${kind === "whole"}
[api]
listen = ["127.0.0.1:${freePort()}"]
[store]
path = "store"
`,
  );
  const command = await svcCommand(program, config);
  const environment = kind === "no stage 1" ? [`SVC_INHERITED=${NOTHING_LEFT}`] : [];
  const startedMs = performance.now();
  const child = workspace.start("start", "env", [...environment, ...command]);
  await askUntil(port, BLOCKED_NAME, BLOCKED, START_MS_MAX);
  const wallMs = performance.now() - startedMs;
  const cpu = readCpuTime(child.pid);
  await workspace.stop(child);
  if (cpu === null) throw child.failure("ended by itself");
  return { wallMs, cpuMs: (cpu.userUs + cpu.systemUs) / 1_000 };
}

/** What `kind` takes beyond a start without stage 1, by the fastest of each: others only add. */
export function addedMs(
  results: StartResults,
  kind: StartKind,
  take: (sample: StartSample) => number,
): number {
  const least = (kind: StartKind) => Math.min(...results[kind].map(take));
  return least(kind) - least("no stage 1");
}
