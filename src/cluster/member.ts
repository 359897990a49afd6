import { messageOf } from "../errors.ts";
import { log } from "../log.ts";
import type { Actor } from "../model/mod.ts";
import { isVoter, type Message, type RaftState, WireError } from "../raft/mod.ts";
import type { Applier, RaftStorage, Replicator, Store } from "../store/mod.ts";
import { Answers } from "./answers.ts";
import { Consensus } from "./consensus.ts";
import { lagsOf, type MemberFigures } from "./figures.ts";
import { Peers, stateOf } from "./facts.ts";
import {
  decodeFrame,
  encodeFrame,
  type Frame,
  nodeOf,
  type Outcome,
  type Status,
} from "./frames.ts";
import {
  CHECK_TICKS,
  FAREWELL_TICKS,
  SILENCE_TICKS_MAX,
  STOP_TICKS_MAX,
  TEND_TICKS,
} from "./limits.ts";
import type { Channel, ChannelHandler, PeerState } from "./ports.ts";
import { type Leadership, Proposals } from "./proposals.ts";
import { Intake } from "./intake.ts";
import { Lagging } from "./lagging.ts";
import { obstacleOf, type Report, type ReportFacts, reportOf } from "./report.ts";
import { Removals } from "./removals.ts";
import { SnapshotReceiver, SnapshotSender } from "./snapshots.ts";
import { Takeover } from "./takeover.ts";
import { nextMembership } from "./tend.ts";
import { Waits } from "./waits.ts";

export interface MemberOptions {
  readonly node: string;
  readonly version: string;
  readonly isWitness: boolean;
  /** It starts the cluster, where there is none. */
  readonly bootstrap: boolean;
  /** Addresses of the members of the configuration file, by node. */
  readonly addresses: ReadonlyMap<string, string>;
  readonly storage: RaftStorage;
  readonly store: Store;
  readonly applier: Applier;
  readonly channel: Channel;
  readonly nowMs: () => number;
  /** 32 bits, others each time. */
  readonly random: () => number;
  /** An ID that no other is like. */
  readonly drawId: () => string;
}

/**
 * A member of a cluster: consensus over its store and the channel, its own changes, and what a leader
 * does about the membership. It has no clock; whoever owns it lets it know of each tick.
 */
export class Member implements ChannelHandler {
  readonly #options: MemberOptions;
  readonly #peers: Peers;
  readonly #consensus: Consensus;
  readonly #proposals: Proposals;
  readonly #sender: SnapshotSender;
  readonly #receiver: SnapshotReceiver;
  readonly #intake: Intake;
  readonly #removals: Removals;
  readonly #takeover: Takeover;
  readonly #lagging = new Lagging();
  readonly #waits = new Waits();
  readonly #answers = new Answers();
  #ticks = 0;
  #told = "";
  #greeted = "";
  #joining = { cluster: "", tick: 0 };
  #leader: { readonly id: string; readonly term: number } | null = null;
  #leaderChanges = 0;
  #lastContact: string | null = null;
  #isStopping = false;
  /** Frames that were none of ours, or of another cluster. */
  #droppedFrames = 0;

