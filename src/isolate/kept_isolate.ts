import { untilBeat } from "../clock/mod.ts";
import { messageOf } from "../errors.ts";
import { log, relayLogLine } from "../log.ts";
import type { Logged } from "./log_lines.ts";

/** How long an isolate may take, and how soon it is started again. */
export interface KeepLimits {
  /** Longest start. */
  readonly startMsMax: number;
  /** How often it is looked at, and asked for a sign of life once it runs. */
  readonly lookMs: number;
  /** Longest silence of one that is asked. */
  readonly silenceMsMax: number;
  /** First pause before one that failed is started again; doubles while it keeps failing. */
  readonly restartMsMin: number;
  readonly restartMsMax: number;
  /** One that ran this long without a crash is started again after the first pause. */
  readonly stableMs: number;
}

/** Of one that stands behind all others: under load it is slow, and no worse than that. */
export const BEHIND_OTHERS: KeepLimits = {
  startMsMax: 120_000,
  lookMs: 10_000,
  silenceMsMax: 120_000,
  restartMsMin: 200,
  restartMsMax: 60_000,
  stableMs: 60_000,
};

/** What is said to every isolate that is kept, beside what is its own. */
export type ToKept = { readonly type: "ping" };

/** What every isolate that is kept says, beside `ready` once it works and an answer to each ping. */
export type FromKept =
  /** The system's number of its thread, said before anything that may take long. */
  | { readonly type: "thread"; readonly thread: number }
  | Logged
  /** It can't go on. */
  | { readonly type: "crashed"; readonly error: string };

/** What is the supervisor's own in keeping an isolate. */
export interface KeptOptions<To, From> {
  readonly limits: KeepLimits;
  /** What the log says, and of which isolate. */
  readonly lines: {
    readonly crashed: string;
    readonly startedAgain: string;
    readonly notStarted: string;
  };
  readonly fields: Readonly<Record<string, string | number>>;
  /** Crashes so far, of all isolates that share it. */
  readonly crashes: { count: number };
  readonly startWorker: () => Worker;
  /** Tells a new one what it starts with. If it throws, that one ends, and another is tried later. */
  readonly begin: () => void;
  readonly hear: (message: From) => void;
  /** One has ended, or was never there; what it held is let go. Called once for each `begin`. */
  readonly ended: (reason: string) => void;
  /** How a message is sent; as `postMessage` does, if left out. */
  readonly send?: (worker: Worker, message: To) => void;
  /** The thread of one that was ended; it may run on for as long as it likes. */
  readonly left?: (thread: number) => void;
}

/** Time, as the supervision of isolates sees it. */
export interface KeepTime {
  /** Milliseconds, monotonic. */
  readonly nowMs: () => number;
  /** Calls `work` once; returns what calls that off. */
  readonly after: (ms: number, work: () => void) => () => void;
}

export const SYSTEM_TIME: KeepTime = {
  nowMs: () => performance.now(),
  after: (ms, work) => {
    const timer = setTimeout(work, ms);
    return () => clearTimeout(timer);
  },
};

/**
 * Keeps one isolate alive: starts it, asks it for signs of life, and replaces it when it crashes, is
 * silent or can't be started. At any time it holds one worker and one timer at most.
 */
export class KeptIsolate<To, From extends { readonly type: string }> {
  readonly #options: KeptOptions<To | ToKept, From>;
  readonly #time: KeepTime;
  #worker: Worker | null = null;
  #thread: number | null = null;
  #isKept = false;
  #isReady = false;
  #startedAtMs = 0;
  /** Looks since the start, or since it was last heard of. */
  #looks = 0;
  #restartMs: number;
  #callOff: () => void = () => {};

  constructor(options: KeptOptions<To | ToKept, From>, time: KeepTime = SYSTEM_TIME) {
    this.#options = options;
    this.#time = time;
    this.#restartMs = options.limits.restartMsMin;
  }

  /** There is one, though it may still be starting. */
  get isThere(): boolean {
    return this.#worker !== null;
  }

  /** Starts the isolate, and from now on each that takes its place. */
  start(): void {
    this.#isKept = true;
    this.#launch();
  }

