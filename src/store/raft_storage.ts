import { messageOf } from "../errors.ts";
import { log } from "../log.ts";
import { isSeeded } from "../model/mod.ts";
import {
  bootstrapped,
  type Configuration,
  type HardState,
  isWellFormed,
  NOTHING_PERSISTED,
  type Persisted,
  type RaftSnapshot,
} from "../raft/mod.ts";
import type { Applier } from "./applier.ts";
import { RAFT_KEY } from "./keys.ts";
import { DamagedLog, LOG_FILE, type LogContent, type RaftDisk, RaftLog } from "./raft_log.ts";
import { Spool } from "./spool.ts";
import type { Store } from "./store.ts";
import { damaged } from "./values.ts";

/** Which member of which cluster a store is; kept with the state, in the same transaction. */
export interface RaftMember {
  /** Its node's name and a number that was drawn when it became this member. */
  readonly id: string;
  readonly generation: number;
  /** The cluster's ID; empty while it waits to be added to one. */
  readonly cluster: string;
  /** It was in a cluster, so that it starts none by itself. */
  readonly hasLeft: boolean;
  /** When a whole configuration was last taken over. */
  readonly copiedAt: string | null;
  /** What the state stood for when it was last put in the place of another. */
  readonly snapshot: RaftSnapshot | null;
}

export interface RaftStorageOptions {
  readonly store: Store;
  readonly applier: Applier;
  readonly disk: RaftDisk;
  /** The node's name, without a dot. */
  readonly node: string;
  /** 8 hexadecimal digits, others each time. */
  readonly drawNumber: () => string;
  readonly nowMs: () => number;
}

/** What is made durable together; a `Ready` without a Raft snapshot. */
export interface Durable {
  readonly hardState: HardState | null;
  readonly entries: Persisted["entries"];
  readonly compacted: RaftSnapshot | null;
}

const ID_LENGTH_MAX = 128;

/**
 * What a member of a cluster has on its disk: the applied state in the store, which also says which
 * member it is, and the log in a file beside it. Where the log lacks what may have been promised, the
 * store becomes another member, which nobody counts on: it waits, and the leader adds it in the place
 * of the one it was.
 */
export class RaftStorage {
  readonly #options: RaftStorageOptions;
  #member: RaftMember;
  #log: RaftLog;
  /** Why it became another member at this start. */
  readonly damage: string | null;

  private constructor(
    options: RaftStorageOptions,
    member: RaftMember,
    raftLog: RaftLog,
    damage: string | null,
  ) {
    this.#options = options;
    this.#member = member;
    this.#log = raftLog;
    this.damage = damage;
  }

  /** @throws {SvcError} `unavailable`, if it can't be read, or written the first time. */
  static async open(options: RaftStorageOptions): Promise<RaftStorage> {
    const stored = await options.store.raftMember();
    if (stored === null) return await RaftStorage.#makeNew(options, null, false, null);
    const member = readMember(stored);
    if (member === null) throw damaged(RAFT_KEY.join("/"), "is no member of a cluster");
    try {
      if (!member.id.startsWith(`${options.node}.`)) {
        throw new DamagedLog(`it was written as ${member.id}`);
      }
      const raftLog = await RaftLog.open(options.disk, member);
      try {
        await reconcile(raftLog, member, options.store.state.appliedIndex);
      } catch (error) {
        raftLog.close();
        throw error;
      }
      return new RaftStorage(options, member, raftLog, null);
    } catch (error) {
      if (!(error instanceof DamagedLog)) throw error;
      log.error("the cluster's log is damaged: this node votes no more as the member it was", {
        file: LOG_FILE,
        member: member.id,
        error: error.message,
      });
      const damage = `${LOG_FILE}: ${error.message}`;
      return await RaftStorage.#makeNew(options, member, true, damage);
    }
  }

