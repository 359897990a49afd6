import type { Clock } from "../clock/mod.ts";
import { messageOf, SvcError } from "../errors.ts";
import { log } from "../log.ts";
import {
  type Actor,
  type AuditEntry,
  type LiveState,
  type NewAuditEntry,
  type Note,
  noteEntry,
  type Session,
  type Write,
} from "../model/mod.ts";
import { type AuditPage, type AuditQuery, readAudit } from "./audit_log.ts";
import {
  APPLIED_KEY,
  AUDIT_RANGE_KEY,
  auditKey,
  JOURNAL_KEY,
  keyText,
  LOCAL_PREFIX,
  type LocalName,
  numberText,
  PROBE_KEY,
  RAFT_KEY,
} from "./keys.ts";
import { appliedRecord, type AuditRange, load, type Loaded, MIGRATIONS } from "./load.ts";
import type { LocalStore } from "./ports.ts";
import { Proposals, type Remembered, writeOf } from "./proposals.ts";
import { type ReplicatedState, replicatedWrites, writeParts } from "./replicated_state.ts";
import { Sessions } from "./sessions.ts";
import { commitWhole, replaceWhole, UnfinishedError } from "./transaction.ts";
import { encodeValue, readKey, unavailable } from "./values.ts";

/** Newest entries of the audit log that are kept. */
export const AUDIT_ENTRIES_MAX = 100_000;
/** Old entries that a commit deletes beyond those it adds. */
const AUDIT_PRUNE_MAX = 64;
/** Most notes that wait to be stored; one more is refused. */
export const NOTES_MAX = 1_024;
/** Pauses between tries while it can't be written. */
const RETRY_MS_MIN = 5_000;
const RETRY_MS_MAX = 60_000;

export interface StoreOptions {
  readonly clock: Clock;
  /** This member's name in the audit log. */
  readonly node: string;
  /** Version of this program; a store says which wrote it. */
  readonly program: string;
  readonly auditEntriesMax?: number;
  readonly migrations?: typeof MIGRATIONS;
  /** Opens its file once more, to go on after the disk could not be written. */
  readonly reopen?: () => Promise<Deno.Kv>;
  readonly later?: Later;
}

/** Calls `work` in so many milliseconds. Returns what prevents that. */
export type Later = (ms: number, work: () => void) => () => void;

const laterByTimer: Later = (ms, work) => {
  const timer = setTimeout(work, ms);
  return () => clearTimeout(timer);
};

/** What is stored in one step: all of it, or nothing. */
export interface Batch {
  /** What it was made of; where that is not the store's state any more, it is not stored. */
  readonly base: LiveState;
  /** After it. */
  readonly state: LiveState;
  /** The last one of a key counts. */
  readonly writes: readonly Write[];
  readonly audit: readonly NewAuditEntry[];
  /** Those that it applies. */
  readonly proposals: readonly Remembered[];
}

interface WaitingNote {
  readonly entry: NewAuditEntry;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

const REPLICATION: Actor = { kind: "replication", name: null, address: null };

/** The store of one node. Nothing else writes its file. */
export class Store implements LocalStore {
  #kv: Deno.Kv;
  readonly #options: StoreOptions;
  readonly #auditEntriesMax: number;
  readonly #sessions: Sessions;
  #state: LiveState;
  #epoch: number;
  #proposals: Proposals;
  /** They go with the next commit. */
  #notes: WaitingNote[] = [];
  #versionstamp: string;
  #audit: AuditRange;
  /** Why nothing can be written until what it has is read again. */
  #sealed: string | null = null;
  /** Another process has written to it: it is not opened again. */
  #isTaken = false;
  /** True after a failed commit: whether it was made is not known. */
  #isUncertain = false;
  /** Why nothing could be written the last time; it is tried again until it can. */
  #failure: string | null = null;
  /** It is a copy in memory of a file that can't be written. */
  #isCopy: boolean;
  #retryMs = RETRY_MS_MIN;
  #cancelRetry: () => void = () => {};
  /** Ends when nobody works on the file. */
  #last: Promise<unknown> = Promise.resolve();
  #isClosed = false;
  /** Another process has the file. */
  #isSuspended = false;

  private constructor(
    kv: Deno.Kv,
    loaded: Loaded,
    options: StoreOptions,
    copyOf: { readonly failure: string } | null,
  ) {
    this.#kv = kv;
    this.#options = options;
    this.#isCopy = copyOf !== null;
    this.#auditEntriesMax = options.auditEntriesMax ?? AUDIT_ENTRIES_MAX;
    this.#sessions = new Sessions(kv, options.clock, loaded.sessions);
    this.#state = loaded.state;
    this.#epoch = loaded.epoch;
    this.#proposals = new Proposals(loaded.proposals);
    this.#versionstamp = loaded.versionstamp;
    this.#audit = loaded.audit;
    if (copyOf !== null) this.#failed(copyOf.failure);
  }

