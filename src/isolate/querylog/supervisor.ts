import { SvcError } from "../../errors.ts";
import { areLogLinesHanded, log } from "../../log.ts";
import { figuresMemory, LogFigure, queueFigures, queueMemory } from "../../logqueue/mod.ts";
import type {
  CountsQuery,
  HourSeries,
  LiveBatch,
  LogExport,
  LogFilter,
  LogPage,
  LogStatistics,
  NamePage,
  SeenAddress,
  SeriesQuery,
} from "../../querylog/mod.ts";
import { BEHIND_OTHERS, KeptIsolate } from "../kept_isolate.ts";
import type { FromLog, LogAnswer, LogQuestion, ToLog } from "./messages.ts";
import { startIsolate } from "../scopes.ts";

const LINES = {
  crashed: "the query log's isolate crashed",
  startedAgain: "the query log's isolate was started again",
  notStarted: "the query log's isolate can't be started",
} as const;
/** Questions that wait for an answer, and how long each may. */
const QUESTIONS_MAX = 32;
const QUESTION_MS_MAX = 20_000;
/** Who may watch at one time. */
const WATCHERS_MAX = 8;

/** What the log is kept by. */
export interface QuerylogOptions {
  readonly directory: string;
  readonly maxEntries: number;
  readonly retentionMs: number;
  readonly anonymize: boolean;
  /** By whose midnight days begin; `null`: the machine's. */
  readonly timeZone: string | null;
  /** As configured, by number. */
  readonly upstreams: readonly string[];
  /** When this program was released, in milliseconds since 1970. */
  readonly releasedMs: number;
  /** Those who send entries elsewhere. */
  readonly exports: readonly LogExport[];
  /** Isolates that answer queries: each has a queue of its own. */
  readonly writers: number;
}

/** What the log says of itself. */
export interface QuerylogFigures {
  /** Entries there are, those on their way included. */
  readonly entries: number;
  /** Entries written since the process started. */
  readonly written: number;
  /** Queries since then that are in no entry: nobody could take them, or read them. */
  readonly dropped: number;
}

interface Asked {
  readonly resolve: (answer: LogAnswer) => void;
  readonly reject: (error: SvcError) => void;
  readonly timer: ReturnType<typeof setTimeout>;
}

/** Somebody who watches the log. */
export interface Watcher {
  /** New entries; `skipped` further ones were too many to tell. */
  tell(entries: LiveBatch["entries"], skipped: number): void;
  /** Nothing more will come. */
  end(): void;
}

/**
 * Keeps the isolate of the query log alive and asks it. The queues are here: what was answered while
 * there is no isolate waits in them.
 */
export class QuerylogSupervisor {
  /** Of each isolate that answers queries. */
  readonly queues: readonly SharedArrayBuffer[];
  /** The log was opened, and its newest entry is of this time. */
  onNewest: (newestMs: number) => void = () => {};
  readonly #options: QuerylogOptions;
  readonly #figures = figuresMemory();
  readonly #isolate: KeptIsolate<ToLog, FromLog>;
  readonly #crashes = { count: 0 };
  readonly #asked = new Map<number, Asked>();
  readonly #watchers = new Map<number, { filter: LogFilter; watcher: Watcher }>();
  #lastId = 0;
  /** Why there is no isolate that works. */
  #failure: string | null = null;
  /** What keeps the one there is from writing. */
  #problem: string | null = null;
  #stopped: PromiseWithResolvers<void> | null = null;

