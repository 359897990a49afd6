/**
 * A network segment of the test's own: nodes and a client, each in a namespace of the kernel, on one
 * bridge in another; and the programs that run there. Any node may be cut off while its link stays.
 */
import assert from "node:assert/strict";
import type { Gaps } from "./gap_child.ts";
import {
  type ConfigText,
  type LogLine,
  removeDirectory,
  ROOT,
  runProgram,
  svcCommand,
  toml,
  until,
} from "./harness.ts";

/** Of a local network, which may ask. The floating address, and the node's own ones: the first is node 0's. */
export const FLOATING = "192.168.77.100";
export const ADDRESSES = ["192.168.77.1", "192.168.77.2", "192.168.77.3"] as const;
export const CLIENT = 2;
/** Where DNS is listened for, as nobody else is in the namespace. */
export const DNS_PORT = 1053;
const DEVICE = "seg0";

let count = 0;

async function ip(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runProgram("ip", ...args);
  assert.equal(code, 0, `ip ${args.join(" ")}: ${stderr}`);
  return stdout;
}

/** Two nodes, 0 and 1, and a client. */
export class Segment implements AsyncDisposable {
  readonly #name = `svc-seg-${Deno.pid}-${count++}`;
  readonly device = DEVICE;
  readonly #cut = new Set<number>();

  static async make(): Promise<Segment> {
    const segment = new Segment();
    try {
      await segment.#build();
    } catch (error) {
      await segment[Symbol.asyncDispose]();
      throw error;
    }
    return segment;
  }

