import { createHash } from "node:crypto";
import type { Clock } from "../clock/mod.ts";
import { invariant, rethrowInvariant, SvcError } from "../errors.ts";
import { log } from "../log.ts";
import { findListUrlProblem } from "../model/mod.ts";
import { denoDisk } from "./deno_disk.ts";
import { download, type DownloadLimits, type HttpGet, type Validators } from "../http/mod.ts";
import { type Counts, Histories, type History } from "./histories.ts";
import { type Copy, KeptLists, type KeptText, type NewText } from "./kept_lists.ts";
import { LocalLists } from "./local_lists.ts";
import type { Chance, Disk } from "./ports.ts";
import { Renewals } from "./renewals.ts";
import { checkRules, RuleCount } from "./rule_count.ts";
import { Slots } from "./slots.ts";
import {
  CHECKED_BYTES_MAX,
  DOWNLOAD_LIMITS,
  type ListSource,
  type ListStatus,
  placeOf,
} from "./source.ts";
import { TextCheck } from "./text_check.ts";

/** A smaller kept text may shrink as it likes. */
const SHRINK_BYTES_MIN = 8 * 1024;
/** An answer smaller than this part of the kept text is taken for a mistake of the server's… */
const SHRINK_RATIO_MIN = 0.1;
/** …until it has been the answer for this long. */
const SHRINK_BELIEVED_MS = 86_400_000;

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
export interface LoadedList extends KeptText {
  readonly source: ListSource;
}

/** What became of a list in a refresh; only `updated` is a reason to compile. */
export type RefreshOutcome = "updated" | "unchanged" | "failed" | "skipped";

export interface RefreshEvent {
  readonly source: ListSource;
  readonly outcome: RefreshOutcome;
  readonly status: ListStatus;
}

export interface RefreshOptions {
  /** Longest age of a text, from the settings. */
  readonly intervalMs: number;
  /** Asks for every list, due or not. */
  readonly force?: boolean;
  /** Somebody is waiting: goes before what is renewed in the background. */
  readonly urgent?: boolean;
  /** Hears of each list that this refresh has begun with, once it is done. */
  readonly onFinished?: (event: RefreshEvent) => void;
}

/** A refresh under way, by the IDs of lists. */
export interface Refresh {
  /** Begun with: asked at once or as soon as it is their turn. */
  readonly started: readonly string[];
  /** Being renewed already; by force, they are asked once more behind that. */
  readonly loading: readonly string[];
  /** Resolves once all of them are done or no longer wanted. */
  readonly done: Promise<void>;
}

/**
 * Keeps the texts of lists: hands out what there is, at once, and renews it when it is due. The
 * last text with a rule stays whatever a server sends and whatever becomes of a file. Calls may
 * overlap.
 */
export class ListKeeper {
  readonly #kept: KeptLists;
  readonly #options: ListKeeperOptions;
  readonly #histories: Histories;
  readonly #local: LocalLists;
  readonly #renewals = new Renewals();
  /** One change or reading of the kept files at a time; never held over the network. */
  readonly #files = new Slots(1);

