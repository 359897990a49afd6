import { messageOf, SvcError } from "../errors.ts";
import { log } from "../log.ts";
import type { AuditEntry, LiveState, Made, Write } from "../model/mod.ts";
import { type AuditPage, type AuditQuery, readAudit } from "./audit_log.ts";
import {
  APPLIED_KEY,
  AUDIT_RANGE_KEY,
  auditKey,
  FILTER_DIGEST_KEY,
  JOURNAL_KEY,
  keyText,
  numberText,
  PROBE_KEY,
} from "./keys.ts";
import { appliedRecord, type AuditRange, load, type Loaded, MIGRATIONS } from "./load.ts";
import type { Clock, LocalStore, Session } from "./ports.ts";
import { openReadableCopy } from "./readable_copy.ts";
import { Sessions } from "./sessions.ts";
import { commitWhole, UnfinishedError } from "./transaction.ts";
import { encodeValue, readKey } from "./values.ts";

/** Newest entries of the audit log that are kept. */
export const AUDIT_ENTRIES_MAX = 100_000;
/** Old entries that a commit deletes beyond those it adds. */
const AUDIT_PRUNE_MAX = 64;
const FILE_NAME = "store.kv";
/** Pauses between tries while it can't be written. */
const RETRY_MS_MIN = 5_000;
const RETRY_MS_MAX = 60_000;

export interface StoreOptions {
  readonly clock: Clock;
  /** Version of this program; a store says which wrote it. */
  readonly program: string;
  readonly auditEntriesMax?: number;
  readonly migrations?: typeof MIGRATIONS;
  /** Opens its file once more, to go on after the disk could not be written. */
  readonly reopen?: () => Promise<Deno.Kv>;
}

/** The store of one node. Nothing else writes its file. */
export class Store implements LocalStore {
  #kv: Deno.Kv;
  readonly #options: StoreOptions;
  readonly #auditEntriesMax: number;
  readonly #sessions: Sessions;
  #state: LiveState;
  #versionstamp: string;
  #audit: AuditRange;
  /** Why nothing can be written until the store is opened again. */
  #sealed: string | null = null;
  /** True after a failed commit: whether it was made is not known. */
  #isUncertain = false;
  /** Why nothing could be written the last time; it is tried again until it can. */
  #failure: string | null = null;
  /** It is a copy in memory of a file that can't be written. */
  #isCopy: boolean;
  #retryMs = RETRY_MS_MIN;
  #retry: ReturnType<typeof setTimeout> | undefined;
  /** Ends when nobody works on the file. */
  #turn: Promise<unknown> = Promise.resolve();
  #isClosed = false;

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

  /**
   * Stores changes that were made one after another from `state`, with their audit entries: all of
   * them or none. Returns once they are durable. One commit at a time.
   *
   * @throws {SvcError} `unavailable`, if they could not be stored.
   */
  async commit(made: readonly Made[]): Promise<void> {
    if (made.length > 0) await this.#inTurn(() => this.#commit(made));
  }

