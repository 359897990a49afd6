// Goal: the log is found and goes on, whatever becomes of its isolate. Method: the real isolate with
// its real scope, and one that fails when it is told to.
import assert from "node:assert/strict";
import { SvcError } from "../../errors.ts";
import { handLogLines, type LogLine } from "../../log.ts";
import { QueueWriter } from "../../logqueue/mod.ts";
import { note } from "../../querylog/fakes.ts";
import type { LogEntry } from "../../querylog/mod.ts";
import { type QuerylogOptions, QuerylogSupervisor } from "./supervisor.ts";
import { SCOPES } from "../scopes.ts";

const PERMISSIONS = { read: true, write: true, sys: true } as const;
const WAIT_MS_MAX = 30_000;
const POLL_MS = 10;

async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const endsAtMs = performance.now() + WAIT_MS_MAX;
  while (!(await condition())) {
    assert.ok(performance.now() < endsAtMs, `${what}: not within ${WAIT_MS_MAX} ms`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** A log in a folder of its own, and the writing end of its queue. */
class Running {
  readonly directory = Deno.makeTempDirSync();
  readonly workers: Worker[] = [];
  readonly supervisor: QuerylogSupervisor;
  readonly queue: QueueWriter;

  constructor(options: Partial<QuerylogOptions> = {}, canFail = false) {
    this.supervisor = new QuerylogSupervisor({
      directory: `${this.directory}/querylog`,
      maxEntries: 1_000,
      retentionMs: 400 * 86_400_000,
      anonymize: false,
      releasedMs: 0,
      upstreams: [],
      exports: [],
      timeZone: "UTC",
      writers: 1,
      ...options,
    }, canFail ? () => this.#failing() : undefined);
    this.queue = new QueueWriter(this.supervisor.queues[0]);
    this.supervisor.start();
  }

  #failing(): Worker {
    const url = new URL("../../../tests/e2e/failing_querylog_worker.ts", import.meta.url);
    const permissions = SCOPES.querylog(`${this.directory}/querylog`);
    const worker = new Worker(url, { type: "module", deno: { permissions } });
    this.workers.push(worker);
    return worker;
  }

  ask(name: string): void {
    note(this.queue, { name, timeMs: Date.now() });
  }

  async names(): Promise<string> {
    const { entries } = await this.supervisor.search({}, 100, null);
    return entries.map(({ name }) => name).join(" ");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.supervisor.stop(WAIT_MS_MAX);
    Deno.removeSync(this.directory, { recursive: true });
  }
}

function log(name: string, fn: () => Promise<void>): void {
  // A worker that was ended is gone a little later.
  Deno.test({ name, permissions: PERMISSIONS, sanitizeResources: false, sanitizeOps: false, fn });
}

log("QuerylogSupervisor finds, counts and tells what was answered", async () => {
  await using running = new Running();
  const { supervisor } = running;
  running.ask("a.example");
  assert.deepEqual(supervisor.figures, { entries: 1, written: 0, dropped: 0 }, "on its way");
  const told: string[] = [];
  const unwatch = supervisor.watch({ name: "b" }, {
    tell: (entries: readonly LogEntry[]) => void told.push(...entries.map(({ name }) => name)),
    end: () => void told.push("end"),
  });
  assert.equal(await running.names(), "a.example");
  running.ask("b.example");
  await until("told of it", () => told.length > 0);
  assert.equal((await supervisor.statistics(2)).total, 2);
  assert.deepEqual(supervisor.figures, { entries: 2, written: 2, dropped: 0 });
  supervisor.endWatchers();
  unwatch();
  assert.deepEqual(told, ["b.example", "end"]);
  assert.deepEqual(supervisor.problems, []);
});

log("QuerylogSupervisor.stop() has everything written", async () => {
  const running = new Running();
  running.ask("a.example");
  await running.supervisor.stop(WAIT_MS_MAX);
  await assert.rejects(running.names(), { name: "SvcError", code: "unavailable" });
  const next = new Running({ directory: `${running.directory}/querylog` });
  try {
    assert.equal(await next.names(), "a.example");
  } finally {
    await next[Symbol.asyncDispose]();
    Deno.removeSync(running.directory, { recursive: true });
  }
});

log("QuerylogSupervisor.stop() says what there was no time for", async () => {
  const told: LogLine[] = [];
  handLogLines((line) => told.push(line));
  const running = new Running();
  try {
    running.ask("a.example");
    running.ask("b.example");
    await running.supervisor.stop(0); // Its isolate has not even begun.
    assert.deepEqual(told.map(({ level, fields }) => [level, fields]), [["warn", { waiting: 2 }]]);
  } finally {
    handLogLines(null);
    Deno.removeSync(running.directory, { recursive: true });
  }
});

log("QuerylogSupervisor replaces an isolate that fails, and loses nothing", async () => {
  await using running = new Running({}, true);
  const { supervisor, workers } = running;
  running.ask("before.example");
  assert.equal(await running.names(), "before.example");
  const told: string[] = [];
  supervisor.watch({}, {
    tell: (entries) => void told.push(...entries.map(({ name }) => name)),
    end: () => undefined,
  });
  const waiting = supervisor.search({}, 10, null);
  workers[0].postMessage({ type: "throw" });
  await until("the crash", () => supervisor.crashes === 1);
  assert.match(supervisor.problems.join(), /crashed/);
  running.ask("meanwhile.example");
  assert.equal(supervisor.figures.entries, 2);
  await assert.rejects(supervisor.search({}, 10, null), { name: "SvcError", code: "unavailable" });
  await waiting.catch((error) => assert.ok(error instanceof SvcError));
  await until("another one", () => workers.length === 2);
  assert.equal(await running.names(), "meanwhile.example before.example");
  assert.deepEqual(supervisor.problems, []);
  await until("the watcher is told by the new one", () => told.includes("meanwhile.example"));
  workers[1].postMessage({ type: "reject" });
  await until("the second crash", () => supervisor.crashes === 2);
  await until("a third one", () => workers.length === 3);
  assert.equal(await running.names(), "meanwhile.example before.example");
});

log("QuerylogSupervisor counts what finds no room while there is no isolate", async () => {
  await using running = new Running({}, true);
  const { supervisor, workers } = running;
  assert.equal(await running.names(), "");
  workers[0].postMessage({ type: "throw" });
  await until("the crash", () => supervisor.crashes === 1);
  let asked = 0;
  for (; supervisor.figures.dropped < 10; asked++) running.ask(`n${asked}.example`);
  await until("another one", () => workers.length === 2);
  assert.equal((await supervisor.statistics(2)).total, asked);
  const { written, dropped } = supervisor.figures;
  assert.equal(written + dropped, asked);
  running.ask("after.example");
  assert.match(await running.names(), /^after\.example n/);
});

log("QuerylogSupervisor bounds who asks and who watches", async () => {
  await using running = new Running();
  const { supervisor } = running;
  const watcher = { tell: () => undefined, end: () => undefined };
  const ends = Array.from({ length: 8 }, () => supervisor.watch({}, watcher));
  assert.throws(() => supervisor.watch({}, watcher), { name: "SvcError", code: "unavailable" });
  ends[0]();
  supervisor.watch({}, watcher);
  const asked = await Promise.allSettled(
    Array.from({ length: 40 }, () => supervisor.search({}, 1, null)),
  );
  const refused = asked.filter(({ status }) => status === "rejected");
  assert.equal(refused.length, 8);
});

log("QuerylogSupervisor says that the log can't be written", async () => {
  await using running = new Running({ directory: "/dev/null/querylog" });
  const { supervisor } = running;
  running.ask("a.example");
  await until("the problem", () => supervisor.problems.length > 0);
  assert.match(supervisor.problems[0], /^the query log can't be written: store\.path: /);
  await assert.rejects(running.names(), { name: "SvcError", code: "unavailable" });
  assert.equal(supervisor.figures.entries, 1, "it waits");
});

log("QuerylogSupervisor hands the log lines of its isolate on", async () => {
  const told: LogLine[] = [];
  handLogLines((line) => told.push(line));
  try {
    await using _running = new Running({ directory: "/dev/null/querylog" });
    await until("the line", () => told.length > 0);
    assert.deepEqual([told[0].level, told[0].message], ["error", "the query log can't be written"]);
    assert.match(String(told[0].fields.error), /store\.path: /);
  } finally {
    handLogLines(null);
  }
});
