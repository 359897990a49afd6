import { messageOf, SvcError } from "../errors.ts";
import { areLogLinesHanded, log, relayLogLine } from "../log.ts";
import { figuresMemory, LogFigure, queueFigures, queueMemory } from "../logqueue/mod.ts";
import type { LiveBatch, LogFilter, LogPage, LogStatistics } from "../querylog/mod.ts";
import type { FromLog, LogAnswer, LogQuestion, ToLog } from "./querylog_messages.ts";
import { startIsolate } from "./scopes.ts";

/** First pause before a crashed isolate is started again; doubles while it keeps crashing. */
const RESTART_MS_MIN = 200;
const RESTART_MS_MAX = 60_000;
/** An isolate that ran this long without a crash starts again at once. */
const STABLE_MS = 60_000;
/** It has the lowest priority: under load it is slow, and no worse than that. */
const PING_MS = 10_000;
const SILENCE_MS_MAX = 120_000;
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
  /** As configured, by number. */
  readonly upstreams: readonly string[];
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
  readonly #options: QuerylogOptions;
  readonly #figures = figuresMemory();
  readonly #startWorker: () => Worker;
  readonly #asked = new Map<number, Asked>();
  readonly #watchers = new Map<number, { filter: LogFilter; watcher: Watcher }>();
  #worker: Worker | null = null;
  #lastId = 0;
  #problem: string | null = null;
  #startedAtMs = 0;
  #heardAtMs = 0;
  #restartMs = RESTART_MS_MIN;
  #pinger: ReturnType<typeof setInterval> | undefined;
  #stopped: PromiseWithResolvers<void> | null = null;
  /** Isolates that crashed since the start. */
  crashes = 0;

  constructor(
    options: QuerylogOptions,
    startWorker: () => Worker = () => startIsolate("querylog", options.directory),
  ) {
    this.#options = options;
    this.#startWorker = startWorker;
    this.queues = Array.from({ length: options.writers }, () => queueMemory());
  }

  /** Starts the isolate. Whatever becomes of it, queries are answered. */
  start(): void {
    this.#launch();
    this.#pinger = setInterval(() => this.#ping(), PING_MS);
  }

  /** What keeps the log from being written, for the status. */
  get problems(): string[] {
    return this.#problem === null ? [] : [this.#problem];
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
   * What was counted in the last hours, 1 to 720.
   *
   * @throws {SvcError} `unavailable`.
   */
  statistics(hours: number): Promise<LogStatistics> {
    return this.#ask({ type: "statistics", hours }) as Promise<LogStatistics>;
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
    this.#tell({ type: "watch", watcher: id, filter });
    return () => {
      this.#watchers.delete(id);
      this.#tell({ type: "unwatch", watcher: id });
    };
  }

  /** Tells everybody who watches that this is the end. */
  endWatchers(): void {
    for (const { watcher } of [...this.#watchers.values()]) watcher.end();
  }

  /** Has everything written that waits, for `graceMs` at most, and ends the isolate. */
  async stop(graceMs: number): Promise<void> {
    clearInterval(this.#pinger);
    this.#stopped = Promise.withResolvers();
    this.endWatchers();
    if (this.#worker === null) return;
    this.#tell({ type: "stop" });
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<"late">((resolve) => {
      timer = setTimeout(() => resolve("late"), graceMs);
    });
    if (await Promise.race([this.#stopped.promise, late]) === "late") {
      const waiting = this.queues.reduce((sum, queue) => sum + queueFigures(queue).waiting, 0);
      log.warn("the query log was not written to its end: the machine is busy", { waiting });
    }
    clearTimeout(timer);
    this.#end("the service stops");
  }

  #launch(): void {
    this.#startedAtMs = this.#heardAtMs = performance.now();
    const worker = this.#startWorker();
    this.#worker = worker;
    worker.onmessage = ({ data }: MessageEvent<FromLog>) => this.#hear(worker, data);
    worker.onerror = (event) => {
      event.preventDefault();
      this.#crashed(worker, event.message);
    };
    const { writers: _, ...options } = this.#options;
    this.#tell({
      type: "start",
      options: { ...options, queues: this.queues, figures: this.#figures },
      handsLogOn: areLogLinesHanded(),
    });
    for (const [id, { filter }] of this.#watchers) {
      this.#tell({ type: "watch", watcher: id, filter });
    }
  }

  #tell(message: ToLog): void {
    this.#worker?.postMessage(message);
  }

  async #ask(question: LogQuestion): Promise<LogAnswer> {
    if (this.#worker === null || this.#stopped !== null) {
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
    this.#tell({ type: "ask", id, question });
    return await promise;
  }

  #hear(worker: Worker, message: FromLog): void {
    if (this.#worker !== worker) return; // One that was replaced.
    this.#heardAtMs = performance.now();
    switch (message.type) {
      case "ready":
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
      case "problem":
        this.#problem = message.problem;
        return;
      case "logged":
        relayLogLine(message.line);
        return;
      case "stopped":
        this.#stopped?.resolve();
        return;
      case "crashed":
        this.#crashed(worker, message.error);
    }
  }

  #takeAsked(id: number): Asked | null {
    const asked = this.#asked.get(id);
    if (asked === undefined) return null;
    this.#asked.delete(id);
    clearTimeout(asked.timer);
    return asked;
  }

  #crashed(worker: Worker, error: string): void {
    if (this.#worker !== worker) return;
    this.crashes++;
    log.error("the query log's isolate crashed", { crashes: this.crashes, error });
    this.#end("its isolate crashed: try again");
    if (this.#stopped !== null) {
      this.#stopped.resolve();
      return;
    }
    this.#problem = "the query log's isolate crashed, and is being started again";
    const stable = performance.now() - this.#startedAtMs >= STABLE_MS;
    this.#restart(stable ? RESTART_MS_MIN : this.#restartMs);
  }

  #restart(delayMs: number): void {
    this.#restartMs = Math.min(2 * delayMs, RESTART_MS_MAX);
    setTimeout(() => {
      if (this.#stopped !== null) return;
      try {
        this.#launch();
        this.#problem = null;
        log.info("the query log's isolate was started again");
      } catch (error) {
        log.error("the query log's isolate can't be started", { error: messageOf(error) });
        this.#restart(this.#restartMs);
      }
    }, delayMs);
  }

  #end(reason: string): void {
    this.#worker?.terminate();
    this.#worker = null;
    for (const id of [...this.#asked.keys()]) {
      this.#takeAsked(id)?.reject(new SvcError("unavailable", `query log: ${reason}`));
    }
  }

  #ping(): void {
    const worker = this.#worker;
    if (worker === null) return;
    if (performance.now() - this.#heardAtMs > SILENCE_MS_MAX) {
      this.#crashed(worker, `silent for more than ${SILENCE_MS_MAX / 1_000} seconds`);
    } else {
      this.#tell({ type: "ping" });
    }
  }
}
