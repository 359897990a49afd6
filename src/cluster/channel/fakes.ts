/** Members for tests: channels on loopback with certificates of an authority of their own. */
import { issueMember, makeAuthority } from "../certificates.ts";
import type { ChannelHandler, Greeting, PeerState } from "../ports.ts";
import { MemberChannel } from "./channel.ts";
import type { IdentityFiles } from "./identity.ts";
import { type ChannelLimits, LIMITS } from "./limits.ts";

export const LOOPBACK = new Uint8Array([127, 0, 0, 1]);
const WAIT_MS_MAX = 20_000;

const chance = (bytes: Uint8Array<ArrayBuffer>) => crypto.getRandomValues(bytes);

export interface Pair {
  readonly cert: string;
  readonly key: string;
}

/** An authority, and the members that it has made. */
export class TestAuthority {
  private constructor(readonly pair: Pair) {}

  static async make(): Promise<TestAuthority> {
    return new TestAuthority(await makeAuthority(Date.now(), chance));
  }

  get cert(): string {
    return this.pair.cert;
  }

  async issue(node: string, nowMs = Date.now()): Promise<Pair> {
    return await issueMember(node, this.pair, nowMs, chance);
  }
}

export function greetingOf(changes: Partial<Greeting> = {}): Greeting {
  return { version: "0.7.0", clusterId: "", memberId: "m", isWitness: false, ...changes };
}

/** Waits until something holds. */
export async function until(what: string, holds: () => boolean): Promise<void> {
  const endsAtMs = performance.now() + WAIT_MS_MAX;
  while (!holds()) {
    if (performance.now() > endsAtMs) throw new Error(`not in ${WAIT_MS_MAX} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

export interface MemberOptions {
  readonly node: string;
  readonly authority: TestAuthority;
  /** Where each member is, this one included. */
  readonly ports: Readonly<Record<string, number>>;
  readonly limits?: Partial<ChannelLimits>;
  readonly greeting?: Partial<Greeting>;
  /** Left out: one that the authority issues for the node. */
  readonly pair?: Pair;
  readonly onQuestion?: (from: string, question: Uint8Array) => Promise<Uint8Array>;
  readonly nowMs?: () => number;
}

/** A running channel, and what it has been told. */
export class TestMember implements AsyncDisposable {
  readonly frames: string[] = [];
  readonly told: string[] = [];
  channel!: MemberChannel;

  private constructor(readonly directory: string, readonly options: MemberOptions) {}

  static async start(options: MemberOptions): Promise<TestMember> {
    const member = new TestMember(await Deno.makeTempDir({ prefix: "svc-channel-" }), options);
    const { authority, node } = options;
    await member.write(authority.cert, options.pair ?? await authority.issue(node));
    await member.open();
    return member;
  }

  get files(): IdentityFiles {
    const { directory } = this;
    const at = (name: string) => `${directory}/${name}`;
    return { caFile: at("ca.crt"), certFile: at("node.crt"), keyFile: at("node.key") };
  }

  async write(ca: string, { cert, key }: Pair): Promise<void> {
    await Deno.writeTextFile(this.files.caFile, ca);
    await Deno.writeTextFile(this.files.certFile, cert);
    await Deno.writeTextFile(this.files.keyFile, key);
  }

  /** Starts the channel, once more after `channel.stop()`. */
  async open(): Promise<void> {
    const { node, ports, limits, greeting, onQuestion, nowMs } = this.options;
    const handler: ChannelHandler = {
      onFrame: (from, frame) => this.frames.push(`${from}: ${new TextDecoder().decode(frame)}`),
      onConnected: (peer) => this.told.push(`${peer.name} connected ${peer.greeting?.clusterId}`),
      onDisconnected: (name) => this.told.push(`${name} disconnected`),
    };
    const channel = await MemberChannel.open({
      config: {
        node,
        listen: [{ ip: LOOPBACK, port: ports[node] }],
        members: Object.entries(ports).map(([name, port]) => ({
          node: name,
          address: { ip: LOOPBACK, port },
        })),
        ...this.files,
      },
      greeting: greetingOf(greeting),
      handler,
      onQuestion: onQuestion ?? (() => Promise.reject(new Error("nobody asks"))),
      nowMs: nowMs ?? (() => Date.now()),
      monotonicMs: () => performance.now(),
      chance: Math.random,
      limits: { ...LIMITS, ...limits },
    });
    await channel.start();
    this.channel = channel;
  }

  get port(): number {
    return this.options.ports[this.options.node];
  }

  peer(name: string): PeerState {
    const found = this.channel.peers().find((peer) => peer.name === name);
    if (found === undefined) throw new Error(`${name} is no peer`);
    return found;
  }

  async connected(name: string): Promise<void> {
    await until(`${this.options.node} is connected to ${name}`, () => this.peer(name).isConnected);
  }

  send(to: string, text: string): boolean {
    return this.channel.send(to, new TextEncoder().encode(text));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.channel.stop();
    await Deno.remove(this.directory, { recursive: true });
  }
}
