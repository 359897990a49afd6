import { Ede, Rcode } from "../dns/mod.ts";
import type { Forwarder, Responder, Waiter } from "./forward/mod.ts";
import { type Pipeline, Verdict } from "./pipeline.ts";
import { type ClientAddress, Query, Read, readQuery, type Transport } from "./query.ts";
import { type Reply, writeEmpty } from "./reply.ts";

/** Text of the extended error of a query that found no room to wait. */
const FULL = new TextEncoder().encode("too many queries wait");
const encoder = new TextEncoder();

/** Both halves of a query's way: what is answered at once, and what has to wait. */
export class Resolver {
  readonly #pipeline: Pipeline;
  readonly #forwarder: Forwarder;
  readonly #seed: number;
  readonly #query = new Query();

  constructor(pipeline: Pipeline, forwarder: Forwarder, seed: number) {
    this.#pipeline = pipeline;
    this.#forwarder = forwarder;
    this.#seed = seed;
  }

  /**
   * Reads the packet at `start` to `end`, which came from `from`, and answers it into `reply`, unless
   * the verdict is `Resolve`: then `wait` and `resolve` are to follow at once, and `reply` is still
   * free.
   */
  decide(
    transport: Transport,
    from: ClientAddress,
    packet: Uint8Array,
    start: number,
    end: number,
    reply: Reply,
  ): Verdict {
    const query = this.#query;
    const pipeline = this.#pipeline;
    query.transport = transport;
    query.address.aim(from.bytes, from.offset, from.lengthBytes);
    const read = readQuery(packet, start, end, this.#seed, query, pipeline.name);
    return read === Read.Ok
      ? pipeline.answerNow(query, reply)
      : pipeline.answerUnread(read, query, reply);
  }

  /** A waiter for the query just decided on; `null` writes SERVFAIL into `reply`. */
  wait(responder: Responder, reply: Reply): Waiter | null {
    const waiter = this.#forwarder.takeWaiter();
    if (waiter === null) {
      writeEmpty(this.#query, reply, Rcode.ServFail, Ede.Other, FULL);
      return null;
    }
    waiter.query.keep(this.#query);
    waiter.responder = responder;
    return waiter;
  }

  /** Has the waiter's question asked; its responder may be called before this returns. */
  resolve(waiter: Waiter): void {
    this.#forwarder.resolve(waiter, this.#pipeline.keyHash);
  }

  /** Writes what a waiter waited for. */
  writeEntry(waiter: Waiter, entry: number, ede: number, reply: Reply): void {
    this.#pipeline.writeEntry(entry, waiter.query, reply, ede);
  }

  /** Writes that there is no answer for a waiter, and why (RFC 8914). */
  writeFailure(waiter: Waiter, ede: number, text: string, reply: Reply): void {
    writeEmpty(waiter.query, reply, Rcode.ServFail, ede, encoder.encode(text));
  }
}
