/**
 * Members of a cluster in one process: the real driver, store and consensus, on a clock, a network
 * and disks that are drawn from one seed. Between two ticks everybody has come to rest, so that a seed
 * is a run. What breaks a property is thrown.
 */
import type { LiveState } from "../../src/model/mod.ts";
import { FIRST_SEED } from "../../src/model/fakes.ts";
import {
  type Channel,
  type Greeting,
  Member,
  type PeerState,
  type Report,
} from "../../src/cluster/mod.ts";
import { isMember, membersOf, type RaftState } from "../../src/raft/mod.ts";
import { Applier, LocalReplicator, RaftStorage, type Store } from "../../src/store/mod.ts";
import { FakeClock, FaultyKv, MemoryRaftDisk } from "../../src/store/fakes.ts";
import { Prng } from "../prng.ts";
import { brokenDurability, brokenLogMatching } from "./properties.ts";

export interface ClusterSimOptions {
  readonly seed: number;
  readonly nodes: readonly string[];
  readonly witnesses?: readonly string[];
  /** The one that starts the cluster; the first node. `null`: nobody. */
  readonly bootstrap?: string | null;
  readonly versions?: Readonly<Record<string, string>>;
  readonly lossRatio?: number;
  readonly duplicateRatio?: number;
  readonly delayTicksMax?: number;
  readonly slowDiskRatio?: number;
  /** Disks call durable what is not, which the checks must find. */
  readonly hasLyingDisks?: boolean;
}

const DISK_TICKS_MAX = 10;
const TICK_MS = 50;
/** Logs are compared so often. */
const MATCHING_TICKS = 10;

interface Packet {
  readonly from: string;
  readonly to: string;
  readonly tick: number;
  readonly bytes: Uint8Array;
}

/** What runs between two starts. */
interface Running {
  readonly member: Member;
  readonly store: Store;
  readonly applier: Applier;
  readonly storage: RaftStorage;
}

export interface DiskCopy {
  readonly kv: FaultyKv;
  readonly disk: MemoryRaftDisk;
}

export interface SimNode {
  readonly name: string;
  readonly isWitness: boolean;
  kv: FaultyKv;
  disk: MemoryRaftDisk;
  running: Running | null;
  greeting: Greeting | null;
  version: string;
  /** The start that an orderly stop is to end. */
  stopping: number | null;
  /** In order, and is gone by the next tick. */
  hasStopped: boolean;
  /** Grows with each start: what an earlier one sends is not heard. */
  start: number;
  fullUntilTick: number;
  /** A sync that takes its time. */
  sync: { readonly tick: number; readonly go: () => void } | null;
  blocked: PromiseWithResolvers<void>;
  /** What it told last, which must not fall. */
  told: { id: string; term: number; cluster: string; epoch: number; version: number } | null;
}

export class ClusterSim {
  readonly prng: Prng;
  readonly nodes: SimNode[] = [];
  readonly clock = new FakeClock();
  tick = 0;
  readonly #options: ClusterSimOptions;
  #lossRatio: number;
  #duplicateRatio: number;
  #delayTicksMax: number;
  #slowDiskRatio: number;
  readonly #cuts = new Set<string>();
  #packets: Packet[] = [];
  #outbox: Omit<Packet, "tick">[] = [];
  #numbers = 0;
  /** Who of a cluster led a term, and the state at an index of a cluster's. */
  readonly #leaders = new Map<string, string>();
  readonly #states = new Map<string, string>();
  #hasOldCopies = false;

  private constructor(options: ClusterSimOptions) {
    this.#options = options;
    this.prng = new Prng(options.seed);
    this.#lossRatio = options.lossRatio ?? 0;
    this.#duplicateRatio = options.duplicateRatio ?? 0;
    this.#delayTicksMax = options.delayTicksMax ?? 1;
    this.#slowDiskRatio = options.slowDiskRatio ?? 0;
  }

