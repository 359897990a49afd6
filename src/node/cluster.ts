import type { ClusterPort } from "../api/mod.ts";
import type { Clock } from "../clock/mod.ts";
import {
  type ChannelFigures,
  type ChannelSockets,
  type MemberFigures,
  openMember,
  type Report,
  type RunningMember,
  stoppedReport,
} from "../cluster/mod.ts";
import type { ClusterConfig } from "../config/mod.ts";
import { messageOf, SvcError } from "../errors.ts";
import { log } from "../log.ts";
import type { Actor } from "../model/mod.ts";
import type { OpenStore, Replicator } from "../store/mod.ts";
import { VERSION } from "../version.ts";
import {
  addCounts,
  type Counts,
  type CountsQuery,
  decodeQuestion,
  encodeCounts,
  encodeQuestion,
} from "./cluster_statistics.ts";

/** This node's part in a cluster. */
export interface NodeCluster extends ClusterPort {
  /** The way of every change. */
  readonly replicator: Replicator;
  /** `null`: it takes no part. */
  readonly figures: MemberFigures | null;
  readonly problems: readonly string[];
  /** What passes on the channel; `null`: it takes no part. */
  readonly channel: ChannelFigures | null;
  /** Set by whoever knows what this node counted in so many hours. */
  onStatistics: ((query: CountsQuery) => Promise<Counts>) | null;
  /** Adds what the other members counted, and says whose counts these are then. */
  addStatistics(own: Counts, query: CountsQuery): Promise<ClusterCounts>;
  /** Without `sockets` the channel opens its own. */
  start(sockets: ChannelSockets | null): Promise<void>;
  /** Reads the certificates again. */
  renew(): Promise<void>;
  /** Has somebody else lead, and leaves store and sockets to another process until `resume`. */
  suspend(): Promise<void>;
  /** Takes part again, with the store as it is by now. Never throws. */
  resume(): Promise<void>;
  stop(): Promise<void>;
}

/** The counts of several members. */
export interface ClusterCounts extends Counts {
  readonly nodes: readonly string[];
  /** Members that could not be asked; witnesses count nothing. */
  readonly unreachable: readonly string[];
}

/** Opens this node's part; where that can't be, DNS goes on with what it has, and changes nothing. */
export async function openCluster(
  config: ClusterConfig,
  directory: string,
  opened: OpenStore,
  clock: Clock,
): Promise<NodeCluster> {
  const part = new ClusterPart(config, directory, opened, clock);
  await part.open();
  return part;
}

const LEFT = "cluster: this node's part is left to the next program: try again in a moment";

class ClusterPart implements NodeCluster {
  readonly #config: ClusterConfig;
  readonly #directory: string;
  readonly #opened: OpenStore;
  readonly #clock: Clock;
  #sockets: ChannelSockets | null = null;
  /** `null`: it takes no part, for this reason. */
  #running: RunningMember | null = null;
  #reason = "";
  readonly replicator: Replicator;
  onStatistics: NodeCluster["onStatistics"] = null;

  constructor(config: ClusterConfig, directory: string, opened: OpenStore, clock: Clock) {
    this.#config = config;
    this.#directory = directory;
    this.#opened = opened;
    this.#clock = clock;
    const { applier } = opened;
    this.replicator = {
      propose: async (...change) => await this.#part.member.replicator.propose(...change),
      get state() {
        return applier.state;
      },
      subscribe: (listener) => applier.subscribe(listener),
    };
  }

  /** Never throws. */
  async open(): Promise<void> {
    try {
      this.#running = await this.#openMember();
    } catch (error) {
      log.error("this node takes no part in its cluster", { error });
      this.#reason = `cluster: this node takes no part: ${messageOf(error)}`;
    }
  }

  async #openMember(): Promise<RunningMember> {
    const { store, applier, isTemporary } = this.#opened;
    if (isTemporary) {
      throw new SvcError("unavailable", "store: could not be opened, so nothing can be promised");
    }
    return await openMember({
      ...{ config: this.#config, directory: this.#directory, store, applier },
      ...{ version: VERSION, isWitness: false },
      nowMs: () => this.#clock.nowMs(),
      onQuestion: async (_, question) => {
        const query = decodeQuestion(question);
        if (query === null || this.onStatistics === null) {
          throw new SvcError("unavailable", "cluster: there is no answer to this");
        }
        return encodeCounts(await this.onStatistics(query));
      },
    });
  }

  /** @throws {SvcError} `unavailable`, where it takes no part. */
  get #part(): RunningMember {
    if (this.#running === null) throw new SvcError("unavailable", this.#reason);
    return this.#running;
  }

  report(): Report {
    if (this.#running !== null) return this.#running.member.report();
    const { applier: { state: { appliedIndex } }, store: { epoch } } = this.#opened;
    const { node } = this.#config;
    return stoppedReport({ node, version: VERSION, epoch, appliedIndex, problem: this.#reason });
  }

  get figures(): MemberFigures | null {
    return this.#running?.member.figures ?? null;
  }

  get problems(): readonly string[] {
    if (this.#running === null) return [this.#reason];
    return [...this.#running.member.report().problems, ...this.#running.channel.problems];
  }

  get channel(): ChannelFigures | null {
    return this.#running?.channel.figures ?? null;
  }

  async addStatistics(own: Counts, query: CountsQuery): Promise<ClusterCounts> {
    const { node, members } = this.#config;
    const others = this.#running === null
      ? members.filter((member) => member.node !== node)
      : this.#running.member.report().members.filter((one) => !one.this_node && !one.witness);
    const ask = async (to: string) => await this.#part.channel.ask(to, encodeQuestion(query));
    return await addStatistics(own, node, others.map((one) => one.node), ask);
  }

  async promote(force: boolean, actor: Actor): Promise<void> {
    await this.#part.member.promote(force, actor);
  }

  async demote(force: boolean, actor: Actor): Promise<void> {
    await this.#part.member.demote(force, actor);
  }

  async removeMember(node: string, actor: Actor): Promise<void> {
    await this.#part.member.removeMember(node, actor);
  }

  async start(sockets: ChannelSockets | null): Promise<void> {
    this.#sockets = sockets;
    if (this.#running !== null) return await this.#running.start(sockets);
    sockets?.close(); // Or connections would wait there for nobody.
  }

  async renew(): Promise<void> {
    await this.#running?.channel.renew();
  }

  async suspend(): Promise<void> {
    const running = this.#running;
    if (running === null) return;
    await running.stop();
    this.#running = null;
    this.#reason = LEFT;
  }

  async resume(): Promise<void> {
    if (this.#reason !== LEFT) return;
    this.#reason = "";
    await this.open();
    await this.start(this.#sockets);
  }

  async stop(): Promise<void> {
    this.#sockets?.close();
    await this.suspend();
  }
}

/** Asks the others side by side; who does not answer, or not well, is named. */
async function addStatistics(
  own: Counts,
  node: string,
  others: readonly string[],
  ask: (to: string) => Promise<Uint8Array>,
): Promise<ClusterCounts> {
  const answers = await Promise.all(
    others.map(async (to) => [to, await ask(to).catch(() => null)] as const),
  );
  let counts = own;
  const [nodes, unreachable]: [string[], string[]] = [[node], []];
  for (const [name, answer] of answers) {
    const sum = answer === null ? null : addCounts(counts, answer);
    counts = sum ?? counts;
    (sum === null ? unreachable : nodes).push(name);
  }
  return { ...counts, nodes, unreachable };
}