  static async #makeNew(
    options: RaftStorageOptions,
    before: RaftMember | null,
    hasLeft: boolean,
    damage: string | null,
  ): Promise<RaftStorage> {
    const member = newMember(options, before, hasLeft);
    const raftLog = await RaftLog.prepare(options.disk, logOf(member, NOTHING_PERSISTED));
    try {
      await options.store.putRaftMember(member);
      await raftLog.adopt();
    } catch (error) {
      raftLog.close();
      throw error;
    }
    return new RaftStorage(options, member, raftLog, damage);
  }

  get member(): RaftMember {
    return this.#member;
  }

  /** What `restore` starts from. */
  get persisted(): Persisted {
    const { hardState, snapshot, entries } = this.#log.content;
    // Before it was added anywhere, its state is of no log.
    const appliedIndex = snapshot.index === 0 ? 0 : this.#options.store.state.appliedIndex;
    return { hardState, snapshot, entries, appliedIndex };
  }

  /**
   * Returns once it is durable.
   *
   * @throws If it could not be; then it is as if it had not been asked for.
   */
  async persist({ hardState, entries, compacted }: Durable): Promise<void> {
    if (hardState !== null || entries.length > 0) {
      await this.#log.append({ hardState, entries, snapshot: null });
    }
    if (compacted !== null) await this.#log.compact(compacted);
  }

  /** Where the parts of a state that is on its way wait. */
  spool(): Promise<Spool> {
    return Spool.open(this.#options.disk);
  }

  /**
   * Takes a whole state over, in the place of state and log; `cluster` is whose it is. A state that was
   * this node's own, and no cluster's, is kept in a file.
   *
   * @throws {SvcError} `invalid`, if the parts are no state; `unavailable`.
   */
  async install(
    { hardState, snapshot, cluster, parts }: {
      readonly hardState: HardState | null;
      readonly snapshot: RaftSnapshot;
      readonly cluster: string;
      readonly parts: AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
    },
  ): Promise<void> {
    const { applier } = this.#options;
    // It promises nothing yet, and must be there before anything follows from it.
    if (hardState !== null) await this.#log.append({ hardState, snapshot: null, entries: [] });
    if (this.#log.content.snapshot.index === 0) await this.#keepFormer();
    const copiedAt = new Date(this.#options.nowMs()).toISOString();
    const member = { ...this.#member, cluster, copiedAt, snapshot };
    await applier.replaceAll(parts, [{ key: RAFT_KEY, value: member }]);
    this.#member = member;
    try {
      await this.#log.append({ hardState: null, snapshot, entries: [] });
    } catch (error) {
      // The state says as much; a start, or the next record, makes good for it.
      log.warn("the cluster's log can't be written after a configuration was taken over", {
        error,
      });
      this.#log.owe(snapshot);
    }
  }

  async #keepFormer(): Promise<void> {
    const { store, disk, nowMs } = this.#options;
    if (!isSeeded(store.state)) return;
    const date = new Date(nowMs()).toISOString().slice(0, 19).replaceAll(":", "-");
    const name = `replaced-${date}Z.jsonl`;
    const file = await disk.open(name, "make");
    if (file === null) return;
    try {
      await file.truncate(0);
      let at = 0;
      for (const part of store.export()) {
        const line = new Uint8Array(part.length + 1);
        line.set(part);
        line[part.length] = 0x0a;
        await file.write(at, line);
        at += line.length;
      }
      await file.sync();
    } finally {
      file.close();
    }
    log.info("this node's own configuration gives way to the cluster's and is kept in a file", {
      file: name,
    });
  }

  /**
   * Makes this store the only voter of a new cluster, with the configuration it has. Its term is later
   * than the one it was in.
   *
   * @throws {SvcError} `unavailable`; then nothing has changed.
   */
  async startCluster(cluster: string): Promise<void> {
    const { store, applier } = this.#options;
    const member = { ...newMember(this.#options, this.#member, false), cluster };
    const first = bootstrapped(member.id);
    const term = this.#log.content.hardState.currentTerm + 1;
    const snapshot = { ...first.snapshot, index: store.state.appliedIndex, term };
    const hardState = { ...first.hardState, currentTerm: term };
    const log = await RaftLog.prepare(
      this.#options.disk,
      logOf(member, { ...first, hardState, snapshot }),
    );
    await this.#become({ ...member, snapshot }, log, async (stored) => {
      await applier.replaceAll(store.export(store.epoch + 1), [{ key: RAFT_KEY, value: stored }]);
    });
  }

  /**
   * Leaves the cluster: the store waits to be added to another one. It goes on from its term, so that
   * the one it tells of does not fall; a leader of an earlier one is elected once more.
   *
   * @throws {SvcError} `unavailable`; then nothing has changed.
   */
  async leave(): Promise<void> {
    const member = newMember(this.#options, this.#member, true);
    const { currentTerm } = this.#log.content.hardState;
    const hardState = { ...NOTHING_PERSISTED.hardState, currentTerm };
    const log = await RaftLog.prepare(
      this.#options.disk,
      logOf(member, { ...NOTHING_PERSISTED, hardState }),
    );
    await this.#become(member, log, (stored) => this.#options.store.putRaftMember(stored));
  }

  async #become(
    member: RaftMember,
    next: RaftLog,
    store: (member: RaftMember) => Promise<void>,
  ): Promise<void> {
    try {
      await store(member);
    } catch (error) {
      next.close();
      throw error;
    }
    this.#log.close();
    [this.#member, this.#log] = [member, next];
    await next.adopt().catch((error) => {
      // The next start does it: the store says whose the log is.
      log.warn("the cluster's new log has not got its name", { error: messageOf(error) });
    });
  }

  close(): void {
    this.#log.close();
  }
}

function newMember(
  { node, drawNumber }: Pick<RaftStorageOptions, "node" | "drawNumber">,
  before: RaftMember | null,
  hasLeft: boolean,
): RaftMember {
  return {
    id: `${node}.${drawNumber()}`,
    generation: (before?.generation ?? 0) + 1,
    cluster: "",
    hasLeft,
    copiedAt: before?.copiedAt ?? null,
    snapshot: null,
  };
}

function logOf(
  { id, generation }: RaftMember,
  { hardState, snapshot, entries }: Omit<Persisted, "appliedIndex">,
): LogContent {
  return { id, generation, hardState, snapshot, entries };
}

/**
 * Makes a log go with the state that is there.
 *
 * @throws {DamagedLog} If it lacks what was applied.
 */
async function reconcile(
  raftLog: RaftLog,
  { snapshot }: RaftMember,
  appliedIndex: number,
): Promise<void> {
  const { content } = raftLog;
  if (snapshot !== null && snapshot.index > content.snapshot.index) {
    const there = content.entries.find(({ index }) => index === snapshot.index);
    // A state was taken over, and the log has not heard of it.
    if (there?.term !== snapshot.term) {
      await raftLog.append({ hardState: null, snapshot, entries: [] });
    }
  }
  const { snapshot: base, entries, hardState } = raftLog.content;
  const lastTerm = entries.at(-1)?.term ?? base.term;
  if (hardState.currentTerm < lastTerm) {
    throw new DamagedLog(`it is of term ${hardState.currentTerm}, and has entries of ${lastTerm}`);
  }
  if (base.index === 0) return;
  const lastIndex = base.index + entries.length;
  if (appliedIndex > lastIndex) {
    throw new DamagedLog(`it ends at ${lastIndex}, and ${appliedIndex} was applied`);
  }
  if (appliedIndex < base.index) {
    throw new DamagedLog(`it begins at ${base.index}, and only ${appliedIndex} was applied`);
  }
}

function readMember(json: unknown): RaftMember | null {
  if (typeof json !== "object" || json === null) return null;
  const { id, generation, cluster, hasLeft, copiedAt, snapshot } = json as Partial<RaftMember>;
  if (typeof id !== "string" || id.length > ID_LENGTH_MAX || typeof cluster !== "string") {
    return null;
  }
  if (!Number.isSafeInteger(generation) || typeof hasLeft !== "boolean") return null;
  if (copiedAt !== null && typeof copiedAt !== "string") return null;
  if (snapshot !== null && !isSnapshot(snapshot)) return null;
  return { id, generation: Number(generation), cluster, hasLeft, copiedAt, snapshot };
}

function isSnapshot(json: unknown): json is RaftSnapshot {
  const { index, term, configuration } = (json ?? {}) as Partial<RaftSnapshot>;
  return Number.isSafeInteger(index) && Number.isSafeInteger(term) &&
    isConfiguration(configuration);
}

function isConfiguration(json: unknown): json is Configuration {
  const { voters, outgoing, learners, witnesses } = (json ?? {}) as Partial<Configuration>;
  const lists: unknown[] = [voters, outgoing, learners, witnesses];
  const isIds = (list: unknown) =>
    Array.isArray(list) && list.every((id) => typeof id === "string");
  return lists.every(isIds) && isWellFormed(json as Configuration);
}
