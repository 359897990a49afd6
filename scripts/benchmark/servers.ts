/** Starts svc, other servers, the echo loop and the authoritative server behind them, alike. */
import { address, askUntil, freePort, type Wanted } from "./ask.ts";
import { BenchError } from "./bench_error.ts";
import { PACED } from "./floods.ts";
import { type Child, isInstalled, runTool } from "./processes.ts";
import { ROOT, type Workspace } from "./workspace.ts";

/** What the authoritative server has for every name; TEST-NET-1, so that nobody filters it. */
export const EVERY_ADDRESS = "192.0.2.1";
const BLOCKED_ADDRESS = "0.0.0.0";
/** Long enough that nothing cached ages out in a run. */
const EVERY_TTL = 86_400;
/** Longest start of a server; svc compiles a million rules in it. */
export const START_MS_MAX = 60_000;
/**
 * Answers that dnsmasq keeps: its own advice is not to go beyond. The others have 32 MiB. With names
 * that are never asked again it answers five times as many when it keeps few.
 */
export const DNSMASQ_ENTRIES = 10_000;
export const DNSMASQ_COLD_ENTRIES = 1_000;
/** Queries that unbound may have waiting; its default is fewer where it finds few descriptors. */
const UNBOUND_WAITING = 2_048;
/** Connections that unbound takes; its default is ten. */
const UNBOUND_CONNECTIONS = 1_024;
/** Names of `[filter] lists`, and where the list lies below the folder of the configuration. */
const LIST_NAME = "million";
export const LIST_PATH = `lists/${LIST_NAME}.txt`;

export const SERVERS = ["echo", "svc", "unbound", "dnsmasq"] as const;
export type ServerName = typeof SERVERS[number];

/** How each is configured, for the head of the report. */
export const SETUPS: Readonly<Record<ServerName, string>> = {
  echo: "recvmmsg, set QR, sendmmsg in Deno: the sockets, wait and batches of svc, and no DNS",
  svc: "1 worker, a list of 1,000,000 names, 32 MiB cache",
  unbound: "1 thread, no validation, 2 x 16 MiB caches, blocked names as local-zone always_null",
  dnsmasq:
    `${DNSMASQ_ENTRIES} cache entries (${DNSMASQ_COLD_ENTRIES} for cold names), blocked names ` +
    `as address=/name/${BLOCKED_ADDRESS}`,
};

/** Where a server takes encrypted queries; what it does not serve is 0. */
export interface TlsPorts {
  readonly dot: number;
  readonly doh: number;
  readonly doq: number;
}

export interface Server<Name extends string = ServerName> {
  readonly name: Name;
  readonly child: Child;
  readonly port: number;
  readonly tls: TlsPorts | null;
}

/** The certificate that servers show, and the name in it. */
export interface Certificate {
  readonly certFile: string;
  readonly keyFile: string;
  readonly name: string;
}

export interface Setup {
  readonly workspace: Workspace;
  /** Port of the server that everything unknown is forwarded to. */
  readonly upstreamPort: number;
  /** Names that the others block; svc has its list. */
  readonly blocked: readonly string[];
  readonly dnsmasqEntries: number;
  /** A built svc to run in place of the checkout's. */
  readonly program: string | null;
  /** Says whether svc keeps its query log, which the others have none of. */
  readonly queryLog: boolean;
  /** Has svc and unbound serve encrypted DNS as well. */
  readonly certificate?: Certificate;
  /** Has svc limit who floods it, though that is loopback: only the others stay exempt. */
  readonly limitsFloods?: boolean;
}

/** An answer to a name that no rule covers. */
export const PASSED: Wanted = address(EVERY_ADDRESS);
/** An answer to a name that is blocked. */
export const BLOCKED: Wanted = address(BLOCKED_ADDRESS);

/** Says whether this server can be measured on this machine. */
export function canRun(name: ServerName): boolean {
  return name === "echo" || name === "svc" || isInstalled(name);
}

/** Starts a server in a folder of its own, named `folder`; it answers when this returns. */
export async function startServer(
  name: ServerName,
  folder: string,
  setup: Setup,
): Promise<Server> {
  const port = freePort();
  const { workspace, certificate } = setup;
  const tls = certificate === undefined
    ? null
    : { dot: freePort(), doh: freePort(), doq: name === "svc" ? freePort() : 0 };
  await workspace.makeFolder(folder);
  const child = await START[name](folder, port, setup, tls);
  await askUntil(port, "ready.net", name === "echo" ? () => true : PASSED, START_MS_MAX);
  child.checkRuns();
  return { name, child, port, tls };
}