  static async open(options: ClusterSimOptions): Promise<ClusterSim> {
    const sim = new ClusterSim(options);
    for (const name of [...options.nodes, ...options.witnesses ?? []]) {
      sim.nodes.push({
        name,
        isWitness: options.witnesses?.includes(name) ?? false,
        kv: await FaultyKv.open(),
        disk: new MemoryRaftDisk(),
        version: options.versions?.[name] ?? "0.7.0",
        ...{
          running: null,
          stopping: null,
          hasStopped: false,
          greeting: null,
          start: 0,
          fullUntilTick: 0,
          sync: null,
          told: null,
        },
        blocked: Promise.withResolvers(),
      });
    }
    for (const node of sim.nodes) await sim.start(node);
    return sim;
  }

  node(name: string): SimNode {
    const node = this.nodes.find((one) => one.name === name);
    if (node === undefined) throw new Error(`no node ${name}`);
    return node;
  }

  member(name: string): Member {
    const { running } = this.node(name);
    if (running === null) throw new Error(`${name} is down`);
    return running.member;
  }

  report(name: string): Report {
    return this.member(name).report();
  }

  get live(): SimNode[] {
    return this.nodes.filter(({ running }) => running !== null);
  }

  /** Those who call themselves leader, of the latest term first. */
  get leaders(): SimNode[] {
    const term = ({ running }: SimNode) => running?.member.state.currentTerm ?? 0;
    return this.live.filter(({ running }) => running?.member.state.role === "leader")
      .sort((a, b) => term(b) - term(a));
  }

