/**
 * A site of the test's own: members of a cluster, each in a namespace of the kernel, on one segment
 * that can be broken in many ways; and a wire to each by which the test reaches its API and DNS
 * whatever becomes of the segment.
 */
import assert from "node:assert/strict";
import type { HostPort } from "../../src/addr/mod.ts";
import { issueMember, makeAuthority } from "../../src/cluster/certificates.ts";
import { encodeQuery, Qtype } from "../../src/dns/mod.ts";
import {
  type ConfigText,
  OwnDirectory,
  PROGRAM,
  ROOT,
  runProgram,
  Service,
  toml,
  until,
  WAIT_MS_MAX,
} from "./harness.ts";
import { writePair } from "./certificates.ts";
import type { Report } from "./members.ts";
import { Running } from "./segment.ts";

const CLUSTER_PORT = 8054;
const DNS_PORT = 1053;
const API_PORT = 8053;
/** Of a request, which is answered or refused within ten seconds. */
const REQUEST_MS_MAX = 15_000;
/** Twenty queries a second at each member. */
const PROBE_MS = 50;
/** A query that is not answered in this time is lost: nothing here is further than a wire. */
const PROBE_MS_MAX = 2_000;

let count = 0;

async function run(...command: string[]): Promise<string> {
  const { code, stdout, stderr } = await runProgram(command[0], ...command.slice(1));
  assert.equal(code, 0, `${command.join(" ")}: ${stderr}`);
  return stdout;
}

export interface NodeOptions {
  /** Before the command, within the namespace. */
  readonly prefix?: readonly string[];
  readonly config?: ConfigText;
  /** It is in no cluster. */
  readonly isAlone?: boolean;
}

/** A member and what it stands in. */
export class SiteNode {
  service: Service | null = null;
  witness: Running | null = null;

  constructor(readonly site: Site, readonly index: number, readonly name: string) {}

  get space(): string {
    return `${this.site.id}-${this.index}`;
  }

  /** On the segment. */
  get address(): string {
    return `10.99.77.${this.index + 1}`;
  }

  /** On the wire of the test. */
  get wire(): string {
    return `10.213.${this.site.network}.${4 * this.index + 2}`;
  }

  get directory(): string {
    return `${this.site.directory}/${this.name}`;
  }

  get isWitness(): boolean {
    return this.name.startsWith("witness");
  }

  get pid(): number {
    const pid = this.service?.pid ?? this.witness?.pid;
    assert(pid !== undefined, `${this.name} runs`);
    return pid;
  }

  async exec(...command: string[]): Promise<string> {
    return await run("ip", "netns", "exec", this.space, ...command);
  }

