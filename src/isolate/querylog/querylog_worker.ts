/// <reference no-default-lib="true" />
/// <reference lib="deno.worker" />
/** Keeps the query log: nothing but its folder is open to it. @module */
import { messageOf, SvcError } from "../../errors.ts";
import { handLogLines } from "../../log.ts";
import { QueryLogStore } from "../../querylog/mod.ts";
import { giveBackHeap } from "../../free_memory.ts";
import { Nice, stepBack } from "../../thread/mod.ts";
import { tellCrashes } from "../crash.ts";
import type { FromKept } from "../kept_isolate.ts";
import { LogLines } from "../log_lines.ts";
import { Rest } from "../rest.ts";
import type { FromLog, LogAnswer, LogQuestion, ToLog } from "./messages.ts";

/** How often this isolate's heap is looked at. */
const HEAP_LOOK_MS = 20_000;

let store: QueryLogStore | null = null;
/** Ends the pause between two turns. */
let wake: () => void = () => {};
const lines = new LogLines((line) => tell({ type: "logged", line }));
const crash = tellCrashes((error) => {
  store = null;
  wake();
  tell({ type: "crashed", error });
});

/** Beside its pages, what V8 has compiled goes: while records come, all of it would be made anew. */
const rest = new Rest(
  () => store?.taken ?? 0,
  () => Deno.memoryUsage().heapTotal,
  () => giveBackHeap("last-resort"),
);

function tell(message: FromLog | FromKept): void {
  self.postMessage(message);
}

/** Gives the log its turns until it is closed. */
async function run(log: QueryLogStore): Promise<void> {
  while (store === log) {
    const { ms, bytes } = log.turn();
    await pause(log, ms, bytes);
  }
}

/** Until `ms` are over, so many bytes wait, or somebody wakes. */
async function pause(log: QueryLogStore, ms: number, bytes: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  wake = resolve;
  const timer = setTimeout(resolve, ms);
  if (bytes < Infinity) void log.waitFor(bytes).then(resolve);
  await promise;
  clearTimeout(timer);
  log.endWait();
}

async function ask(id: number, question: LogQuestion): Promise<void> {
  if (store === null) return;
  try {
    const answer = await answerTo(store, question);
    tell({ type: "answer", id, answer });
  } catch (error) {
    const code = error instanceof SvcError ? error.code : "unavailable";
    tell({ type: "refused", id, code, message: `query log: ${messageOf(error)}` });
  }
}

function answerTo(
  log: QueryLogStore,
  question: LogQuestion,
): LogAnswer | Promise<LogAnswer> {
  switch (question.type) {
    case "statistics":
      return log.statistics(question.hours);
    case "search":
      return inPieces(log, log.search(question.filter, question.limit, question.before));
    case "names":
      return inPieces(log, log.names(question.filter, question.limit, question.before));
    case "counts":
      return inTurn(() => inPieces(log, log.counts(question.query)));
    case "seen":
      return inTurn(() => inPieces(log, log.seen(question.hours)));
    case "series":
      return inTurn(() => inPieces(log, log.series(question.query)));
  }
}

/** What counts many entries, one after another. */
let working: Promise<unknown> = Promise.resolve();

function inTurn<T>(work: () => Promise<T>): Promise<T> {
  const done = working.then(work);
  working = done.catch(() => {});
  return done;
}

/** Answers, and lets others have their turn between two pieces of that. */
async function inPieces(
  log: QueryLogStore,
  pieces: Iterator<undefined, LogAnswer>,
): Promise<LogAnswer> {
  for (;;) {
    if (store !== log) throw new SvcError("unavailable", "it is being closed");
    const { done, value } = pieces.next();
    if (done) return value;
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
}

function handle(message: ToLog): void {
  switch (message.type) {
    case "start":
      if (message.handsLogOn) handLogLines(lines.take);
      stepBack(Nice.Log);
      store = new QueryLogStore(message.options, {
        wallMs: () => Date.now(),
        monotonicMs: () => performance.now(),
        onProblem: (problem) => tell({ type: "problem", problem }),
        onNewest: (newestMs) => tell({ type: "newest", newestMs }),
        onLive: (batch) => tell({ type: "live", batch }),
      });
      run(store).catch(crash);
      rest.look(); // What the start leaves.
      setInterval(() => rest.look(), HEAP_LOOK_MS);
      tell({ type: "ready" });
      return;
    case "ask":
      void ask(message.id, message.question);
      return;
    case "watch":
      store?.live.watch(message.watcher, message.filter);
      wake(); // What waits is told sooner now.
      return;
    case "unwatch":
      store?.live.unwatch(message.watcher);
      return;
    case "ping":
      lines.reset();
      tell({ type: "pong" });
      return;
    case "stop":
      store?.close();
      store = null;
      wake();
      tell({ type: "stopped" });
  }
}

self.onmessage = ({ data }: MessageEvent<ToLog>) => {
  try {
    handle(data);
  } catch (error) {
    crash(error);
  }
};