  /** Sends a message; where there is no isolate, to nobody. */
  tell(message: To | ToKept): void {
    if (this.#worker === null) return;
    if (this.#options.send === undefined) this.#worker.postMessage(message);
    else this.#options.send(this.#worker, message);
  }

  /** The isolate goes on, but none takes its place any more. */
  retire(): void {
    this.#isKept = false;
    if (this.#worker === null) this.#callOff();
  }

  /** Ends the isolate for good. */
  end(): void {
    this.retire();
    if (this.#worker !== null) this.#end("the service stops");
  }

  /** Says whether it could be launched; another launch follows where it could not. */
  #launch(): boolean {
    this.#startedAtMs = this.#time.nowMs();
    this.#looks = 0;
    try {
      const worker = this.#options.startWorker();
      this.#worker = worker;
      worker.onmessage = ({ data }: MessageEvent<From | FromKept>) => this.#hear(worker, data);
      worker.onerror = (event) => {
        event.preventDefault();
        this.#crashed(worker, event.message);
      };
      this.#options.begin();
    } catch (error) {
      const { lines, fields } = this.#options;
      log.error(lines.notStarted, { ...fields, error: messageOf(error) });
      this.#end(messageOf(error));
      this.#launchLater();
      return false;
    }
    this.#lookLater();
    return true;
  }

  #launchLater(): void {
    if (!this.#isKept) return;
    const { restartMsMin, restartMsMax, stableMs } = this.#options.limits;
    const isStable = this.#time.nowMs() - this.#startedAtMs >= stableMs;
    const delayMs = isStable ? restartMsMin : this.#restartMs;
    this.#restartMs = Math.min(2 * delayMs, restartMsMax);
    this.#callOff = this.#time.after(delayMs, () => {
      const { lines, fields } = this.#options;
      if (this.#launch()) log.info(lines.startedAgain, fields);
    });
  }

  #hear(worker: Worker, message: From | FromKept): void {
    if (this.#worker !== worker) return; // One that was replaced.
    if (message.type === "ready") this.#isReady = true;
    if (this.#isReady) this.#looks = 0;
    const told = message as FromKept;
    switch (told.type) {
      case "thread":
        this.#thread = told.thread;
        return;
      case "logged":
        relayLogLine(told.line);
        return;
      case "crashed":
        this.#crashed(worker, told.error);
        return;
      default:
        this.#options.hear(message as From);
    }
  }

  #crashed(worker: Worker, error: string): void {
    if (this.#worker !== worker) return;
    const { crashes, lines, fields } = this.#options;
    crashes.count++;
    log.error(lines.crashed, { ...fields, crashes: crashes.count, error });
    this.#end(error);
    this.#launchLater();
  }

  #end(reason: string): void {
    this.#callOff();
    const [worker, thread] = [this.#worker, this.#thread];
    this.#worker = null;
    this.#thread = null;
    this.#isReady = false;
    worker?.terminate(); // What it still throws is heard by its `onerror`, and let go.
    if (thread !== null) this.#options.left?.(thread);
    this.#options.ended(reason);
  }

  #lookLater(): void {
    const { lookMs } = this.#options.limits;
    // A start has the time that it is given; one that works is looked at when others are.
    const waitMs = this.#isReady ? untilBeat(lookMs, this.#time.nowMs()) : lookMs;
    this.#callOff = this.#time.after(waitMs, () => this.#look());
  }

  /** Counts looks and not time: after this thread has slept, the other one gets its turn first. */
  #look(): void {
    const worker = this.#worker;
    if (worker === null) return;
    const { lookMs, startMsMax, silenceMsMax } = this.#options.limits;
    const isSilent = this.#looks * lookMs >= silenceMsMax;
    this.#looks++;
    if (!this.#isReady && this.#looks * lookMs >= startMsMax) {
      this.#crashed(worker, `no sign of life after ${startMsMax} ms`);
    } else if (this.#isReady && isSilent) {
      this.#crashed(worker, `silent for more than ${silenceMsMax} ms`);
    } else {
      if (this.#isReady) this.tell({ type: "ping" });
      this.#lookLater();
    }
  }
}