/** Starts what the runtime's QUIC takes by itself, with the flags that svc has. */
export async function startBare(
  workspace: Workspace,
  { certFile, keyFile }: Certificate,
): Promise<Server<"bare">> {
  const doq = freePort();
  const flags = (await svcPermissions()).filter((flag) => flag.startsWith("--v8-flags="));
  const args = ["run", "--no-prompt", "--frozen", "--config", `${ROOT}/deno.json`, ...flags];
  args.push("--allow-net", "--allow-read", `${ROOT}/scripts/benchmark/doq_bare.ts`);
  const child = workspace.start("bare", Deno.execPath(), [...args, `${doq}`, certFile, keyFile]);
  await child.line((line) => line === "listening", 0, START_MS_MAX);
  return { name: "bare", child, port: 0, tls: { dot: 0, doh: 0, doq } };
}

/** What `scripts/svc` gives `svc run`. */
async function svcPermissions(): Promise<string[]> {
  const script = '. "$0" && permissions_of run && printf %s "$permissions"';
  const permissions = await runTool("sh", ["-c", script, `${ROOT}/scripts/permissions.sh`]);
  return permissions.split(" ");
}

const START: Readonly<
  Record<
    ServerName,
    (folder: string, port: number, setup: Setup, tls: TlsPorts | null) => Promise<Child>
  >
> = {
  echo: (folder, port, { workspace }) => {
    const args = ["run", "--no-prompt", "--frozen", "--config", `${ROOT}/deno.json`, "--allow-ffi"];
    args.push(`${ROOT}/scripts/benchmark/echo.ts`, `${port}`);
    return Promise.resolve(workspace.start(folder, Deno.execPath(), args));
  },
  svc: async (folder, port, setup, tls) => {
    const { workspace } = setup;
    const config = await writeSvcConfig(folder, port, setup, freePort(), tls);
    const [program, ...args] = await svcCommand(setup.program, config);
    return workspace.start(folder, program, args);
  },
  unbound: async (folder, port, { workspace, upstreamPort, blocked, certificate }, tls) => {
    const encrypted = tls === null || certificate === undefined
      ? ""
      : `  interface: 127.0.0.1@${tls.dot}
  interface: 127.0.0.1@${tls.doh}
  tls-port: ${tls.dot}
  https-port: ${tls.doh}
  tls-service-pem: "${certificate.certFile}"
  tls-service-key: "${certificate.keyFile}"
  incoming-num-tcp: ${UNBOUND_CONNECTIONS}
`;
    const config = await workspace.write(
      `${folder}/unbound.conf`,
      `server:
  interface: 127.0.0.1@${port}
  num-threads: 1
  username: ""
  chroot: ""
  directory: "${workspace.path(folder)}"
  pidfile: ""
  use-syslog: no
  verbosity: 0
  module-config: "iterator"
  do-not-query-localhost: no
  msg-cache-size: 16m
  rrset-cache-size: 16m
  outgoing-range: ${2 * UNBOUND_WAITING}
  num-queries-per-thread: ${UNBOUND_WAITING}
  so-rcvbuf: 4m
${encrypted}${blocked.map((name) => `  local-zone: "${name}." always_null\n`).join("")}
forward-zone:
  name: "."
  forward-addr: 127.0.0.1@${upstreamPort}
remote-control:
  control-enable: no
`,
    );
    return workspace.start(folder, "unbound", ["-d", "-c", config]);
  },
  dnsmasq: async (folder, port, { workspace, upstreamPort, blocked, dnsmasqEntries }) => {
    const config = await workspace.write(
      `${folder}/dnsmasq.conf`,
      `port=${port}
listen-address=127.0.0.1
bind-interfaces
no-resolv
no-hosts
user=
pid-file=
log-facility=-
cache-size=${dnsmasqEntries}
server=127.0.0.1#${upstreamPort}
${blocked.map((name) => `address=/${name}/${BLOCKED_ADDRESS}\n`).join("")}`,
    );
    return workspace.start(folder, "dnsmasq", ["--keep-in-foreground", `--conf-file=${config}`]);
  },
};

