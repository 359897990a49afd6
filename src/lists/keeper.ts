import { createHash } from "node:crypto";
import { invariant, InvariantError, messageOf, SvcError } from "../errors.ts";
import { log } from "../log.ts";
import { findListUrlProblem } from "../model/mod.ts";
import { denoDisk } from "./deno_disk.ts";
import { download, DOWNLOAD_LIMITS, type DownloadLimits, type Validators } from "./download.ts";
import {
  type Copy,
  hashText,
  KeptLists,
  type NewText,
  readWhole,
  sha256Hex,
} from "./kept_lists.ts";
import { findLocalList } from "./local_path.ts";
import type { Chance, Clock, Disk, HttpGet } from "./ports.ts";
import { dueAtMs, retryDelayMs } from "./schedule.ts";
import {
  CHECKED_BYTES_MAX,
  LIST_BYTES_MAX,
  type ListSource,
  type ListState,
  type ListStatus,
} from "./source.ts";
import { TextCheck } from "./text_check.ts";
import { Turn } from "./turn.ts";

/** A smaller kept text may shrink as it likes. */
const SHRINK_BYTES_MIN = 8 * 1024;
/** An answer smaller than this part of the kept text is taken for a mistake of the server's… */
const SHRINK_RATIO_MIN = 0.1;
/** …until it has been the answer for this long. */
const SHRINK_BELIEVED_MS = 86_400_000;
/** A list that fails for this long, or this often in a row, is a problem of the node's. */
const FAILING_LONG_MS = 2 * 86_400_000;
const FAILURES_LONG = 12;
const BYTES_PER_MB = 1_000_000;

export interface ListKeeperOptions {
  readonly get: HttpGet;
  readonly clock: Clock;
  readonly chance: Chance;
  /** This machine's, if left out. */
  readonly disk?: Disk;
  /** The only directory that lists are read from by path; an absolute path. */
  readonly localListsDirectory: string;
  readonly limits?: DownloadLimits;
}

/** The text of a list, for the compiler. */
export interface LoadedList {
  readonly source: ListSource;
  /** A buffer of its own, which may be transferred. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Of the bytes, in hexadecimal. */
  readonly sha256: string;
}

/** A text and its hash. */
type HashedText = Omit<LoadedList, "source">;

/** What became of a list in a refresh; only `updated` is a reason to compile. */
export type RefreshOutcome = "updated" | "unchanged" | "failed" | "skipped";

export type RefreshEvent =
  | {
    readonly kind: "started";
    readonly source: ListSource;
    /** 0 to `count` - 1. */
    readonly index: number;
    readonly count: number;
  }
  | {
    readonly kind: "finished";
    readonly source: ListSource;
    readonly index: number;
    readonly count: number;
    readonly outcome: RefreshOutcome;
    readonly status: ListStatus;
  };

export interface RefreshOptions {
  /** Longest age of a text, from the settings. */
  readonly intervalMs: number;
  /** Asks for every list, due or not. */
  readonly force?: boolean;
  /** Somebody is waiting: goes beside what is renewed in the background, not behind it. */
  readonly urgent?: boolean;
  readonly signal?: AbortSignal;
}

/** What the keeper remembers of a list while it runs. */
interface Entry {
  /** The URL or path that all this is about. */
  readonly place: string;
  readonly spread: number;
  checkedAtMs: number | null;
  retryAtMs: number | null;
  failures: number;
  /** When the failures in a row began. */
  failingSinceMs: number | null;
  /** Bytes that the download under way has brought; `null` where none is. */
  fetchedBytes: number | null;
  state: ListState;
  message: string | null;
  /** Hash of a local file's text, to see it change; `null` before it is read and for a URL. */
  localSha256: string | null;
}

/**
 * Keeps the texts of lists: hands out what there is, at once, and renews it when it is due. The
 * last good text stays whatever a server sends. Calls may overlap; one text moves at a time.
 */
export class ListKeeper {
  readonly #kept: KeptLists;
  readonly #options: ListKeeperOptions;
  readonly #disk: Disk;
  readonly #entries = new Map<string, Entry>();
  readonly #counts = new Map<string, { rules: number; unsupported: number }>();
  /** One download at a time of what is due, and one of what somebody waits for. */
  readonly #downloads = { due: new Turn(), urgent: new Turn() };
  /** IDs whose text is being renewed, until then. */
  readonly #busy = new Map<string, Promise<unknown>>();
  /** One change or reading of the kept files at a time; never held over the network. */
  readonly #files = new Turn();

