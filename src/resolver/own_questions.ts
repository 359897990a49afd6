import type { Responder } from "./flights/mod.ts";
import type { Routes } from "./forward/mod.ts";
import { Outcome } from "./outcome.ts";
import { DnssecState, type Query } from "./query.ts";
import { type Reply, streamReply } from "./reply.ts";
import type { Resolver } from "./resolver.ts";
import { Trace, type TraceStep } from "./trace.ts";
import { Verdict } from "./verdict.ts";

/** Questions of the service's own that wait at one time. */
export const OWN_QUESTIONS_MAX = 64;

/** How a question of the service's own is to be asked. */
export interface AskHow {
  /** What is in the cache is not wanted. */
  readonly isAnew: boolean;
  /** What is done about it is recorded. */
  readonly isTraced: boolean;
  /** What a group names as its upstreams, for whose clients it is asked; empty: for everybody. */
  readonly upstreams: readonly string[];
}

/** What became of a question of the service's own. */
export interface OwnAnswer {
  /** The whole response; `null` where as many wait as may. */
  readonly message: Uint8Array<ArrayBuffer> | null;
  /** What validation said, and why that is not secure; `null` where it is or nobody knows. */
  readonly dnssec: DnssecState;
  readonly reason: string | null;
  /** Why there is no answer, or `null`. */
  readonly failure: string | null;
  /** What was done, where that was asked for; and how many steps found no room. */
  readonly steps: readonly TraceStep[];
  readonly stepsDropped: number;
}

/**
 * Asks what the service itself needs to know, the way queries of clients go: by records of ours, the
 * cache, the upstreams. Nothing of it is filtered, counted or logged.
 */
export class OwnQuestions {
  readonly #resolver: Resolver;
  readonly #nowMs: () => number;
  readonly #routes: Pick<Routes, "numberOf">;
  readonly #reply: Reply = streamReply();
  #pending = 0;

  /** `nowMs` is milliseconds of a monotonic clock. */
  constructor(resolver: Resolver, routes: Pick<Routes, "numberOf">, nowMs: () => number) {
    this.#resolver = resolver;
    this.#nowMs = nowMs;
    this.#routes = routes;
  }

  /** Questions that wait. */
  get pending(): number {
    return this.#pending;
  }

  /**
   * Asks the query in `packet`; `done` is called once, now or later.
   */
  ask(
    packet: Uint8Array,
    { isAnew, isTraced, upstreams }: AskHow,
    done: (answer: OwnAnswer) => void,
  ): void {
    if (this.#pending >= OWN_QUESTIONS_MAX) return done(refused("too many names are looked up"));
    const resolver = this.#resolver;
    const reply = this.#reply;
    const verdict = resolver.decideOwn(packet, reply, this.#routes.numberOf(upstreams));
    const { decided } = resolver;
    const isCached = verdict === Verdict.Send && decided.source === Outcome.Cached;
    if (verdict !== Verdict.Resolve && !(isAnew && isCached)) {
      return done(this.#answer(decided, null));
    }
    const trace = isTraced ? new Trace(this.#nowMs) : null;
    const end = (answer: OwnAnswer) => {
      this.#pending--;
      done(
        trace === null ? answer : {
          ...answer,
          steps: trace.steps,
          stepsDropped: trace.dropped,
        },
      );
    };
    const responder: Responder = {
      room: () => reply,
      send: ({ query, failure }) => end(this.#answer(query, failure?.text ?? null)),
    };
    this.#pending++;
    const waiter = resolver.wait(responder, reply);
    if (waiter === null) end(refused("too many queries wait"));
    else {
      waiter.trace = trace;
      resolver.resolve(waiter);
    }
  }

  /** The response just written. */
  #answer({ dnssec, dnssecReason }: Query, failure: string | null): OwnAnswer {
    const { bytes, offset, length } = this.#reply;
    const reason = dnssecReason === "" ? null : dnssecReason;
    return { ...NO_STEPS, message: bytes.slice(offset, offset + length), dnssec, reason, failure };
  }
}

const NO_STEPS = { steps: [], stepsDropped: 0 };

function refused(failure: string): OwnAnswer {
  return { ...NO_STEPS, message: null, dnssec: DnssecState.None, reason: null, failure };
}
