import type { Query } from "../query.ts";
import { Flight, type FlightOwner, sameQuestion } from "./flight.ts";
import type { Share } from "./source.ts";

/** Different questions that are being asked at one time. */
export const FLIGHTS_MAX = 4_096;
/** Flights that are kept while nothing is asked. Each holds a dozen pieces of memory of its own. */
export const RESTING_MAX = 64;
/** A power of two, some times the flights: most buckets hold one. */
const BUCKETS = 4 * FLIGHTS_MAX;

/**
 * Questions on their way, found by what they ask. A flight that is done is kept for the next
 * question, but not before `recycle`: whoever ended it may still be looking at it.
 */
export class FlightTable {
  /** Those on their way, in no order. */
  readonly active: Flight[] = [];
  readonly #buckets: (Flight | null)[] = new Array(BUCKETS).fill(null);
  readonly #done: Flight[] = [];
  readonly #free: Flight[] = [];
  readonly #owner: FlightOwner;

  constructor(owner: FlightOwner) {
    this.#owner = owner;
  }

  /** Flights that wait for their next question. */
  get pooled(): number {
    return this.#free.length;
  }

  find(query: Query): Flight | null {
    const { keyHash } = query;
    let flight = this.#buckets[keyHash & (BUCKETS - 1)];
    while (
      flight !== null && (flight.query.keyHash !== keyHash || !sameQuestion(flight.query, query))
    ) {
      flight = flight.next;
    }
    return flight;
  }

  /** Says whether as many depend on these servers as are left for all others. */
  isFull(share: Share): boolean {
    return share.flights >= Math.min(share.flightsMax, FLIGHTS_MAX - this.active.length);
  }

  /** Has a flight go on to other servers. */
  move(flight: Flight, share: Share): void {
    flight.share.flights--;
    flight.share = share;
    share.flights++;
  }

  /** A new flight with a copy of the question; the caller sees to `isFull`. */
  open(query: Query, share: Share, nowMs: number): Flight {
    const flight = this.#free.pop() ?? new Flight(this.#owner);
    flight.start(query, share, nowMs);
    share.flights++;
    const bucket = query.keyHash & (BUCKETS - 1);
    flight.next = this.#buckets[bucket];
    this.#buckets[bucket] = flight;
    flight.place = this.active.length;
    this.active.push(flight);
    return flight;
  }

  /** Takes a flight out. Its waiters and its question can be read until `recycle`. */
  close(flight: Flight): void {
    flight.done = true;
    flight.share.flights--;
    this.#unlink(flight);
    const { active } = this;
    const last = active[active.length - 1];
    active[flight.place] = last;
    last.place = flight.place;
    active.pop();
    // As many as can be of use at a time; more of them are garbage.
    if (this.#done.length + this.#free.length < FLIGHTS_MAX) this.#done.push(flight);
  }

  /** Makes flights that are done ready for use. To be called where nobody holds one any more. */
  recycle(): void {
    for (let flight = this.#done.pop(); flight !== undefined; flight = this.#done.pop()) {
      this.#free.push(flight);
    }
  }

  /** Lets go of flights that wait for a question: there is no more to do for a while. */
  rest(): void {
    this.recycle();
    this.#free.splice(RESTING_MAX);
  }

  #unlink(flight: Flight): void {
    const bucket = flight.query.keyHash & (BUCKETS - 1);
    let before: Flight | null = null;
    let at = this.#buckets[bucket];
    while (at !== null && at !== flight) [before, at] = [at, at.next];
    if (before === null) this.#buckets[bucket] = flight.next;
    else before.next = flight.next;
    flight.next = null;
  }
}