  private constructor(kept: KeptLists, options: ListKeeperOptions, disk: Disk) {
    this.#kept = kept;
    this.#options = options;
    this.#histories = new Histories((id) => kept.copyOf(id), options.clock, options.chance);
    this.#local = new LocalLists(kept, this.#histories, disk, options);
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
    this.#histories.keepOnly(ids);
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
   * Renews the lists that are due, a few downloads at a time. A list that is on its way already is
   * not asked twice at once; by force it is asked once more, however often that is called for.
   */
  refresh(sources: readonly ListSource[], options: RefreshOptions): Refresh {
    const { force = false, intervalMs, urgent = false, onFinished } = options;
    const nowMs = this.#now();
    const due = sources.filter((source) =>
      force || this.#histories.dueAtMs(source, intervalMs, nowMs) <= nowMs
    );
    // Those that failed come last: their servers may hang.
    const failures = (source: ListSource) => this.#histories.of(source).failures;
    due.sort((a, b) => failures(a) - failures(b));
    const asked = due.map((source) => {
      const { id } = source;
      let outcome: RefreshOutcome | null = null;
      const wanted = {
        id,
        place: placeOf(source),
        isDownload: source.url !== undefined,
        isForced: force,
        isUrgent: urgent,
      };
      const { isNew, wasBusy, done } = this.#renewals.ask(wanted, async (signal) => {
        outcome = await this.#refreshOne(source, signal);
      });
      if (!isNew) return { id, wasBusy, done };
      // Told once it is no longer on its way: whoever hears of it may ask when it is due.
      const tell = () => {
        if (outcome !== null) onFinished?.({ source, outcome, status: this.status(id) });
      };
      return { id, wasBusy, done: done.then(tell) };
    });
    return {
      started: asked.filter(({ wasBusy }) => !wasBusy).map(({ id }) => id),
      loading: asked.filter(({ wasBusy }) => wasBusy).map(({ id }) => id),
      done: allDone(asked.map(({ done }) => done)),
    };
  }

  /**
   * Ends the downloads of every list but `sources`, as they are now; what they brought is gone. But
   * for these and the `known`, which are turned off, lists are forgotten.
   */
  keepOnly(sources: readonly ListSource[], known: Iterable<string>): void {
    this.#renewals.keepOnly(new Map(sources.map((source) => [source.id, placeOf(source)])));
    this.#histories.keepOnly(new Set([...sources.map(({ id }) => id), ...known]));
  }

  /** Ends every download. */
  stop(): void {
    this.#renewals.keepOnly(new Map());
  }

  /** When the next list is due that is not on its way, or `Infinity` where there is none. */
  nextDueAtMs(sources: readonly ListSource[], intervalMs: number): number {
    const nowMs = this.#now();
    let nextMs = Infinity;
    for (const source of sources) {
      if (this.#renewals.has(source.id)) continue;
      nextMs = Math.min(nextMs, this.#histories.dueAtMs(source, intervalMs, nowMs));
    }
    return nextMs;
  }

  /** What somebody should look at, by the list's ID: a text each, with the reason. */
  problems(sources: readonly ListSource[]): Map<string, string> {
    return this.#histories.problems(sources);
  }

  /** Says whether the list may get its first text any moment, so that its lack is no problem yet. */
  isAwaited(source: ListSource): boolean {
    return this.#histories.isAwaited(source);
  }

  /** What this node has of the list; of one it has not met, `pending`. */
  status(id: string): ListStatus {
    return this.#histories.status(id);
  }

  /** Notes what the compiler made of the list; `null`: it had no text of it. */
  setCounts(id: string, counts: Counts | null): void {
    this.#histories.setCounts(id, counts);
  }

  #now(): number {
    return this.#options.clock.nowMs();
  }

  async #digest(source: ListSource): Promise<string | null> {
    const history = this.#histories.of(source);
    if (source.path !== undefined) return await this.#local.hash(source, history);
    const sha256 = await this.#kept.hashOf(source.id);
    this.#noteKept(source, history, sha256 !== null);
    return sha256;
  }

  async #read(source: ListSource): Promise<KeptText | null> {
    const history = this.#histories.of(source);
    if (source.path !== undefined) return await this.#local.read(source, history);
    const text = await this.#kept.read(source.id);
    this.#noteKept(source, history, text !== null);
    return text;
  }

  /** Settles what is known of a list by URL once its kept text was looked at. */
  #noteKept(source: ListSource, history: History, intact: boolean): void {
    if (!intact) {
      // Whatever it was, it is no longer there: the next refresh fetches it.
      history.checkedAtMs = null;
      if (history.state === "ok") history.state = "pending";
      if (this.#kept.isDamaged(source.id)) {
        history.message ??= "the kept text is damaged and will be fetched anew";
      }
    } else if (this.#kept.copyOf(source.id)?.url !== source.url) {
      history.message ??= "an older text is in use until that of the URL is fetched";
    } else if (history.state === "pending") {
      history.state = "ok";
    }
  }

  async #refreshOne(source: ListSource, signal: AbortSignal): Promise<RefreshOutcome | null> {
    const history = this.#histories.of(source);
    history.refusedLines = 0;
    if (source.path !== undefined) {
      const before = history.localSha256;
      await this.#files.run(() => this.#local.hash(source, history));
      if (history.state !== "ok") return history.state === "skipped" ? "skipped" : "failed";
      return history.localSha256 === before ? "unchanged" : "updated";
    }
    const text = source.url ?? "";
    const problem = findListUrlProblem(text);
    if (problem !== null) {
      this.#histories.settle(source, history, "skipped", `the URL is refused: ${problem}`);
      return "skipped";
    }
    const url = new URL(text);
    try {
      history.download = { bytes: 0, totalBytes: null, startedAtMs: this.#now() };
      const updated = await this.#fetch(source, url, history, signal);
      this.#histories.settle(source, history, "ok", null);
      return updated ? "updated" : "unchanged";
    } catch (error) {
      rethrowInvariant(error);
      if (signal.aborted) return null;
      const message = this.#kept.failureMessage(source.id, url.host, error);
      this.#histories.settle(source, history, "failed", message);
      return "failed";
    } finally {
      history.download = null;
    }
  }

  /** Gets the text if there is a newer one; says whether there was. */
  async #fetch(
    source: ListSource,
    url: URL,
    history: History,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { id } = source;
    const { get } = this.#options;
    const limits = this.#limitsOf(source);
    const same = await this.#sameCopy(source);
    const text = await this.#kept.begin(id);
    try {
      const hash = createHash("sha256");
      const check = new TextCheck();
      const rules = new RuleCount();
      const whole: Uint8Array[] = [];
      const onChunk = async (chunk: Uint8Array) => {
        check.add(chunk);
        hash.update(chunk);
        if (source.check === undefined) rules.add(chunk);
        else whole.push(chunk);
        await text.write(chunk);
      };
      const onReceived = (bytes: number, totalBytes: number | null) => {
        const { download } = history;
        if (download !== null) Object.assign(download, { bytes, totalBytes });
      };
      const validators = same ?? {};
      const request = { url, validators, signal, limits, onChunk, onReceived };
      const downloaded = await download(get, request);
      if (downloaded.kind === "not_modified") {
        invariant(same !== undefined, "only a kept text is not modified");
        await this.#confirm(id, same, validators);
        return false;
      }
      check.finish();
      if (source.check === undefined) checkRules(history, rules, false);
      else source.check(decode(whole));
      const sha256 = hash.digest("hex");
      if (same?.sha256 === sha256) {
        await this.#confirm(id, same, downloaded.validators);
        return false;
      }
      if (same !== undefined) await this.#checkShrink(id, same, check.sizeBytes);
      signal.throwIfAborted(); // What nobody wants any more is not kept.
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

  /**
   * The kept text, if it is of this URL and good. A validator stands for a text that we have, whole:
   * a 304 for a damaged one, or for one without a rule, would keep that.
   */
  #sameCopy({ id, url, check }: ListSource): Promise<Copy | undefined> {
    return this.#files.run(async () => {
      const rules = new RuleCount();
      const isIntact = await this.#kept.verify(id, (chunk) => rules.add(chunk));
      const isGood = isIntact && (check !== undefined || rules.refusal(false) === null);
      const copy = this.#kept.copyOf(id);
      return isGood && copy?.url === url ? copy : undefined;
    });
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
}

/** Resolves once all are done, and only then fails with the first failure. */
async function allDone(all: readonly Promise<void>[]): Promise<void> {
  await Promise.allSettled(all);
  await Promise.all(all);
}

function decode(chunks: readonly Uint8Array[]): string {
  const decoder = new TextDecoder();
  return chunks.map((chunk) => decoder.decode(chunk, { stream: true })).join("") + decoder.decode();
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