  #cluster(): ConfigText {
    const { site, name } = this;
    const path = site.directory;
    return {
      cluster: {
        node: name,
        ...(!this.isWitness && { bootstrap: this.index === 0 }),
        listen: `${this.address}:${CLUSTER_PORT}`,
        ...{ ca: `${path}/ca.crt`, cert: `${path}/${name}.crt`, key: `${path}/${name}.key` },
        member: site.nodes.map((one) => ({
          node: one.name,
          address: `${one.address}:${CLUSTER_PORT}`,
        })),
      },
    };
  }

  async start({ prefix = [], config = {}, isAlone = false }: NodeOptions = {}): Promise<void> {
    await Deno.mkdir(this.directory, { recursive: true });
    const at = ["ip", "netns", "exec", this.space, ...prefix];
    if (this.isWitness) {
      const file = `${this.directory}/svc.toml`;
      await Deno.writeTextFile(file, toml({ ...this.#cluster(), store: { path: "store" } }));
      const svc = PROGRAM ?? `${ROOT}scripts/svc`; // With all that keeps a witness small.
      this.witness = Running.start([svc, "witness", "--config", file], { prefix: at });
      await this.witness.logged("voting");
      return;
    }
    this.service = await Service.start({
      directory: this.directory,
      prefix: at,
      config: {
        ...(!isAlone && this.#cluster()),
        server: { listen: [`${this.wire}:${DNS_PORT}`], workers: 1 },
        api: { listen: [`${this.wire}:${API_PORT}`], token_sha256: this.site.tokenSha256 },
        ...config,
      },
    });
    await this.service.logged("serving the API");
  }

  signal(signal: Deno.Signal): void {
    Deno.kill(this.pid, signal);
  }

  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await (this.service ?? this.witness)?.ended;
    this.service = this.witness = null;
  }

  /** Lets nothing pass to it, or from it, or both; the links stay up. */
  async cut(way: "both" | "in" | "out", from: readonly SiteNode[]): Promise<void> {
    for (const { address } of from) {
      if (way !== "out") await this.exec("iptables", "-A", "INPUT", "-s", address, "-j", "DROP");
      if (way !== "in") await this.exec("iptables", "-A", "OUTPUT", "-d", address, "-j", "DROP");
    }
  }

  /** Loses this share of the packets that come to it on the segment. */
  async lose(ratio: number): Promise<void> {
    const chance = ["-m", "statistic", "--mode", "random", "--probability", `${ratio}`];
    await this.exec("iptables", "-A", "INPUT", "-d", this.address, ...chance, "-j", "DROP");
  }

  async heal(): Promise<void> {
    await this.exec("iptables", "-F");
  }

  /** A request to its API: the status, and what was answered; 0 where nothing was. */
  async request(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
    // deno-lint-ignore no-explicit-any -- answers of every shape
  ): Promise<{ status: number; json: any }> {
    try {
      const response = await fetch(`http://${this.wire}:${API_PORT}/api/v1/${path}`, {
        method,
        headers: {
          authorization: `Bearer ${this.site.token}`,
          ...(body !== undefined && { "content-type": "application/json" }),
          ...headers,
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(REQUEST_MS_MAX),
      });
      const text = await response.text();
      return { status: response.status, json: text === "" ? null : JSON.parse(text) };
    } catch {
      return { status: 0, json: null };
    }
  }

  /** Where it answers DNS. */
  get dns(): HostPort {
    return { ip: new Uint8Array(this.wire.split(".").map(Number)), port: DNS_PORT };
  }

  async report(): Promise<Report | null> {
    const { status, json } = await this.request("GET", "cluster");
    return status === 200 ? json : null;
  }
}

export class Site implements AsyncDisposable {
  readonly id = `svc-site-${Deno.pid}-${count++}`;
  /** The wires' networks are of this process and this site. */
  readonly network = (Deno.pid + 37 * count) % 250;
  readonly nodes: readonly SiteNode[];
  readonly token = `svc_${"5e".repeat(32)}`;
  tokenSha256 = "";
  readonly #directory: OwnDirectory;

  private constructor(directory: OwnDirectory, names: readonly string[]) {
    this.#directory = directory;
    this.nodes = names.map((name, i) => new SiteNode(this, i, name));
  }

  /** Names that begin with "witness" are witnesses. Nobody is started yet. */
  static async make(...names: string[]): Promise<Site> {
    const site = new Site(await OwnDirectory.make("svc-site-"), names);
    try {
      await site.#build();
    } catch (error) {
      await site[Symbol.asyncDispose]();
      throw error;
    }
    return site;
  }

  get directory(): string {
    return this.#directory.path;
  }

  get #switch(): string {
    return `${this.id}-sw`;
  }

  node(name: string): SiteNode {
    const node = this.nodes.find((one) => one.name === name);
    assert(node !== undefined, `${name} is a node`);
    return node;
  }

  others(node: SiteNode): readonly SiteNode[] {
    return this.nodes.filter((one) => one !== node);
  }

  /** Those that answer DNS and have an API. */
  get servers(): readonly SiteNode[] {
    return this.nodes.filter((one) => !one.isWitness);
  }

  async #build(): Promise<void> {
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(this.token));
    this.tokenSha256 = new Uint8Array(digest).toHex();
    const chance = (bytes: Uint8Array<ArrayBuffer>) => crypto.getRandomValues(bytes);
    const authority = await makeAuthority(Date.now(), chance);
    await Deno.writeTextFile(`${this.directory}/ca.crt`, authority.cert);
    for (const { name } of this.nodes) {
      await writePair(this.directory, name, await issueMember(name, authority, Date.now(), chance));
    }
    await run("ip", "netns", "add", this.#switch);
    const at = ["ip", "-n", this.#switch];
    await run(...at, "link", "add", "br0", "type", "bridge", "forward_delay", "0");
    await run(...at, "link", "set", "br0", "up");
    await Promise.all(this.nodes.map((node) => this.#plug(node)));
  }

  async #plug(node: SiteNode): Promise<void> {
    const { space, index } = node;
    await run("ip", "netns", "add", space);
    const at = ["ip", "-n", space];
    await run(...at, "link", "set", "lo", "up");
    const port = `port${index}`;
    const peer = ["peer", "name", port, "netns", this.#switch];
    await run(...at, "link", "add", "seg0", "type", "veth", ...peer);
    await run("ip", "-n", this.#switch, "link", "set", port, "master", "br0", "up");
    await run(...at, "address", "add", `${node.address}/24`, "dev", "seg0");
    await run(...at, "link", "set", "seg0", "up");
    const own = this.#wireName(index);
    await run("ip", "link", "add", own, "type", "veth", "peer", "name", "wire", "netns", space);
    const first = `10.213.${this.network}.${4 * index + 1}`;
    await run("ip", "address", "add", `${first}/30`, "dev", own);
    await run("ip", "link", "set", own, "up");
    await run(...at, "address", "add", `${node.wire}/30`, "dev", "wire");
    await run(...at, "link", "set", "wire", "up");
  }

  #wireName(index: number): string {
    return `svc${Deno.pid % 100_000}w${this.network}n${index}`.slice(0, 15);
  }

  /** Until every member takes part and has nothing to complain of; the leader. */
  async whole(waitMs = 2 * WAIT_MS_MAX): Promise<SiteNode> {
    let reports: (Report | null)[] = [];
    const isWhole = async () => {
      reports = await Promise.all(this.servers.map((node) => node.report()));
      return reports.every((report) =>
        report !== null && report.leader !== null && report.leader === reports[0]?.leader &&
        report.problems.length === 0 && report.writable &&
        report.config.version === reports[0]?.config.version &&
        report.members.length === this.nodes.length &&
        report.members.every(({ membership }) => membership === "voter")
      );
    };
    try {
      await until("a whole cluster", isWhole, waitMs);
    } catch (error) {
      const told = this.nodes.map((node) =>
        `${node.name}:\n${(node.service ?? node.witness)?.transcript()}`
      );
      const text = `${JSON.stringify(reports, null, 1)}\n${told.join("\n")}`;
      throw new Error(text, { cause: error });
    }
    return this.node(reports[0]?.leader ?? "");
  }

  /** Until another than `former` leads, as those at `nodes` see it. */
  async newLeader(former: SiteNode, nodes: readonly SiteNode[]): Promise<SiteNode> {
    let leader: string | null = null;
    await until(`another leader than ${former.name}`, async () => {
      for (const node of nodes) {
        const report = await node.report();
        if (report?.leader && report.leader !== former.name && report.writable) {
          leader = report.leader;
          return true;
        }
      }
      return false;
    });
    return this.node(leader ?? "");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const node of this.nodes) {
      await node.service?.[Symbol.asyncDispose]();
      await node.witness?.[Symbol.asyncDispose]();
      await runProgram("umount", node.directory); // Where a disk of its own was there.
      await runProgram("ip", "link", "delete", this.#wireName(node.index));
      await runProgram("ip", "netns", "delete", node.space);
    }
    await runProgram("ip", "netns", "delete", this.#switch);
    await this.#directory[Symbol.asyncDispose]();
  }
}

/** Asks a member for a name all the time, and counts what is lost while it can answer. */
export class Probe implements AsyncDisposable {
  readonly #node: SiteNode;
  readonly #socket = Deno.listenDatagram({ transport: "udp", hostname: "0.0.0.0", port: 0 });
  readonly #waiting = new Map<number, number>();
  readonly #timer: ReturnType<typeof setInterval>;
  readonly #reading: Promise<void>;
  #id = 0;
  /** It is stopped or killed: who is asked then can't answer. */
  isPaused = false;
  asked = 0;
  lost = 0;

  constructor(node: SiteNode) {
    this.#node = node;
    this.#timer = setInterval(() => this.#ask(), PROBE_MS);
    this.#reading = this.#read();
  }

  #ask(): void {
    const nowMs = performance.now();
    for (const [id, atMs] of this.#waiting) {
      if (nowMs - atMs < PROBE_MS_MAX) break;
      this.#waiting.delete(id);
      this.lost++;
    }
    if (this.isPaused) return;
    const id = this.#id = (this.#id + 1) & 0xffff;
    this.#waiting.set(id, nowMs);
    this.asked++;
    const to = { transport: "udp", hostname: this.#node.wire, port: DNS_PORT } as const;
    this.#socket.send(encodeQuery("health.svc.test", Qtype.A, { id }), to).catch(() => {});
  }

  async #read(): Promise<void> {
    try {
      for (;;) {
        const [packet] = await this.#socket.receive();
        // No error: it can answer queries.
        if ((packet[3] & 0x0f) === 0) this.#waiting.delete((packet[0] << 8) | packet[1]);
      }
    } catch {
      // It is closed.
    }
  }

  /** What is asked from now on is not counted, and what is under way neither. */
  pause(): void {
    this.isPaused = true;
    this.#waiting.clear();
  }

  resume(): void {
    this.isPaused = false;
  }

  /** Until all that was asked is answered or lost. */
  async settle(): Promise<void> {
    clearInterval(this.#timer);
    const endsAtMs = performance.now() + PROBE_MS_MAX;
    while (this.#waiting.size > 0 && performance.now() < endsAtMs) {
      await new Promise((resolve) => setTimeout(resolve, PROBE_MS));
    }
    this.lost += this.#waiting.size;
    this.#waiting.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    this.#socket.close();
    await this.#reading;
  }
}
