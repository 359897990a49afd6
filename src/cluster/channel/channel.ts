import { formatIp, type HostPort } from "../../addr/mod.ts";
import { SvcError } from "../../errors.ts";
import { log } from "../../log.ts";
import type { ClusterConfig } from "../../config/mod.ts";
import type { Channel, ChannelHandler, ChannelSockets, Greeting, PeerState } from "../ports.ts";
import { FRAME_BYTES_MAX } from "../ports.ts";
import type { Peer } from "./dial.ts";
import { encodeGreeting, isSameGreeting } from "./greeting.ts";
import { KeptIdentity } from "./identity.ts";
import { Incoming } from "./incoming.ts";
import { type ChannelLimits, LIMITS, PEERS_MAX } from "./limits.ts";
import { type Arrival, Listener, type Refusal } from "./listener.ts";
import { MessageType } from "./messages.ts";
import { ask, Outgoing, type Own } from "./outgoing.ts";

const MEMBER_REFUSED = new TextEncoder().encode("unknown");

/** What `[cluster]` says of the channel. */
export type ChannelConfig = Omit<ClusterConfig, "bootstrap">;

export interface ChannelOptions {
  readonly config: ChannelConfig;
  readonly greeting: Greeting;
  readonly handler: ChannelHandler;
  /**
   * Answers a question of a member, which comes over a connection of its own.
   *
   * @throws Where there is no answer.
   */
  readonly onQuestion: (from: string, question: Uint8Array) => Promise<Uint8Array>;
  readonly nowMs: () => number;
  /** A clock that never goes back. */
  readonly monotonicMs: () => number;
  /** From 0 to below 1. */
  readonly chance: () => number;
  readonly limits?: ChannelLimits;
}

/** What passed, for metrics. */
export interface ChannelFigures {
  readonly refused: Readonly<Record<Refusal, number>>;
  /** Connections that are nobody's yet. */
  readonly unfinished: number;
  readonly peers: readonly PeerFigures[];
}

export interface PeerFigures {
  readonly name: string;
  readonly isConnected: boolean;
  readonly framesSent: number;
  readonly framesReceived: number;
  /** Not sent, as too much waited. */
  readonly framesDropped: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
}

/** All that is known of one member. */
interface Known extends Peer {
  readonly outgoing: Outgoing;
  readonly incoming: Incoming;
  greeting: Greeting | null;
  incompatible: string | null;
  readonly counts: { -readonly [K in keyof Omit<PeerFigures, "name" | "isConnected">]: number };
}

/** The channel of a member: TLS 1.3 with the certificates of the cluster's own CA, both ways. */
export class MemberChannel implements Channel {
  readonly #options: ChannelOptions;
  readonly #limits: ChannelLimits;
  readonly #identity: KeptIdentity;
  readonly #listener: Listener;
  readonly #known = new Map<string, Known>();
  readonly #own: Own;
  #greeting: Greeting;
  readonly #timers: ReturnType<typeof setInterval>[] = [];
  #isStopped = false;