  constructor(options: MemberOptions) {
    this.#options = options;
    const { storage, store, applier, channel, isWitness, random, node, nowMs, drawId } = options;
    this.#peers = new Peers(channel);
    this.#consensus = new Consensus({
      ...{ storage, applier, isWitness, random },
      send: (message) => this.#sendMessage(message),
      decided: (id, decision) => this.#proposals.decided(id, decision),
      changed: (before) => this.#changed(before),
    });
    this.#proposals = new Proposals({
      ...{ node, applier, nowMs, drawId },
      leadership: () => this.#leadership(),
      hand: (leader, data, answer) => this.#hand(leader, data, answer),
    });
    const send = (to: string, frame: Frame) => this.#send(to, frame);
    this.#sender = new SnapshotSender(
      send,
      random,
      (member) => this.#consensus.take({ type: "unreachable", member }),
    );
    this.#receiver = new SnapshotReceiver(
      () => storage.spool(),
      send,
      ({ cluster, message }, spool, after) => {
        if (!this.#isOurs(cluster)) return after(false);
        this.#consensus.install({ cluster, message, spool }, (taken) => after(taken === null));
      },
    );
    this.#intake = new Intake(options, this.#consensus, this.#peers);
    this.#removals = new Removals(this.#consensus, this.#waits);
    this.#takeover = new Takeover({
      ...{ node, storage, store, drawId },
      ...{ consensus: this.#consensus, peers: this.#peers, waits: this.#waits },
      bootstrap: options.bootstrap && !isWitness,
      leaving: () => this.#sender.clear(),
      became: () => {
        this.#greet();
        this.#tellStatus();
      },
    });
    this.#greet();
  }

  get #cluster(): string {
    return this.#options.storage.member.cluster;
  }

  get state(): RaftState {
    return this.#consensus.state;
  }

  /** The way of every change of this node. */
  get replicator(): Replicator {
    return this.#proposals;
  }

  // What comes over the channel.

  onFrame(from: string, bytes: Uint8Array): void {
    this.#peers.heard(from);
    let frame: Frame;
    try {
      frame = decodeFrame(bytes);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      if (this.#droppedFrames++ === 0) {
        log.warn("a member sent what is no frame of a cluster", { from, error: error.message });
      }
      return;
    }
    this.#take(from, frame);
  }

  onConnected(peer: PeerState): void {
    this.#peers.connected(peer);
    this.#send(peer.name, { type: "status", status: this.#status() });
  }

  onDisconnected(name: string): void {
    this.#peers.forget(name);
    this.#sender.onDisconnected(name);
    for (const id of this.state.progress.keys()) {
      if (nodeOf(id) === name) this.#consensus.take({ type: "unreachable", member: id });
    }
    this.#proposals.disconnected(name);
  }

  #take(from: string, frame: Frame): void {
    switch (frame.type) {
      case "raft":
        return this.#onMessage(from, frame.cluster, frame.message);
      case "status":
        if (nodeOf(frame.status.id) !== from) return this.#drop();
        return this.#peers.said(from, frame.status);
      case "propose":
        return this.#onPropose(from, frame);
      case "remove":
        return this.#onRemove(from, frame);
      case "answer":
        return this.#answers.came(frame.number, frame.outcome);
      case "part":
        return this.#onPart(from, frame);
      case "partAnswer":
        return this.#sender.onAnswer(from, frame);
    }
  }

  #drop(): void {
    this.#droppedFrames++;
  }

  #onPart(from: string, frame: Extract<Frame, { type: "part" }>): void {
    const { head } = frame;
    const isOurs = head === null || (this.#isFor(from, head.message) && this.#isOurs(head.cluster));
    return isOurs ? this.#receiver.onPart(from, frame) : this.#drop();
  }

  #isFor(from: string, message: Message): boolean {
    return nodeOf(message.from) === from && message.to === this.state.id;
  }

  /** Of this cluster; who waits follows the first that knows it by its ID, as long as that is heard. */
  #isOurs(cluster: string): boolean {
    if (this.#cluster !== "" || cluster === "") return cluster !== "" && this.#cluster === cluster;
    const { cluster: joined, tick } = this.#joining;
    if (joined !== cluster && joined !== "" && this.#ticks - tick < SILENCE_TICKS_MAX) return false;
    this.#joining = { cluster, tick: this.#ticks };
    return true;
  }

  /** The cluster that what is said to other members is about. */
  get #spokenOf(): string {
    return this.#cluster === "" ? this.#joining.cluster : this.#cluster;
  }

  #onMessage(from: string, cluster: string, message: Message): void {
    // These bring a state, which comes in parts.
    const isWhole = message.type !== "installSnapshot" && message.type !== "fetchedSnapshot";
    if (!this.#isOurs(cluster) || !this.#isFor(from, message) || !isWhole) return this.#drop();
    if (message.type === "appendEntries") {
      this.#lastContact = new Date(this.#options.nowMs()).toISOString();
    }
    this.#consensus.take({ type: "message", message });
  }

  #answerTo(from: string, number: number): (outcome: Outcome) => void {
    return (outcome) => void this.#send(from, { type: "answer", number, outcome });
  }

  #onPropose(from: string, frame: Extract<Frame, { type: "propose" }>): void {
    const answer = this.#answerTo(from, frame.number);
    if (frame.cluster !== this.#cluster) return answer({ kind: "notLeader" });
    if (!this.#intake.appendFor(from, frame.data, answer)) this.#drop();
  }

  #onRemove(from: string, frame: Extract<Frame, { type: "remove" }>): void {
    const answer = this.#answerTo(from, frame.number);
    if (frame.cluster !== this.#cluster) return answer({ kind: "notLeader" });
    this.#removals.remove(frame.node, answer);
  }

  // What goes out.

  #send(to: string, frame: Frame): boolean {
    return this.#options.channel.send(to, encodeFrame(frame));
  }

  #sendMessage(message: Message): void {
    const { to } = message;
    if (message.type === "installSnapshot" || message.type === "fetchedSnapshot") {
      return this.#sendSnapshot(message);
    }
    const isSent = this.#send(nodeOf(to), { type: "raft", cluster: this.#spokenOf, message });
    if (!isSent && message.type === "appendEntries" && message.entries.length > 0) {
      this.#consensus.take({ type: "unreachable", member: to });
    }
  }

  /** The state as it is by now, in the place of the one that the log began with. */
  #sendSnapshot(message: Extract<Message, { readonly snapshot: unknown }>): void {
    const { store } = this.#options;
    const snapshot = this.state.log.snapshotAt(store.state.appliedIndex);
    if (snapshot === null) {
      return this.#consensus.take({ type: "unreachable", member: message.to });
    }
    this.#sender.start(this.#cluster, { ...message, snapshot }, store.export());
  }

  #status(): Status {
    const { state } = this;
    return {
      cluster: this.#cluster,
      id: state.id,
      state: stateOf(state, this.#isStopped),
      term: state.currentTerm,
      leader: state.leader,
      configuration: state.log.configuration,
      configurationIndex: state.log.configurationIndex,
    };
  }

  get #isStopped(): boolean {
    return this.#isStopping || this.#consensus.hasStopped;
  }

  #greet(): void {
    const { channel, version, isWitness, storage: { member } } = this.#options;
    this.#greeted = member.cluster;
    channel.greet({ version, clusterId: member.cluster, memberId: member.id, isWitness });
  }

  #tellStatus(): void {
    const status = this.#status();
    this.#told = JSON.stringify(status);
    for (const { name } of this.#options.channel.peers()) {
      this.#send(name, { type: "status", status });
    }
  }

  // Changes.

  #leadership(): Leadership {
    const { state } = this;
    const reason = () => obstacleOf(this.#facts) ?? "no leader is known";
    // What a leader takes that contradicts this member is never applied here.
    const leader = state.isContradicted ? null : state.leader;
    return { leader, term: state.currentTerm, reason };
  }

  #hand(leader: string, data: Uint8Array, answer: (outcome: Outcome) => void): void {
    if (leader === this.state.id) return this.#intake.append(data, answer);
    const number = this.#answers.expect(answer);
    this.#send(nodeOf(leader), { type: "propose", cluster: this.#cluster, number, data });
  }

  // Time.

  tick(): void {
    this.#ticks++;
    this.#peers.tick();
    this.#consensus.tick();
    this.#proposals.tick();
    this.#sender.tick();
    this.#receiver.tick();
    this.#waits.tick();
    this.#takeover.tick();
    if (this.#ticks % CHECK_TICKS === 0) {
      this.#tellStatus();
      this.#lagging.look(this.state, (id) => this.#sender.isSending(nodeOf(id)));
    }
    if (this.#ticks % TEND_TICKS === 0) this.#tend();
  }

  #tend(): void {
    const { version } = this.#options;
    const target = nextMembership(this.state, version, this.#peers.all);
    if (target !== null) this.#consensus.take({ type: "changeMembership", target });
  }

  #changed(before: RaftState): void {
    const { state } = this;
    if (state.leader !== before.leader || state.currentTerm !== before.currentTerm) {
      this.#noteLeader();
      this.#proposals.leaderChanged();
    }
    if (before.role === "leader" && state.role !== "leader") this.#sender.clear();
    if (state.isContradicted && !before.isContradicted) {
      const leader = nodeOf(state.leader ?? "");
      log.error("this member has changes that its leader lacks: a store is an older copy", {
        leader,
      });
    }
    this.#waits.look();
    if (this.#cluster !== this.#greeted) this.#greet(); // It was added to one.
    const isNews = state.role !== before.role || state.leader !== before.leader ||
      state.log.configuration !== before.log.configuration;
    if (isNews && JSON.stringify(this.#status()) !== this.#told) this.#tellStatus();
  }

  #noteLeader(): void {
    const { leader, currentTerm: term } = this.state;
    if (leader === null || (this.#leader?.id === leader && this.#leader.term === term)) return;
    this.#leader = { id: leader, term };
    this.#leaderChanges++;
    log.info("leader changed", { leader: nodeOf(leader), term });
  }

  // What people ask for.

  get #facts(): ReportFacts {
    const { node, version, isWitness, storage, store, applier, addresses } = this.#options;
    const { damage, member } = storage;
    const ownProblems = [...this.#consensus.problems, ...this.#receiver.problems];
    if (damage !== null && this.state.log.base.index === 0) {
      ownProblems.push(
        `cluster: ${damage}: this node votes no more as the member it was, and waits to be added anew`,
      );
    }
    return {
      ...{ node, version, isWitness, addresses, ownProblems },
      isStopped: this.#isStopped,
      cluster: member.cluster,
      state: this.state,
      epoch: store.epoch,
      appliedIndex: applier.state.appliedIndex,
      peers: this.#peers.all,
      lagging: this.#lagging.of(this.state).map(nodeOf),
      lastContact: this.#lastContact,
      lastCopy: member.copiedAt,
    };
  }

  report(): Report {
    return reportOf(this.#facts);
  }

  get figures(): MemberFigures {
    const { state } = this;
    return {
      term: state.currentTerm,
      state: stateOf(state, this.#isStopped),
      commitIndex: state.commitIndex,
      appliedIndex: this.#options.applier.state.appliedIndex,
      lags: lagsOf(state),
      proposals: this.#proposals.counts,
      elections: this.#consensus.elections,
      leaderChanges: this.#leaderChanges,
      droppedFrames: this.#droppedFrames + this.#consensus.dropped,
      snapshotsSent: this.#sender.count,
    };
  }

  /**
   * Leaves the cluster and starts a new one, as its only voter, with the configuration it has.
   *
   * @throws {SvcError} `conflict`, while a leader answers, unless `force`; `unavailable`.
   */
  async promote(force: boolean, actor: Actor): Promise<void> {
    await this.#takeover.promote(force, actor);
  }

  /**
   * Leaves the cluster and waits to be added to another.
   *
   * @throws {SvcError} `conflict`, unless the leader of a cluster answers that this node is not in, or
   * `force`; `unavailable`.
   */
  async demote(force: boolean, actor: Actor): Promise<void> {
    await this.#takeover.demote(force, actor);
  }

  /**
   * Removes a member, through the leader.
   *
   * @throws {SvcError} `not_found`; `conflict`, where nobody could lead; `unavailable`.
   */
  async removeMember(node: string, actor: Actor): Promise<void> {
    await this.#removals.ask(
      () => this.#leadership(),
      (leader, answer) => {
        if (leader === this.state.id) return this.#removals.remove(node, answer);
        const number = this.#answers.expect(answer);
        this.#send(nodeOf(leader), { type: "remove", cluster: this.#cluster, number, node });
      },
    );
    await this.#options.store.note({
      action: "remove",
      resource: { type: "member", id: node },
      after: null,
    }, actor).catch((error) => {
      log.warn("the removal of a member is in no audit log", { node, error: messageOf(error) });
    });
  }

  /** Resolves once nothing is being applied. */
  async applied(): Promise<void> {
    await this.#consensus.applied();
  }

  /** Resolves once nothing is under way. */
  async idle(): Promise<void> {
    do {
      await this.#receiver.idle();
      await this.#consensus.idle();
    } while (this.#receiver.isBusy);
  }

  /** Ends in order: what is under way is finished, somebody else leads, and the others are told. */
  async stop(): Promise<void> {
    this.#takeover.stop();
    await this.#waits.until(() => this.#proposals.waiting === 0, STOP_TICKS_MAX);
    this.#proposals.close();
    await this.#handOver();
    this.#isStopping = true;
    this.#tellStatus();
    await this.#waits.until(() => false, FAREWELL_TICKS); // The channel drops what has not left.
    this.#waits.end();
    await this.#consensus.close();
    await this.#receiver.idle();
    this.#options.storage.close();
  }

  async #handOver(): Promise<void> {
    const { role, log: { configuration }, progress } = this.state;
    if (role !== "leader") return;
    const heirs = [...progress].filter(([id, { silentTicks }]) =>
      isVoter(configuration, id) && !configuration.witnesses.includes(id) &&
      silentTicks < this.state.timing.electionTicks
    ).sort(([, a], [, b]) => b.matchIndex - a.matchIndex);
    if (heirs.length === 0) return;
    this.#consensus.take({ type: "transferLeadership", to: heirs[0][0] });
    await this.#waits.until(() => this.state.role !== "leader", STOP_TICKS_MAX);
  }
}
