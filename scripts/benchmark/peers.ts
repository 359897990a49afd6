/** Starts svc, AdGuard Home and blocky alike: one list, one upstream, a cache, no query log. */
import { messageOf } from "../../src/errors.ts";
import { address, askUntil, freePort } from "./ask.ts";
import { BenchError } from "./bench_error.ts";
import { type Child, isInstalled, pin, runTool } from "./processes.ts";
import {
  BLOCKED,
  type Certificate,
  EVERY_ADDRESS,
  LIST_PATH,
  type Setup,
  START_MS_MAX,
  svcCommand,
  type TlsPorts,
  writeSvcConfig,
} from "./servers.ts";
import { ROOT } from "./workspace.ts";

export const PEERS = ["svc", "adguard", "blocky"] as const;
export type PeerName = typeof PEERS[number];

/** Name and place of each program; the file names are those that its makers give it. */
export const PEER_PROGRAMS = { adguard: "AdGuardHome", blocky: "blocky" } as const;
/** What each is configured as, for the head of the report. */
export const PEER_SETUPS: Readonly<Record<PeerName, string>> = {
  svc: "1 worker, 32 MiB cache, query log off",
  adguard: "32 MiB cache, filters from a file, query log and statistics off",
  blocky: "cache as it comes, denylist from a file, query log off, no DoQ",
};

const CACHE_BYTES = 32 * 1024 * 1024;
/** The newest that AdGuard Home 0.107.79 writes; it reads older ones too. */
const ADGUARD_SCHEMA = 34;
const ANSWERED = address(EVERY_ADDRESS);

/** One of the peers in a folder of its own, which it keeps from one start to the next. */
export class Peer {
  readonly port = freePort();
  readonly tls: TlsPorts;
  readonly #setup: Setup;
  readonly #folder: string;
  readonly #apiPort = freePort();
  #command: readonly string[] = [];
  #child: Child | null = null;

  private constructor(readonly name: PeerName, setup: Setup) {
    this.#setup = setup;
    this.#folder = `peer-${name}`;
    this.tls = {
      dot: freePort(),
      doh: freePort(),
      doq: name === "blocky" ? 0 : freePort(),
    };
  }

