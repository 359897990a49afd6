import { areLogLinesHanded } from "../../log.ts";
import { type KeepLimits, KeptIsolate } from "../kept_isolate.ts";
import { startIsolate } from "../scopes.ts";
import type { FromCheck, ToCheck } from "./messages.ts";

/** It stands behind those that answer: on a busy machine a sign of life may take a while. */
const LIMITS: KeepLimits = {
  startMsMax: 30_000,
  lookMs: 5_000,
  silenceMsMax: 30_000,
  restartMsMin: 50,
  restartMsMax: 5_000,
  stableMs: 30_000,
};
const LINES = {
  crashed: "an isolate that checks signatures crashed",
  startedAgain: "an isolate that checks signatures was started again",
  notStarted: "an isolate that checks signatures can't be started",
} as const;

/** Takes a way to the thread of this number, or to the one in its place. */
export type TakePort = (thread: number, port: MessagePort) => void;

/** One thread and whoever replaces it. */
class Thread {
  readonly isolate: KeptIsolate<ToCheck, FromCheck>;

  constructor(readonly index: number, keep: (thread: Thread) => KeptIsolate<ToCheck, FromCheck>) {
    this.isolate = keep(this);
  }
}

/**
 * Keeps the threads alive that check signatures, and has a way led from each to each dns isolate. A
 * thread that is replaced takes its ways with it: new ones are led.
 */
export class CheckSupervisor {
  readonly #threads: readonly Thread[];
  readonly #crashes = { count: 0 };
  /** Who is told of ways, by dns isolate. */
  readonly #takers = new Map<number, TakePort>();

  /** Each thread is what `startWorker` starts. */
  constructor(threads: number, startWorker: () => Worker = () => startIsolate("check")) {
    this.#threads = Array.from({ length: threads }, (_, index) =>
      new Thread(
        index,
        (thread) =>
          new KeptIsolate<ToCheck, FromCheck>({
            limits: LIMITS,
            lines: LINES,
            fields: { thread: index },
            crashes: this.#crashes,
            startWorker,
            begin: () => this.#begin(thread),
            hear: () => {},
            ended: () => {},
            send: (worker, message) =>
              worker.postMessage(message, message.type === "connect" ? [message.port] : []),
          }),
      ));
  }

  /** Isolates that crashed since the start. */
  get crashes(): number {
    return this.#crashes.count;
  }

  start(): void {
    for (const { isolate } of this.#threads) isolate.start();
  }

  stop(): void {
    for (const { isolate } of this.#threads) isolate.end();
  }

  /** Leads a way from every thread to a dns isolate that was started just now, and later from others. */
  connect(dnsIsolate: number, take: TakePort): void {
    this.#takers.set(dnsIsolate, take);
    for (const thread of this.#threads) if (thread.isolate.isThere) this.#lead(thread, take);
  }

  #begin(thread: Thread): void {
    thread.isolate.tell({ type: "start", handsLogOn: areLogLinesHanded() });
    for (const take of this.#takers.values()) this.#lead(thread, take);
  }

  #lead({ isolate, index }: Thread, take: TakePort): void {
    const { port1, port2 } = new MessageChannel();
    isolate.tell({ type: "connect", port: port1 });
    take(index, port2);
  }
}