  private constructor(kept: KeptLists, options: ListKeeperOptions, disk: Disk) {
    this.#kept = kept;
    this.#options = options;
    this.#disk = disk;
  }

  /** The folder of kept texts. */
  get directory(): string {
    return this.#kept.directory;
  }

  /** Opens the folder of kept texts; makes it, for this user alone, if it is not there. */
  static async open(directory: string, options: ListKeeperOptions): Promise<ListKeeper> {
    const disk = options.disk ?? denoDisk;
    return new ListKeeper(await KeptLists.open(directory, disk), options, disk);
  }

  /**
   * Reads, one by one, the texts that are at hand; asks no server. A list without one is left out,
   * and its status says why.
   *
   * At the end, kept texts of other lists are removed: but for `sources`, those in `alsoKeep`
   * (lists that are turned off or made meanwhile, the catalogue of services) are the ones that stay.
   */
  async *load(
    sources: readonly ListSource[],
    alsoKeep: () => Iterable<string> = () => [],
  ): AsyncGenerator<LoadedList> {
    for (const source of sources) {
      const text = await this.#files.run(() => this.#read(source));
      if (text !== null) yield { source, ...text };
    }
    const ids = new Set([...sources.map(({ id }) => id), ...alsoKeep()]);
    for (const id of this.#entries.keys()) if (!ids.has(id)) this.#entries.delete(id);
    for (const id of this.#counts.keys()) if (!ids.has(id)) this.#counts.delete(id);
    try {
      await this.#files.run(() => this.#kept.removeExcept(ids));
    } catch (error) {
      rethrowInvariant(error);
      log.warn("lists no longer in use cannot be removed", { error });
    }
  }

  /** The text of one source as it is at hand, or `null`; asks no server and removes nothing. */
  async text(source: ListSource): Promise<Uint8Array<ArrayBuffer> | null> {
    const text = await this.#files.run(() => this.#read(source));
    return text?.bytes ?? null;
  }

  /** Bytes of the kept text, or `null` where there is none of this URL. */
  keptBytes(id: string, url: string): number | null {
    const copy = this.#kept.copyOf(id);
    return copy?.url === url ? copy.sizeBytes : null;
  }

  /**
   * The SHA-256 of each text that `load` would hand out, in hexadecimal, without holding any: tells
   * whether rules compiled before are still theirs.
   */
  async digests(sources: readonly ListSource[]): Promise<{ source: ListSource; sha256: string }[]> {
    const digests = [];
    for (const source of sources) {
      const sha256 = await this.#files.run(() => this.#digest(source));
      if (sha256 !== null) digests.push({ source, sha256 });
    }
    return digests;
  }

  /**
   * Renews the lists that are due, one after the other, and tells how it goes. An aborted refresh
   * ends without a word about the list it was at, which stays as it was.
   */
  async *refresh(
    sources: readonly ListSource[],
    options: RefreshOptions,
  ): AsyncGenerator<RefreshEvent> {
    const { force = false, intervalMs, urgent = false } = options;
    const signal = options.signal ?? new AbortController().signal;
    const isDue = (source: ListSource) => force || this.#dueAtMs(source, intervalMs) <= this.#now();
    // Those that failed come last: their servers may hang.
    const failures = (source: ListSource) => this.#entryOf(source).failures;
    const due = sources.filter(isDue).sort((a, b) => failures(a) - failures(b));
    const count = due.length;
    const lane = urgent ? this.#downloads.urgent : this.#downloads.due;
    for (const [index, source] of due.entries()) {
      if (signal.aborted) return;
      yield { kind: "started", source, index, count };
      const outcome = await lane.run(() =>
        this.#alone(source.id, async () => {
          if (signal.aborted) return null;
          // Another refresh may have been faster.
          return isDue(source) ? await this.#refreshOne(source, signal) : "unchanged";
        })
      );
      if (outcome === null) return;
      yield { kind: "finished", source, index, count, outcome, status: this.status(source.id) };
    }
  }

  /** Does `work` while nobody else renews this text. */
  async #alone<T>(id: string, work: () => Promise<T>): Promise<T> {
    for (let busy = this.#busy.get(id); busy !== undefined; busy = this.#busy.get(id)) await busy;
    const done = work();
    this.#busy.set(id, done.catch(() => undefined)); // Its caller hears of a failure.
    try {
      return await done;
    } finally {
      this.#busy.delete(id);
    }
  }

