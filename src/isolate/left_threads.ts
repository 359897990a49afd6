import { type KeepTime, SYSTEM_TIME } from "./kept_isolate.ts";

/** How often they are looked at; the first time this long after their isolate was ended. */
const LOOK_MS = 10_000;
/**
 * One that ran for this part of the time since the last look takes a processor from others. It has
 * nothing to do, and where much else runs no more than this may be left to it.
 */
const BUSY_PART = 1 / 20;
/** Threads that are watched, the newest ones. */
const WATCHED_MAX = 64;

interface Left {
  readonly isolate: string;
  readonly thread: number;
  cpuMs: number;
  seenAtMs: number;
  isBusy: boolean;
}

/**
 * Watches the threads of isolates that were ended. The runtime ends none while it runs code, and one
 * in an endless loop keeps its processor until the process ends.
 */
export class LeftThreads {
  readonly #cpuMsOf: (thread: number) => number | null;
  readonly #time: KeepTime;
  #left: Left[] = [];
  #callOff: (() => void) | null = null;
  /** A thread was found busy: whoever can hand the work to a new process may do so. */
  onBusy: (isolate: string) => void = () => {};

  /** `cpuMsOf` says how long a thread has run; `null`, once it has ended. */
  constructor(cpuMsOf: (thread: number) => number | null, time: KeepTime = SYSTEM_TIME) {
    this.#cpuMsOf = cpuMsOf;
    this.#time = time;
  }

  /** What takes a processor for nothing, for the status. */
  get problems(): string[] {
    return this.#left.filter(({ isBusy }) => isBusy).map(({ isolate }) =>
      `${isolate} hung and was replaced, but its thread still uses a processor: restart svc`
    );
  }

  /** Watches the thread of an isolate that was ended just now. */
  watch(isolate: string, thread: number): void {
    const cpuMs = this.#cpuMsOf(thread);
    if (cpuMs === null) return;
    const seenAtMs = this.#time.nowMs();
    this.#left.push({ isolate, thread, cpuMs, seenAtMs, isBusy: false });
    if (this.#left.length > WATCHED_MAX) this.#left.shift();
    this.#callOff ??= this.#time.after(LOOK_MS, () => this.#look());
  }

  /** Looks no more. */
  stop(): void {
    this.#callOff?.();
    this.#left = [];
  }

  #look(): void {
    this.#left = this.#left.filter((left) => this.#isThere(left));
    this.#callOff = this.#left.length === 0 ? null : this.#time.after(LOOK_MS, () => this.#look());
  }

  #isThere(left: Left): boolean {
    const cpuMs = this.#cpuMsOf(left.thread);
    // One that ran for less than before is another with the same number.
    if (cpuMs === null || cpuMs < left.cpuMs) return false;
    const nowMs = this.#time.nowMs();
    const wasBusy = left.isBusy;
    left.isBusy = cpuMs - left.cpuMs >= BUSY_PART * (nowMs - left.seenAtMs);
    left.cpuMs = cpuMs;
    left.seenAtMs = nowMs;
    if (left.isBusy && !wasBusy) this.onBusy(left.isolate);
    return true;
  }
}