  constructor(
    options: QuerylogOptions,
    startWorker: () => Worker = () => startIsolate("querylog", options.directory),
  ) {
    this.#options = options;
    this.queues = Array.from({ length: options.writers }, () => queueMemory());
    this.#isolate = new KeptIsolate<ToLog, FromLog>({
      limits: BEHIND_OTHERS,
      lines: LINES,
      fields: {},
      crashes: this.#crashes,
      startWorker,
      begin: () => this.#begin(),
      hear: (message) => this.#hear(message),
      ended: () => this.#ended(),
    });
  }

  /** Isolates that crashed since the start. */
  get crashes(): number {
    return this.#crashes.count;
  }

  /** Starts the isolate. Whatever becomes of it, queries are answered. */
  start(): void {
    this.#isolate.start();
  }

  /** What keeps the log from being written, for the status. */
  get problems(): string[] {
    const problem = this.#failure ?? this.#problem;
    return problem === null ? [] : [problem];
  }

  get figures(): QuerylogFigures {
    const values = new Float64Array(this.#figures);
    let entries = values[LogFigure.Entries];
    let dropped = values[LogFigure.Unreadable];
    for (const queue of this.queues) {
      const figures = queueFigures(queue);
      if (this.#options.maxEntries > 0) entries += figures.waiting;
      for (const count of figures.dropped) dropped += count;
    }
    entries = Math.min(entries, this.#options.maxEntries);
    return { entries, written: values[LogFigure.Written], dropped };
  }

  /**
   * The newest entries that pass, of those before the number `before`.
   *
   * @throws {SvcError} `unavailable`.
   */
  search(filter: LogFilter, limit: number, before: number | null): Promise<LogPage> {
    return this.#ask({ type: "search", filter, limit, before }) as Promise<LogPage>;
  }

  /**
   * The names of entries that pass, the one asked for last first.
   *
   * @throws {SvcError} `unavailable`.
   */
  names(filter: LogFilter, limit: number, before: number | null): Promise<NamePage> {
    return this.#ask({ type: "names", filter, limit, before }) as Promise<NamePage>;
  }

  /**
   * What was counted in the last hours, 1 to 720.
   *
   * @throws {SvcError} `unavailable`.
   */
  statistics(hours: number): Promise<LogStatistics> {
    return this.#ask({ type: "statistics", hours }) as Promise<LogStatistics>;
  }

  /**
   * The same by short steps; or for some clients, of what the log still has.
   *
   * @throws {SvcError} `unavailable`.
   */
  counts(query: CountsQuery): Promise<LogStatistics> {
    return this.#ask({ type: "counts", query }) as Promise<LogStatistics>;
  }

  /**
   * The addresses that asked in the last hours, the one that asked last first.
   *
   * @throws {SvcError} `unavailable`.
   */
  seen(hours: number): Promise<readonly SeenAddress[]> {
    return this.#ask({ type: "seen", hours }) as Promise<readonly SeenAddress[]>;
  }

  /**
   * Queries of some clients in each of the last hours.
   *
   * @throws {SvcError} `unavailable`.
   */
  series(query: SeriesQuery): Promise<HourSeries> {
    return this.#ask({ type: "series", query }) as Promise<HourSeries>;
  }

  /**
   * Tells of entries that pass as they come. Returns what ends that.
   *
   * @throws {SvcError} `unavailable`, where too many watch already.
   */
  watch(filter: LogFilter, watcher: Watcher): () => void {
    if (this.#watchers.size >= WATCHERS_MAX) {
      throw new SvcError(
        "unavailable",
        `querylog: ${WATCHERS_MAX} watch already, which is the most`,
      );
    }
    const id = ++this.#lastId;
    this.#watchers.set(id, { filter, watcher });
    this.#isolate.tell({ type: "watch", watcher: id, filter });
    return () => {
      this.#watchers.delete(id);
      this.#isolate.tell({ type: "unwatch", watcher: id });
    };
  }

  /** Tells everybody who watches that this is the end. */
  endWatchers(): void {
    for (const { watcher } of [...this.#watchers.values()]) watcher.end();
  }

  /** Has everything written that waits, for `graceMs` at most, and ends the isolate. */
  async stop(graceMs: number): Promise<void> {
    this.#stopped = Promise.withResolvers();
    this.#isolate.retire();
    this.endWatchers();
    if (!this.#isolate.isThere) return;
    this.#isolate.tell({ type: "stop" });
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<"late">((resolve) => {
      timer = setTimeout(() => resolve("late"), graceMs);
    });
    if (await Promise.race([this.#stopped.promise, late]) === "late") {
      const waiting = this.queues.reduce((sum, queue) => sum + queueFigures(queue).waiting, 0);
      log.warn("the query log was not written to its end: the machine is busy", { waiting });
    }
    clearTimeout(timer);
    this.#isolate.end();
  }

  #begin(): void {
    const { writers: _, ...options } = this.#options;
    this.#problem = null;
    this.#isolate.tell({
      type: "start",
      options: { ...options, queues: this.queues, figures: this.#figures },
      handsLogOn: areLogLinesHanded(),
    });
    for (const [id, { filter }] of this.#watchers) {
      this.#isolate.tell({ type: "watch", watcher: id, filter });
    }
  }

  async #ask(question: LogQuestion): Promise<LogAnswer> {
    if (!this.#isolate.isThere || this.#stopped !== null) {
      throw new SvcError("unavailable", "query log: it is being started again: try again");
    }
    if (this.#asked.size >= QUESTIONS_MAX) {
      throw new SvcError("unavailable", "query log: too many requests wait for it: try again");
    }
    const { promise, resolve, reject } = Promise.withResolvers<LogAnswer>();
    const id = ++this.#lastId;
    const timer = setTimeout(() => {
      this.#asked.delete(id);
      const message = `query log: no answer within ${QUESTION_MS_MAX / 1_000} seconds`;
      reject(new SvcError("unavailable", message));
    }, QUESTION_MS_MAX);
    this.#asked.set(id, { resolve, reject, timer });
    this.#isolate.tell({ type: "ask", id, question });
    return await promise;
  }

  #hear(message: FromLog): void {
    switch (message.type) {
      case "ready":
        this.#failure = null;
        return;
      case "pong":
        return;
      case "answer":
        this.#takeAsked(message.id)?.resolve(message.answer);
        return;
      case "refused":
        this.#takeAsked(message.id)?.reject(new SvcError(message.code, message.message));
        return;
      case "live": {
        const { watcher, entries, skipped } = message.batch;
        this.#watchers.get(watcher)?.watcher.tell(entries, skipped);
        return;
      }
      case "newest":
        this.onNewest(message.newestMs);
        return;
      case "problem":
        this.#problem = message.problem;
        return;
      case "stopped":
        this.#stopped?.resolve();
    }
  }

  #takeAsked(id: number): Asked | null {
    const asked = this.#asked.get(id);
    if (asked === undefined) return null;
    this.#asked.delete(id);
    clearTimeout(asked.timer);
    return asked;
  }

  #ended(): void {
    const reason = this.#stopped === null ? "its isolate crashed: try again" : "the service stops";
    this.#stopped?.resolve();
    this.#failure = "the query log's isolate crashed, and is being started again";
    for (const id of [...this.#asked.keys()]) {
      this.#takeAsked(id)?.reject(new SvcError("unavailable", `query log: ${reason}`));
    }
  }
}
