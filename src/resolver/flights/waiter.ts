import type { ResolveFailure } from "../failure.ts";
import { keptQuery, type Query } from "../query.ts";
import type { Reply } from "../reply.ts";
import type { Trace } from "../trace.ts";
import { UNCOUNTED } from "./client_waits.ts";
import type { Flight } from "./flight.ts";

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
  readonly query: Query = keptQuery();
  taker: Taker | null = null;
  /** Of a client's query: the transport's own, which listener, which connection. */
  responder: Responder | null = null;
  /** Where the client is, as the transport writes it down. */
  readonly sender: Uint8Array;
  /** Why there is no answer; `null`: there is one. */
  failure: ResolveFailure | null = null;
  /** The flight that it waits for, while it does. */
  flight: Flight | null = null;
  /** Of a question that a flight has had asked: that flight, and the next such question of it. */
  parent: Flight | null = null;
  sibling: Waiter | null = null;
  next: Waiter | null = null;
  /** What `ClientWaits` counts it for. */
  client = UNCOUNTED;
  /** Has the flight that it waits for recorded. */
  trace: Trace | null = null;

  constructor(senderBytes: number) {
    this.sender = new Uint8Array(senderBytes);
  }
}

/** Waiters that are used again and again. */
export class WaiterPool {
  /** Those in use. */
  count = 0;
  readonly #max: number;
  readonly #senderBytes: number;
  #free: Waiter | null = null;

  /** `senderBytes` is the size of `Waiter.sender`. */
  constructor(max: number, senderBytes: number) {
    this.#max = max;
    this.#senderBytes = senderBytes;
  }

  /** One to fill in, or `null` when as many are in use as may be. */
  take(): Waiter | null {
    if (this.count >= this.#max) return null;
    const waiter = this.#free ?? new Waiter(this.#senderBytes);
    this.#free = waiter.next;
    waiter.next = null;
    this.count++;
    return waiter;
  }

  release(waiter: Waiter): void {
    waiter.taker = null;
    waiter.responder = null;
    waiter.failure = null;
    waiter.client = UNCOUNTED;
    waiter.flight = waiter.parent = waiter.trace = null;
    waiter.next = this.#free;
    this.#free = waiter;
    this.count--;
  }
}
