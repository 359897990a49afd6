import { messageOf, SvcError } from "../errors.ts";
import { log } from "../log.ts";
import { type HandOver, openHandOver, openProcess, type Process } from "../native/system.ts";
import { exitCodeOf, GONE, killProcess, LATE, Line, Memory, startProgram } from "../process/mod.ts";
import type { StageNotes } from "./first_stage.ts";
import { nextProgram } from "./next_program.ts";
import type { Node } from "./node.ts";
import { pause } from "../isolate/mod.ts";
import type { SecondStage } from "./second_stage.ts";

/** What the next program is told on its line, and says itself. */
export type ToNext =
  /** Store and memory are yours: go on. */
  { readonly type: "go" };
export type FromNext =
  /** It has its sockets, and begins with "go". */
  | { readonly type: "prepared"; readonly pid: number }
  /** It answers queries. */
  | { readonly type: "ready" }
  /** It can't go on. */
  | { readonly type: "failed"; readonly reason: string };

/** What the next program finds; the line and the memory are the last descriptors. */
export interface UpgradeNotes {
  readonly stage: StageNotes;
  /** `launch`: check all that can be checked, and start who is to `serve`. */
  readonly step: "launch" | "serve";
}

/** Longest time until the next program is prepared, and then until it answers. */
const PREPARE_MS_MAX = 60_000;
const READY_MS_MAX = 60_000;
/** The store is asked for back after so long, then after twice as long each time, up to… */
const RESUME_AGAIN_MS = 50;
const RESUME_AGAIN_MS_MAX = 10_000;
/** So many tries, some three seconds, requests at the API wait; then it answers without the store. */
const RESUME_TRIES_AWAITED = 6;
const REAP_AGAIN_MS = 20;
/** The end of this process would be that of everything in its container. */
const FIRST_PID = 1;

export interface UpgradeOptions {
  readonly node: Pick<Node, "suspend" | "resume" | "answerWithoutStore" | "named">;
  readonly stage: SecondStage;
  /** The next program answers from now on. */
  readonly onReady: (pid: number) => void;
}

/** Replaces the running program by what it is on disk by now, without a query lost. */
export class Upgrade {
  readonly #options: UpgradeOptions;
  #line: Line | null = null;
  /** The one that is under way. */
  #running: Promise<boolean> | null = null;
  /** Why the last one came to nothing. */
  #failure: string | null = null;
  /** Why the store is not had back yet. */
  #storeFailure: string | null = null;
  readonly #ending = new AbortController();

  constructor(options: UpgradeOptions) {
    this.#options = options;
  }

  /** For the status. */
  get problems(): string[] {
    const problems: string[] = [];
    if (this.#failure !== null) {
      problems.push(
        `the last upgrade came to nothing, the former program goes on: ${this.#failure}`,
      );
    }
    if (this.#storeFailure !== null) {
      problems.push(
        "an upgrade came to nothing, and the store is not had back yet: changes are refused until it " +
          `is, which is tried again and again: ${this.#storeFailure}`,
      );
    }
    return problems;
  }