  private constructor(options: ChannelOptions, identity: KeptIdentity) {
    this.#options = options;
    this.#limits = options.limits ?? LIMITS;
    this.#identity = identity;
    this.#greeting = options.greeting;
    this.#own = {
      limits: this.#limits,
      identity: () => this.#identity.current,
      greeting: () => this.#greeting,
      chance: options.chance,
    };
    const { node: own, listen, members } = options.config;
    const others = members.filter(({ node }) => node !== own);
    for (const { node, address } of others.slice(0, PEERS_MAX)) {
      this.#known.set(node, this.#makeKnown({ name: node, address }));
    }
    this.#listener = new Listener({
      listen,
      members: new Set(others.map(({ address }) => formatIp(address.ip))),
      identity: identity.current,
      limits: this.#limits,
      monotonicMs: options.monotonicMs,
      onArrival: (arrival) => this.#arrive(arrival),
    });
  }

  /**
   * Reads the certificate; nothing is listened on yet.
   *
   * @throws {SvcError} `invalid` or `unavailable`, with the key of the configuration.
   */
  static async open(options: ChannelOptions): Promise<MemberChannel> {
    const { config, nowMs } = options;
    return new MemberChannel(options, await KeptIdentity.open(config, config.node, nowMs));
  }

  /**
   * Listens, and connects to every member. An address that can't be had yet is tried again. Without
   * `sockets` it opens its own.
   */
  async start(sockets: ChannelSockets | null = null): Promise<void> {
    await this.#listener.start(sockets);
    for (const { outgoing } of this.#known.values()) outgoing.start();
    this.#timers.push(
      setInterval(() => this.#tick(), this.#limits.tickMs),
      setInterval(() => void this.renew(), this.#limits.renewMs),
    );
  }

  /** Ends every connection and takes no more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const timer of this.#timers) clearInterval(timer);
    await Promise.all([
      this.#listener.close(),
      ...Array.from(this.#known.values(), ({ outgoing, incoming }) => {
        incoming.end();
        return outgoing.stop();
      }),
    ]);
  }

  /** With the ports that the system gave for 0. */
  get listening(): readonly HostPort[] {
    return this.#listener.listening;
  }

  send(to: string, frame: Uint8Array): boolean {
    const known = this.#known.get(to);
    if (known === undefined || !known.outgoing.isConnected) return false;
    const { counts } = known;
    if (frame.length > FRAME_BYTES_MAX || !known.outgoing.send(MessageType.Frame, frame)) {
      counts.framesDropped++;
      return false;
    }
    counts.framesSent++;
    counts.bytesSent += frame.length;
    return true;
  }

  peers(): readonly PeerState[] {
    return Array.from(this.#known.values(), stateOf);
  }

  greet(greeting: Greeting): void {
    if (isSameGreeting(this.#greeting, greeting)) return;
    this.#greeting = greeting;
    for (const { outgoing, incoming } of this.#known.values()) {
      outgoing.send(MessageType.Greeting, encodeGreeting(greeting, "frames"));
      incoming.greet(greeting);
    }
  }

  /**
   * Asks a member, over a connection of its own.
   *
   * @throws {SvcError} `unavailable`, with the member's name.
   */
  async ask(to: string, question: Uint8Array): Promise<Uint8Array> {
    const known = this.#known.get(to);
    if (known === undefined) throw new SvcError("unavailable", `${to}: is no member`);
    try {
      return await ask(known, this.#own, question);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new SvcError("unavailable", `${to} ${reason}`, { cause: error });
    }
  }

  /** Reads the certificate's files again. Connections that stand stay, unless the CA is another. */
  async renew(): Promise<void> {
    const { ca } = this.#identity.current;
    if (!await this.#identity.renew() || this.#isStopped) return;
    this.#listener.renew(this.#identity.current);
    if (this.#identity.current.ca === ca) return;
    for (const { outgoing, incoming } of this.#known.values()) {
      incoming.end();
      outgoing.restart();
    }
  }

  /** What is wrong with this member's side of it at the moment. */
  get problems(): readonly string[] {
    const seconds = Array.from(this.#known.values()).flatMap(({ name, incoming: { second } }) =>
      second === null ? [] : [
        `cluster: ${name} connects from ${second} as well as from its own address: two nodes have ` +
        "its name and certificate: make each its own",
      ]
    );
    return [...this.#identity.problems, ...this.#listener.problems, ...seconds];
  }

  get figures(): ChannelFigures {
    return {
      refused: this.#listener.refused,
      unfinished: this.#listener.unfinished,
      peers: Array.from(this.#known.values(), ({ name, outgoing, counts }) => ({
        name,
        isConnected: outgoing.isConnected,
        ...counts,
      })),
    };
  }

  #makeKnown(peer: Peer): Known {
    const { handler, onQuestion } = this.#options;
    const take = (greeting: Greeting) => {
      const isNew = !isSameGreeting(known.greeting, greeting);
      known.greeting = greeting;
      known.incompatible = null;
      return isNew;
    };
    const known: Known = {
      ...peer,
      greeting: null,
      incompatible: null,
      counts: {
        framesSent: 0,
        framesReceived: 0,
        framesDropped: 0,
        bytesSent: 0,
        bytesReceived: 0,
      },
      outgoing: new Outgoing(peer, this.#own, {
        onGreeting: (greeting, isFirst) => {
          if (isFirst) log.info("connected to a member", { member: peer.name });
          if (take(greeting) || isFirst) handler.onConnected(stateOf(known));
        },
        onIncompatible: (reason) => known.incompatible = reason,
        onEnd: (reason) => {
          if (!this.#isStopped) log.info("lost a member", { member: peer.name, reason });
          handler.onDisconnected(peer.name);
        },
      }),
      incoming: new Incoming({
        limits: this.#limits,
        home: formatIp(peer.address.ip),
        greeting: () => this.#greeting,
        known: () => known.greeting,
        onGreeting: (greeting) => {
          if (take(greeting) && known.outgoing.isConnected) handler.onConnected(stateOf(known));
          known.outgoing.hurry();
        },
        onIncompatible: (reason) => known.incompatible = reason,
        onFrame: (frame) => {
          known.counts.framesReceived++;
          known.counts.bytesReceived += frame.length;
          handler.onFrame(peer.name, frame);
        },
        onQuestion: (question) => onQuestion(peer.name, question),
      }),
    };
    return known;
  }

  #arrive(arrival: Arrival): void {
    const known = this.#known.get(arrival.name);
    if (known !== undefined && !this.#isStopped) return known.incoming.take(arrival);
    arrival.refuse("unknown", MEMBER_REFUSED);
  }

  #tick(): void {
    for (const { outgoing, incoming } of this.#known.values()) {
      outgoing.tick();
      incoming.tick();
    }
  }
}

function stateOf({ name, greeting, incompatible, outgoing }: Known): PeerState {
  const { isConnected, fault } = outgoing;
  return { name, isConnected, greeting, incompatible, fault };
}
