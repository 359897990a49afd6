import { areLogLinesHanded } from "../../log.ts";
import { closeSocket, type Native, openNative, openWake } from "../../native/mod.ts";
import { Waker } from "../../native/checking.ts";
import { Inbox } from "../inbox.ts";
import { type KeepLimits, KeptIsolate } from "../kept_isolate.ts";
import { startIsolate } from "../scopes.ts";
import type { FromCheck, ToCheck, WayToThread } from "./messages.ts";
import { Bell, CheckRing } from "./ring.ts";

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

/** Takes a way to a thread, or to the one in its place. */
export type TakeWay = (way: WayToThread) => void;

/** A dns isolate that is led to. */
interface Taker {
  readonly take: TakeWay;
  /** Ends its wait; `null`: it does not wait by descriptors. */
  readonly wake: number | null;
}

/** Whoever might still write to a descriptor has ended by then. */
const ENDED_MS = 1_000;

/** One thread and whoever replaces it. */
class Thread {
  bell = new SharedArrayBuffer(Bell.MEMORY_BYTES);
  inbox = new SharedArrayBuffer(Inbox.MEMORY_BYTES);
  readonly isolate: KeptIsolate<ToCheck, FromCheck>;

  constructor(readonly index: number, keep: (thread: Thread) => KeptIsolate<ToCheck, FromCheck>) {
    this.isolate = keep(this);
  }

  /** Sends a message, and ends the wait of a thread that would not hear of it. */
  send(worker: Worker, message: ToCheck): void {
    Inbox.announce(this.inbox);
    const port = message.type === "connect" ? message.way.port : null;
    worker.postMessage(message, port === null ? [] : [port]);
    new Bell(this.bell).ring();
  }
}

/**
 * Keeps the threads alive that check signatures, and has a way led from each to each dns isolate. A
 * thread that is replaced takes its ways with it: new ones are led.
 */
export class CheckSupervisor {
  readonly #threads: readonly Thread[];
  readonly #crashes = { count: 0 };
  readonly #native: Native | null = openNative();
  /** By dns isolate. A descriptor outlives the isolate: a thread may write to it at any time. */
  readonly #takers = new Map<number, Taker>();

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
            send: (worker, message) => thread.send(worker, message),
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
    const wakes = [...this.#takers.values()].map(({ wake }) => wake);
    this.#takers.clear();
    const native = this.#native;
    if (native === null || wakes.every((wake) => wake === null)) return;
    setTimeout(() => {
      for (const wake of wakes) if (wake !== null) closeSocket(native, wake);
    }, ENDED_MS);
  }

  /**
   * Leads a way from every thread to a dns isolate that was started just now, and later from others.
   * `waits` says that the isolate waits for descriptors, and so has to be woken by one.
   */
  connect(dnsIsolate: number, waits: boolean, take: TakeWay): void {
    const wake = this.#takers.get(dnsIsolate)?.wake ?? (waits ? this.#openWake() : null);
    const taker = { take, wake };
    this.#takers.set(dnsIsolate, taker);
    for (const thread of this.#threads) {
      if (thread.isolate.isThere) this.#lead(thread, dnsIsolate, taker);
    }
  }

  /** `null` where the threads, who may open less than this isolate, have nothing to write to it with. */
  #openWake(): number | null {
    return this.#native === null || Waker.open() === null ? null : openWake(this.#native);
  }

  #begin(thread: Thread): void {
    thread.bell = new SharedArrayBuffer(Bell.MEMORY_BYTES);
    thread.inbox = new SharedArrayBuffer(Inbox.MEMORY_BYTES);
    const { bell, inbox } = thread;
    thread.isolate.tell({ type: "start", handsLogOn: areLogLinesHanded(), bell, inbox });
    for (const [dnsIsolate, taker] of this.#takers) this.#lead(thread, dnsIsolate, taker);
  }

  #lead({ isolate, index, bell }: Thread, dnsIsolate: number, { take, wake }: Taker): void {
    const ring = new SharedArrayBuffer(CheckRing.MEMORY_BYTES);
    const { port1, port2 } = wake === null ? new MessageChannel() : { port1: null, port2: null };
    isolate.tell({ type: "connect", isolate: dnsIsolate, way: { ring, wake, port: port1 } });
    take({ thread: index, ring, bell, wake, port: port2 });
  }
}