  /** Writes what it is configured by. */
  static async prepare(name: PeerName, setup: Setup): Promise<Peer> {
    const peer = new Peer(name, setup);
    const { workspace } = setup;
    await workspace.makeFolder(`${peer.#folder}/lists`);
    await Deno.copyFile(workspace.path("million.txt"), peer.#list);
    peer.#command = await peer.#configure();
    return peer;
  }

  get child(): Child {
    if (this.#child === null) throw new BenchError(`${this.name}: is not started`);
    return this.#child;
  }

  /** Starts it; returns the milliseconds until it blocks and forwards. */
  async start(blocked: string, cpu: number | null): Promise<number> {
    const [program, ...args] = this.#command;
    const startedMs = performance.now();
    this.#child = this.#setup.workspace.start(this.name, program, args);
    const { child } = this;
    try {
      await askUntil(this.port, blocked, BLOCKED, START_MS_MAX);
      await askUntil(this.port, "ready.net", ANSWERED, START_MS_MAX);
    } catch (error) {
      child.checkRuns();
      throw child.failure(messageOf(error));
    }
    const tookMs = performance.now() - startedMs;
    child.checkRuns();
    // Not from the start: each sizes its thread pools by the CPUs it finds then.
    if (cpu !== null) await pin(child.pid, [cpu]);
    return tookMs;
  }

  async stop(): Promise<void> {
    if (this.#child !== null) await this.#setup.workspace.stop(this.#child);
    this.#child = null;
  }

  /** Adds a name to the list and has it read; the name is blocked when this returns. */
  async reload(name: string): Promise<void> {
    await Deno.writeTextFile(this.#list, `${name}\n`, { append: true });
    if (this.name === "svc") this.child.signal("SIGHUP");
    else {await this.#post(
        this.name === "adguard" ? "control/filtering/refresh" : "api/lists/refresh",
      );}
    await askUntil(this.port, name, BLOCKED, START_MS_MAX);
  }

  get #list(): string {
    return this.#setup.workspace.path(`${this.#folder}/${LIST_PATH}`);
  }

  async #post(path: string): Promise<void> {
    const response = await fetch(`http://127.0.0.1:${this.#apiPort}/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"whitelist":false}',
    });
    const text = await response.text();
    if (!response.ok) throw this.child.failure(`${path}: ${response.status} ${text}`);
  }

  async #configure(): Promise<readonly string[]> {
    const { workspace, certificate, program } = this.#setup;
    if (certificate === undefined) throw new BenchError("peers are measured with a certificate");
    if (this.name === "svc") {
      const args = [this.#folder, this.port, this.#setup, this.#apiPort, this.tls] as const;
      return await svcCommand(program, await writeSvcConfig(...args));
    }
    const file = PEER_PROGRAMS[this.name];
    if (this.name === "blocky") {
      const path = `${this.#folder}/config.yml`;
      const config = await workspace.write(path, this.#blockyConfig(certificate));
      return [file, "serve", "--config", config];
    }
    const path = `${this.#folder}/AdGuardHome.yaml`;
    const config = await workspace.write(path, this.#adguardConfig(certificate));
    const folder = workspace.path(this.#folder);
    return [file, "-w", folder, "-c", config, "--no-check-update"];
  }

  #adguardConfig({ certFile, keyFile, name }: Certificate): string {
    const { dot, doh, doq } = this.tls;
    return `http:
  address: 127.0.0.1:${this.#apiPort}
users: []
dns:
  bind_hosts: [127.0.0.1]
  port: ${this.port}
  ratelimit: 0
  upstream_dns: ["127.0.0.1:${this.#setup.upstreamPort}"]
  bootstrap_dns: []
  cache_enabled: true
  cache_size: ${CACHE_BYTES}
tls:
  enabled: true
  server_name: ${name}
  port_https: ${doh}
  port_dns_over_tls: ${dot}
  port_dns_over_quic: ${doq}
  certificate_path: ${certFile}
  private_key_path: ${keyFile}
querylog:
  enabled: false
  file_enabled: false
statistics:
  enabled: false
filters:
  - enabled: true
    url: ${this.#list}
    name: million
    id: 1
filtering:
  filtering_enabled: true
  protection_enabled: true
  blocking_mode: null_ip
  filters_update_interval: 24
  safe_fs_patterns: ["${this.#list}"]
schema_version: ${ADGUARD_SCHEMA}
`;
  }

  #blockyConfig({ certFile, keyFile }: Certificate): string {
    const { dot, doh } = this.tls;
    return `upstreams:
  init:
    strategy: fast
  groups:
    default: ["127.0.0.1:${this.#setup.upstreamPort}"]
blocking:
  denylists:
    million: ["${this.#list}"]
  clientGroupsBlock:
    default: [million]
  blockType: zeroIp
  loading:
    strategy: blocking
    refreshPeriod: 0
queryLog:
  type: none
ports:
  dns: 127.0.0.1:${this.port}
  tls: 127.0.0.1:${dot}
  https: 127.0.0.1:${doh}
  http: 127.0.0.1:${this.#apiPort}
certFile: ${certFile}
keyFile: ${keyFile}
log:
  level: warn
`;
  }
}

/** Says whether this machine has the program. */
export function hasPeer(name: PeerName): boolean {
  return name === "svc" || isInstalled(PEER_PROGRAMS[name]);
}

/** What a peer calls its version. */
export async function versionOf(name: PeerName, svc: string | null): Promise<string> {
  const [program, ...args] = name === "adguard"
    ? [PEER_PROGRAMS.adguard, "--version"]
    : name === "blocky"
    ? [PEER_PROGRAMS.blocky, "version"]
    : [svc ?? `${ROOT}/scripts/svc`, "version"];
  const text = await runTool(program, args);
  return /v?\d+\.\d+\.\d+\S*/.exec(text)?.[0] ?? text.trim().split("\n")[0];
}
