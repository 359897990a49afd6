import { isMember, isVoter, membersOf, type RaftState } from "../raft/mod.ts";
import { type MemberState, nodeOf, type Status } from "./frames.ts";
import { SILENCE_TICKS_MAX } from "./limits.ts";
import type { Channel, PeerState } from "./ports.ts";

/** What another member said last, and how long ago. */
interface Heard {
  status: Status | null;
  silentTicks: number;
}

/** What is known of another member at the moment. */
export interface Peer {
  readonly name: string;
  readonly channel: PeerState;
  /** It is connected, and was heard lately. */
  readonly isReachable: boolean;
  /** Since anything came from it. */
  readonly silentTicks: number;
  /** `null`: nothing yet, or another member was there before. */
  readonly status: Status | null;
}

/** What the members of the configuration file said of themselves. */
export class Peers {
  readonly #channel: Channel;
  readonly #heard = new Map<string, Heard>();

  constructor(channel: Channel) {
    this.#channel = channel;
  }

  /** Anything came from it. */
  heard(name: string): void {
    this.#of(name).silentTicks = 0;
  }

  said(name: string, status: Status): void {
    this.#of(name).status = status;
  }

  forget(name: string): void {
    const heard = this.#heard.get(name);
    // Of a member that stopped this is known for longer than it can be asked.
    if (heard !== undefined && heard.status?.state !== "stopped") heard.status = null;
  }

  /** It is there again, and says anew what it is doing; or has, where its own way here was the first. */
  connected({ name, greeting }: PeerState): void {
    const status = this.#heard.get(name)?.status ?? null;
    const isAnew = status !== null && status.state !== "stopped" &&
      status.id === greeting?.memberId && status.cluster === greeting.clusterId;
    this.#heard.set(name, { status: isAnew ? status : null, silentTicks: 0 });
  }

  #of(name: string): Heard {
    let heard = this.#heard.get(name);
    if (heard === undefined) this.#heard.set(name, heard = { status: null, silentTicks: 0 });
    return heard;
  }

  tick(): void {
    for (const heard of this.#heard.values()) heard.silentTicks++;
  }

  get all(): Peer[] {
    return this.#channel.peers().map((channel) => this.#peer(channel));
  }

  get(name: string): Peer | null {
    const channel = this.#channel.peers().find((peer) => peer.name === name);
    return channel === undefined ? null : this.#peer(channel);
  }

  #peer(channel: PeerState): Peer {
    const heard = this.#heard.get(channel.name);
    const silentTicks = heard?.silentTicks ?? Infinity;
    return {
      name: channel.name,
      channel,
      isReachable: channel.isConnected && silentTicks < SILENCE_TICKS_MAX,
      silentTicks,
      status: heard?.status ?? null,
    };
  }
}

/** What a member is doing, in the report's words. */
export function stateOf(state: RaftState, isStopped: boolean): MemberState {
  if (isStopped) return "stopped";
  const { role, log: { configuration }, id } = state;
  if (role === "leader") return "leader";
  if (role === "candidate" || role === "preCandidate") return "candidate";
  if (isVoter(configuration, id)) return "follower";
  return state.log.base.index === 0 || isMember(configuration, id) ? "learner" : "unknown";
}

/**
 * Whether this member was removed: it says so itself, or a member of its cluster that knows more of
 * the membership does.
 */
export function isRemoved(state: RaftState, cluster: string, peers: readonly Peer[]): boolean {
  const { id, log } = state;
  if (cluster === "") return false;
  const isIn = isMember(log.configuration, id);
  return peers.some(({ status, isReachable }) =>
    isReachable && status !== null && status.cluster === cluster &&
    status.configurationIndex > log.configurationIndex && status.leader !== null &&
    !isMember(status.configuration, id)
  ) || (!isIn && log.configurationIndex <= state.commitIndex);
}

/** The members of the cluster that run another version than this one, by what they run. */
export function otherVersions(
  { log: { configuration } }: RaftState,
  version: string,
  peers: readonly Peer[],
): { readonly node: string; readonly version: string }[] {
  const nodes = new Set(membersOf(configuration).map(nodeOf));
  return peers.flatMap(({ name, channel: { greeting, isConnected } }) =>
    isConnected && greeting !== null && greeting.version !== version && nodes.has(name)
      ? [{ node: name, version: greeting.version }]
      : []
  );
}

/** Why changes are refused while versions differ, or `null`. */
export function versionRefusal(
  node: string,
  version: string,
  others: readonly { readonly node: string; readonly version: string }[],
): string | null {
  if (others.length === 0) return null;
  const runs = [{ node, version }, ...others].map((one) => `${one.node} runs ${one.version}`);
  return `cluster: changes are refused while members differ in version: ${runs.join(", ")}`;
}
