import { messageOf, SvcError } from "../errors.ts";
import { log } from "../log.ts";
import {
  type Entry,
  ENTRY_OVERHEAD_BYTES,
  joinReady,
  type Message,
  type RaftEvent,
  type RaftState,
  type Ready,
  type Refusal,
  restore,
  step,
} from "../raft/mod.ts";
import type { Applier, Decision, Entry as StoreEntry, RaftStorage, Spool } from "../store/mod.ts";
import { decodeCommand } from "./command_codec.ts";
import {
  APPLY_BYTES_MAX,
  APPLY_ENTRIES_MAX,
  APPLY_RETRY_TICKS,
  BATCH_LENGTH_MAX,
  COMPACT_BYTES,
  COMPACT_ENTRIES,
  EVENTS_MAX,
  KEPT_BYTES,
  KEPT_ENTRIES,
  TICKS_WAITING_MAX,
} from "./limits.ts";

/** What became of an event: nothing stood against it, or why not; `lost`: it could not be stored. */
export type Taken = Refusal | "lost" | null;

/** A Raft snapshot that has arrived, with the state that it stands for. */
export interface Arrived {
  readonly cluster: string;
  readonly message: Message;
  readonly spool: Spool;
}

type Item =
  | { readonly event: RaftEvent; readonly after: ((taken: Taken) => void) | null }
  | { readonly arrived: Arrived; readonly after: (taken: Taken) => void }
  | { readonly work: () => Promise<void>; readonly after: (error: unknown) => void };

export interface ConsensusOptions {
  readonly storage: RaftStorage;
  readonly applier: Applier;
  readonly isWitness: boolean;
  /** 32 bits, others each time. */
  readonly random: () => number;
  /** Hands a message over; it is sent or lost. */
  readonly send: (message: Message) => void;
  /** Told of each change once it is applied here. */
  readonly decided: (id: string, decision: Decision) => void;
  /** Told after the state of consensus, or what is applied, has changed. */
  readonly changed: (before: RaftState) => void;
}

/**
 * Runs `raft` over a disk, a network and a state: one event after another, and what each asks for in
 * its order: durable, sent, applied. What can't be stored is as if it had not happened; a leader lets
 * another lead then. Applying has a course of its own, so that a slow disk of the state's delays no
 * heartbeat.
 */
export class Consensus {
  readonly #options: ConsensusOptions;
  #state: RaftState;
  readonly #queue: Item[] = [];
  #ticksWaiting = 0;
  #isWorking = false;
  #running: Promise<void> | null = null;
  #applying: Promise<void> | null = null;
  #applyPauseTicks = 0;
  #appliedEntries = 0;
  #appliedBytes = 0;
  #isClosed = false;
  #storeFailure: string | null = null;
  #applyFailure: string | null = null;
  #mistake: string | null = null;
  /** Messages that found no room in the queue. */
  dropped = 0;
  elections = 0;

  constructor(options: ConsensusOptions) {
    this.#options = options;
    this.#state = this.#restored();
  }