  async start(node: SimNode): Promise<void> {
    if (node.running !== null) return;
    node.start++;
    node.greeting = null;
    const store = await node.kv.store({ node: node.name, clock: this.clock });
    const applier = new Applier(store);
    if (!node.isWitness && store.state.appliedIndex === 0) {
      const own = new LocalReplicator(applier, { clock: this.clock, node: node.name });
      await own.propose(FIRST_SEED, { kind: "system", name: null, address: null });
    }
    node.disk.beforeSync = () => null; // A start is no time to be slow.
    node.disk.isFull = false;
    const drawNumber = () => this.prng.next().toString(16).padStart(8, "0");
    const nowMs = () => this.clock.nowMs();
    const storage = await RaftStorage.open({
      ...{ store, applier, disk: node.disk, node: node.name, drawNumber, nowMs },
    });
    node.disk.beforeSync = () => this.#beforeSync(node);
    node.disk.isLying = this.#options.hasLyingDisks ?? false;
    const { bootstrap = this.#options.nodes[0] } = this.#options;
    const member = new Member({
      ...{ node: node.name, version: node.version, isWitness: node.isWitness, storage, store },
      ...{ applier, nowMs, channel: this.#channelOf(node) },
      bootstrap: node.name === bootstrap,
      addresses: new Map(this.nodes.map(({ name }) => [name, `${name}.example:8054`])),
      random: () => this.prng.next(),
      drawId: () => `id-${++this.#numbers}`,
    });
    node.running = { member, store, applier, storage };
    for (const other of this.live) {
      if (other !== node) this.#connect(node, other);
    }
  }

  /** Loses what was not made durable. */
  crash(node: SimNode): void {
    if (node.running === null) return;
    node.running = null;
    node.hasStopped = false;
    node.start++;
    node.sync = null;
    node.disk.crash(() => this.prng.chance(0.5));
    node.kv.crash();
    this.#packets = this.#packets.filter(({ to }) => to !== node.name);
    for (const other of this.live) other.running?.member.onDisconnected(node.name);
  }

  /** It comes back with an empty store. */
  async empty(node: SimNode): Promise<void> {
    this.crash(node);
    node.kv = await FaultyKv.open();
    node.disk = new MemoryRaftDisk();
    node.told = null;
  }

  /** What its disk holds at the moment, to be put back later. */
  async copy({ kv, disk }: SimNode): Promise<DiskCopy> {
    return { kv: await kv.copy(), disk: disk.copy() };
  }

  /** It comes back with an older copy of its disk. States may differ from then on. */
  async putBack(node: SimNode, { kv, disk }: DiskCopy): Promise<void> {
    this.crash(node);
    node.kv.inner.close();
    [node.kv, node.disk, node.told] = [kv, disk, null];
    this.#hasOldCopies = true;
    await this.start(node);
  }

  async stop(node: SimNode): Promise<void> {
    this.beginStop(node);
    await this.until(() => node.running === null, `${node.name} has stopped`);
  }

  /** An orderly stop, which takes its time. */
  beginStop(node: SimNode): void {
    const { running, start } = node;
    if (running === null) return;
    node.stopping = start;
    void running.member.stop().then(() => {
      if (node.start === start) node.hasStopped = true;
    });
  }

  /** Whether somebody is about to go, of his own accord. */
  get isStopping(): boolean {
    return this.live.some(({ stopping, start }) => stopping === start);
  }

  /** Whether a node was removed for good: what it was may be thrown away. */
  hasLeft({ running }: SimNode): boolean {
    const [leader] = this.leaders;
    if (running === null || leader === undefined || leader.running === null) return false;
    const { log, commitIndex } = leader.running.member.state;
    const { cluster } = leader.running.storage.member;
    return cluster === running.storage.member.cluster && log.configurationIndex <= commitIndex &&
      log.configuration.outgoing.length === 0 && isCurrent(leader.running.member.state) &&
      !isMember(log.configuration, running.member.state.id);
  }

  fillDisk(node: SimNode, ticks: number): void {
    node.fullUntilTick = this.tick + ticks;
  }

  cut(from: string, to: string): void {
    this.#cuts.add(`${from}>${to}`);
  }

  partition(some: readonly string[], isOneWay = false): void {
    for (const { name } of this.nodes) {
      if (some.includes(name)) continue;
      for (const other of some) {
        this.cut(name, other);
        if (!isOneWay) this.cut(other, name);
      }
    }
  }

  mend(): void {
    this.#cuts.clear();
  }

  /** Ends all faults of network and disks, and starts who is down. */
  async heal(): Promise<void> {
    this.mend();
    this.#lossRatio = this.#duplicateRatio = this.#slowDiskRatio = 0;
    this.#delayTicksMax = 1;
    for (const node of this.nodes) {
      node.fullUntilTick = 0;
      await this.start(node);
    }
  }

  async run(ticks: number, each: () => void | Promise<void> = () => {}): Promise<void> {
    for (const end = this.tick + ticks; this.tick < end;) {
      this.tick++;
      this.clock.timeMs += TICK_MS;
      await each();
      await this.#rest();
      const due = this.#packets.filter(({ tick }) => tick <= this.tick);
      this.#packets = this.#packets.filter(({ tick }) => tick > this.tick);
      for (const node of this.nodes) {
        if (node.hasStopped) this.crash(node);
        if (node.running === null) continue;
        node.disk.isFull = this.tick < node.fullUntilTick;
        node.kv.faultOf = () => this.tick < node.fullUntilTick ? "before" : null;
        if (node.sync !== null && node.sync.tick <= this.tick) this.#endSync(node);
        const { member } = node.running;
        for (const { from, to, bytes } of due) {
          if (to === node.name && !this.#cuts.has(`${from}>${to}`)) {
            member.onFrame(from, bytes.slice());
          }
        }
        member.tick();
        await this.#restOf(node);
        this.#post();
        this.#check(node);
      }
      this.#checkAll();
    }
  }

  /** Runs until `isMet`, for so many ticks at most. */
  async until(isMet: () => boolean, what: string, ticksMax = 400): Promise<void> {
    for (let i = 0; i < ticksMax; i++) {
      if (isMet()) return;
      await this.run(1);
    }
    if (!isMet()) throw new Error(`not in time: ${what}: ${this.describe()}`);
  }

  /** Runs until a promise has settled, and returns what it came to. */
  async settled<T>(promise: Promise<T>, ticksMax = 400): Promise<T> {
    let isSettled = false;
    const watched = promise.finally(() => isSettled = true);
    watched.catch(() => {});
    for (let i = 0; i < ticksMax && !isSettled; i++) await this.run(1);
    if (!isSettled) throw new Error(`a promise does not settle: ${this.describe()}`);
    return await watched;
  }

  describe(): string {
    return this.nodes.map(({ name, running }) => {
      if (running === null) return `${name} down`;
      const { id, role, currentTerm, log, commitIndex } = running.member.state;
      const { voters, outgoing, learners } = log.configuration;
      return `${id} of ${running.storage.member.cluster || "none"} ${role} term ${currentTerm} ` +
        `log ${log.base.index}..${log.lastIndex} commit ${commitIndex} ` +
        `applied ${running.applier.state.appliedIndex} ${voters}|${outgoing}|${learners}`;
    }).join("; ");
  }

  // The channel.

  #channelOf(node: SimNode): Channel {
    const { start } = node;
    return {
      send: (to, bytes) => {
        if (node.start !== start || this.node(to).running === null) return false;
        this.#outbox.push({ from: node.name, to, bytes });
        return true;
      },
      peers: () => this.nodes.filter((other) => other !== node).map((other) => this.#peer(other)),
      greet: (greeting) => {
        if (node.start !== start) return;
        node.greeting = greeting;
        for (const other of this.live) {
          if (other !== node) other.running?.member.onConnected(this.#peer(node));
        }
      },
    };
  }

  #peer({ name, running, greeting }: SimNode): PeerState {
    const isConnected = running !== null;
    const fault = isConnected ? null : "connection refused";
    return { name, isConnected, greeting, incompatible: null, fault };
  }

  #connect(a: SimNode, b: SimNode): void {
    a.running?.member.onConnected(this.#peer(b));
    b.running?.member.onConnected(this.#peer(a));
  }

  /** What was sent until now gets its fate, in an order that is the seed's alone. */
  #post(): void {
    for (const packet of this.#outbox.splice(0)) {
      if (this.prng.chance(this.#lossRatio)) continue;
      if (this.#cuts.has(`${packet.from}>${packet.to}`)) continue;
      const copies = this.prng.chance(this.#duplicateRatio) ? 2 : 1;
      for (let i = 0; i < copies; i++) {
        const delay = 1 + this.prng.int(this.#delayTicksMax);
        this.#packets.push({ ...packet, tick: this.tick + delay });
      }
    }
  }

  // The disk.

  #beforeSync(node: SimNode): Promise<void> | null {
    if (!this.prng.chance(this.#slowDiskRatio)) return null;
    const { promise, resolve } = Promise.withResolvers<void>();
    node.sync = { tick: this.tick + 1 + this.prng.int(DISK_TICKS_MAX), go: resolve };
    node.blocked.resolve();
    return promise;
  }

  #endSync(node: SimNode): void {
    const { sync } = node;
    node.sync = null;
    node.blocked = Promise.withResolvers();
    sync?.go();
  }

  async #rest(): Promise<void> {
    for (const node of this.nodes) await this.#restOf(node);
    this.#post();
  }

  /** Until a node has nothing to do, or waits for its disk. */
  async #restOf(node: SimNode): Promise<void> {
    if (node.running === null) return;
    const { member } = node.running;
    if (node.sync === null) await Promise.race([member.idle(), node.blocked.promise]);
    await member.applied();
    await node.running?.store.idle();
    // What was answered is taken note of by who asked.
    for (let i = 0; i < 8; i++) await Promise.resolve();
  }

  // What must hold.

  #check(node: SimNode): void {
    const { running } = node;
    if (running === null) return;
    const { member, store, applier, storage } = running;
    const { state } = member;
    const { cluster } = storage.member;
    const now = {
      id: state.id,
      term: state.currentTerm,
      cluster,
      epoch: store.epoch,
      version: applier.state.appliedIndex,
    };
    const { told } = node;
    if (told?.id === now.id && now.term < told.term) throw new Error(`${now.id}: its term fell`);
    if (told !== null && told.cluster === cluster && now.version < told.version) {
      throw new Error(`${now.id}: its version fell from ${told.version} to ${now.version}`);
    }
    node.told = now;
    if (state.role === "leader") this.#checkLeader(cluster, node.isWitness, state);
    const isOfLog = cluster !== "" && state.log.base.index > 0;
    if (isOfLog && !this.#hasOldCopies) this.#checkState(cluster, applier.state);
  }

  #checkLeader(cluster: string, isWitness: boolean, { id, currentTerm, log }: RaftState): void {
    if (isWitness) throw new Error(`a witness leads: ${id}`);
    const key = `${cluster} ${currentTerm}`;
    const other = this.#leaders.get(key);
    if (other !== undefined && other !== id) {
      throw new Error(`two leaders of ${key}: ${other}, ${id}`);
    }
    this.#leaders.set(key, id);
    const { voters, outgoing } = log.configuration;
    if (voters.length === 2 && outgoing.length === 0) throw new Error(`two voters: ${voters}`);
  }

  /** Alike on every member that has applied as much. */
  #checkState(cluster: string, state: LiveState): void {
    const key = `${cluster} ${state.appliedIndex}`;
    const text = this.textOf(state);
    const other = this.#states.get(key);
    if (other === undefined) this.#states.set(key, text);
    else if (other !== text) throw new Error(`states differ at ${key}:\n${other}\n${text}`);
  }

  textOf({ collections, settings }: LiveState): string {
    const rules = [...collections.rules.values()].map((one) => `${one.id}/${one.revision}`);
    return `${settings.revision} ${settings.spec.block_ttl} ${settings.updated_at} ${rules}`;
  }

  /** Log matching, and that what a leader has committed is held by most voters, on their disks. */
  #checkAll(): void {
    const running = this.live.flatMap(({ running }) => running === null ? [] : [running]);
    const holds = (id: string, index: number, term: number) => {
      const one = running.find(({ member }) => member.state.id === id);
      if (one === undefined) return true; // Who is down keeps what it has.
      const { snapshot, entries } = one.storage.persisted;
      return snapshot.index >= index || entries[index - snapshot.index - 1]?.term === term;
    };
    for (const { member: { state }, storage: { member: { cluster } } } of running) {
      if (state.role === "leader") {
        // It may have been committed by the voters of then.
        const { log, commitIndex } = state;
        const then = log.configurationAt(commitIndex);
        const fault = brokenDurability(state, holds);
        const isFaultThen = [then.voters, then.outgoing].some((half) =>
          half.length > 0 &&
          half.filter((id) => holds(id, commitIndex, log.termAt(commitIndex))).length * 2 <=
            half.length
        );
        if (fault !== null && isFaultThen) throw new Error(fault);
      }
      if (this.tick % MATCHING_TICKS > 0) continue;
      for (const other of running) {
        if (other.storage.member.cluster !== cluster || cluster === "") continue;
        const fault = brokenLogMatching(state, other.member.state);
        if (fault !== null) throw new Error(fault);
      }
    }
  }

  /** Whether every node is a member as who it is. */
  get isComplete(): boolean {
    const [leader] = this.leaders;
    const configuration = leader?.running?.member.state.log.configuration;
    return configuration !== undefined &&
      this.nodes.every(({ running }) =>
        running !== null && isMember(configuration, running.member.state.id)
      );
  }

  /** Whether every member is in, whole, and has nothing to complain of. */
  get isWell(): boolean {
    const [leader] = this.leaders;
    if (leader?.running === undefined || leader.running === null) return false;
    const { log, commitIndex } = leader.running.member.state;
    const { configuration } = log;
    if (membersOf(configuration).length !== this.nodes.length) return false;
    if (configuration.voters.length > 1 !== this.nodes.length > 2) return false;
    return this.live.length === this.nodes.length &&
      this.nodes.every(({ running }) =>
        running !== null && running.applier.state.appliedIndex === commitIndex &&
        running.member.state.commitIndex === commitIndex &&
        running.member.state.log.configuration.outgoing.length === 0 &&
        isWellReport(running.member.report())
      );
  }

  /** Gives back what the files in memory hold. */
  close(): void {
    for (const node of this.nodes) {
      this.crash(node);
      node.kv.inner.close();
    }
  }
}

/** Whether a leader has committed something of its term, so that what it knows is committed holds. */
function isCurrent({ log, commitIndex, currentTerm }: RaftState): boolean {
  return log.termAt(commitIndex) === currentTerm;
}

function isWellReport({ problems, members }: Report): boolean {
  return problems.length === 0 && members.every(({ state }) => state !== "unknown");
}
