import { SvcError } from "../errors.ts";
import { log } from "../log.ts";
import {
  type Actor,
  apply,
  type Change,
  type LiveState,
  type Made,
  type Outcome,
} from "../model/mod.ts";
import type { Clock, Replicator } from "./ports.ts";
import type { Store } from "./store.ts";

/** Most changes that wait; one more is refused. */
export const QUEUE_LENGTH_MAX = 1_024;
/** Most changes that are made durable together… */
export const BATCH_LENGTH_MAX = 64;
/** …and most rules and lists that they bring, where it is more than one change. */
const BATCH_ITEMS_MAX = 1_024;

interface Waiting {
  readonly change: Change;
  readonly actor: Actor;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
}

type Listener = (change: Change, state: LiveState) => void;

/**
 * Makes changes on this node alone, one after another in the order they were proposed. Those that
 * came in while the disk was busy are made durable together, each with an outcome of its own.
 */
export class LocalReplicator implements Replicator {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #node: string;
  readonly #listeners = new Set<Listener>();
  #queue: Waiting[] = [];
  #running: Promise<void> | null = null;
  #isClosed = false;
  #state: LiveState;

  /** Takes over the writing of `store`; `node` is the member's name in the audit log. */
  constructor(
    store: Store,
    { clock, node }: { readonly clock: Clock; readonly node: string },
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#node = node;
    this.#state = store.state;
  }

  /** Immutable: later changes make another. */
  get state(): LiveState {
    return this.#state;
  }

  propose(change: Change, actor: Actor): Promise<Outcome> {
    if (this.#isClosed) return Promise.reject(unavailable("svc is stopping"));
    if (this.#queue.length >= QUEUE_LENGTH_MAX) {
      return Promise.reject(unavailable(`${QUEUE_LENGTH_MAX} changes wait already`));
    }
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
    this.#queue.push({ change, actor, resolve, reject });
    this.#running ??= this.#run();
    return promise;
  }

  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Takes no more changes and returns once those that wait are done. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#queue.length > 0) await this.#runBatch(this.#queue.splice(0, this.#batchLength()));
    this.#running = null;
  }

  /** How many of the changes that wait are made durable together; one at least. */
  #batchLength(): number {
    let items = 0;
    const most = Math.min(this.#queue.length, BATCH_LENGTH_MAX);
    for (let i = 0; i < most; i++) {
      items += itemsOf(this.#queue[i].change);
      if (items > BATCH_ITEMS_MAX) return Math.max(1, i);
    }
    return most;
  }

  /** Applies a batch, stores it, and only then shows it to anyone. Never throws. */
  async #runBatch(batch: readonly Waiting[]): Promise<void> {
    let state = this.#state;
    const made: Made[] = [];
    const answers: (() => void)[] = [];
    for (const { change, actor, resolve, reject } of batch) {
      try {
        const at = new Date(this.#clock.nowMs()).toISOString();
        const applied = apply(state, { change, actor, at, node: this.#node });
        if (applied.kind === "made") {
          state = applied.state;
          made.push(applied);
          answers.push(() => this.#show(change, applied.state));
        }
        answers.push(() => resolve(applied.outcome));
      } catch (error) {
        answers.push(() => reject(error)); // A mistake of ours about one change stops no other.
      }
    }
    try {
      await this.#store.commit(made);
    } catch (error) {
      // Refusals too: they may have been for what a change before them would have made.
      for (const { reject } of batch) reject(error);
      return;
    }
    for (const answer of answers) answer();
  }

  #show(change: Change, state: LiveState): void {
    this.#state = state;
    for (const listener of this.#listeners) {
      try {
        listener(change, state);
      } catch (error) {
        log.error("a listener for changes failed", { change: change.type, error });
      }
    }
  }
}

/** What a change brings, counted: most are about one thing. */
function itemsOf(change: Change): number {
  switch (change.type) {
    case "rules_batch":
      return change.add.length + change.remove.length;
    case "seed":
      return change.lists.length + change.rules.length;
    default:
      return 1;
  }
}

function unavailable(message: string): SvcError {
  return new SvcError("unavailable", `store: ${message}`);
}

/** Turns a refusal into what is thrown to whoever asked. */
export function valueOf(outcome: Outcome): unknown {
  if (outcome.kind === "refused") throw new SvcError(outcome.code, outcome.message);
  return outcome.value;
}
