import type { ClusterPort } from "../api/mod.ts";
import type { Clock } from "../clock/mod.ts";
import {
  type ChannelFigures,
  type MemberFigures,
  openMember,
  type RunningMember,
  stoppedReport,
} from "../cluster/mod.ts";
import type { ClusterConfig } from "../config/mod.ts";
import { messageOf, SvcError } from "../errors.ts";
import { log } from "../log.ts";
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
  start(): Promise<void>;
  /** Reads the certificates again. */
  renew(): Promise<void>;
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
  try {
    if (opened.isTemporary) {
      throw new SvcError("unavailable", "store: could not be opened, so nothing can be promised");
    }
    const { store, applier } = opened;
    const late: { cluster: NodeCluster | null } = { cluster: null };
    const member = await openMember({
      ...{ config, version: VERSION, isWitness: false, directory, store, applier },
      nowMs: () => clock.nowMs(),
      onQuestion: async (_, question) => {
        const query = decodeQuestion(question);
        const statistics = late.cluster?.onStatistics ?? null;
        if (query === null || statistics === null) {
          throw new SvcError("unavailable", "cluster: there is no answer to this");
        }
        return encodeCounts(await statistics(query));
      },
    });
    return late.cluster = running(member);
  } catch (error) {
    log.error("this node takes no part in its cluster", { error });
    return stopped(config, opened, `cluster: this node takes no part: ${messageOf(error)}`);
  }
}

function running({ member, channel, start, stop }: RunningMember): NodeCluster {
  return {
    replicator: member.replicator,
    report: () => member.report(),
    get figures() {
      return member.figures;
    },
    get problems() {
      return [...member.report().problems, ...channel.problems];
    },
    get channel() {
      return channel.figures;
    },
    onStatistics: null,
    addStatistics: (own, query) => {
      const { node, members } = member.report();
      const others = members.filter((one) => !one.this_node && !one.witness);
      const ask = (to: string) => channel.ask(to, encodeQuestion(query));
      return addStatistics(own, node, others.map((one) => one.node), ask);
    },
    promote: (force, actor) => member.promote(force, actor),
    demote: (force, actor) => member.demote(force, actor),
    removeMember: (node, actor) => member.removeMember(node, actor),
    start,
    renew: () => channel.renew(),
    stop,
  };
}

function stopped(
  { node, members }: ClusterConfig,
  { applier, store }: OpenStore,
  problem: string,
): NodeCluster {
  const others = members.map((member) => member.node).filter((name) => name !== node);
  const refuse = () => Promise.reject(new SvcError("unavailable", problem));
  return {
    replicator: {
      propose: refuse,
      get state() {
        return applier.state;
      },
      subscribe: (listener) => applier.subscribe(listener),
    },
    report: () => {
      const { appliedIndex } = applier.state;
      return stoppedReport({ node, version: VERSION, epoch: store.epoch, appliedIndex, problem });
    },
    figures: null,
    channel: null,
    problems: [problem],
    onStatistics: null,
    addStatistics: (own) => addStatistics(own, node, others, refuse),
    promote: refuse,
    demote: refuse,
    removeMember: refuse,
    start: () => Promise.resolve(),
    renew: () => Promise.resolve(),
    stop: () => Promise.resolve(),
  };
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
