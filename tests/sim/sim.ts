/**
 * A cluster on a clock, a network and disks that are drawn from one seed. The consensus is the real
 * one; the driver is the one that `Ready` describes, over memory. What breaks a property is thrown.
 */
import {
  bootstrapped,
  type Entry,
  isMember,
  joinReady,
  type Membership,
  type Message,
  NOTHING_PERSISTED,
  type Persisted,
  planAddition,
  planPromotion,
  planRemoval,
  type RaftEvent,
  type RaftState,
  type Ready,
  restore,
  type Rules,
  step,
  type Timing,
} from "../../src/raft/mod.ts";
import { Prng } from "../prng.ts";
import { Decisions, type Machine } from "./decisions.ts";
import { brokenDurability, brokenLeadership } from "./properties.ts";

export interface SimOptions {
  readonly seed: number;
  /** Names of the nodes, and of the witnesses among them; they vote from the start. */
  readonly voters: readonly string[];
  readonly witnesses?: readonly string[];
  /** Those that wait to be added. */
  readonly waiting?: readonly string[];
  readonly lossRatio?: number;
  readonly duplicateRatio?: number;
  readonly delayTicksMax?: number;
  /** So often a disk takes its time. */
  readonly slowDiskRatio?: number;
  readonly timing?: Partial<Timing>;
  /** Rules to break, which the checks must find. */
  readonly rules?: Partial<Rules>;
  /** Another: a disk that keeps no vote. */
  readonly forgetsVotes?: boolean;
}

/** Longest that a slow disk takes. */
const DISK_TICKS_MAX = 12;
/** Most events that a driver makes durable together. */
const BATCH_LENGTH_MAX = 8;
/** Entries that a member keeps behind what it has applied. */
const KEPT_ENTRIES = 8;

/** With a Raft snapshot, the state that it stands for. */
type Parcel = { readonly message: Message; readonly machine: Machine | null };

interface Arrival extends Parcel {
  readonly tick: number;
}

interface Pending {
  readonly state: RaftState;
  readonly ready: Ready;
  readonly machine: Machine | null;
  readonly tick: number;
}

interface Node {
  readonly id: string;
  readonly isWitness: boolean;
  /** What is durable. */
  disk: Omit<Persisted, "appliedIndex">;
  machine: Machine;
  /** Null while it is down. */
  state: RaftState | null;
  readonly queue: { readonly event: RaftEvent; readonly machine: Machine | null }[];
  pending: Pending | null;
  diskFullUntilTick: number;
  /** Its store has gone, and its ID with it. */
  isGone: boolean;
}

const FIRST: Machine = { index: 1, digest: 17 };

export class Sim {
  readonly prng: Prng;
  readonly nodes: Node[] = [];
  readonly sentTypes = new Set<string>();
  readonly decisions = new Decisions(FIRST);
  /** Ways that are cut, as `from>to`. */
  readonly #cuts = new Set<string>();
  readonly #reads = new Map<number, number>();
  #options: Required<Omit<SimOptions, "seed" | "voters" | "witnesses" | "waiting">>;
  #network: Arrival[] = [];
  #tick = 0;
  #incarnation = 0;
  #proposals = 0;

