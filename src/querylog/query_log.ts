import type { DatabaseSync } from "node:sqlite";
import { ClockJudge, type Correction } from "../clock/mod.ts";
import { messageOf } from "../errors.ts";
import { log } from "../log.ts";
import { LogFigure } from "../logqueue/mod.ts";
import { hashOf } from "./byte_texts.ts";
import { isCorrupt, openDatabase, setAside } from "./database.ts";
import { Entries, type Moved } from "./entries.ts";
import type { LogFilter, TakenEntry } from "./entry.ts";
import type { HourSeries } from "./client_hours.ts";
import { type CountsQuery, LogCounts, type SeenAddress, type SeriesQuery } from "./log_counts.ts";
import { LiveFeed } from "./live_feed.ts";
import { LogExports } from "./log_exports.ts";
import { LogQueues } from "./log_queues.ts";
import { OpenShares } from "./open_shares.ts";
import type { QueryLogOptions, QueryLogPorts } from "./options.ts";
import { Pace } from "./pace.ts";
import { type LogPage, LogSearch, type NamePage } from "./search.ts";
import { IDS_PER_MS, SEGMENT_ENTRIES } from "./segment.ts";
import { storedLog } from "./segments.ts";
import type { LogStatistics } from "./log_statistics.ts";
import { Statistics } from "./statistics.ts";

/** Records of one transaction: some milliseconds, while nothing else is done here, and one segment. */
const BATCH_MAX = SEGMENT_ENTRIES;
/** Batches written before a question is answered: what full queues hold, and not what keeps coming. */
const CATCH_UP_BATCHES_MAX = 16;
/** Records wait this long, so that a quiet night is few writes; who ends the process loses no more. */
const WRITE_MS = 5_000;
/** The same where so much of a queue waits: some dozens of records. */
const BUSY_WRITE_MS = 1_000;
const BUSY_FILL = 1 / 256;
/** So much of a queue waits for nothing. */
const FILL_MAX = 1 / 4;
/** With somebody watching they wait no longer than this. */
const WATCHED_MS = 250;
/** How soon after a full batch, or a step of a correction, the next one comes. */
const BUSY_MS = 1;
const CORRECT_AGAIN_MS = 50;
/** How often what is too old is looked for when nothing is written. */
const TRIM_MS = 60_000;
/** Counts by the hour are written at least this often. */
const SAVE_MS = 15_000;
/** Pauses between tries while the file can't be written. */
const RETRY_MS_MIN = 1_000;
const RETRY_MS_MAX = 60_000;
/** Corrections of a clock that wait; one that is set every moment is believed by nobody. */
const CORRECTIONS_MAX = 16;

/** The file and what works on it. */
interface Open {
  readonly db: DatabaseSync;
  readonly entries: Entries;
  readonly search: LogSearch;
  readonly counts: LogCounts;
  readonly statistics: Statistics;
  readonly shares: OpenShares;
}

/** When a turn is due: after so many milliseconds, or once so many bytes wait in a queue. */
export interface Pause {
  readonly ms: number;
  /** `Infinity`: whatever waits. */
  readonly bytes: number;
}

/** The query log: takes records from the queues, keeps them, finds them, counts them. */
export class QueryLogStore {
  readonly #options: QueryLogOptions;
  readonly #ports: QueryLogPorts;
  readonly #queues: LogQueues;
  readonly #figures: Float64Array;
  readonly live: LiveFeed;
  readonly #exports: LogExports;
  #open: Open | null = null;
  /** Since when something waits that was seen; `Infinity`: nothing was. */
  #waitsSinceMs = Infinity;
  /** When the next records may be taken from the queues. */
  readonly #pace = new Pace();
  #savedAtMs: number;
  /** Something was counted since. */
  #isUnsaved = false;
  #trimmedAtMs = -Infinity;
  #problem: string | null = null;
  #retryMs = RETRY_MS_MIN;
  #retryAtMs = -Infinity;
  #isTrimming = false;
  readonly #clock: ClockJudge;
  readonly #corrections: Correction[] = [];
  /** Where the first of them is; `null` before its first step. */
  #moved: Moved | null = null;

