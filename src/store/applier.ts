import { invariant } from "../errors.ts";
import { log } from "../log.ts";
import {
  apply,
  type Change,
  type Command,
  type LiveState,
  type NewAuditEntry,
  type Settled,
  type Write,
} from "../model/mod.ts";
import type { Shown } from "./ports.ts";
import { remember, type Remembered, settledAgain } from "./proposals.ts";
import { readParts } from "./replicated_state.ts";
import type { Store } from "./store.ts";

/** Most entries that are made durable together… */
export const BATCH_LENGTH_MAX = 64;
/** …and most rules and lists that they bring, where it is more than one entry. */
const BATCH_ITEMS_MAX = 1_024;

/** An entry of the log. */
export interface Entry {
  /** Its place; each entry follows the one before. */
  readonly index: number;
  /** `null`: it changes nothing, as what a leader begins its term with. */
  readonly command: Command | null;
  /** The proposal's own; one that was applied lately is not applied again. `null`: it has none. */
  readonly id: string | null;
}

/** What an entry came to, the same on every member. `failed`: a mistake of ours; nothing changed. */
export type Decision = Settled | { readonly kind: "failed"; readonly error: unknown };

const NOTHING: Decision = { kind: "done", value: null };

type Listener = (shown: Shown) => void;

/** What some entries make of a state, before anyone knows of it. */
interface Pending {
  readonly base: LiveState;
  state: LiveState;
  readonly writes: Write[];
  readonly audit: NewAuditEntry[];
  readonly proposals: Remembered[];
  /** Of each entry; `shown` where it made something. */
  readonly decided: { readonly decision: Decision; readonly shown: Shown | null }[];
}

/**
 * Applies the entries of a log to a store, whoever writes the log: decides, makes durable, shows it
 * to who subscribed, and answers. The index moves with every entry, be it refused.
 */
export class Applier {
  readonly #store: Store;
  readonly #listeners = new Set<Listener>();
  #state: LiveState;
  /** Ends when nothing is being applied. */
  #last: Promise<unknown> = Promise.resolve();

  /** Takes over the writing of `store`. */
  constructor(store: Store) {
    this.#store = store;
    this.#state = store.state;
    store.onReload = (state) => this.#show({ change: null, state });
  }

  /** What is shown. Immutable: later entries make another. */
  get state(): LiveState {
    return this.#state;
  }

  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Applies entries in their order, many at a time. `answer` is called for each in that order, once
   * it is durable and shown.
   *
   * @throws {SvcError} `unavailable`, if they could not be stored: those that were not answered may
   * be applied again, from the one that follows `state.appliedIndex`.
   */
  apply<E extends Entry>(
    entries: readonly E[],
    answer: (entry: E, decision: Decision) => void,
  ): Promise<void> {
    return this.#inOrder(async () => {
      for (let from = 0; from < entries.length;) {
        const batch = entries.slice(from, from + batchLength(entries, from));
        await this.#applyBatch(batch, answer);
        from += batch.length;
      }
    });
  }

  /**
   * Puts another state in the place of this one, with its index and epoch, in one step; `parts` are
   * what `Store.export` made of it. `alongside` are writes of the caller's that go with it, of keys
   * that are nobody else's. Who is to keep the former state exports that before.
   *
   * @throws {SvcError} `invalid`, if the parts are no state; `unavailable`, if it could not be stored.
   */
  async replaceAll(
    parts: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
    alongside: readonly Write[] = [],
  ): Promise<void> {
    const next = await readParts(parts); // However long they take, others have their turn.
    await this.#inOrder(async () => {
      await this.#store.replaceAll(next, alongside);
      this.#show({ change: null, state: next.state });
    });
  }

  /** Resolves once nothing is being applied. */
  async idle(): Promise<void> {
    await this.#last;
  }

  #inOrder(work: () => Promise<void>): Promise<void> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => {});
    return done;
  }

  async #applyBatch<E extends Entry>(
    batch: readonly E[],
    answer: (entry: E, decision: Decision) => void,
  ): Promise<void> {
    const pending: Pending = {
      base: this.#state,
      state: this.#state,
      writes: [],
      audit: [],
      proposals: [],
      decided: [],
    };
    for (const entry of batch) this.#decide(pending, entry);
    await this.#store.commit(pending);
    for (const [i, { decision, shown }] of pending.decided.entries()) {
      if (shown !== null) this.#show(shown);
      answer(batch[i], decision);
    }
    this.#state = pending.state; // Those that made nothing moved the index.
  }

  #decide(pending: Pending, { index, command, id }: Entry): void {
    const { state } = pending;
    invariant(index === state.appliedIndex + 1, "an entry follows the one before");
    pending.state = { ...state, appliedIndex: index };
    const settle = (decision: Decision, shown: Shown | null = null) =>
      void pending.decided.push({ decision, shown });
    if (command === null) return settle(NOTHING);
    const { change } = command;
    const before = id === null
      ? null
      : pending.proposals.find((one) => one.id === id) ?? this.#store.proposals.find(id, index);
    if (before !== null) return settle(settledAgain(before, change, state));
    let applied;
    try {
      applied = apply(state, command, index);
    } catch (error) {
      log.error("a change can't be decided", { change: change.type, error });
      return settle({ kind: "failed", error }); // It stops no other.
    }
    const { settled } = applied;
    if (id !== null) pending.proposals.push(remember(id, index, settled));
    if (applied.kind === "refused") return settle(settled);
    pending.state = applied.state;
    for (const write of applied.writes) pending.writes.push(write);
    pending.audit.push(applied.audit);
    settle(settled, { change, state: applied.state });
  }

  #show(shown: Shown): void {
    this.#state = shown.state;
    for (const listener of this.#listeners) {
      try {
        listener(shown);
      } catch (error) {
        log.error("a listener for changes failed", { change: shown.change?.type, error });
      }
    }
  }
}

/** How many entries are made durable together; one at least. */
function batchLength(entries: readonly Entry[], from: number): number {
  let items = 0;
  const most = Math.min(entries.length - from, BATCH_LENGTH_MAX);
  for (let i = 0; i < most; i++) {
    items += itemsOf(entries[from + i].command?.change);
    if (items > BATCH_ITEMS_MAX) return Math.max(1, i);
  }
  return most;
}

/** What a change brings, counted: most are about one thing. */
function itemsOf(change: Change | undefined): number {
  switch (change?.type) {
    case "rules_batch":
      return change.add.length + change.remove.length;
    case "lists_preset":
      return change.add.length + change.groups.length;
    case "migrate":
      return Object.values(change.add).reduce((sum, all) => sum + all.length, 0);
    case "restore":
      return Object.values(change.resources).reduce((sum, all) => sum + all.length, 0);
    case "seed":
      return change.lists.length + change.rules.length;
    default:
      return 1;
  }
}