  constructor(options: SimOptions) {
    const { seed, voters, witnesses = [], waiting = [], ...network } = options;
    this.prng = new Prng(seed);
    this.#options = {
      ...{ lossRatio: 0, duplicateRatio: 0, delayTicksMax: 1, slowDiskRatio: 0 },
      ...{ rules: {}, forgetsVotes: false, timing: {} },
      ...network,
    };
    const first = bootstrapped(voters[0]);
    const voting = witnesses.filter((id) => voters.includes(id));
    const configuration = { ...first.snapshot.configuration, voters, witnesses: voting };
    const whole = { ...first, snapshot: { ...first.snapshot, configuration } };
    for (const id of voters) this.#addNode(id, witnesses.includes(id), whole);
    for (const id of waiting) this.#addNode(id, witnesses.includes(id), NOTHING_PERSISTED);
  }

  /** Whether a node has left for good, as far as anybody knows. */
  hasLeft({ id, machine, isGone }: Node): boolean {
    const state = this.leader?.state;
    return !isGone && machine.index > 0 && state !== null && state !== undefined &&
      state.commitIndex === this.decisions.lastIndex &&
      state.log.configurationIndex <= state.commitIndex && !isMember(state.log.configuration, id);
  }

  get tick(): number {
    return this.#tick;
  }

  /** Nodes that are up. */
  get live(): Node[] {
    return this.nodes.filter(({ state }) => state !== null);
  }

  /** Of those who think they lead, the one of the latest term. */
  get leader(): Node | undefined {
    return this.live.filter(({ state }) => state?.role === "leader").sort((a, b) =>
      termOf(b) - termOf(a)
    )[0];
  }

  node(id: string): Node {
    const node = this.nodes.find((one) => one.id === id);
    if (node === undefined) throw new Error(`no node ${id}`);
    return node;
  }

  #addNode(id: string, isWitness: boolean, persisted: Persisted): void {
    const machine = persisted.appliedIndex === 0 ? { index: 0, digest: 0 } : FIRST;
    const node: Node = {
      ...{ id, isWitness, disk: persisted, machine, state: null, queue: [], pending: null },
      ...{ diskFullUntilTick: 0, isGone: false },
    };
    this.nodes.push(node);
    this.restart(node);
  }

  restart(node: Node): void {
    if (node.state !== null || node.isGone) return;
    const { id, isWitness, disk, machine } = node;
    const persisted = { ...disk, appliedIndex: machine.index };
    const { rules, timing } = this.#options;
    const random = this.prng.next();
    node.state = restore({ id, isWitness, random, rules, timing }, persisted);
  }

  /** Loses what was not made durable. */
  crash(node: Node): void {
    node.state = null;
    node.pending = null;
    node.queue.length = 0;
  }

  /** A crash after which the disk has lost acknowledged entries, and says so. */
  damage(node: Node): void {
    if (this.nodes.some(({ disk }) => disk.hardState.damagedTerm > 0)) return;
    this.crash(node);
    const kept = node.machine.index + this.prng.int(3);
    node.disk = { ...node.disk, entries: node.disk.entries.filter(({ index }) => index <= kept) };
    this.restart(node);
    if (node.state === null) return;
    const { state, ready } = step(node.state, { type: "damaged" });
    node.state = state;
    this.#persist(node, ready, null);
  }

  /** The node's store is emptied; it comes back as another, which waits. */
  replace(node: Node): void {
    this.crash(node);
    node.isGone = true;
    const name = node.id.replace(/\..*/, "");
    this.#addNode(`${name}.${++this.#incarnation}`, node.isWitness, NOTHING_PERSISTED);
  }

  fillDisk(node: Node, ticks: number): void {
    node.diskFullUntilTick = this.#tick + ticks;
  }

  cut(from: string, to: string): void {
    this.#cuts.add(`${from}>${to}`);
  }

  /** Between some and the others; `isOneWay`: the others still hear them. */
  partition(some: readonly string[], isOneWay = false): void {
    for (const { id } of this.nodes) {
      if (some.includes(id)) continue;
      for (const other of some) {
        this.cut(id, other);
        if (!isOneWay) this.cut(other, id);
      }
    }
  }

  mend(): void {
    this.#cuts.clear();
  }

  propose(node: Node): void {
    const count = 1 + this.prng.int(3);
    const commands = Array.from({ length: count }, () => {
      const number = ++this.#proposals;
      return Uint8Array.of(number >> 16, number >> 8, number);
    });
    this.enqueue(node, { type: "propose", commands });
  }

  /** A read that must see all that is committed by now. */
  read(node: Node): void {
    const id = this.#reads.size;
    this.#reads.set(id, this.decisions.lastIndex);
    this.enqueue(node, { type: "read", id });
  }

  enqueue(node: Node, event: RaftEvent): void {
    if (node.state !== null) node.queue.push({ event, machine: null });
  }

  /** What the driver of a leader does every few seconds. */
  tendMembers(): void {
    const { leader } = this;
    if (leader === undefined || leader.state === null) return;
    const { state } = leader;
    // Who has left comes back with another store, when this one may go at any moment.
    const newcomer = this.live.find(({ id, machine }) =>
      machine.index === 0 && !isMember(state.log.configuration, id)
    );
    const target = planPromotion(state) ??
      (newcomer === undefined ? null : planAddition(state, newcomer.id, newcomer.isWitness));
    if (target !== null) this.#change(leader, target);
  }

  removeMember(id: string): void {
    const { leader } = this;
    if (leader === undefined || leader.state === null) return;
    const target = planRemoval(leader.state, id);
    if (target !== null) this.#change(leader, target);
  }

  #change(leader: Node, target: Membership): void {
    this.enqueue(leader, { type: "changeMembership", target });
  }

  run(ticks: number, each: () => void = () => {}): void {
    for (const end = this.#tick + ticks; this.#tick < end;) {
      this.#tick++;
      each();
      this.#deliver();
      for (const node of this.live) node.queue.push({ event: { type: "tick" }, machine: null });
      for (const node of this.nodes) this.#work(node);
    }
  }

  #deliver(): void {
    const due = this.#network.filter(({ tick }) => tick <= this.#tick);
    if (due.length === 0) return;
    this.#network = this.#network.filter(({ tick }) => tick > this.#tick);
    for (const { message, machine } of due) {
      const node = this.nodes.find(({ id }) => id === message.to);
      if (node === undefined || node.state === null) continue;
      if (this.#cuts.has(`${message.from}>${message.to}`)) continue;
      node.queue.push({ event: { type: "message", message }, machine });
    }
  }

  /** Takes what waits, a batch at a time, until the disk takes its time. */
  #work(node: Node): void {
    if (node.pending !== null && node.pending.tick <= this.#tick) this.#finish(node, node.pending);
    while (node.pending === null && node.state !== null && node.queue.length > 0) {
      let state: RaftState = node.state;
      let ready: Ready | null = null;
      let machine: Machine | null = null;
      const length = 1 + this.prng.int(BATCH_LENGTH_MAX);
      for (const { event, machine: brought } of node.queue.splice(0, length)) {
        const result = step(state, event);
        if (result.ready.snapshot !== null) machine = brought;
        ready = ready === null ? result.ready : joinReady(ready, result.ready);
        if (result.state.commitIndex < state.commitIndex) throw new Error(`${node.id} forgot`);
        if (result.state.currentTerm < state.currentTerm) throw new Error(`${node.id}: term fell`);
        const lost = result.state.role === "leader" && result.state.commitIndex > state.commitIndex
          ? brokenDurability(result.state, (...held) => held[0] === node.id || this.#holds(...held))
          : null;
        if (lost !== null) throw new Error(lost);
        state = result.state;
      }
      if (ready === null) return;
      const isDurable = isDurableAlready(ready);
      if (!isDurable && this.#tick < node.diskFullUntilTick) {
        this.#stepBack(node);
        continue; // As if the events had been lost.
      }
      const isSlow = !isDurable && this.prng.chance(this.#options.slowDiskRatio);
      const tick = this.#tick + (isSlow ? 1 + this.prng.int(DISK_TICKS_MAX) : 0);
      node.pending = { state, ready, machine, tick };
      if (!isSlow) this.#finish(node, node.pending);
    }
  }

  /** The disk is full: somebody else shall lead. */
  #stepBack(node: Node): void {
    if (node.state?.role !== "leader") return;
    const { state, ready } = step(node.state, { type: "resign" });
    node.state = state;
    for (const message of ready.messages) this.#send(node, message);
  }

  /** Durable, then sent, then applied. */
  #finish(node: Node, { state, ready, machine }: Pending): void {
    node.pending = null;
    node.state = state;
    this.#persist(node, ready, machine);
    for (const entry of ready.entries) {
      const termBefore = state.log.termAt(entry.index - 1);
      if (termBefore >= 0 && state.log.termAt(entry.index) === entry.term) {
        this.decisions.hold(entry, termBefore);
      }
    }
    if (state.role === "leader") {
      this.decisions.lead(state);
      const fault = brokenLeadership(state);
      if (fault !== null) throw new Error(fault);
    }
    for (const message of ready.messages) this.#send(node, message);
    for (const entry of ready.committed) {
      node.machine = this.decisions.apply(node.machine, entry, state.currentTerm);
    }
    for (const { id, index } of ready.readStates) {
      if (index < (this.#reads.get(id) ?? 0)) throw new Error(`read ${id} misses what was before`);
    }
    if (node.machine.index - state.log.base.index > 3 * KEPT_ENTRIES) {
      const event = { type: "compact", index: node.machine.index - KEPT_ENTRIES } as const;
      node.queue.unshift({ event, machine: null });
    }
  }

  #persist(node: Node, ready: Ready, machine: Machine | null): void {
    const { snapshot, hardState, entries, compacted } = ready;
    let disk = node.disk;
    if (snapshot !== null) {
      if (machine?.index !== snapshot.index) throw new Error("a Raft snapshot without its state");
      this.decisions.install(machine);
      node.machine = machine;
      disk = { ...disk, snapshot, entries: [] };
    }
    if (hardState !== null) {
      const { forgetsVotes } = this.#options;
      disk = { ...disk, hardState: forgetsVotes ? { ...hardState, votedFor: null } : hardState };
    }
    if (entries.length > 0) disk = { ...disk, entries: replaced(disk.entries, entries) };
    if (compacted !== null) {
      const kept = disk.entries.filter(({ index }) => index > compacted.index);
      disk = { ...disk, snapshot: compacted, entries: kept };
    }
    node.disk = disk;
  }

  readonly #holds = (id: string, index: number, term: number): boolean => {
    const { disk } = this.node(id);
    const { snapshot, entries, hardState } = disk;
    if (snapshot.index >= index || hardState.damagedTerm > 0) return true;
    return entries[index - snapshot.index - 1]?.term === term;
  };

  #send(node: Node, message: Message): void {
    const { lossRatio, duplicateRatio, delayTicksMax } = this.#options;
    this.sentTypes.add(message.type);
    const parcel = this.#pack(node, message);
    if (this.prng.chance(lossRatio) || this.#cuts.has(`${message.from}>${message.to}`)) {
      if (parcel.machine !== null) {
        node.queue.push({ event: { type: "unreachable", member: message.to }, machine: null });
      }
      return;
    }
    const copies = this.prng.chance(duplicateRatio) ? 2 : 1;
    for (let i = 0; i < copies; i++) {
      const delay = 1 + this.prng.int(delayTicksMax * (parcel.machine === null ? 1 : 3));
      this.#network.push({ ...parcel, tick: this.#tick + delay });
    }
  }

  /** Adds the state as it is now to what carries a Raft snapshot. */
  #pack(node: Node, message: Message): Parcel {
    if (message.type !== "installSnapshot" && message.type !== "fetchedSnapshot") {
      return { message, machine: null };
    }
    const { machine } = node;
    const snapshot = node.state?.log.snapshotAt(machine.index);
    if (snapshot === null || snapshot === undefined) throw new Error("applied is in the log");
    return { message: { ...message, snapshot }, machine };
  }

  /** Ends all faults, and waits until every member holds the same and a proposal commits. */
  heal(ticksMax: number): void {
    this.mend();
    this.#options = {
      ...this.#options,
      ...{ lossRatio: 0, duplicateRatio: 0, delayTicksMax: 1, slowDiskRatio: 0 },
    };
    for (const node of this.nodes) {
      node.diskFullUntilTick = 0;
      this.restart(node);
    }
    const end = this.#tick + ticksMax;
    const before = this.decisions.lastIndex;
    let hasProposed = false;
    while (this.#tick < end) {
      this.run(1);
      if (!hasProposed && this.leader !== undefined) {
        this.propose(this.leader);
        hasProposed = true;
      }
      if (this.#tick % 50 === 0) hasProposed = false; // It may have been the wrong leader.
      if (this.decisions.lastIndex > before && this.#isConverged()) return;
    }
    throw new Error(`no convergence: ${this.describe()}`);
  }

  #isConverged(): boolean {
    const state = this.leader?.state;
    if (state === null || state === undefined) return false;
    const { configuration } = state.log;
    const members = this.nodes.filter(({ id }) => isMember(configuration, id));
    return configuration.outgoing.length === 0 &&
      members.every(({ machine, isGone }) => isGone || machine.index === this.decisions.lastIndex);
  }

  describe(): string {
    return this.nodes.filter(({ isGone }) => !isGone).map(({ id, state, machine }) =>
      state === null
        ? `${id} down`
        : `${id} ${state.role} term ${state.currentTerm} log ${state.log.lastTerm}/` +
          `${state.log.lastIndex} applied ${machine.index} voters ` +
          `${state.log.configuration.voters}|${state.log.configuration.outgoing} ` +
          `damaged ${state.damagedTerm}`
    ).join("; ");
  }
}

function termOf({ state }: Node): number {
  return state?.currentTerm ?? 0;
}

function isDurableAlready({ snapshot, hardState, entries, compacted }: Ready): boolean {
  return snapshot === null && hardState === null && entries.length === 0 && compacted === null;
}

function replaced(entries: readonly Entry[], newer: readonly Entry[]): readonly Entry[] {
  return [...entries.filter(({ index }) => index < newer[0].index), ...newer];
}