  #restored(): RaftState {
    const { storage, isWitness, random } = this.#options;
    return restore({ id: storage.member.id, isWitness, random: random() }, storage.persisted);
  }

  get state(): RaftState {
    return this.#state;
  }

  /** What keeps this member from its part at the moment, in words. */
  get problems(): string[] {
    const found: string[] = [];
    if (this.#mistake !== null) found.push(`cluster: this member has stopped: ${this.#mistake}`);
    if (this.#storeFailure !== null) {
      found.push(
        `cluster: what this member must not forget can't be stored: ${this.#storeFailure}: ` +
          "it takes no part until it can",
      );
    }
    if (this.#applyFailure !== null) {
      found.push(`cluster: changes are not applied here: ${this.#applyFailure}; it is tried again`);
    }
    return found;
  }

  get hasStopped(): boolean {
    return this.#isClosed || this.#mistake !== null;
  }

  /** Some time passed. */
  tick(): void {
    if (this.#applyPauseTicks > 0 && --this.#applyPauseTicks === 0) this.#apply();
    if (this.#ticksWaiting >= TICKS_WAITING_MAX) return;
    this.#ticksWaiting++;
    this.#add({ event: { type: "tick" }, after: () => this.#ticksWaiting-- });
  }

  /** Takes an event in its turn; `after` is told what became of it. */
  take(event: RaftEvent, after: ((taken: Taken) => void) | null = null): void {
    if (this.#queue.length >= EVENTS_MAX) {
      this.dropped++;
      return after?.("lost");
    }
    this.#add({ event, after });
  }

  /** Takes a message that brings a state. */
  install(arrived: Arrived, after: (taken: Taken) => void): void {
    this.#add({ arrived, after });
  }

  /** Does what makes another member of this store, between two events, and goes on as that member. */
  async become(work: () => Promise<void>): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const after = (error: unknown) => error === null ? resolve() : reject(error);
    this.#add({ work, after });
    await promise;
  }

  /** Resolves once nothing is being applied. */
  async applied(): Promise<void> {
    while (this.#applying !== null) await this.#applying;
  }

  /** Resolves once nothing is under way. */
  async idle(): Promise<void> {
    while (this.#running !== null || this.#applying !== null) {
      await this.#running;
      await this.#applying;
    }
  }

  /** Takes nothing more; returns once nothing is under way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.idle();
  }

  #add(item: Item): void {
    if (this.hasStopped) {
      return giveUp(item, new SvcError("unavailable", "cluster: it has stopped"));
    }
    this.#queue.push(item);
    if (this.#isWorking) return;
    const running = this.#run();
    if (this.#isWorking) this.#running = running; // Most events need no disk and are done by now.
  }

  /** Never throws. */
  async #run(): Promise<void> {
    this.#isWorking = true;
    try {
      while (this.#queue.length > 0 && this.#mistake === null) {
        const work = this.#next();
        if (work !== null) await work;
      }
    } catch (error) {
      // DNS goes on without; what is durable is sound, and a start goes on from there.
      this.#mistake = messageOf(error);
      log.error("a member of the cluster has stopped", { error });
      for (const item of this.#queue.splice(0)) giveUp(item, error);
    }
    this.#isWorking = false;
    this.#running = null;
  }

  /** Takes what comes next; `null` where that is done already. */
  #next(): Promise<void> | null {
    const [first] = this.#queue;
    if ("work" in first) {
      this.#queue.shift();
      return this.#become(first.work, first.after);
    }
    if ("arrived" in first) {
      this.#queue.shift();
      return this.#install(first.arrived, first.after);
    }
    return this.#takeBatch();
  }

  #takeBatch(): Promise<void> | null {
    const before = this.#state;
    let [state, ready]: [RaftState, Ready | null] = [before, null];
    const ends: (() => void)[] = [];
    const lost: (() => void)[] = [];
    for (let count = 0; count < BATCH_LENGTH_MAX && this.#queue.length > 0; count++) {
      const [item] = this.#queue;
      if (!("event" in item)) break;
      this.#queue.shift();
      const { event, after } = item;
      const result = step(state, event);
      state = result.state;
      ready = ready === null ? result.ready : joinReady(ready, result.ready);
      if (after !== null) {
        ends.push(() => after(result.refusal));
        lost.push(() => after("lost"));
      }
    }
    if (ready === null) return null;
    if (isDurable(ready)) {
      this.#finish(before, state, ready);
      for (const end of ends) end();
      return null;
    }
    return this.#store(before, state, ready).then((isStored) => {
      for (const end of isStored ? ends : lost) end();
    });
  }

  async #store(before: RaftState, state: RaftState, ready: Ready): Promise<boolean> {
    const { hardState, entries, compacted } = ready;
    try {
      await this.#options.storage.persist({ hardState, entries, compacted });
    } catch (error) {
      this.#storeFailed(error);
      return false;
    }
    this.#stored();
    this.#finish(before, state, ready);
    return true;
  }

  #storeFailed(error: unknown): void {
    if (this.#storeFailure === null) {
      log.error("a member of the cluster can't store what it must not forget", { error });
    }
    this.#storeFailure = messageOf(error);
    this.#stepBack();
  }

  #stored(): void {
    if (this.#storeFailure !== null) log.info("a member of the cluster stores again");
    this.#storeFailure = null;
  }

  /** Lets another lead, which takes nothing durable. */
  #stepBack(): void {
    const before = this.#state;
    if (before.role !== "leader") return;
    const { state, ready } = step(before, { type: "resign" });
    this.#finish(before, state, ready);
  }

  /** What is durable is sent, then applied. */
  #finish(before: RaftState, state: RaftState, ready: Ready): void {
    this.#state = state;
    if (state.currentTerm > before.currentTerm && state.votedFor === state.id) this.elections++;
    for (const message of ready.messages) this.#options.send(message);
    if (state !== before) this.#options.changed(before);
    this.#apply();
  }

  async #install({ cluster, message, spool }: Arrived, after: (taken: Taken) => void) {
    const before = this.#state;
    const { state, ready, refusal } = step(before, { type: "message", message });
    const { snapshot, hardState } = ready;
    if (snapshot === null) {
      const isStored = isDurable(ready)
        ? (this.#finish(before, state, ready), true)
        : await this.#store(before, state, ready);
      return after(isStored ? refusal : "lost");
    }
    try {
      await this.#options.storage.install({ hardState, snapshot, cluster, parts: spool.parts() });
    } catch (error) {
      this.#storeFailed(error);
      return after("lost");
    }
    this.#stored();
    this.#finish(before, state, ready);
    after(refusal);
  }

  async #become(work: () => Promise<void>, after: (error: unknown) => void): Promise<void> {
    const before = this.#state;
    try {
      await work();
    } catch (error) {
      return after(error ?? new Error("failed"));
    }
    this.#state = this.#restored();
    this.#options.changed(before);
    after(null);
  }

  /** Applies what is committed, as far as it goes. */
  #apply(): void {
    if (this.#applying !== null || this.#applyPauseTicks > 0 || this.#isApplied) return;
    this.#applying = this.#applyAll().finally(() => {
      this.#applying = null;
      this.#compact();
    });
  }

  get #isApplied(): boolean {
    const { log, commitIndex } = this.#state;
    // Before it was added anywhere, its state is of no log.
    return log.base.index === 0 || this.#options.applier.state.appliedIndex >= commitIndex;
  }

  async #applyAll(): Promise<void> {
    const { applier, decided } = this.#options;
    while (!this.#isApplied && !this.#isClosed) {
      const { log: raftLog, commitIndex } = this.#state;
      const first = applier.state.appliedIndex + 1;
      const entries = raftLog.slice(first, commitIndex, APPLY_BYTES_MAX, APPLY_ENTRIES_MAX);
      try {
        await applier.apply(entries.map(storeEntry), ({ id }, decision) => {
          if (id !== null) decided(id, decision);
        });
      } catch (error) {
        return this.#applyFailed(error);
      }
      if (this.#applyFailure !== null) log.info("changes of the cluster are applied again");
      this.#applyFailure = null;
      for (const entry of entries) this.#count(entry);
      this.#options.changed(this.#state);
    }
  }

  #applyFailed(error: unknown): void {
    if (this.#applyFailure === null) {
      log.error("changes of the cluster are not applied", { error });
    }
    const isExpected = error instanceof SvcError;
    this.#applyFailure = isExpected ? error.message : `an entry can't be read: ${messageOf(error)}`;
    this.#applyPauseTicks = APPLY_RETRY_TICKS;
    // Whoever leads is to answer; an only voter has nobody to hand over to.
    if (this.#state.log.configuration.voters.length > 1) this.take({ type: "resign" });
  }

  #count(entry: Entry): void {
    this.#appliedEntries++;
    this.#appliedBytes += sizeOf(entry);
  }

  /** Forgets entries that are applied, but for some that others may still need. */
  #compact(): void {
    if (this.#appliedEntries < COMPACT_ENTRIES && this.#appliedBytes < COMPACT_BYTES) return;
    this.#appliedEntries = this.#appliedBytes = 0;
    const { log: raftLog } = this.#state;
    const applied = this.#options.applier.state.appliedIndex;
    const kept = raftLog.slice(Math.max(raftLog.base.index, applied - KEPT_ENTRIES) + 1, applied);
    let [index, bytes] = [applied, 0];
    while (kept.length > 0) {
      bytes += sizeOf(kept[kept.length - 1]);
      if (bytes > KEPT_BYTES) break;
      kept.pop();
      index--;
    }
    this.take({ type: "compact", index });
  }
}

function giveUp(item: Item, error: unknown): void {
  if ("work" in item) item.after(error);
  else item.after?.("lost");
}

function sizeOf(entry: Entry): number {
  return ENTRY_OVERHEAD_BYTES + (entry.type === "command" ? entry.data.length : 0);
}

/** @throws {WireError} If it is of another version. */
function storeEntry(entry: Entry): StoreEntry {
  if (entry.type !== "command") return { index: entry.index, command: null, id: null };
  const { id, command } = decodeCommand(entry.data);
  return { index: entry.index, command, id };
}

function isDurable({ snapshot, hardState, entries, compacted }: Ready): boolean {
  return snapshot === null && hardState === null && entries.length === 0 && compacted === null;
}