/** Writes a configuration with the list of a million names; returns its path. */
export async function writeSvcConfig(
  folder: string,
  port: number,
  { workspace, upstreamPort, queryLog, certificate, limitsFloods }: Setup,
  apiPort = freePort(),
  tls: TlsPorts | null = null,
): Promise<string> {
  const encrypted = tls === null || certificate === undefined ? "" : `[server.tls]
cert = "${certificate.certFile}"
key = "${certificate.keyFile}"
server_name = "${certificate.name}"
dot = ["127.0.0.1:${tls.dot}"]
doh = ["127.0.0.1:${tls.doh}"]
doq = ["127.0.0.1:${tls.doq}"]
`;
  const rateLimit = limitsFloods === true
    ? `[server.rate_limit]
exempt = ["127.0.0.1", "${PACED}"]
`
    : "";
  await workspace.makeFolder(`${folder}/lists`);
  // The list is changed in one measurement, and there may be several svc.
  await Deno.copyFile(workspace.path("million.txt"), workspace.path(`${folder}/${LIST_PATH}`));
  return await workspace.write(
    `${folder}/svc.toml`,
    `[server]
listen = ["127.0.0.1:${port}"]
workers = 1
${encrypted}${rateLimit}[[upstream]]
address = "127.0.0.1:${upstreamPort}"
[filter]
lists = [{ name = "${LIST_NAME}", path = "${LIST_PATH}" }]
services = false
directory = false
[querylog]
enabled = ${queryLog}
[api]
listen = ["127.0.0.1:${apiPort}"]
[store]
path = "store"
`,
  );
}

/** The command that runs svc as `scripts/svc` does, or as a built file. */
export async function svcCommand(program: string | null, config: string): Promise<string[]> {
  if (program !== null) return [program, "run", "--config", config];
  const flags = ["--no-prompt", "--frozen", "--config", `${ROOT}/deno.json`];
  const command = [Deno.execPath(), "run", ...flags, ...await svcPermissions()];
  return [...command, `${ROOT}/src/cli/run_main.ts`, "run", "--config", config];
}

export interface Upstream {
  readonly port: number;
  readonly setup: string;
}

/** Starts the server that answers everything, on `cpu` if given. */
export async function startUpstream(workspace: Workspace, cpu: number | null): Promise<Upstream> {
  const port = freePort();
  const folder = await workspace.makeFolder("upstream");
  const [setup, ...command] = isInstalled("nsd")
    ? await nsdCommand(workspace, folder, port)
    : await unboundCommand(workspace, folder, port);
  const [program, ...args] = cpu === null
    ? command
    : ["taskset", "--cpu-list", `${cpu}`, ...command];
  const child = workspace.start("upstream", program, args);
  await askUntil(port, "ready.net", PASSED, START_MS_MAX);
  child.checkRuns();
  return { port, setup };
}

async function nsdCommand(workspace: Workspace, folder: string, port: number): Promise<string[]> {
  await workspace.write(
    "upstream/root.zone",
    `$TTL ${EVERY_TTL}
. SOA ns. host. 1 3600 600 86400 60
. NS ns.
ns. A 127.0.0.1
*. A ${EVERY_ADDRESS}
`,
  );
  // Without an end to the rate limit, nsd would drop what more than 200 queries a second ask.
  const config = await workspace.write(
    "upstream/nsd.conf",
    `server:
  ip-address: 127.0.0.1@${port}
  username: ""
  server-count: 1
  zonesdir: "${folder}"
  xfrdir: "${folder}"
  zonelistfile: "${folder}/zone.list"
  database: ""
  pidfile: ""
  xfrdfile: ""
  rrl-ratelimit: 0
  rrl-whitelist-ratelimit: 0
remote-control:
  control-enable: no
zone:
  name: "."
  zonefile: "root.zone"
`,
  );
  return ["nsd, a wildcard at the root", "nsd", "-d", "-c", config];
}

async function unboundCommand(
  workspace: Workspace,
  folder: string,
  port: number,
): Promise<string[]> {
  if (!isInstalled("unbound")) {
    throw new BenchError("nsd and unbound are not installed: one of them has to answer queries");
  }
  const config = await workspace.write(
    "upstream/unbound.conf",
    `server:
  interface: 127.0.0.1@${port}
  num-threads: 1
  username: ""
  chroot: ""
  directory: "${folder}"
  pidfile: ""
  use-syslog: no
  verbosity: 0
  module-config: "iterator"
  local-zone: "." redirect
  local-data: ". ${EVERY_TTL} A ${EVERY_ADDRESS}"
remote-control:
  control-enable: no
`,
  );
  return ["unbound, a redirect of the root", "unbound", "-d", "-c", config];
}
