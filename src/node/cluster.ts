import type { ClusterPort } from "../api/mod.ts";
import type { Clock } from "../clock/mod.ts";
import {
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

/** This node's part in a cluster. */
export interface NodeCluster extends ClusterPort {
  /** The way of every change. */
  readonly replicator: Replicator;
  /** `null`: it takes no part. */
  readonly figures: MemberFigures | null;
  readonly problems: readonly string[];
  start(): Promise<void>;
  /** Reads the certificates again. */
  renew(): Promise<void>;
  stop(): Promise<void>;
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
    return running(
      await openMember({
        ...{ config, version: VERSION, isWitness: false, directory, store, applier },
        nowMs: () => clock.nowMs(),
        onQuestion: (from) => Promise.reject(new Error(`${from} asks what nobody answers`)),
      }),
    );
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
    promote: (force, actor) => member.promote(force, actor),
    demote: (force, actor) => member.demote(force, actor),
    removeMember: (node, actor) => member.removeMember(node, actor),
    start,
    renew: () => channel.renew(),
    stop,
  };
}

function stopped(
  { node }: ClusterConfig,
  { applier, store }: OpenStore,
  problem: string,
): NodeCluster {
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
    problems: [problem],
    promote: refuse,
    demote: refuse,
    removeMember: refuse,
    start: () => Promise.resolve(),
    renew: () => Promise.resolve(),
    stop: () => Promise.resolve(),
  };
}