  /**
   * Reads and checks the store that `kv` holds, and makes one where there is none. `kv` is closed
   * by `close`, and when this fails. `copyOf` says that it is a copy, and why the file itself can't be
   * written.
   *
   * @throws {SvcError} `unavailable`, if it is damaged or of a newer program.
   */
  static async over(
    kv: Deno.Kv,
    options: StoreOptions,
    copyOf: { readonly failure: string } | null = null,
  ): Promise<Store> {
    try {
      return new Store(kv, await loadAll(kv, options), options, copyOf);
    } catch (error) {
      kv.close();
      if (error instanceof SvcError) throw error;
      throw unavailable(`cannot be read: ${messageOf(error)}`, error);
    }
  }

  /** Told the state that was found on disk where a change that was called failed was made after all. */
  onReload: (state: LiveState) => void = () => {};

  /** What keeps changes from being stored, for the status. */
  get problem(): string | null {
    if (this.#sealed !== null) return `store: ${this.#sealed}`;
    if (this.#failure === null) return null;
    return `store: ${this.#failure}; what it has holds, and changes are refused until it can`;
  }

  /** As of the last commit. */
  get state(): LiveState {
    return this.#state;
  }

  /** Which configuration it has: grows when that is replaced by another. */
  get epoch(): number {
    return this.#epoch;
  }

  /** What was applied lately, as of the last commit. */
  get proposals(): Pick<Proposals, "find"> {
    return this.#proposals;
  }

  /**
   * What members agree on, as of the last commit, in parts of at most `STATE_PART_BYTES_MAX`; later
   * changes change nothing of it. It holds what is secret of users. `epoch` is told in place of the
   * store's own.
   */
  export(epoch: number = this.#epoch): Iterable<Uint8Array> {
    const state = this.#state;
    return writeParts({ state, epoch, proposals: this.#proposals.after(state.appliedIndex) });
  }

  /**
   * Stores what was made of `state`, in one step. Returns once it is durable. One commit at a time.
   *
   * @throws {SvcError} `unavailable`, if it could not be stored.
   */
  async commit(batch: Batch): Promise<void> {
    await this.#inOrder(() => this.#commit(batch));
  }

  /**
   * Puts a state, with its index and epoch, in the place of all that members agree on, in one step:
   * killed at any moment the store has the one or the other. `alongside` are writes of the caller's
   * that go with it. What is this node's alone stays.
   *
   * @throws {SvcError} `unavailable`, if it could not be stored.
   */
  async replaceAll(next: ReplicatedState, alongside: readonly Write[]): Promise<void> {
    await this.#inOrder(() => {
      const audit = [this.#noteEntry({
        action: "replicate",
        resource: { type: "config", id: null },
        after: { epoch: next.epoch, version: next.state.appliedIndex },
      }, REPLICATION)];
      const writes = [...replicatedWrites(next), ...alongside];
      const base = this.#state;
      return this.#commit({ base, state: next.state, writes, audit, proposals: [] }, next);
    });
  }

  /** See `LocalStore`; notes that wait go together, or with a change. */
  async note(note: Note, actor: Actor): Promise<void> {
    if (this.#notes.length >= NOTES_MAX) throw unavailable(`${NOTES_MAX} notes wait already`);
    const entry = this.#noteEntry(note, actor);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#notes.push({ entry, resolve, reject });
    if (this.#notes.length === 1) void this.#inOrder(() => this.#commitNotes()).catch(() => {});
    await promise;
  }

  #noteEntry(note: Note, actor: Actor): NewAuditEntry {
    const { clock, node } = this.#options;
    return noteEntry(note, { actor, at: new Date(clock.nowMs()).toISOString(), node });
  }

  async #commitNotes(): Promise<void> {
    if (this.#notes.length === 0) return; // A change took them along.
    const state = this.#state;
    await this.#commit({ base: state, state, writes: [], audit: [], proposals: [] });
  }

  async #commit(batch: Batch, replacing: ReplicatedState | null = null): Promise<void> {
    const notes = this.#notes.splice(0);
    try {
      const audit = [...batch.audit, ...notes.map(({ entry }) => entry)];
      await this.#store({ ...batch, audit }, replacing);
    } catch (error) {
      for (const { reject } of notes) reject(error);
      throw error;
    }
    for (const { resolve } of notes) resolve();
  }

