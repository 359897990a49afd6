/**
 * What nobody caught. The rule is that no error of the API, of a list, of the query log, of
 * telemetry or of a transport ends DNS, and this is where it holds.
 *
 * Covered, from the moment queries are answered until the end: every exception and rejected promise
 * of the main isolate that no handler was there for, whether it comes from a timer, a socket, a
 * signal, a message or a stream of the runtime. It is logged, counted and shown as a problem, and the
 * isolate goes on; the dns isolates, which answer queries, do not notice. Theirs and the query log's
 * own reach their supervisor (`isolate/crash.ts`), which replaces the isolate.
 *
 * Not covered: the start, where such an error ends the process, as nobody is served yet and whoever
 * starts it is to see it; a panic of the runtime, memory that is used up, and signals. A loop without
 * end in the main isolate stops the API alone. What the error left half done stays so: that is why
 * the status names it.
 */
import { messageOf } from "../errors.ts";
import { log } from "../log.ts";

/** Log lines a second; further errors of that second are counted with the next line. */
const LINES_MAX = 20;
const LINES_WINDOW_MS = 1_000;
/** How long after the last error the status is quiet about it. */
export const UNCAUGHT_QUIET_MS = 600_000;
/** Most that the status repeats of an error. */
const SHOWN_LENGTH_MAX = 200;

interface UncaughtPorts {
  readonly target: Pick<EventTarget, "addEventListener">;
  /** A clock that never steps. */
  readonly nowMs: () => number;
}

/** Catches them, once armed. */
export class UncaughtErrors {
  readonly #ports: UncaughtPorts;
  /** Since the start. */
  count = 0;
  /** Of the time that the status tells of. */
  #recent = 0;
  #lastMs = -Infinity;
  #last = "";
  #windowMs = -Infinity;
  #lines = 0;
  #unlogged = 0;

  constructor(ports: UncaughtPorts) {
    this.#ports = ports;
  }

  /** To be called when queries are answered, and once. */
  arm(): void {
    const { target } = this.#ports;
    target.addEventListener("error", (event) => {
      event.preventDefault();
      const { error, message } = event as ErrorEvent;
      this.note(error ?? message);
    });
    target.addEventListener("unhandledrejection", (event) => {
      event.preventDefault();
      this.note((event as PromiseRejectionEvent).reason);
    });
  }

  /** Runs a step that DNS does not need; its failure is one of these. */
  async survive<T>(step: () => T | Promise<T>): Promise<T | null> {
    try {
      return await step();
    } catch (error) {
      this.note(error);
      return null;
    }
  }

  /** Counts an error, and logs it unless too many were. Never throws. */
  note(error: unknown): void {
    const nowMs = this.#ports.nowMs();
    if (nowMs - this.#lastMs >= UNCAUGHT_QUIET_MS) this.#recent = 0;
    this.count++;
    this.#recent++;
    this.#lastMs = nowMs;
    this.#last = shown(error);
    if (nowMs - this.#windowMs >= LINES_WINDOW_MS) {
      this.#windowMs = nowMs;
      this.#lines = 0;
    }
    if (++this.#lines > LINES_MAX) {
      this.#unlogged++;
      return;
    }
    const unlogged = this.#unlogged > 0 ? this.#unlogged : undefined;
    this.#unlogged = 0;
    try {
      log.error("an error that nobody caught; DNS goes on", { error, unlogged });
    } catch {
      // Whoever is handed log lines failed over this one; it has been counted.
    }
  }

  get problems(): string[] {
    if (this.#recent === 0 || this.#ports.nowMs() - this.#lastMs >= UNCAUGHT_QUIET_MS) return [];
    const many = this.#recent === 1 ? "an error" : `${this.#recent} errors`;
    return [`${many} inside the service, logged as uncaught; DNS goes on; last: ${this.#last}`];
  }
}

/** One line of it. */
function shown(error: unknown): string {
  try {
    return messageOf(error).split("\n", 1)[0].slice(0, SHOWN_LENGTH_MAX);
  } catch {
    return "what can't be told"; // `String` may run code of what was thrown.
  }
}
