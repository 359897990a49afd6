/** Starts svc, unbound and Knot Resolver as recursive, validating resolvers, alike. */
import type { Message } from "../../src/dns/mod.ts";
import { Rcode } from "../../src/dns/mod.ts";
import { Api } from "./api_client.ts";
import { askUntil, freePort } from "./ask.ts";
import { BenchError } from "./bench_error.ts";
import { type Child, isInstalled, runTool } from "./processes.ts";
import { PASSED, START_MS_MAX, svcCommand } from "./servers.ts";
import {
  BOGUS_ZONE,
  hostName,
  type SmallInternet,
  ZONE_KINDS,
  zoneName,
} from "./small_internet.ts";
import type { Workspace } from "./workspace.ts";

/** Queries that unbound may have waiting; its default is fewer where it finds few descriptors. */
const UNBOUND_WAITING = 2_048;
const CHECK_MS_MAX = 10_000;

export const RECURSORS = ["svc", "unbound", "kresd"] as const;
export type RecursorName = typeof RECURSORS[number];

/** How each is configured, for the head of the report. */
export const RECURSOR_SETUPS: Readonly<Record<RecursorName, string>> = {
  svc: "1 worker, no rules, defaults",
  unbound: "1 thread, 2 x 32 MiB caches, no IPv6",
  kresd: "1 process, 100 MiB cache, no IPv6",
};

/** A resolver that runs. */
export interface Recursor {
  readonly name: RecursorName;
  readonly child: Child;
  readonly port: number;
  /** Has it forget what it has learned of names; what it knows of servers may stay. */
  readonly flush: () => Promise<void>;
}

/** Where it finds what it has to know. */
export interface RecursorSetup {
  readonly workspace: Workspace;
  readonly internet: SmallInternet;
  /** A built svc to run in place of the checkout's. */
  readonly program: string | null;
}

type Start = (
  at: string,
  port: number,
  setup: RecursorSetup,
) => Promise<Pick<Recursor, "child" | "flush">>;

export function canRecurse(name: RecursorName): boolean {
  return name === "svc" || isInstalled(name);
}

/** Starts one in a folder of its own; it answers, and refuses what is bogus, when this returns. */
export async function startRecursor(
  name: RecursorName,
  folder: string,
  setup: RecursorSetup,
): Promise<Recursor> {
  const port = freePort();
  await setup.workspace.makeFolder(folder);
  const recursor = { name, port, ...await START[name](folder, port, setup) };
  const wait = async (asked: string, wanted: (answer: Message) => boolean, msMax: number) => {
    await askUntil(port, asked, wanted, msMax).catch((error: BenchError) => {
      throw recursor.child.failure(error.message);
    });
  };
  await wait(hostName(zoneName("unsigned", 0), 0), PASSED, START_MS_MAX);
  for (const kind of ZONE_KINDS) await wait(hostName(zoneName(kind, 0), 0), PASSED, CHECK_MS_MAX);
  const isRefused = ({ rcode }: Message) => rcode === Rcode.ServFail;
  await wait(hostName(BOGUS_ZONE, 0), isRefused, CHECK_MS_MAX);
  recursor.child.checkRuns();
  return recursor;
}

/** The configuration of svc without rules; `resolution` says where it finds answers. */
export async function startPlainSvc(
  { workspace, program }: Pick<RecursorSetup, "workspace" | "program">,
  folder: string,
  port: number,
  resolution: string,
): Promise<{ readonly child: Child; readonly apiPort: number }> {
  const apiPort = freePort();
  const config = await workspace.write(
    `${folder}/svc.toml`,
    `[server]
listen = ["127.0.0.1:${port}"]
workers = 1
${resolution}[filter]
services = false
directory = false
default_lists = false
[querylog]
enabled = false
[api]
listen = ["127.0.0.1:${apiPort}"]
[store]
path = "store"
`,
  );
  const [command, ...args] = await svcCommand(program, config);
  return { child: workspace.start(folder, command, args), apiPort };
}

const START: Readonly<Record<RecursorName, Start>> = {
  svc: async (folder, port, { workspace, program, internet }) => {
    const resolution = `[recursion]
enabled = true
root_hints = "${internet.hints}"
trust_anchor = "${internet.anchor}"
`;
    const { child, apiPort } = await startPlainSvc(
      { workspace, program },
      folder,
      port,
      resolution,
    );
    const api = await Api.whenUp(apiPort, START_MS_MAX);
    return { child, flush: async () => void await api.must("POST", "/cache/flush") };
  },
  unbound: async (folder, port, { workspace, internet }) => {
    const at = workspace.path(folder);
    const config = await workspace.write(
      `${folder}/unbound.conf`,
      `server:
  interface: 127.0.0.1@${port}
  num-threads: 1
  username: ""
  chroot: ""
  directory: "${at}"
  pidfile: ""
  use-syslog: no
  verbosity: 0
  module-config: "validator iterator"
  root-hints: "${internet.hints}"
  trust-anchor-file: "${internet.anchor}"
  do-ip6: no
  msg-cache-size: 32m
  rrset-cache-size: 32m
  outgoing-range: ${2 * UNBOUND_WAITING}
  num-queries-per-thread: ${UNBOUND_WAITING}
  so-rcvbuf: 4m
remote-control:
  control-enable: yes
  control-interface: "${at}/control"
  control-use-cert: no
`,
    );
    const child = workspace.start(folder, "unbound", ["-d", "-c", config]);
    const control = (...args: string[]) => runTool("unbound-control", ["-c", config, ...args]);
    return { child, flush: async () => void await control("flush_zone", ".") };
  },
  kresd: async (folder, port, { workspace, internet }) => {
    const at = workspace.path(folder);
    const config = await workspace.write(
      `${folder}/kresd.conf`,
      `net.ipv6 = false
net.listen("127.0.0.1", ${port}, { kind = "dns" })
log_target("stderr")
-- What asks or watches by itself.
for _, name in ipairs({ "ta_update", "ta_signal_query", "priming", "detect_time_skew",
  "detect_time_jump" }) do modules.unload(name) end
modules.load("hints > iterate")
hints.root_file("${internet.hints}")
trust_anchors.remove(".")
trust_anchors.add_file("${internet.anchor}", true)
cache.open(100 * MB, "lmdb://${at}/cache")
`,
    );
    const child = workspace.start(folder, "kresd", ["-n", "-c", config, at]);
    return { child, flush: () => tellKresd(`${at}/control/${child.pid}`, "cache.clear()") };
  },
};

/** Has Knot Resolver run a command, and waits for its answer. */
async function tellKresd(path: string, command: string): Promise<void> {
  using socket = await Deno.connect({ transport: "unix", path });
  await socket.write(new TextEncoder().encode(`${command}\n`));
  const answer = new Uint8Array(4_096);
  // A prompt comes first, and the answer with the next one.
  for (let prompts = 0; prompts < 2;) {
    const length = await socket.read(answer);
    if (length === null) throw new BenchError(`kresd: ${command}: closed its socket`);
    prompts += new TextDecoder().decode(answer.subarray(0, length)).split("> ").length - 1;
  }
}