  /**
   * True once the next program answers: this one has nothing left but to end. One at a time: who asks
   * for another meanwhile is told of what becomes of that. Never throws.
   */
  run(): Promise<boolean> {
    if (this.#running !== null) log.warn("an upgrade is under way already");
    this.#running ??= this.#run().then((isDone) => {
      if (!isDone) this.#running = null;
      return isDone;
    });
    return this.#running;
  }

  async #run(): Promise<boolean> {
    const startedAtMs = performance.now();
    try {
      const pid = await this.#handOver();
      const tookMs = Math.round(performance.now() - startedAtMs);
      log.info("handed over to the next program", { pid, tookMs });
      this.#options.onReady(pid);
      return true;
    } catch (error) {
      this.#failure = messageOf(error);
      log.error("not upgraded, this program goes on", { error: this.#failure });
      this.#closeLine();
      return false;
    }
  }

  /** Gives an upgrade up that is under way: the service is to end. */
  cancel(): void {
    this.#ending.abort();
    this.#closeLine();
  }

  #closeLine(): void {
    this.#line?.close();
    this.#line = null;
  }

  async #handOver(): Promise<number> {
    const { notes } = this.#options.stage;
    const [library, process] = [openHandOver(), openProcess()];
    if (library === null || process === null || notes === null) {
      throw new SvcError("unavailable", "this needs Linux with the GNU C library: restart svc");
    }
    if (Deno.pid === FIRST_PID) {
      throw new SvcError(
        "unavailable",
        "this is the first process of its container, which ends with it: start a new container",
      );
    }
    const memory = Memory.make(library);
    try {
      return await this.#with(library, process, memory, notes);
    } finally {
      memory.close();
      process.close();
      // Not the other library: a wait of a closed line may still be parked in it.
    }
  }

  async #with(
    library: HandOver,
    process: Process,
    memory: Memory,
    former: StageNotes,
  ): Promise<number> {
    const program = await nextProgram(process, "run");
    if (this.#ending.signal.aborted) throw new SvcError("unavailable", "svc is stopping");
    const { named } = this.#options.node;
    const stage: StageNotes = { ...former, sockets: named.map(({ name }) => name) };
    const notes: UpgradeNotes = { stage, step: "launch" };
    const [line, other] = Line.pair(library);
    this.#line = line;
    const descriptors = [...named.map(({ fd }) => fd), other.fd, memory.fd];
    log.info("starting the next program", { program: program.path });
    let launcher: number;
    try {
      launcher = startProgram(process, library, program, { descriptors, notes });
    } finally {
      other.leave();
    }
    let isLaunching = true;
    void reap(library, launcher).then(() => isLaunching = false);
    let prepared: FromNext;
    try {
      prepared = await this.#expect(line, "prepared", PREPARE_MS_MAX);
    } catch (error) {
      if (isLaunching) killProcess(library, launcher); // One that hangs would keep the sockets.
      throw error;
    }
    const pid = prepared.type === "prepared" ? prepared.pid : 0;
    try {
      await this.#options.node.suspend(memory);
      line.tell({ type: "go" } satisfies ToNext);
      await this.#expect(line, "ready", READY_MS_MAX);
      return pid;
    } catch (error) {
      killProcess(library, pid);
      await this.#resume();
      throw error;
    }
  }

  /** The store is free as soon as the other process has ended, and asked for until it is. */
  async #resume(): Promise<void> {
    const { node } = this.#options;
    const { signal } = this.#ending;
    let waitMs = RESUME_AGAIN_MS;
    for (let tries = 1; !signal.aborted; tries++) {
      try {
        await node.resume();
        if (this.#storeFailure !== null) log.info("the store is had back");
        this.#storeFailure = null;
        return;
      } catch (error) {
        if (tries === RESUME_TRIES_AWAITED) {
          log.error("the store is not had back yet: changes are refused until it is", { error });
        }
        if (tries >= RESUME_TRIES_AWAITED) {
          this.#storeFailure = messageOf(error);
          await node.answerWithoutStore().catch((error) => {
            log.warn("the API can't be served yet", { error });
          });
        }
      }
      await pause(waitMs, signal);
      waitMs = Math.min(2 * waitMs, RESUME_AGAIN_MS_MAX);
    }
  }

  async #expect(line: Line, type: FromNext["type"], timeoutMs: number): Promise<FromNext> {
    const heard = await line.hear(timeoutMs);
    if (heard === LATE) {
      throw new SvcError("unavailable", `the next program is not ${type} within ${timeoutMs} ms`);
    }
    if (heard === GONE) {
      throw new SvcError(
        "unavailable",
        `the next program ended before it was ${type}: see its log`,
      );
    }
    const message = heard as FromNext;
    if (message?.type === type) return message;
    const reason = message?.type === "failed" ? message.reason : "it says what nobody understands";
    throw new SvcError("unavailable", `the next program: ${reason}`);
  }
}

/** Has the system forget a child once it has ended; one that hangs is ended in half that time. */
async function reap(library: HandOver, pid: number): Promise<void> {
  const endsAtMs = performance.now() + 2 * PREPARE_MS_MAX;
  while (exitCodeOf(library, pid) === null && performance.now() < endsAtMs) {
    await new Promise((resolve) => setTimeout(resolve, REAP_AGAIN_MS));
  }
}
