import { isJoint, isVoter, membersOf, type RaftState } from "../raft/mod.ts";
import { isRemoved, otherVersions, type Peer, stateOf, versionRefusal } from "./facts.ts";
import { type MemberState, nodeOf } from "./frames.ts";
import { ELECTION_SILENCE_TICKS_MAX } from "./limits.ts";

/** A member as the report has it. */
export interface ReportedMember {
  readonly node: string;
  readonly address: string | null;
  readonly this_node: boolean;
  readonly membership: "voter" | "learner" | "configured";
  readonly witness: boolean;
  readonly reachable: boolean;
  readonly state: MemberState;
  readonly version: string | null;
  readonly matched?: number;
}

/** `GET /api/v1/cluster`, to the letter of the specification's table. */
export interface Report {
  readonly node: string;
  readonly role: "primary" | "replica";
  readonly state: MemberState;
  readonly cluster: string;
  readonly leader: string | null;
  readonly term: number;
  readonly config: { readonly epoch: number; readonly version: number };
  readonly writable: boolean;
  readonly members: readonly ReportedMember[];
  readonly peer: {
    readonly node: string;
    readonly address: string;
    readonly reachable: boolean;
    readonly role: "primary" | "replica";
  } | null;
  readonly sync: { readonly last_contact: string | null; readonly last_copy: string | null };
  readonly problems: readonly string[];
}

/** What a report is made of. */
export interface ReportFacts {
  readonly node: string;
  readonly version: string;
  readonly isWitness: boolean;
  readonly isStopped: boolean;
  /** This cluster's ID; empty: it waits. */
  readonly cluster: string;
  readonly state: RaftState;
  readonly epoch: number;
  readonly appliedIndex: number;
  readonly peers: readonly Peer[];
  /** Of a leader: nodes of members that do not get what was committed. */
  readonly lagging: readonly string[];
  /** Addresses of the configured members, and of this one where it is listed. */
  readonly addresses: ReadonlyMap<string, string>;
  readonly lastContact: string | null;
  readonly lastCopy: string | null;
  /** What is wrong with this member itself. */
  readonly ownProblems: readonly string[];
}

export function reportOf(facts: ReportFacts): Report {
  const { node, state, cluster, peers } = facts;
  const leader = leaderOf(facts);
  const own = stateOf(state, facts.isStopped);
  return {
    node,
    role: own === "leader" ? "primary" : "replica",
    state: own,
    cluster,
    leader: leader === null ? null : nodeOf(leader),
    term: state.currentTerm,
    config: { epoch: facts.epoch, version: facts.appliedIndex },
    writable: obstacleOf(facts) === null,
    members: membersIn(facts),
    peer: earlierPeer(facts, peers),
    sync: { last_contact: facts.lastContact, last_copy: facts.lastCopy },
    problems: problemsOf(facts),
  };
}

/** Of a member that could not be opened: it takes no part, and what it has holds. */
export function stoppedReport(
  { node, version, epoch, appliedIndex, problem }: {
    readonly node: string;
    readonly version: string;
    readonly epoch: number;
    readonly appliedIndex: number;
    readonly problem: string;
  },
): Report {
  return {
    node,
    role: "replica",
    state: "stopped",
    cluster: "",
    leader: null,
    term: 0,
    config: { epoch, version: appliedIndex },
    writable: false,
    members: [{
      ...{ node, address: null, this_node: true, membership: "configured", witness: false },
      ...{ reachable: true, state: "stopped", version },
    }],
    peer: null,
    sync: { last_contact: null, last_copy: null },
    problems: [problem],
  };
}

/** The leader of the term that this member is in; of one that was removed, nobody. */
function leaderOf({ state, cluster, peers, isStopped }: ReportFacts): string | null {
  return isStopped || isRemoved(state, cluster, peers) ? null : state.leader;
}

/** What keeps changes from being made through this member, in words, or `null`. */
export function obstacleOf(facts: ReportFacts): string | null {
  const { state, cluster, peers, node, version, isStopped } = facts;
  if (isStopped) return "cluster: this member has stopped";
  if (cluster === "") return waitingProblem(facts);
  if (isRemoved(state, cluster, peers)) return removedProblem();
  const leader = leaderOf(facts);
  if (leader === null) return leaderlessProblem(facts);
  if (state.isContradicted) return contradictedProblem(nodeOf(leader));
  return versionRefusal(node, version, otherVersions(state, version, peers));
}

function waitingProblem({ peers }: ReportFacts): string {
  const answering = peers.filter(({ isReachable }) => isReachable).map(({ name }) => name);
  const who = answering.length === 0
    ? "no member answers"
    : `${list(answering)} ${answering.length === 1 ? "answers" : "answer"}`;
  return "cluster: this node is in no cluster and waits for a leader to add it, or, if that is gone, " +
    `to be promoted; ${who}`;
}

function removedProblem(): string {
  return "cluster: this node was removed from its cluster: demote it, or empty its store, to have " +
    "it added again";
}

function contradictedProblem(leader: string): string {
  return `cluster: this node holds changes that its leader ${leader} does not have, as if a store was ` +
    "put back to an older copy: demote this node with force, to have it take the cluster's " +
    "configuration, or promote it with force, to keep its own";
}