  /** When the next list is due, or `Infinity` where there is none. */
  nextDueAtMs(sources: readonly ListSource[], intervalMs: number): number {
    return Math.min(...sources.map((source) => this.#dueAtMs(source, intervalMs)));
  }

  /** What is wrong for so long that somebody should look: a text a list, with the reason. */
  problems(sources: readonly ListSource[]): string[] {
    const nowMs = this.#now();
    return sources.flatMap(({ id, name }) => {
      const entry = this.#entries.get(id);
      if (entry === undefined || entry.failingSinceMs === null) return [];
      const isLong = nowMs - entry.failingSinceMs >= FAILING_LONG_MS;
      if (!isLong && entry.failures < FAILURES_LONG) return [];
      const since = new Date(entry.failingSinceMs).toISOString();
      return [`${name}: fails since ${since}: ${entry.message}`];
    });
  }

  /** What this node has of the list; of one it has not met, `pending`. */
  status(id: string): ListStatus {
    const entry = this.#entries.get(id);
    const { rules, unsupported } = this.#counts.get(id) ?? { rules: 0, unsupported: 0 };
    // A skipped list was looked at, but there is no text to be of any age.
    const checkedAtMs = entry?.state === "skipped" ? null : entry?.checkedAtMs ?? null;
    return {
      state: entry?.state ?? "pending",
      message: entry === undefined ? null : messageOfEntry(entry),
      rules,
      unsupported,
      refreshed_at: checkedAtMs === null ? null : new Date(checkedAtMs).toISOString(),
    };
  }

  /** Notes what the compiler made of the list. */
  setCounts(id: string, counts: { readonly rules: number; readonly unsupported: number }): void {
    this.#counts.set(id, { rules: counts.rules, unsupported: counts.unsupported });
  }

  #now(): number {
    return this.#options.clock.nowMs();
  }

  #dueAtMs(source: ListSource, intervalMs: number): number {
    return dueAtMs(this.#entryOf(source), intervalMs, this.#now());
  }

  /** What is remembered of the list; a list whose place has changed starts anew. */
  #entryOf(source: ListSource): Entry {
    const place = placeOf(source);
    const known = this.#entries.get(source.id);
    if (known !== undefined && known.place === place) return known;
    const copy = this.#kept.copyOf(source.id);
    const current = source.url !== undefined && copy?.url === source.url;
    const entry: Entry = {
      place,
      spread: this.#options.chance(),
      checkedAtMs: current ? copy.fetchedAtMs : null,
      retryAtMs: null,
      failures: 0,
      failingSinceMs: null,
      fetchedBytes: null,
      state: "pending",
      message: null,
      localSha256: null,
    };
    this.#entries.set(source.id, entry);
    return entry;
  }

