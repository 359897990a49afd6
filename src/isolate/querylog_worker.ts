/// <reference no-default-lib="true" />
/// <reference lib="deno.worker" />
/** Keeps the query log: nothing but its folder is open to it. @module */
import { messageOf, SvcError } from "../errors.ts";
import { handLogLines } from "../log.ts";
import { QueryLogStore } from "../querylog/mod.ts";
import { Nice, stepBack } from "../thread/mod.ts";
import { tellCrashes } from "./crash.ts";
import type { FromKept } from "./kept_isolate.ts";
import { LogLines } from "./log_lines.ts";
import type { FromLog, LogAnswer, LogQuestion, ToLog } from "./querylog_messages.ts";

let store: QueryLogStore | null = null;
let timer: ReturnType<typeof setTimeout> | undefined;
const lines = new LogLines((line) => tell({ type: "logged", line }));
const crash = tellCrashes((error) => {
  clearTimeout(timer);
  tell({ type: "crashed", error });
});

function tell(message: FromLog | FromKept): void {
  self.postMessage(message);
}

function turn(): void {
  if (store === null) return;
  try {
    timer = setTimeout(turn, store.turn());
  } catch (error) {
    crash(error);
  }
}

function ask(id: number, question: LogQuestion): void {
  if (store === null) return;
  try {
    tell({ type: "answer", id, answer: answerOf(store, question) });
  } catch (error) {
    const code = error instanceof SvcError ? error.code : "unavailable";
    tell({ type: "refused", id, code, message: `query log: ${messageOf(error)}` });
  }
}

function answerOf(store: QueryLogStore, question: LogQuestion): LogAnswer {
  switch (question.type) {
    case "search":
      return store.search(question.filter, question.limit, question.before);
    case "statistics":
      return store.statistics(question.hours);
  }
}

function handle(message: ToLog): void {
  switch (message.type) {
    case "start":
      if (message.handsLogOn) handLogLines(lines.take);
      stepBack(Nice.Last);
      store = new QueryLogStore(message.options, {
        wallMs: () => Date.now(),
        monotonicMs: () => performance.now(),
        onProblem: (problem) => tell({ type: "problem", problem }),
        onNewest: (newestMs) => tell({ type: "newest", newestMs }),
        onLive: (batch) => tell({ type: "live", batch }),
      });
      turn();
      tell({ type: "ready" });
      return;
    case "ask":
      ask(message.id, message.question);
      return;
    case "watch":
      store?.live.watch(message.watcher, message.filter);
      return;
    case "unwatch":
      store?.live.unwatch(message.watcher);
      return;
    case "ping":
      lines.reset();
      tell({ type: "pong" });
      return;
    case "stop":
      clearTimeout(timer);
      store?.close();
      store = null;
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