  async #build(): Promise<void> {
    await ip("netns", "add", this.#switch);
    await ip("-n", this.#switch, "link", "add", "br0", "type", "bridge", "forward_delay", "0");
    await ip("-n", this.#switch, "link", "set", "br0", "up");
    for (const i of ADDRESSES.keys()) {
      await ip("netns", "add", this.#space(i));
      await ip("-n", this.#space(i), "link", "set", "lo", "up");
      await this.plug(i);
    }
  }

  get #switch(): string {
    return `${this.#name}-sw`;
  }

  #space(i: number): string {
    return `${this.#name}-${i}`;
  }

  /** Before a command that is to run on node `i`. */
  on(i: number): string[] {
    return ["ip", "netns", "exec", this.#space(i)];
  }

  /** Gives a node its interface and its address. */
  async plug(i: number): Promise<void> {
    const [space, port] = [this.#space(i), `port${i}`];
    const at = ["-n", space];
    const peer = ["peer", "name", port, "netns", this.#switch];
    await ip(...at, "link", "add", DEVICE, "type", "veth", ...peer);
    await ip("-n", this.#switch, "link", "set", port, "master", "br0", "up");
    await ip(...at, "link", "set", DEVICE, "up");
    await ip(...at, "address", "add", `${ADDRESSES[i]}/24`, "dev", DEVICE);
  }

  async unplug(i: number): Promise<void> {
    await ip("-n", this.#space(i), "link", "delete", DEVICE);
  }

  /** Lets nothing pass between a node and the others, whose link stays up, or lets it again. */
  async setCut(i: number, isCut: boolean): Promise<void> {
    if (isCut) this.#cut.add(i);
    else this.#cut.delete(i);
    const how = isCut ? ["nomaster"] : ["master", "br0"];
    await ip("-n", this.#switch, "link", "set", `port${i}`, ...how);
  }

  async rename(i: number, from: string, to: string): Promise<void> {
    const at = ["-n", this.#space(i), "link", "set"];
    await ip(...at, from, "down");
    await ip(...at, from, "name", to);
    await ip(...at, to, "up");
  }

  async setLink(i: number, isUp: boolean): Promise<void> {
    await ip("-n", this.#space(i), "link", "set", DEVICE, isUp ? "up" : "down");
  }

  async changeAddress(i: number, change: "add" | "delete", address: string): Promise<void> {
    await ip("-n", this.#space(i), "address", change, `${address}/32`, "dev", DEVICE);
  }

  /** The nodes whose interface has the floating address. */
  async holders(): Promise<number[]> {
    const texts = await Promise.all(
      [0, 1].map((i) => runProgram("ip", "-n", this.#space(i), "-4", "-o", "address", "show")),
    );
    return texts.flatMap(({ stdout }, i) => stdout.includes(` ${FLOATING}/`) ? [i] : []);
  }

  async mac(i: number): Promise<string> {
    const text = await ip("-n", this.#space(i), "-o", "link", "show", DEVICE);
    return /link\/ether (\S+)/.exec(text)![1];
  }

  /** Where the client believes the floating address to be. */
  async believed(): Promise<string | undefined> {
    const text = await ip("-n", this.#space(CLIENT), "neigh", "show", FLOATING);
    return /lladdr (\S+)/.exec(text)?.[1];
  }

  /** Waits until this node, of those that the client can reach, alone has the address. */
  async held(i: number): Promise<void> {
    await until(`node ${i} holds the address alone`, async () => {
      const holders = (await this.holders()).filter((holder) => !this.#cut.has(holder));
      return holders.length === 1 && holders[0] === i;
    });
  }

  /** The same, and the client knows. */
  async settled(i: number): Promise<void> {
    const mac = await this.mac(i);
    await this.held(i);
    await until(`the client knows of node ${i}`, async () => await this.believed() === mac);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const i of ADDRESSES.keys()) await runProgram("ip", "netns", "delete", this.#space(i));
    await runProgram("ip", "netns", "delete", this.#switch);
  }
}

/** What `[vrrp]` says on node `i`, and `[server]`. */
export function vrrpConfig(
  i: number,
  vrrp: Readonly<Record<string, string | number | boolean>> = {},
  listen: readonly string[] = ["0.0.0.0"],
): ConfigText {
  return {
    server: { listen: listen.map((address) => `${address}:${DNS_PORT}`), workers: 1 },
    vrrp: {
      interface: DEVICE,
      address: FLOATING,
      peer: ADDRESSES[1 - i],
      router_id: 51,
      priority: i === 0 ? 150 : 100,
      interval_ms: 250,
      ...vrrp,
    },
  };
}

export interface ProgramOptions {
  readonly prefix: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** A program that runs on a node, and what it says on standard error. */
export class Running implements AsyncDisposable {
  readonly logs: LogLine[] = [];
  readonly rest: string[] = [];
  readonly ended: Promise<Deno.CommandStatus>;
  hasEnded = false;
  protected constructor(readonly child: Deno.ChildProcess) {
    const collected = this.#collect();
    this.ended = child.status.then(async (status) => {
      await collected;
      this.hasEnded = true;
      return status;
    });
  }

  static start(command: readonly string[], { prefix, env }: ProgramOptions): Running {
    const [program, ...args] = [...prefix, ...command];
    const child = new Deno.Command(program, {
      args,
      stdin: "null",
      stdout: "null",
      stderr: "piped",
      ...(env && { env }),
    }).spawn();
    return new Running(child);
  }

  async #collect(): Promise<void> {
    let kept = "";
    for await (const text of this.child.stderr.pipeThrough(new TextDecoderStream())) {
      const lines = (kept + text).split("\n");
      kept = lines.pop() ?? "";
      for (const line of lines) {
        if (line.startsWith("{")) this.logs.push(JSON.parse(line));
        else if (line !== "") this.rest.push(line);
      }
    }
  }

  get pid(): number {
    return this.child.pid;
  }

  /** Waits for a line with this message and these fields, after the first `skip` lines. */
  async logged(
    message: string,
    fields: Readonly<Record<string, unknown>> = {},
    skip = 0,
  ): Promise<LogLine> {
    const found = () =>
      this.logs.slice(skip).find((line) =>
        line.message === message &&
        Object.entries(fields).every(([key, value]) => line[key] === value)
      );
    try {
      await until(`"${message}"`, () => this.hasEnded || found() !== undefined);
    } catch (error) {
      throw new Error(`it logged\n${this.transcript()}`, { cause: error });
    }
    return found() ?? assert.fail(`ended without "${message}":\n${this.transcript()}`);
  }

  transcript(): string {
    return [...this.logs.map((line) => JSON.stringify(line)), ...this.rest].join("\n");
  }

  async end(signal: Deno.Signal): Promise<Deno.CommandStatus> {
    if (!this.hasEnded) this.child.kill(signal);
    return await this.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.hasEnded) {
      try {
        this.child.kill("SIGKILL");
      } catch {
        // It has just ended.
      }
    }
    await this.ended;
  }
}

/** A folder with a configuration file for each node. */
export class NodeFiles implements AsyncDisposable {
  private constructor(readonly directory: string) {}

  static async make(): Promise<NodeFiles> {
    return new NodeFiles(await Deno.makeTempDir({ prefix: "svc-vrrp-" }));
  }

  async write(name: string, config: ConfigText): Promise<string> {
    const file = `${this.directory}/${name}.toml`;
    await Deno.writeTextFile(file, toml(config));
    return file;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await removeDirectory(this.directory);
  }
}

/** Starts `svc vrrp` on a node of the segment. */
export function startVrrp(segment: Segment, i: number, file: string): Running {
  return Running.start(svcCommand(["vrrp", "--config", file]), { prefix: segment.on(i) });
}

/** Asks the floating address from the client all the time. */
export class Asking implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  #isStopped = false;

  constructor(segment: Segment, port = DNS_PORT) {
    const script = [`${ROOT}tests/e2e/gap_child.ts`, FLOATING, `${port}`];
    const deno = [Deno.execPath(), "run", "--quiet", "--config", `${ROOT}deno.json`, "--allow-net"];
    const [program, ...args] = [...segment.on(CLIENT), ...deno, ...script];
    this.#child = new Deno.Command(program, { args, stdin: "piped", stdout: "piped" }).spawn();
  }

  async stop(): Promise<Gaps> {
    this.#isStopped = true;
    await this.#child.stdin.close();
    const { stdout } = await this.#child.output();
    return JSON.parse(new TextDecoder().decode(stdout));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isStopped) await this.stop();
  }
}

/** Starts keepalived on node 1, which holds the address whenever it may. */
export async function startKeepalived(
  segment: Segment,
  files: NodeFiles,
  { priority, unicast, interval }: {
    readonly priority: number;
    readonly unicast: boolean;
    readonly interval: number;
  },
): Promise<Running> {
  const path = `${files.directory}/keepalived-${priority}.conf`;
  const to = unicast ? `unicast_src_ip ${ADDRESSES[1]}\nunicast_peer { ${ADDRESSES[0]} }` : "";
  await Deno.writeTextFile(
    path,
    `global_defs { vrrp_version 3 }
    vrrp_instance v { state BACKUP
    interface ${segment.device}
    virtual_router_id 51
    priority ${priority}
    advert_int ${interval}
    ${to}
    virtual_ipaddress { ${FLOATING}/32 } }`,
  );
  const pids = ["-p", `${path}.pid`, `--vrrp_pid=${path}.vrrp`];
  const args = ["keepalived", "-n", "-l", "-P", "-f", path, ...pids];
  return Running.start(args, { prefix: segment.on(1) });
}