  async #store(batch: Batch, replacing: ReplicatedState | null): Promise<void> {
    if (this.#isCopy) throw unavailable(`${this.#failure}`);
    await this.#settle();
    if (batch.base !== this.#state) throw unavailable("it has another state by now: try again");
    const { state } = batch;
    const epoch = replacing?.epoch ?? this.#epoch;
    const audit = this.#nextRange(batch.audit.length);
    const writes = new Map<string, Write>();
    const add = (write: Write) => writes.set(keyText(write.key), write);
    batch.writes.forEach(add);
    for (const one of batch.proposals) add(writeOf(one));
    for (let n = this.#audit.first; n < audit.first; n++) add({ key: auditKey(n), value: null });
    for (const [i, entry] of batch.audit.entries()) {
      const n = this.#audit.next + i;
      add({ key: auditKey(n), value: { id: numberText(n), ...entry } satisfies AuditEntry });
    }
    add({ key: AUDIT_RANGE_KEY, value: audit });
    // Last: the commit is of its version.
    add({ key: APPLIED_KEY, value: appliedRecord(state, epoch) });
    const commit = replacing === null ? commitWhole : replaceWhole;
    const versionstamp = await this.#write([...writes.values()], commit);
    this.#state = state;
    this.#epoch = epoch;
    if (replacing !== null) this.#proposals = new Proposals(replacing.proposals);
    for (const one of batch.proposals) this.#proposals.add(one);
    this.#audit = audit;
    this.#versionstamp = versionstamp;
  }

  async #write(writes: readonly Write[], commit: typeof commitWhole): Promise<string> {
    let versionstamp: string | null;
    try {
      const guard = { key: APPLIED_KEY, versionstamp: this.#versionstamp };
      versionstamp = await commit(this.#kv, writes, guard);
    } catch (error) {
      this.#isUncertain = true;
      if (error instanceof UnfinishedError) this.#seal("a large change is only half written");
      this.#failed(`cannot be written: ${messageOf(error)}`);
      throw unavailable(`cannot be written: ${messageOf(error)}`, error);
    }
    if (versionstamp !== null) {
      this.#succeeded();
      return versionstamp;
    }
    this.#isTaken = true;
    this.#seal("another process has written to it");
    throw unavailable(`${this.#sealed}`);
  }

  #seal(reason: string): void {
    const isRead = this.#options.reopen !== undefined && !this.#isTaken;
    const next = isRead ? "it is read again in a moment" : "start svc again to go on from there";
    this.#sealed = `${reason}: ${next}`;
  }

  /** Runs what works on the file when nobody else does. */
  #inOrder<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => {});
    return done;
  }

  #failed(reason: string): void {
    if (this.#failure === null) log.error("the store can't be written", { error: reason });
    this.#failure = reason;
    if (this.#options.reopen === undefined || this.#isClosed) return;
    this.#cancelRetry();
    const { reopen, later = laterByTimer } = this.#options;
    this.#cancelRetry = later(this.#retryMs, () => void this.#inOrder(() => this.#recover(reopen)));
    this.#retryMs = Math.min(2 * this.#retryMs, RETRY_MS_MAX);
  }

  #succeeded(): void {
    if (this.#failure !== null) log.info("the store is written again");
    this.#cancelRetry();
    this.#failure = null;
    this.#retryMs = RETRY_MS_MIN;
  }

  /** Finds out whether the file can be written again, and goes on with it. Never throws. */
  async #recover(reopen: () => Promise<Deno.Kv>): Promise<void> {
    if (this.#failure === null || this.#isTaken || this.#isClosed || this.#isSuspended) return;
    try {
      const isWell = !this.#isCopy && await canWrite(this.#kv) && await this.#isSettled();
      if (!isWell) await this.#goOnWith(await reopen());
      this.#succeeded();
    } catch (error) {
      this.#failed(`cannot be written: ${messageOf(error)}`);
    }
  }

  /** A file that was opened while it could not be written never can: it is opened once more. */
  async #goOnWith(kv: Deno.Kv): Promise<void> {
    try {
      await kv.set(PROBE_KEY, encodeValue(this.#options.program));
      const loaded = await loadAll(kv, this.#options);
      await this.#sessions.moveTo(kv);
      if (!this.#isSuspended) this.#kv.close();
      this.#isSuspended = false;
      this.#kv = kv;
      this.#isCopy = this.#isUncertain = false;
      this.#sealed = null;
      this.#goOnFrom(loaded);
    } catch (error) {
      if (kv !== this.#kv) kv.close();
      throw error;
    }
  }

  /** What is on disk holds, a change as well that was called failed. */
  #goOnFrom({ state, epoch, proposals, versionstamp, audit }: Loaded): void {
    const isSame = state.appliedIndex === this.#state.appliedIndex && epoch === this.#epoch;
    [this.#versionstamp, this.#audit] = [versionstamp, audit];
    if (isSame) return;
    log.warn("the store has a change that was called failed, which holds");
    [this.#state, this.#epoch, this.#proposals] = [state, epoch, new Proposals(proposals)];
    this.onReload(state);
  }

  /** After a failed commit: goes on if it left nothing behind. */
  async #settle(): Promise<void> {
    if (this.#sealed !== null) throw unavailable(this.#sealed);
    if (!this.#isUncertain) return;
    const applied = await orUnavailable(readKey(this.#kv, APPLIED_KEY));
    const journal = await orUnavailable(readKey(this.#kv, JOURNAL_KEY));
    if (applied?.versionstamp !== this.#versionstamp || journal !== null) {
      this.#seal("a change that was called failed is there");
      throw unavailable(`${this.#sealed}`);
    }
    this.#isUncertain = false;
  }

  async #isSettled(): Promise<boolean> {
    try {
      await this.#settle();
      return true;
    } catch {
      return false;
    }
  }

  #nextRange(added: number): AuditRange {
    const { first, next } = this.#audit;
    // What is added now stays, however much it is.
    const wanted = Math.min(Math.max(first, next + added - this.#auditEntriesMax), next);
    return { first: Math.min(wanted, first + added + AUDIT_PRUNE_MAX), next: next + added };
  }

  /** @throws {SvcError} `unavailable`, while another process has the file. */
  async putSession(session: Session): Promise<void> {
    if (this.#isSuspended) throw unavailable(`${this.#sealed}`);
    await this.#sessions.put(session);
  }

  sessionsOf(userId: string): Promise<readonly Session[]> {
    return Promise.resolve(this.#sessions.of(userId));
  }

  session(sha256: string): Promise<Session | null> {
    return Promise.resolve(this.#sessions.get(sha256));
  }

  /** @throws {SvcError} `unavailable`, if it may come back with a restart. */
  async deleteSession(sha256: string): Promise<void> {
    await orUnavailable(this.#sessions.delete(sha256));
  }

  audit(query: AuditQuery): Promise<AuditPage> {
    return orUnavailable(readAudit(this.#kv, query, numberText(this.#audit.first)));
  }

  /** What this node alone keeps under a name; `null`: nothing. */
  async localValue(name: LocalName): Promise<unknown> {
    return (await orUnavailable(readKey(this.#kv, [...LOCAL_PREFIX, name])))?.value ?? null;
  }

  async putLocalValue(name: LocalName, value: unknown): Promise<void> {
    await orUnavailable(this.#kv.set([...LOCAL_PREFIX, name], encodeValue(value)));
  }

  /**
   * Leaves its file, if it has one, to another process, once what is on its way is stored; nothing is
   * stored until `resume`.
   */
  async suspend(): Promise<void> {
    if (this.#options.reopen === undefined) return;
    await this.#inOrder(() => Promise.resolve());
    this.#cancelRetry();
    this.#sealed = "it is handed to another program: try again in a moment";
    this.#isSuspended = true;
    this.#kv.close();
  }

  /** Goes on with the file as it is by now. It throws if it can't be opened: changes are refused then. */
  async resume(): Promise<void> {
    const { reopen } = this.#options;
    if (reopen === undefined || !this.#isSuspended) return;
    await this.#inOrder(async () => await this.#goOnWith(await reopen()));
  }

  /** Which member of which cluster this is, as `RaftStorage` has it; `null`: it never was in one. */
  async raftMember(): Promise<unknown> {
    return (await orUnavailable(readKey(this.#kv, RAFT_KEY)))?.value ?? null;
  }

  /** @throws {SvcError} `unavailable`, if it could not be stored. */
  async putRaftMember(value: unknown): Promise<void> {
    await this.#inOrder(async () => {
      if (this.#isCopy) throw unavailable(`${this.#failure}`);
      await orUnavailable(this.#kv.set(RAFT_KEY, encodeValue(value)));
    });
  }

  /** Resolves once nothing is on its way to the file. */
  async idle(): Promise<void> {
    await this.#last;
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelRetry();
    if (!this.#isSuspended) this.#kv.close();
  }
}

function loadAll(kv: Deno.Kv, { program, migrations = MIGRATIONS }: StoreOptions): Promise<Loaded> {
  return load(kv, program, migrations);
}

async function canWrite(kv: Deno.Kv): Promise<boolean> {
  try {
    await kv.set(PROBE_KEY, encodeValue(null));
    return true;
  } catch {
    return false;
  }
}

async function orUnavailable<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw error instanceof SvcError ? error : unavailable(messageOf(error), error);
  }
}
