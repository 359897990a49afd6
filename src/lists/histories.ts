import type { Clock } from "../clock/mod.ts";
import { log } from "../log.ts";
import type { Copy } from "./kept_lists.ts";
import type { Chance } from "./ports.ts";
import { dueAtMs, type Failure, FIRST_RETRY, RETRY, retryDelayMs } from "./schedule.ts";
import { type ListSource, type ListState, type ListStatus, placeOf } from "./source.ts";

/** A list that fails for this long, or this often in a row, is a problem of the node's. */
const FAILING_LONG_MS = 2 * 86_400_000;
const FAILURES_LONG = 12;
/** How long a list's first text may take before the lack of it is a problem. */
const FIRST_TEXT_MS = 60_000;

/** What is remembered of a list while the process runs. */
export interface History {
  /** The URL or path that all this is about. */
  readonly place: string;
  readonly spread: number;
  /** When it was met. */
  readonly sinceMs: number;
  checkedAtMs: number | null;
  failure: Failure | null;
  failures: number;
  /** When the failures in a row began. */
  failingSinceMs: number | null;
  /** The download under way, in bytes on the wire. */
  download: { bytes: number; totalBytes: number | null; readonly startedAtMs: number } | null;
  state: ListState;
  message: string | null;
  /** Lines of the text refused last that were meant as rules. */
  refusedLines: number;
  /** Hash of the text of a list by path, to see it change; `null` before it is read. */
  localSha256: string | null;
}

/** Lines of a text in force. */
export interface Counts {
  readonly rules: number;
  readonly unsupported: number;
}

/** What became of each list: tries, failures, when to try next. */
export class Histories {
  readonly #histories = new Map<string, History>();
  readonly #counts = new Map<string, Counts>();
  readonly #copyOf: (id: string) => Copy | undefined;
  readonly #clock: Clock;
  readonly #chance: Chance;

  /** `copyOf` is what is kept of a list. */
  constructor(copyOf: (id: string) => Copy | undefined, clock: Clock, chance: Chance) {
    this.#copyOf = copyOf;
    this.#clock = clock;
    this.#chance = chance;
  }

  /** What is remembered of the list; a list whose place has changed starts anew. */
  of(source: ListSource): History {
    const place = placeOf(source);
    const known = this.#histories.get(source.id);
    if (known !== undefined && known.place === place) return known;
    const copy = this.#copyOf(source.id);
    const isCurrent = source.url !== undefined && copy?.url === source.url;
    const history: History = {
      place,
      spread: this.#chance(),
      sinceMs: this.#clock.nowMs(),
      checkedAtMs: isCurrent ? copy.fetchedAtMs : null,
      failure: null,
      failures: 0,
      failingSinceMs: null,
      download: null,
      state: "pending",
      message: null,
      refusedLines: 0,
      localSha256: null,
    };
    this.#histories.set(source.id, history);
    return history;
  }

  /** Forgets every list but these. */
  keepOnly(ids: ReadonlySet<string>): void {
    for (const id of this.#histories.keys()) if (!ids.has(id)) this.#histories.delete(id);
    for (const id of this.#counts.keys()) if (!ids.has(id)) this.#counts.delete(id);
  }

  dueAtMs(source: ListSource, intervalMs: number, nowMs: number): number {
    return dueAtMs(this.of(source), intervalMs, nowMs);
  }

  /** Notes what the compiler made of the list; `null`: it had no text of it. */
  setCounts(id: string, counts: Counts | null): void {
    if (counts === null) this.#counts.delete(id);
    else this.#counts.set(id, counts);
  }

  /** What this node has of the list; of one it has not met, `pending`. */
  status(id: string): ListStatus {
    const history = this.#histories.get(id);
    const counts = this.#counts.get(id);
    // A skipped list was looked at, but there is no text to be of any age.
    const checkedAtMs = history?.state === "skipped" ? null : history?.checkedAtMs ?? null;
    const download = history?.download ?? null;
    return {
      state: history?.state ?? "pending",
      message: history?.message ?? null,
      rules: counts?.rules ?? 0,
      unsupported: counts?.unsupported ?? history?.refusedLines ?? 0,
      refreshed_at: checkedAtMs === null ? null : new Date(checkedAtMs).toISOString(),
      downloading: download === null ? null : {
        bytes: download.bytes,
        total_bytes: download.totalBytes,
        started_at: new Date(download.startedAtMs).toISOString(),
      },
    };
  }

  /** What somebody should look at, by the list's ID: a text each, with the reason. */
  problems(sources: readonly ListSource[]): Map<string, string> {
    const found = new Map<string, string>();
    for (const source of sources) {
      const problem = this.#problem(source);
      if (problem !== null) found.set(source.id, `${source.name}: ${problem}`);
    }
    return found;
  }

  /** Says whether the list may get its first text any moment, so that its lack is no problem yet. */
  isAwaited(source: ListSource): boolean {
    const history = this.#histories.get(source.id);
    if (history === undefined) return true;
    const waitedMs = this.#clock.nowMs() - history.sinceMs;
    return history.state === "pending" && waitedMs < FIRST_TEXT_MS;
  }

  /** Notes how a try ended and when to try again; logs what is new. */
  settle(
    source: ListSource,
    history: History,
    state: ListState,
    message: string | null,
  ): void {
    const isNews = history.state !== state || history.message !== message;
    history.state = state;
    history.message = message;
    const nowMs = this.#clock.nowMs();
    if (state === "failed") {
      const pauses = this.#copyOf(source.id) === undefined ? FIRST_RETRY : RETRY;
      history.failures++;
      history.failingSinceMs ??= nowMs;
      const pauseMs = retryDelayMs(pauses, history.failures, this.#chance);
      history.failure = { atMs: nowMs, pauseMs };
    } else {
      history.failures = 0;
      history.failingSinceMs = null;
      history.failure = null;
      history.refusedLines = 0;
      // A skipped list has no text, but there is no sense in asking for it any sooner.
      history.checkedAtMs = nowMs;
    }
    if (!isNews) return;
    const fields = { list: source.id, name: source.name };
    if (state === "failed") log.warn("list failed", { ...fields, problem: message });
    else if (state === "skipped") log.warn("list skipped", { ...fields, problem: message });
    else log.info("list is up to date", fields);
  }

  #problem(source: ListSource): string | null {
    const history = this.#histories.get(source.id);
    if (history === undefined || history.state === "ok") return null;
    const { state, message, failingSinceMs, failures } = history;
    // What is kept of a list that must not be read from its path is not read either.
    const isUsed = !(state === "skipped" && source.path !== undefined);
    if (!isUsed || this.#copyOf(source.id) === undefined) {
      if (this.isAwaited(source)) return null;
      return `nothing of it is filtered yet: ${message ?? "its first text is still on its way"}`;
    }
    if (failingSinceMs === null) return null;
    const isLong = this.#clock.nowMs() - failingSinceMs >= FAILING_LONG_MS;
    if (!isLong && failures < FAILURES_LONG) return null;
    return `fails since ${new Date(failingSinceMs).toISOString()}: ${message}`;
  }
}