  async #digest(source: ListSource): Promise<string | null> {
    const entry = this.#entryOf(source);
    if (source.path !== undefined) return await this.#hashLocal(source, entry);
    const intact = await this.#kept.verify(source.id);
    this.#noteKept(source, entry, intact);
    return intact ? this.#kept.copyOf(source.id)?.sha256 ?? null : null;
  }

  async #read(source: ListSource): Promise<HashedText | null> {
    const entry = this.#entryOf(source);
    if (source.path !== undefined) return await this.#readLocal(source, entry);
    const bytes = await this.#kept.read(source.id);
    this.#noteKept(source, entry, bytes !== null);
    const sha256 = this.#kept.copyOf(source.id)?.sha256;
    return bytes === null || sha256 === undefined ? null : { bytes, sha256 };
  }

  /** Settles what is known of a list by URL once its kept text was looked at. */
  #noteKept(source: ListSource, entry: Entry, intact: boolean): void {
    if (!intact) {
      // Whatever it was, it is no longer there: the next refresh fetches it.
      entry.checkedAtMs = null;
      if (entry.state === "ok") entry.state = "pending";
      if (this.#kept.isDamaged(source.id)) {
        entry.message ??= "the kept text is damaged and will be fetched anew";
      }
    } else if (this.#kept.copyOf(source.id)?.url !== source.url) {
      entry.message ??= "an older text is in use until that of the URL is fetched";
    } else if (entry.state === "pending") {
      entry.state = "ok";
    }
  }

  #readLocal(source: ListSource, entry: Entry): Promise<HashedText | null> {
    return this.#lookAtLocal(source, entry, async (path) => {
      const bytes = await readWhole(this.#disk, path, LIST_BYTES_MAX);
      const check = new TextCheck();
      check.add(bytes);
      check.finish(true); // An empty file is the operator's own wish.
      const sha256 = sha256Hex(bytes);
      return { value: { bytes, sha256 }, sha256 };
    });
  }

  /** The hash of a list by path, without holding its text. */
  #hashLocal(source: ListSource, entry: Entry): Promise<string | null> {
    return this.#lookAtLocal(source, entry, async (path) => {
      const { sha256 } = await hashText(this.#disk, path, true);
      return { value: sha256, sha256 };
    });
  }

  /** Looks at a list by path and settles its status; `null` where there is nothing to look at. */
  async #lookAtLocal<T>(
    source: ListSource,
    entry: Entry,
    look: (path: string) => Promise<{ readonly value: T; readonly sha256: string }>,
  ): Promise<T | null> {
    const { localListsDirectory } = this.#options;
    entry.localSha256 = null; // Until it is read: a text that comes back is an updated one.
    try {
      const found = await findLocalList(this.#disk, localListsDirectory, source.path ?? "");
      if (found.kind === "elsewhere") {
        this.#settle(source, entry, "skipped", found.message);
        return null;
      }
      const { value, sha256 } = await look(found.path);
      entry.localSha256 = sha256;
      this.#settle(source, entry, "ok", null);
      return value;
    } catch (error) {
      rethrowInvariant(error);
      this.#settle(source, entry, "failed", `${source.path}: ${messageOf(error)}`);
      return null;
    }
  }

  async #refreshOne(source: ListSource, signal: AbortSignal): Promise<RefreshOutcome | null> {
    const entry = this.#entryOf(source);
    if (source.path !== undefined) {
      const before = entry.localSha256;
      await this.#files.run(() => this.#hashLocal(source, entry));
      if (entry.state !== "ok") return entry.state === "skipped" ? "skipped" : "failed";
      return entry.localSha256 === before ? "unchanged" : "updated";
    }
    const text = source.url ?? "";
    const problem = findListUrlProblem(text);
    if (problem !== null) {
      this.#settle(source, entry, "skipped", `the URL ${problem}: change it`);
      return "skipped";
    }
    const url = new URL(text);
    try {
      entry.fetchedBytes = 0;
      const updated = await this.#fetch(source, url, entry, signal);
      this.#settle(source, entry, "ok", null);
      return updated ? "updated" : "unchanged";
    } catch (error) {
      rethrowInvariant(error);
      if (signal.aborted) return null;
      this.#settle(source, entry, "failed", this.#failureMessage(source, url, error));
      return "failed";
    } finally {
      entry.fetchedBytes = null;
    }
  }

  /** Gets the text if there is a newer one; says whether there was. */
  async #fetch(
    source: ListSource,
    url: URL,
    entry: Entry,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { id } = source;
    const { get } = this.#options;
    const limits = this.#limitsOf(source);
    // A validator stands for a text that we have, whole: a 304 for a damaged one would keep that.
    const intact = await this.#files.run(() => this.#kept.verify(id));
    const former = intact ? this.#kept.copyOf(id) : undefined;
    const same = former?.url === source.url ? former : undefined;
    const text = await this.#kept.begin(id);
    try {
      const hash = createHash("sha256");
      const check = new TextCheck();
      const whole: Uint8Array[] = [];
      const onChunk = async (chunk: Uint8Array) => {
        check.add(chunk);
        hash.update(chunk);
        if (source.check !== undefined) whole.push(chunk);
        await text.write(chunk);
        entry.fetchedBytes = check.sizeBytes;
      };
      const validators = same ?? {};
      const downloaded = await download(get, { url, validators, signal, limits, onChunk });
      if (downloaded.kind === "not_modified") {
        invariant(same !== undefined, "only a kept text is not modified");
        await this.#confirm(id, same, validators);
        return false;
      }
      check.finish();
      source.check?.(decode(whole));
      const sha256 = hash.digest("hex");
      if (same?.sha256 === sha256) {
        await this.#confirm(id, same, downloaded.validators);
        return false;
      }
      if (same !== undefined) await this.#checkShrink(id, same, check.sizeBytes);
      await this.#commit(id, text, {
        url: source.url ?? "",
        sha256,
        sizeBytes: check.sizeBytes,
        fetchedAtMs: this.#now(),
        ...definedValidators(downloaded.validators),
      });
      return true;
    } finally {
      await text.discard();
    }
  }

  #limitsOf({ check }: ListSource): DownloadLimits {
    const { limits = DOWNLOAD_LIMITS } = this.#options;
    if (check === undefined) return limits;
    return { ...limits, bytesMax: Math.min(limits.bytesMax, CHECKED_BYTES_MAX) };
  }

  #commit(id: string, text: NewText, copy: Copy): Promise<void> {
    return this.#files.run(() => this.#kept.commit(id, text, copy));
  }

  #annotate(id: string, copy: Copy): Promise<void> {
    return this.#files.run(() => this.#kept.annotate(id, copy));
  }

  /** The server has the text that we have. */
  #confirm(id: string, copy: Copy, validators: Validators): Promise<void> {
    const { url, sha256, sizeBytes } = copy;
    return this.#annotate(id, {
      url,
      sha256,
      sizeBytes,
      fetchedAtMs: this.#now(),
      ...definedValidators(validators),
    });
  }

  /** @throws {SvcError} If the list has lost nearly all of its text, until that has lasted a day. */
  async #checkShrink(id: string, former: Copy, sizeBytes: number): Promise<void> {
    if (former.sizeBytes <= SHRINK_BYTES_MIN) return;
    if (sizeBytes >= former.sizeBytes * SHRINK_RATIO_MIN) return;
    const nowMs = this.#now();
    const sinceMs = former.shrunkAtMs;
    if (sinceMs !== undefined && nowMs - sinceMs >= SHRINK_BELIEVED_MS) return;
    // A time in the future is from before the clock went back.
    if (sinceMs === undefined || sinceMs > nowMs) {
      await this.#annotate(id, { ...former, shrunkAtMs: nowMs });
    }
    throw new SvcError(
      "invalid",
      `it has shrunk from ${former.sizeBytes} to ${sizeBytes} bytes; that is believed once it ` +
        "has been so for a day",
    );
  }

  #failureMessage(source: ListSource, url: URL, error: unknown): string {
    const copy = this.#kept.copyOf(source.id);
    const message = `${url.host}: ${messageOf(error)}`;
    if (copy === undefined) return message;
    if (copy.fetchedAtMs === 0) return `${message}; the text on disk stays in use`;
    return `${message}; the text of ${new Date(copy.fetchedAtMs).toISOString()} stays in use`;
  }

  /** Notes how a try ended and when to try again; logs what is new. */
  #settle(source: ListSource, entry: Entry, state: ListState, message: string | null): void {
    const news = entry.state !== state || entry.message !== message;
    entry.state = state;
    entry.message = message;
    const nowMs = this.#now();
    if (state === "failed") {
      entry.failures++;
      entry.failingSinceMs ??= nowMs;
      entry.retryAtMs = nowMs + retryDelayMs(entry.failures, this.#options.chance);
    } else {
      entry.failures = 0;
      entry.failingSinceMs = null;
      entry.retryAtMs = null;
      // A skipped list has no text, but there is no sense in asking for it any sooner.
      entry.checkedAtMs = nowMs;
    }
    if (!news) return;
    const fields = { list: source.id, name: source.name };
    if (state === "failed") log.warn("list failed", { ...fields, problem: message });
    else if (state === "skipped") log.warn("list skipped", { ...fields, problem: message });
    else log.info("list is up to date", fields);
  }
}

function messageOfEntry({ fetchedBytes, message }: Entry): string | null {
  if (fetchedBytes === null) return message;
  if (fetchedBytes === 0) return "downloading";
  return `downloading, ${(fetchedBytes / BYTES_PER_MB).toFixed(1)} MB so far`;
}

function decode(chunks: readonly Uint8Array[]): string {
  const decoder = new TextDecoder();
  return chunks.map((chunk) => decoder.decode(chunk, { stream: true })).join("") + decoder.decode();
}

/** The URL or the path: what a list's history is about. */
function placeOf({ id, url, path }: ListSource): string {
  invariant((url === undefined) !== (path === undefined), `the list ${id} has one of url and path`);
  return url !== undefined ? `url ${url}` : `path ${path}`;
}

function definedValidators({ etag, lastModified }: Validators): Validators & {
  etag?: string;
  lastModified?: string;
} {
  return {
    ...(etag === undefined ? {} : { etag }),
    ...(lastModified === undefined ? {} : { lastModified }),
  };
}

function rethrowInvariant(error: unknown): void {
  if (error instanceof InvariantError) throw error;
}
