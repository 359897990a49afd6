import { invariant, SvcError } from "../errors.ts";
import type { Actor, Change, LiveState, Settled } from "../model/mod.ts";
import {
  type Applier,
  type Decision,
  PROPOSAL_ID_LENGTH_MAX,
  type Replicator,
  type Shown,
} from "../store/mod.ts";
import { encodeCommand } from "./command_codec.ts";
import type { Outcome } from "./frames.ts";
import { PROPOSAL_TICKS_MAX, PROPOSALS_WAITING_MAX, RETRY_TICKS } from "./limits.ts";

/** Who leads, as far as this member knows. */
export interface Leadership {
  /** The leader's ID; `null`: none is known, and `reason` says why. */
  readonly leader: string | null;
  readonly term: number;
  readonly reason: () => string;
}

export interface ProposalsOptions {
  readonly node: string;
  readonly applier: Applier;
  readonly nowMs: () => number;
  /** An ID for a proposal, no other is like. */
  readonly drawId: () => string;
  readonly leadership: () => Leadership;
  /**
   * Has the leader take an entry; `answer` may be called once with what it made of that, and is not
   * when the way to it broke.
   */
  readonly hand: (leader: string, data: Uint8Array, answer: (outcome: Outcome) => void) => void;
}

interface Waiting {
  readonly data: Uint8Array;
  readonly resolve: (settled: Settled) => void;
  readonly reject: (error: unknown) => void;
  ticksLeft: number;
  /** The leader and term that it was handed to, and for how long that one has not answered. */
  handedTo: string;
  silentTicks: number;
  isTaken: boolean;
  /** Some leader may have it, whatever was heard of that one since. */
  wasHanded: boolean;
  /** Why the last leader did not take it. */
  reason: string | null;
}

/**
 * The changes of a member: each goes to whoever leads, again and again under one ID until it was
 * applied on this member or its time is up. Applied it is once.
 */
export class Proposals implements Replicator {
  readonly #options: ProposalsOptions;
  readonly #waiting = new Map<string, Waiting>();
  #isClosed = false;
  /** How changes of this member ended. */
  readonly counts = { done: 0, refused: 0, unavailable: 0 };

  constructor(options: ProposalsOptions) {
    this.#options = options;
  }

  get state(): LiveState {
    return this.#options.applier.state;
  }

  subscribe(listener: (shown: Shown) => void): () => void {
    return this.#options.applier.subscribe(listener);
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  propose(
    change: Change,
    actor: Actor,
    id: string = this.#options.drawId(),
  ): Promise<Settled> {
    invariant(id !== "" && id.length <= PROPOSAL_ID_LENGTH_MAX, "an ID is within its length");
    if (this.#isClosed) return Promise.reject(this.#unavailable("svc is stopping"));
    if (this.#waiting.size >= PROPOSALS_WAITING_MAX || this.#waiting.has(id)) {
      return Promise.reject(this.#unavailable(`${this.#waiting.size} changes wait already`));
    }
    const { node, nowMs } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<Settled>();
    const at = new Date(nowMs()).toISOString();
    let data: Uint8Array;
    try {
      data = encodeCommand({ id, command: { change, actor, at, node } });
    } catch (error) {
      return Promise.reject(error);
    }
    const waiting: Waiting = {
      ...{ data, resolve, reject, ticksLeft: PROPOSAL_TICKS_MAX, handedTo: "" },
      ...{ silentTicks: 0, isTaken: false, wasHanded: false, reason: null },
    };
    this.#waiting.set(id, waiting);
    this.#hand(id, waiting);
    return promise;
  }

  /** Told what an entry came to once it is applied here. */
  decided(id: string, decision: Decision): void {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    this.#waiting.delete(id);
    if (decision.kind === "failed") {
      this.counts.unavailable++;
      return waiting.reject(decision.error);
    }
    this.counts[decision.kind]++;
    waiting.resolve(decision);
  }

  tick(): void {
    for (const [id, waiting] of this.#waiting) {
      if (--waiting.ticksLeft <= 0) this.#giveUp(id, waiting);
      else this.#hand(id, waiting);
    }
  }

  /** Another leads, or none: whoever waits for an answer of the one before asks the new one. */
  leaderChanged(): void {
    for (const [id, waiting] of this.#waiting) this.#hand(id, waiting);
  }

  /** What was handed to a member may not have reached it. */
  disconnected(node: string): void {
    for (const waiting of this.#waiting.values()) {
      if (waiting.handedTo.startsWith(`${node}.`)) waiting.handedTo = "";
    }
  }

  /** Takes no more; what waits is told that it may be or not be. */
  close(): void {
    this.#isClosed = true;
    for (const [id, waiting] of this.#waiting) {
      this.#end(id, waiting, this.#unavailable("svc is stopping"));
    }
  }

  #hand(id: string, waiting: Waiting): void {
    const { leader, term } = this.#options.leadership();
    if (leader === null) return;
    const to = `${leader} ${term}`;
    const isNew = waiting.handedTo !== to;
    waiting.silentTicks++;
    if (!isNew && (waiting.isTaken || waiting.silentTicks < RETRY_TICKS)) return;
    [waiting.handedTo, waiting.silentTicks, waiting.isTaken] = [to, 0, false];
    waiting.wasHanded = true;
    this.#options.hand(leader, waiting.data, (outcome) => {
      if (this.#waiting.get(id) !== waiting || waiting.handedTo !== to) return;
      this.#answered(id, waiting, outcome);
    });
  }

  #answered(id: string, waiting: Waiting, outcome: Outcome): void {
    switch (outcome.kind) {
      case "taken":
        waiting.isTaken = true;
        return;
      case "notLeader":
        return;
      case "retry":
        waiting.reason = outcome.message;
        return;
      case "refused":
        return this.#end(id, waiting, new SvcError(outcome.code, outcome.message));
    }
  }

  #giveUp(id: string, waiting: Waiting): void {
    const { leader, reason } = this.#options.leadership();
    const why = waiting.isTaken
      ? "the leader has not heard of most voters that they have it"
      : leader === null
      ? reason()
      : waiting.reason ?? "the leader has not answered";
    const outcome = waiting.wasHanded ? "may or may not be made yet" : "is not made";
    this.#end(id, waiting, this.#unavailable(`${why}; the change ${outcome}`));
  }

  #end(id: string, waiting: Waiting, error: SvcError): void {
    this.#waiting.delete(id);
    this.counts.unavailable++;
    waiting.reject(error);
  }

  #unavailable(reason: string): SvcError {
    return new SvcError("unavailable", `cluster: ${reason.replace(/^cluster: /, "")}`);
  }
}
