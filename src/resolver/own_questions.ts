import type { Responder } from "./flights/mod.ts";
import { Outcome } from "./outcome.ts";
import { DnssecState, type Query } from "./query.ts";
import { type Reply, streamReply } from "./reply.ts";
import type { Resolver } from "./resolver.ts";
import { Verdict } from "./verdict.ts";

/** Questions of the service's own that wait at one time. */
export const OWN_QUESTIONS_MAX = 64;

/** What became of a question of the service's own. */
export interface OwnAnswer {
  /** The whole response; `null` where as many wait as may. */
  readonly message: Uint8Array<ArrayBuffer> | null;
  /** What validation said, and why that is not secure; `null` where it is or nobody knows. */
  readonly dnssec: DnssecState;
  readonly reason: string | null;
  /** Why there is no answer, or `null`. */
  readonly failure: string | null;
}

/**
 * Asks what the service itself needs to know, the way queries of clients go: by records of ours, the
 * cache, the upstreams. Nothing of it is filtered, counted or logged.
 */
export class OwnQuestions {
  readonly #resolver: Resolver;
  readonly #reply: Reply = streamReply();
  #pending = 0;

  constructor(resolver: Resolver) {
    this.#resolver = resolver;
  }

  /** Questions that wait. */
  get pending(): number {
    return this.#pending;
  }

  /**
   * Asks the query in `packet`; `done` is called once, now or later. `isAnew`: what is in the cache
   * is not wanted.
   */
  ask(packet: Uint8Array, isAnew: boolean, done: (answer: OwnAnswer) => void): void {
    if (this.#pending >= OWN_QUESTIONS_MAX) return done(refused("too many names are looked up"));
    const resolver = this.#resolver;
    const reply = this.#reply;
    const verdict = resolver.decideOwn(packet, reply);
    const { decided } = resolver;
    const isCached = verdict === Verdict.Send && decided.source === Outcome.Cached;
    if (verdict !== Verdict.Resolve && !(isAnew && isCached)) {
      return done(this.#answer(decided, null));
    }
    const end = (answer: OwnAnswer) => {
      this.#pending--;
      done(answer);
    };
    const responder: Responder = {
      room: () => reply,
      send: ({ query, failure }) => end(this.#answer(query, failure?.text ?? null)),
    };
    this.#pending++;
    const waiter = resolver.wait(responder, reply);
    if (waiter === null) end(refused("too many queries wait"));
    else resolver.resolve(waiter);
  }

  /** The response just written. */
  #answer({ dnssec, dnssecReason }: Query, failure: string | null): OwnAnswer {
    const { bytes, offset, length } = this.#reply;
    const reason = dnssecReason === "" ? null : dnssecReason;
    return { message: bytes.slice(offset, offset + length), dnssec, reason, failure };
  }
}

function refused(failure: string): OwnAnswer {
  return { message: null, dnssec: DnssecState.None, reason: null, failure };
}
