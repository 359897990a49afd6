import type { ResolveFailure } from "../failure.ts";
import { Query, QUESTION_BYTES_MAX } from "../query.ts";
import type { Reply } from "../reply.ts";

/** What carries responses to clients; what they say is not its concern. */
export interface Responder {
  /** Where the next response is to be written. */
  room(): Reply;
  /** Takes the response that was written there, for this waiter. */
  send(waiter: Waiter): void;
}

/** Told what became of a question, once, now or later. The waiter is used again afterwards. */
export interface Taker {
  /**
   * The message is in the cache under `entry`; `ede` is the code of the extended error that goes in
   * place of those that are kept with it, or -1.
   */
  onAnswer(waiter: Waiter, entry: number, ede: number): void;
  onFailure(waiter: Waiter, failure: ResolveFailure): void;
}

/** A question that waits, and whoever is told of its end. */
export class Waiter {
  readonly query: Query = new Query();
  taker: Taker | null = null;
  /** Of a client's query: the transport's own, which listener, which connection. */
  responder: Responder | null = null;
  /** Where the client is, as the transport writes it down. */
  readonly peer: Uint8Array;
  /** Why there is no answer; `null`: there is one. */
  failure: ResolveFailure | null = null;
  next: Waiter | null = null;

  constructor(peerBytes: number) {
    this.query.packet = new Uint8Array(QUESTION_BYTES_MAX);
    this.peer = new Uint8Array(peerBytes);
  }
}

/** Waiters that are used again and again. */
export class WaiterPool {
  /** Those in use. */
  count = 0;
  readonly #max: number;
  readonly #peerBytes: number;
  #free: Waiter | null = null;

  /** `peerBytes` is the size of `Waiter.peer`. */
  constructor(max: number, peerBytes: number) {
    this.#max = max;
    this.#peerBytes = peerBytes;
  }

  /** One to fill in, or `null` when as many are in use as may be. */
  take(): Waiter | null {
    if (this.count >= this.#max) return null;
    const waiter = this.#free ?? new Waiter(this.#peerBytes);
    this.#free = waiter.next;
    waiter.next = null;
    this.count++;
    return waiter;
  }

  release(waiter: Waiter): void {
    waiter.taker = null;
    waiter.responder = null;
    waiter.failure = null;
    waiter.next = this.#free;
    this.#free = waiter;
    this.count--;
  }
}
