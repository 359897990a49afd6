import type { Clock } from "../clock/mod.ts";
import { invariant, SvcError } from "../errors.ts";
import type { Actor, Change, LiveState, Settled } from "../model/mod.ts";
import { Applier, BATCH_LENGTH_MAX, type Decision, type Entry } from "./applier.ts";
import type { Replicator, Shown } from "./ports.ts";
import { PROPOSAL_ID_LENGTH_MAX } from "./proposals.ts";
import { unavailable } from "./values.ts";

/** Most changes that wait; one more is refused. */
export const QUEUE_LENGTH_MAX = 1_024;

interface Waiting {
  readonly change: Change;
  readonly actor: Actor;
  readonly id: string | null;
  readonly resolve: (settled: Settled) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Makes changes on this node alone, one after another in the order they were proposed: the log is
 * the store itself. Those that came in while the disk was busy are made durable together, each with
 * an end of its own.
 */
export class LocalReplicator implements Replicator {
  readonly #applier: Applier;
  readonly #clock: Clock;
  readonly #node: string;
  #queue: Waiting[] = [];
  #running: Promise<void> | null = null;
  #isClosed = false;

  /** `node` is the member's name in the audit log. */
  constructor(
    applier: Applier,
    { clock, node }: { readonly clock: Clock; readonly node: string },
  ) {
    this.#applier = applier;
    this.#clock = clock;
    this.#node = node;
  }

  get state(): LiveState {
    return this.#applier.state;
  }

  subscribe(listener: (shown: Shown) => void): () => void {
    return this.#applier.subscribe(listener);
  }

  propose(change: Change, actor: Actor, id?: string): Promise<Settled> {
    invariant((id?.length ?? 0) <= PROPOSAL_ID_LENGTH_MAX, "an ID is within its length");
    if (this.#isClosed) return Promise.reject(unavailable("svc is stopping"));
    if (this.#queue.length >= QUEUE_LENGTH_MAX) {
      return Promise.reject(unavailable(`${QUEUE_LENGTH_MAX} changes wait already`));
    }
    const { promise, resolve, reject } = Promise.withResolvers<Settled>();
    this.#queue.push({ change, actor, id: id ?? null, resolve, reject });
    this.#running ??= this.#run();
    return promise;
  }

  /** Takes no more changes and returns once those that wait are done. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#queue.length > 0) await this.#apply(this.#queue.splice(0, BATCH_LENGTH_MAX));
    this.#running = null;
  }

  /** Never throws. */
  async #apply(waiting: readonly Waiting[]): Promise<void> {
    const at = new Date(this.#clock.nowMs()).toISOString();
    const first = this.#applier.state.appliedIndex + 1;
    const entries: Entry[] = waiting.map(({ change, actor, id }, i) => ({
      index: first + i,
      command: { change, actor, at, node: this.#node },
      id,
    }));
    const decided: [Waiting, Decision][] = [];
    let failure: unknown;
    try {
      await this.#applier.apply(entries, (_, decision) => {
        decided.push([waiting[decided.length], decision]);
      });
    } catch (error) {
      failure = error;
    }
    // Nothing is on its way by now: what whoever is answered proposes next waits for nobody.
    for (const [{ resolve, reject }, decision] of decided) {
      if (decision.kind === "failed") reject(decision.error);
      else resolve(decision);
    }
    // Refusals too: they may have been for what a change before them would have made.
    for (const { reject } of waiting.slice(decided.length)) reject(failure);
  }
}

/** Turns a refusal into what is thrown to whoever asked. */
export function valueOf(settled: Settled): unknown {
  if (settled.kind === "refused") throw new SvcError(settled.code, settled.message);
  return settled.value;
}