function leaderlessProblem({ state, peers }: ReportFacts): string {
  const nodes = membersOf(state.log.configuration).filter((id) => id !== state.id).map(nodeOf);
  const reachable = new Set(
    peers.filter(({ isReachable, silentTicks }) =>
      isReachable && silentTicks < ELECTION_SILENCE_TICKS_MAX
    ).map(({ name }) => name),
  );
  const missing = nodes.filter((name) => !reachable.has(name));
  if (missing.length === 0) return "cluster: no leader is elected at the moment";
  return `cluster: no leader can be reached: ${list(missing)} can't be reached from here`;
}

function problemsOf(facts: ReportFacts): string[] {
  const { state, cluster, peers, ownProblems, isStopped } = facts;
  const found = [...ownProblems];
  const obstacle = isStopped ? null : obstacleOf(facts);
  if (obstacle !== null) found.push(obstacle);
  const { configuration } = state.log;
  const isCurrent = cluster !== "" && !isRemoved(state, cluster, peers);
  if (isCurrent && configuration.voters.length === 2 && !isJoint(configuration)) {
    found.push(
      `cluster: two voters, ${list(configuration.voters.map(nodeOf))}: ` +
        "with either of them lost no change can be made",
    );
  }
  for (const peer of peers) found.push(...problemsOfPeer(facts, peer));
  const known = new Set([facts.node, ...peers.map(({ name }) => name)]);
  for (const name of new Set(membersOf(configuration).map(nodeOf))) {
    if (isCurrent && !known.has(name)) {
      found.push(
        `cluster: member ${name} stands in no cluster.member of this node's configuration`,
      );
    }
  }
  return found;
}

function problemsOfPeer(facts: ReportFacts, peer: Peer): string[] {
  const { name, channel, isReachable, status } = peer;
  if (channel.incompatible !== null) return [`cluster: member ${name}: ${channel.incompatible}`];
  if (!isReachable) {
    const why = channel.fault ?? "nothing was heard of it for a while";
    return [`cluster: member ${name} can't be reached: ${why}`];
  }
  const found: string[] = [];
  const greeting = channel.greeting;
  if (greeting !== null && greeting.version !== facts.version) {
    found.push(
      `cluster: member ${name} runs version ${greeting.version}, and this one ${facts.version}: ` +
        "changes are refused until all run the same",
    );
  }
  const other = status?.cluster ?? greeting?.clusterId ?? "";
  if (other !== "" && facts.cluster !== "" && other !== facts.cluster) {
    found.push(
      `cluster: member ${name} is in another cluster, ${other}: demote the node whose configuration ` +
        "is to be replaced",
    );
  }
  if (other === facts.cluster && facts.lagging.includes(name)) {
    found.push(
      `cluster: member ${name} answers, and has not taken the changes of the last seconds: ` +
        "its problems, or its log, say why",
    );
  }
  return found;
}

function membersIn(facts: ReportFacts): ReportedMember[] {
  const { node, state, peers } = facts;
  const { configuration } = state.log;
  const isIn = facts.cluster !== "";
  const ids = new Map(isIn ? membersOf(configuration).map((id) => [nodeOf(id), id]) : []);
  const names = new Set([node, ...peers.map(({ name }) => name), ...ids.keys()]);
  return [...names].sort().map((name) => {
    const id = ids.get(name);
    const peer = peers.find((one) => one.name === name);
    return {
      node: name,
      address: facts.addresses.get(name) ?? null,
      this_node: name === node,
      membership: membershipOf(facts, id),
      witness: id === undefined
        ? name === node ? facts.isWitness : peer?.channel.greeting?.isWitness ?? false
        : configuration.witnesses.includes(id),
      reachable: name === node || (peer?.isReachable ?? false),
      state: stateOfMember(facts, name, peer),
      version: name === node ? facts.version : peer?.channel.greeting?.version ?? null,
      ...matchedOf(state, id),
    };
  });
}

function membershipOf(
  { state: { log: { configuration } } }: ReportFacts,
  id: string | undefined,
): ReportedMember["membership"] {
  if (id === undefined) return "configured";
  return isVoter(configuration, id) ? "voter" : "learner";
}

function stateOfMember(facts: ReportFacts, name: string, peer: Peer | undefined): MemberState {
  const { node, state, cluster } = facts;
  if (name === node) return stateOf(state, facts.isStopped);
  const { status, isReachable } = peer ?? { status: null, isReachable: false };
  if (status === null) return "unknown";
  if (status.state === "stopped") return "stopped";
  if (!isReachable || (status.cluster !== "" && status.cluster !== cluster)) return "unknown";
  // One leader a term: what it said before this member heard of another one is over.
  const isOver = status.state === "leader" && status.term < state.currentTerm;
  return isOver ? "unknown" : status.state;
}

function matchedOf(state: RaftState, id: string | undefined): { matched?: number } {
  if (state.role !== "leader" || id === undefined) return {};
  if (id === state.id) return { matched: state.log.lastIndex };
  const held = state.progress.get(id);
  return held === undefined ? {} : { matched: held.matchIndex };
}

/** The other node, where there is one: what reports were before there were clusters of three. */
function earlierPeer(facts: ReportFacts, peers: readonly Peer[]): Report["peer"] {
  const nodes = peers.filter(({ channel }) => channel.greeting?.isWitness !== true);
  const [peer] = nodes;
  if (peer === undefined || nodes.length > 1) return null;
  const leader = leaderOf(facts);
  return {
    node: peer.name,
    address: facts.addresses.get(peer.name) ?? "",
    reachable: peer.isReachable,
    role: leader !== null && nodeOf(leader) === peer.name ? "primary" : "replica",
  };
}

function list(names: readonly string[]): string {
  if (names.length < 2) return names.join();
  return `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}
