/** A query log for tests, with its queues and a clock that goes as the test says. */
import type { DatabaseSync } from "node:sqlite";
import {
  figuresMemory,
  LogFigure,
  queueFigures,
  queueMemory,
  QueueWriter,
} from "../logqueue/mod.ts";
import { openDatabase } from "./database.ts";
import { type FakeQuery, note, NOW_MS } from "./fakes.ts";
import type { LiveBatch } from "./live_feed.ts";
import type { QueryLogOptions } from "./options.ts";
import { QueryLogStore } from "./query_log.ts";

/** A log, its queues, and a clock that goes as the test says. */
export class FakeLog {
  readonly directory = Deno.makeTempDirSync();
  readonly queues: SharedArrayBuffer[];
  readonly writers: QueueWriter[];
  readonly figures = figuresMemory();
  readonly problems: (string | null)[] = [];
  readonly live: LiveBatch[] = [];
  asked = 0;
  nowMs = NOW_MS;
  /** How far the system's clock is from the right one. */
  setMs = 0;
  db: DatabaseSync | null = null;
  store: QueryLogStore;

  constructor(readonly options: Partial<QueryLogOptions> = {}, queues = 1, queueBytes?: number) {
    this.queues = Array.from({ length: queues }, () => queueMemory(queueBytes));
    this.writers = this.queues.map((memory) => new QueueWriter(memory));
    this.store = this.open();
  }

  open(): QueryLogStore {
    const options = {
      directory: `${this.directory}/querylog`,
      maxEntries: 100_000,
      retentionMs: 86_400_000,
      anonymize: false,
      releasedMs: 0,
      upstreams: ["192.0.2.53:53"],
      exports: [],
      timeZone: "UTC",
      ...this.options,
      queues: this.queues,
      figures: this.figures,
    };
    return new QueryLogStore(options, {
      wallMs: () => this.nowMs + this.setMs,
      monotonicMs: () => this.nowMs,
      onProblem: (problem) => this.problems.push(problem),
      onLive: (batch) => this.live.push(batch),
      open: (directory, nowMs) => this.db = openDatabase(directory, nowMs),
    });
  }

  ask(query: FakeQuery = {}, queue = 0): void {
    this.asked++;
    note(this.writers[queue], { timeMs: this.nowMs + this.setMs, ...query });
  }

  /** Lets time pass, with the turns asked for. */
  pass(ms: number): void {
    const endMs = this.nowMs + ms;
    while (this.nowMs < endMs) this.nowMs += Math.min(this.store.turn().ms, endMs - this.nowMs);
  }

  names(limit = 1_000): string {
    return this.store.search({}, limit, null).entries.map(({ name }) => name.split(".")[0]).join(
      " ",
    );
  }

  get dropped(): number {
    const unreadable = new Float64Array(this.figures)[LogFigure.Unreadable];
    return this.queues.map((queue) => queueFigures(queue).dropped.reduce((a, b) => a + b))
      .reduce((a, b) => a + b, unreadable);
  }

  get entries(): number {
    return new Float64Array(this.figures)[LogFigure.Entries];
  }

  files(): string[] {
    return [...Deno.readDirSync(`${this.directory}/querylog`)].map(({ name }) => name).sort();
  }

  [Symbol.dispose](): void {
    this.store.close();
    Deno.removeSync(this.directory, { recursive: true });
  }
}

/** Keeps the log's lines of a test to itself. */
export function quietly<T>(work: () => T): { result: T; lines: string } {
  const write = Deno.stderr.writeSync;
  let lines = "";
  Deno.stderr.writeSync = (bytes) => {
    lines += new TextDecoder().decode(bytes);
    return bytes.length;
  };
  try {
    return { result: work(), lines };
  } finally {
    Deno.stderr.writeSync = write;
  }
}