  constructor(options: QueryLogOptions, ports: QueryLogPorts) {
    this.#options = options;
    this.#ports = ports;
    this.#clock = new ClockJudge(ports, {
      releasedMs: options.releasedMs,
      onCorrection: (correction) => this.#correct(correction),
    });
    this.#queues = new LogQueues(options, {
      dateOf: (wallMs) => this.#clock.dateOf(wallMs),
      wants: (entry) => this.#exports.wants(entry),
      onTaken: () => this.#pace.take(),
      onUnreadable: (records) => this.#figures[LogFigure.Unreadable] += records,
    });
    this.live = new LiveFeed(options.anonymize, ports.onLive);
    this.#exports = new LogExports(options.exports);
    this.#figures = new Float64Array(options.figures);
    this.#savedAtMs = ports.monotonicMs();
    this.#try(() => this.#opened());
  }

  /** Does what is due now; returns when to call again. */
  turn(): Pause {
    const nowMs = this.#ports.monotonicMs();
    if (nowMs < this.#retryAtMs) return { ms: this.#retryAtMs - nowMs, bytes: Infinity };
    if (this.#isCorrecting) {
      return { ms: this.#move() ? BUSY_MS : CORRECT_AGAIN_MS, bytes: Infinity };
    }
    if (nowMs < this.#pace.untilMs) return { ms: this.#pace.untilMs - nowMs, bytes: Infinity };
    const fill = this.#queues.fill;
    if (fill === 0) this.#waitsSinceMs = Infinity;
    else this.#waitsSinceMs = Math.min(this.#waitsSinceMs, nowMs);
    let isMore = false;
    if (fill > FILL_MAX || nowMs >= this.#dueAtMs(fill)) {
      const before = this.#pace.taken;
      isMore = this.#write();
      this.#pace.rest(nowMs, this.#pace.taken - before);
      this.#waitsSinceMs = isMore ? nowMs : Infinity;
    } else if (this.#isTrimming || nowMs - this.#trimmedAtMs >= TRIM_MS) this.#trim();
    if (nowMs < this.#retryAtMs) return { ms: this.#retryAtMs - nowMs, bytes: Infinity };
    return isMore || this.#isTrimming ? { ms: BUSY_MS, bytes: Infinity } : this.#pause(nowMs);
  }

  /** Records taken from the queues so far. */
  get taken(): number {
    return this.#pace.taken;
  }

  /** Resolves once so many bytes wait in a queue, or `endWait` is called. */
  waitFor(bytes: number): Promise<void> {
    return this.#queues.waitFor(bytes);
  }

  /** Ends a wait; nothing of it stays behind. */
  endWait(): void {
    this.#queues.endWait();
  }

  /**
   * The newest entries that pass, of those before the number `before`, and of all queries so far; in
   * pieces of work, between which others have their turn.
   *
   * @throws {SvcError} `unavailable`, where the file can't be opened or read.
   */
  search(filter: LogFilter, limit: number, before: number | null): Generator<undefined, LogPage> {
    return this.#inPieces(({ search }) => search.find(filter, limit, before));
  }

  /**
   * The names of entries that pass, in pieces of work; as `LogSearch.names`.
   *
   * @throws {SvcError} `unavailable`, where the file can't be opened or read.
   */
  names(filter: LogFilter, limit: number, before: number | null): Generator<undefined, NamePage> {
    return this.#inPieces(({ search }) => search.names(filter, limit, before));
  }

  /**
   * What was counted in the last hours.
   *
   * @throws {SvcError} `unavailable`, where the file can't be opened or read.
   */
  statistics(hours: number): LogStatistics {
    this.#catchUp();
    return this.#ask(({ statistics }) => statistics.report(hours, this.#clock.nowMs()));
  }

  /**
   * The same by short steps, or for some clients; in pieces of work as well.
   *
   * @throws {SvcError} `unavailable`, where the file can't be opened or read.
   */
  counts(query: CountsQuery): Generator<undefined, LogStatistics> {
    return this.#ofAll(({ counts }) => counts.count(query, this.#clock.nowMs()));
  }

  /** The addresses that asked in the last hours, in pieces of work as well. */
  seen(hours: number): Generator<undefined, readonly SeenAddress[]> {
    return this.#ofAll(({ counts }) => counts.seen(hours, this.#clock.nowMs()));
  }

  /** Queries of some clients by the hour, in pieces of work as well. */
  series(query: SeriesQuery): Generator<undefined, HourSeries> {
    return this.#ofAll(({ counts }) => counts.series(query, this.#clock.nowMs()));
  }

  /** What counts entries waits for those that an earlier program wrote, which are on their way. */
  *#ofAll<T>(begin: (open: Open) => Generator<undefined, T>): Generator<undefined, T> {
    while (this.#open?.entries.isPartial === true && this.#trim()) yield undefined;
    return yield* this.#inPieces(begin);
  }

  *#inPieces<T>(begin: (open: Open) => Generator<undefined, T>): Generator<undefined, T> {
    this.#catchUp();
    let begun: { readonly open: Open; readonly pieces: Generator<undefined, T> } | null = null;
    for (;;) {
      const { done, value } = this.#ask((open) => {
        // A file that was damaged meanwhile is another, of which nothing was looked at.
        if (begun?.open !== open) begun = { open, pieces: begin(open) };
        return begun.pieces.next();
      });
      if (done) return value;
      yield undefined;
    }
  }

  /** Writes everything and closes the file. */
  close(): void {
    this.#retryAtMs = -Infinity;
    while (this.#write());
    this.#try(() => this.#save(this.#opened(), this.#ports.monotonicMs()));
    this.#open?.db.close();
    this.#open = null;
  }

  /** When what waits is to be written, and counts are to be saved. */
  #dueAtMs(fill: number): number {
    const waitMs = this.live.isWatched ? WATCHED_MS : fill > BUSY_FILL ? BUSY_WRITE_MS : WRITE_MS;
    const saveAtMs = this.#isUnsaved ? this.#savedAtMs + SAVE_MS : Infinity;
    return Math.min(this.#waitsSinceMs + waitMs, saveAtMs);
  }

  /** Nothing is looked at while nothing happens: who logs a query tells. */
  #pause(nowMs: number): Pause {
    const fill = this.#queues.fill;
    if (fill > 0) this.#waitsSinceMs = Math.min(this.#waitsSinceMs, nowMs);
    const part = fill > BUSY_FILL || this.live.isWatched ? FILL_MAX : BUSY_FILL;
    const untilMs = Math.min(this.#dueAtMs(fill), this.#trimmedAtMs + TRIM_MS);
    return {
      ms: Math.max(BUSY_MS, untilMs - nowMs),
      bytes: fill === 0 ? 1 : this.#queues.bytesOver(part),
    };
  }

  /** Writes what waits, so that an answer holds it. */
  #catchUp(): void {
    if (this.#ports.monotonicMs() < this.#retryAtMs) return;
    for (let i = 0; i < CATCH_UP_BATCHES_MAX && this.#write(); i++);
  }

  /** Writes a batch of what waits; says whether there is more. */
  #write(): boolean {
    this.#clock.nowMs(); // Finds out whether it was set.
    // Before what waits, which has its right time.
    if (this.#isCorrecting) return this.#move();
    return this.#try(this.#writeBatch) ?? false;
  }

  // Not made anew for each batch: with the last one of them the collector would take what was
  // compiled of it.
  readonly #writeBatch = (): boolean => {
    const nowMs = this.#clock.nowMs();
    const open = this.#opened();
    const batch = this.#queues.read(BATCH_MAX);
    const { entries, statistics, shares } = open;
    const isAllLogged = batch.every(isLogged);
    const logged = isAllLogged ? batch : batch.filter(isLogged);
    const isKept = this.#options.maxEntries > 0;
    const ids = isKept ? this.#keep(open, logged) : Float64Array.from(logged, idOf);
    const isMore = this.#queues.isBehind;
    this.#queues.release();
    for (let i = 0; i < batch.length; i++) {
      if (!batch[i].isCounted) continue;
      const nameHash = hashOf(batch[i].texts[0]);
      statistics.add(batch[i], nameHash);
      shares.add(batch[i], nameHash);
    }
    for (const dropped of this.#queues.takeDropped()) {
      statistics.addDropped(dropped, nowMs);
      shares.days.addDropped(dropped, nowMs);
      const sum = dropped.reduce((a, b) => a + b);
      this.#pace.drop(sum);
      this.#isUnsaved ||= sum > 0;
    }
    this.#isUnsaved ||= batch.length > 0;
    this.#figures[LogFigure.Entries] = entries.count;
    this.live.push(logged, ids);
    this.#exports.push(logged);
    const monotonicMs = this.#ports.monotonicMs();
    const isSaveDue = this.#isUnsaved && monotonicMs - this.#savedAtMs >= SAVE_MS;
    if (isSaveDue) this.#save(open, monotonicMs);
    return isMore;
  };

  /** Writes entries to the file; returns their numbers. */
  #keep(open: Open, logged: readonly TakenEntry[]): Float64Array {
    let ids: Float64Array = new Float64Array(0);
    if (logged.length === 0) return ids;
    this.#transaction(open, () => {
      ids = open.entries.add(logged);
      // As many go as come: the log never grows past its bounds by more than a batch.
      this.#isTrimming = open.entries.trim(this.#forgetAtMs);
      if (this.#isTrimming) this.#isTrimming = open.entries.trim(this.#forgetAtMs);
    });
    this.#figures[LogFigure.Written] += logged.length;
    this.#say(null);
    return ids;
  }

  /** By which time something is too old; `null` while none can be believed. */
  get #forgetAtMs(): number | null {
    return this.#clock.mayForget ? this.#clock.nowMs() : null;
  }

  get #isCorrecting(): boolean {
    return this.#corrections.length > 0;
  }

  #correct(correction: Correction): void {
    log.info("the clock was set: entries of the query log get their right time", {
      from: new Date(correction.fromMs).toISOString(),
      shiftMs: correction.shiftMs,
    });
    if (this.#corrections.length < CORRECTIONS_MAX) this.#corrections.push(correction);
  }

  /** Gives entries of a wrong clock their time, a step's worth; says whether it could. */
  #move(): boolean {
    return this.#try(() => {
      const open = this.#opened();
      const [correction] = this.#corrections;
      let moved = this.#moved;
      this.#transaction(open, () => {
        if (moved === null) {
          open.statistics.move(correction);
          open.shares.days.move(correction);
        }
        moved = open.entries.move(correction, moved);
        if (moved === null) {
          open.statistics.forgetMinutes(correction);
          open.shares.hours.forget(correction);
        }
      });
      this.#moved = moved;
      if (moved === null) {
        open.counts.forget();
        this.#corrections.shift();
      }
      return true;
    }) ?? false;
  }

  /** Removes what is too old, a step's worth; says whether it could. */
  #trim(): boolean {
    return this.#try(() => {
      const open = this.#opened();
      this.#transaction(open, () => {
        this.#isTrimming = open.entries.trim(this.#forgetAtMs);
      });
      open.entries.vacuum();
      this.#figures[LogFigure.Entries] = open.entries.count;
      this.#trimmedAtMs = this.#ports.monotonicMs();
      return true;
    }) ?? false;
  }

  #save(open: Open, monotonicMs: number): void {
    this.#transaction(open, () => {
      open.statistics.save(this.#forgetAtMs);
      open.shares.save(this.#forgetAtMs);
    });
    this.#savedAtMs = monotonicMs;
    this.#isUnsaved = false;
    this.#say(null);
  }

  #transaction({ db, entries, statistics, shares }: Open, work: () => void): void {
    db.exec("BEGIN IMMEDIATE");
    try {
      work();
      db.exec("COMMIT");
    } catch (error) {
      if (db.isTransaction) db.exec("ROLLBACK");
      if (!isCorrupt(error)) {
        entries.undo();
        statistics.undo();
        shares.undo();
      }
      throw error;
    }
  }

  #opened(): Open {
    if (this.#open !== null) return this.#open;
    const { directory, anonymize } = this.#options;
    const nowMs = this.#clock.nowMs();
    const db = (this.#ports.open ?? openDatabase)(directory, nowMs);
    try {
      const stored = storedLog(db);
      const statistics = new Statistics(db, anonymize);
      const shares = new OpenShares(stored, this.#options);
      this.#open = {
        db,
        counts: new LogCounts(stored, statistics, shares, anonymize),
        shares,
        entries: new Entries(stored, this.#options),
        search: new LogSearch(stored, anonymize),
        statistics,
      };
    } catch (error) {
      db.close();
      if (isCorrupt(error)) setAside(directory, nowMs, error);
      throw error;
    }
    const { count, newestMs } = this.#open.entries;
    this.#figures[LogFigure.Entries] = count;
    if (newestMs !== null) {
      this.#clock.resume(newestMs);
      this.#ports.onNewest?.(newestMs);
    }
    this.#say(null);
    return this.#open;
  }

  /**
   * Has a question answered; one that meets a damaged file is answered by the new one. One that can't
   * be answered keeps nothing from being written.
   */
  #ask<T>(question: (open: Open) => T): T {
    try {
      return question(this.#opened());
    } catch (error) {
      if (this.#open === null || isCorrupt(error)) this.#failed(error);
      if (!isCorrupt(error)) throw error;
      return question(this.#opened());
    }
  }

  /** Does work on the file; `null` where that failed, which the status says until it works again. */
  #try<T>(work: () => T): T | null {
    try {
      const result = work();
      this.#retryMs = RETRY_MS_MIN;
      this.#retryAtMs = -Infinity;
      return result;
    } catch (error) {
      this.#failed(error);
      return null;
    }
  }

  #failed(error: unknown): void {
    if (isCorrupt(error) && this.#open !== null) {
      this.#open.db.close();
      this.#open = null;
      try {
        setAside(this.#options.directory, this.#clock.nowMs(), error);
        return; // The next try begins a new file.
      } catch (second) {
        error = second;
      }
    }
    this.#retryAtMs = this.#ports.monotonicMs() + this.#retryMs;
    this.#retryMs = Math.min(2 * this.#retryMs, RETRY_MS_MAX);
    this.#say(`the query log can't be written: ${messageOf(error)}`);
  }

  #say(problem: string | null): void {
    if (problem === this.#problem) return;
    if (problem !== null) log.error("the query log can't be written", { error: problem });
    else log.info("the query log is written again");
    this.#problem = problem;
    this.#ports.onProblem(problem);
  }
}

function isLogged(entry: TakenEntry): boolean {
  return entry.isLogged;
}

/** The number of an entry that is not kept. */
function idOf({ timeMs }: TakenEntry): number {
  return Math.floor(timeMs) * IDS_PER_MS;
}