  async #commit(made: readonly Made[]): Promise<void> {
    if (this.#isCopy) throw unavailable(`${this.#failure}`);
    await this.#settle();
    const { state } = made[made.length - 1];
    const audit = this.#nextRange(made.length);
    const writes = new Map<string, Write>();
    const add = (write: Write) => writes.set(keyText(write.key), write);
    for (const { writes: own } of made) own.forEach(add);
    for (let n = this.#audit.first; n < audit.first; n++) add({ key: auditKey(n), value: null });
    for (const [i, one] of made.entries()) {
      const n = this.#audit.next + i;
      add({ key: auditKey(n), value: { id: numberText(n), ...one.audit } satisfies AuditEntry });
    }
    add({ key: AUDIT_RANGE_KEY, value: audit });
    add({ key: APPLIED_KEY, value: appliedRecord(state) }); // Last: the commit is of its version.
    const versionstamp = await this.#write([...writes.values()]);
    this.#state = state;
    this.#audit = audit;
    this.#versionstamp = versionstamp;
  }

  async #write(writes: readonly Write[]): Promise<string> {
    let versionstamp: string | null;
    try {
      const guard = { key: APPLIED_KEY, versionstamp: this.#versionstamp };
      versionstamp = await commitWhole(this.#kv, writes, guard);
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
    this.#seal("another process has written to it");
    throw unavailable(`${this.#sealed}`);
  }

  #seal(reason: string): void {
    this.#sealed = `${reason}: start svc again to go on from there`;
  }

  /** Runs what works on the file when nobody else does. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => {});
    return done;
  }

  #failed(reason: string): void {
    if (this.#failure === null) log.error("the store can't be written", { error: reason });
    this.#failure = reason;
    if (this.#options.reopen === undefined || this.#isClosed) return;
    clearTimeout(this.#retry);
    const { reopen } = this.#options;
    this.#retry = setTimeout(() => void this.#inTurn(() => this.#recover(reopen)), this.#retryMs);
    this.#retryMs = Math.min(2 * this.#retryMs, RETRY_MS_MAX);
  }

  #succeeded(): void {
    if (this.#failure !== null) log.info("the store is written again");
    clearTimeout(this.#retry);
    this.#failure = null;
    this.#retryMs = RETRY_MS_MIN;
  }

  /** Finds out whether the file can be written again, and goes on with it. Never throws. */
  async #recover(reopen: () => Promise<Deno.Kv>): Promise<void> {
    if (this.#failure === null || this.#sealed !== null || this.#isClosed) return;
    try {
      if (this.#isCopy || !(await canWrite(this.#kv))) await this.#goOnWith(await reopen());
      this.#succeeded();
    } catch (error) {
      this.#failed(`cannot be written: ${messageOf(error)}`);
    }
  }

  /** A file that was opened while it could not be written never can: it is opened once more. */
  async #goOnWith(kv: Deno.Kv): Promise<void> {
    try {
      await kv.set(PROBE_KEY, encodeValue(this.#options.program));
      const { state, versionstamp, audit } = await loadAll(kv, this.#options);
      const isSame = state.appliedIndex === this.#state.appliedIndex &&
        (this.#isCopy || versionstamp === this.#versionstamp);
      if (!isSame) this.#seal("a change that was called failed is there");
      if (!isSame) throw unavailable(`${this.#sealed}`);
      await this.#sessions.moveTo(kv);
      [this.#versionstamp, this.#audit] = [versionstamp, audit];
    } catch (error) {
      kv.close();
      throw error;
    }
    this.#kv.close();
    this.#kv = kv;
    this.#isCopy = this.#isUncertain = false;
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

  #nextRange(added: number): AuditRange {
    const { first, next } = this.#audit;
    // What is added now stays, however much it is.
    const wanted = Math.min(Math.max(first, next + added - this.#auditEntriesMax), next);
    return { first: Math.min(wanted, first + added + AUDIT_PRUNE_MAX), next: next + added };
  }

  /** @throws {SvcError} `unavailable`, if the session can't be kept. */
  async putSession(session: Session): Promise<void> {
    await orUnavailable(this.#sessions.put(session));
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

  /** SHA-256 of the `[filter]` table that this node was seeded from; `null` before that. */
  async filterDigest(): Promise<string | null> {
    const stored = await orUnavailable(readKey(this.#kv, FILTER_DIGEST_KEY));
    return typeof stored?.value === "string" ? stored.value : null;
  }

  async rememberFilterDigest(digest: string): Promise<void> {
    await orUnavailable(this.#kv.set(FILTER_DIGEST_KEY, encodeValue(digest)));
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    this.#kv.close();
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

function unavailable(message: string, cause?: unknown): SvcError {
  return new SvcError("unavailable", `store: ${message}`, cause === undefined ? {} : { cause });
}

async function orUnavailable<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw error instanceof SvcError ? error : unavailable(messageOf(error), error);
  }
}

/** Opens the file at `path`, which is made for the owner alone. */
async function openFile(directory: string, path: string): Promise<Deno.Kv> {
  await Deno.mkdir(directory, { recursive: true, mode: 0o700 });
  // Made here, as SQLite would let others read it; its other files take this one's mode.
  (await Deno.open(path, { write: true, create: true, mode: 0o600 })).close();
  await Deno.chmod(path, 0o600); // One that was there already.
  return await Deno.openKv(path);
}

/**
 * Opens the store in `directory`, which is made for the owner alone.
 *
 * @throws {SvcError} `unavailable`, if it can't be opened, is damaged or of a newer program.
 */
export async function openStore(
  options: StoreOptions & { readonly directory: string },
): Promise<Store> {
  const path = `${options.directory}/${FILE_NAME}`;
  const reopen = () => openFile(options.directory, path);
  let kv: Deno.Kv;
  try {
    kv = await reopen();
  } catch (error) {
    throw unavailable(`${path}: cannot be opened: ${messageOf(error)}`, error);
  }
  return await Store.over(kv, { ...options, reopen });
}

/**
 * Opens a store in `directory` that can be read and not written, for which `failure` is the reason:
 * it is written once it can be.
 *
 * @throws If it can't be read either, is damaged or of a newer program.
 */
export async function openReadOnlyStore(
  options: StoreOptions & { readonly directory: string },
  failure: string,
): Promise<Store> {
  const path = `${options.directory}/${FILE_NAME}`;
  const reopen = () => openFile(options.directory, path);
  return await Store.over(await openReadableCopy(path), { ...options, reopen }, { failure });
}

/** Opens a store in memory, which is gone with the process: what a node runs on that has no other. */
export async function openTemporaryStore(options: StoreOptions): Promise<Store> {
  return await Store.over(await Deno.openKv(":memory:"), options);
}
