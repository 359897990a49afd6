import { Ede, Rcode, RCODE_MASK } from "../../dns/mod.ts";
import { Counter, type CounterBlock } from "../../telemetry/mod.ts";
import { NO_ERROR } from "../extended_errors.ts";
import { ResolveFailure, TOO_LARGE, TOO_MANY_CLIENTS, TOO_MANY_OF_CLIENT } from "../failure.ts";
import { Outcome } from "../outcome.ts";
import { DnssecState, KEY_CD, type Query } from "../query.ts";
import type { ClientWaits } from "./client_waits.ts";
import type { Flight, FlightOwner } from "./flight.ts";
import { FLIGHTS_MAX, FlightTable } from "./flight_table.ts";
import { Held, HELD_MAX } from "./held.ts";
import { type BroughtMessage, KeptAnswers, type KeptAnswersOptions } from "./kept_answers.ts";
import type { Finisher, Judge, Share, Source } from "./source.ts";
import { questionText } from "../trace.ts";
import { type Taker, type Waiter, WaiterPool } from "./waiter.ts";

/** Queries that wait for flights, all told, and for one of them. */
export const WAITERS_MAX = 16_384;
const WAITERS_PER_FLIGHT_MAX = 1_024;
/** A client that could have a stale answer waits this long for a fresh one (RFC 8767 §5). */
const STALE_PATIENCE_MS = 1_800;
/** How often waits are looked through, while there are any. */
export const TICK_MS = 50;
/** Questions that one flight has asked, all told. A source has bounds of its own, and lower ones. */
export const CHILDREN_MAX = 64;
/** Flights that wait for each other in a row. */
export const DEPTH_MAX = 8;
/** Waiters that are looked at to find a circle; beyond it, there may well be one. */
const CIRCLE_STEPS_MAX = 4_096;

export interface FlightsOptions extends KeptAnswersOptions {
  readonly source: Source;
  /** Looks at every answer before it is kept; `null`: they are taken as they come. */
  readonly judge: Judge | null;
  /** Left out, or `null`: nobody. */
  readonly finisher?: Finisher | null;
  readonly counters: CounterBlock;
  /** Of those who wait here. */
  readonly clients: ClientWaits;
  /** Bytes of `Waiter.sender`. */
  readonly senderBytes: number;
  /** Milliseconds, monotonic. */
  readonly nowMs: () => number;
  /** Starts and stops calls of `tick` every `TICK_MS`. */
  readonly ticking: (on: boolean) => void;
}

/**
 * Who waits for which question: identical ones are asked once, by the source, whose answer is kept
 * and handed to all who wait. Who waits is a client, or another flight.
 */
export class Flights implements FlightOwner, Taker {
  readonly #options: FlightsOptions;
  readonly #source: Source;
  readonly #counts: Float64Array;
  readonly #clients: ClientWaits;
  readonly #table = new FlightTable(this);
  readonly #waiters: WaiterPool;
  readonly #kept: KeptAnswers;
  #ticking = false;
  /** Flights of questions that are refused. */
  #held = 0;
  #circleSteps = 0;
  #isClosed = false;

  constructor(options: FlightsOptions) {
    this.#options = options;
    this.#source = options.source;
    this.#counts = options.counters.values;
    this.#clients = options.clients;
    this.#waiters = new WaiterPool(WAITERS_MAX, options.senderBytes);
    this.#kept = new KeptAnswers(options);
  }

  /** Questions on their way. */
  get inFlight(): number {
    return this.#table.active.length;
  }

  /** Flights that are kept for the next questions. */
  get pooledFlights(): number {
    return this.#table.pooled;
  }

  /** Queries that wait. */
  get waiting(): number {
    return this.#waiters.count;
  }

  /** A waiter to fill in, or `null` when as many wait as may. */
  takeWaiter(): Waiter | null {
    const waiter = this.#waiters.take();
    if (waiter === null) this.#counts[Counter.FlightsFull]++;
    return waiter;
  }

  /** Has the question of `waiter` asked; its taker is told once, now or later. */
  resolve(waiter: Waiter): void {
    waiter.client = this.#clients.enter(waiter.query);
    const known = this.#table.find(waiter.query);
    if (known !== null) {
      this.#joinKnown(known, waiter);
      return;
    }
    // Who traces wants to see it asked.
    const deduced = waiter.trace === null ? this.#deduce(waiter.query) : -1;
    if (deduced < 0) {
      this.#askFor(waiter, 0, 0);
      return;
    }
    waiter.query.source = Outcome.Cached;
    this.#answerWaiter(waiter, deduced, NO_ERROR);
  }

  /** The entry with the answer to a question that follows from what was proven, or -1. */
  #deduce(query: Query): number {
    const { judge } = this.#options;
    if (judge === null || (query.keyBits & KEY_CD) !== 0) return -1;
    const deduced = judge.deduce(query);
    return deduced === null ? -1 : this.#kept.keepDeduced(query, deduced);
  }

  /** Has a question asked that nobody asks at the moment; see `Flight.attempt` and `depth`. */
  #askFor(waiter: Waiter, depth: number, attempt: number): void {
    const share = this.#source.shareOf(waiter.query);
    if (share instanceof ResolveFailure) {
      this.#failWaiter(waiter, share);
      return;
    }
    const refusal = depth > 0 || share.zone === undefined
      ? null
      : this.#options.judge?.admit(waiter.query, share.zone) ?? null;
    if (refusal !== null) {
      waiter.trace?.note(depth, {
        event: "failed",
        question: questionText(waiter.query),
        detail: refusal.text,
      });
      if (!this.#answersStale(waiter)) this.#hold(waiter, share, refusal);
      return;
    }
    const left = Math.min(FLIGHTS_MAX - this.inFlight, this.#source.left(share));
    const isOver = this.#clients.isOver(waiter.client, left);
    if (isOver || this.#table.isFull(share)) {
      if (this.#answersStale(waiter)) return;
      this.#counts[Counter.FlightsFull]++;
      this.#failWaiter(waiter, isOver ? TOO_MANY_OF_CLIENT : this.#source.full(share));
      return;
    }
    const flight = this.#open(waiter.query, share);
    flight.depth = depth;
    flight.attempt = attempt;
    if (attempt > 0) flight.avoids = waiter.parent?.upstream ?? -1;
    flight.trace = waiter.trace;
    this.#join(flight, waiter);
    this.#source.begin(flight, share);
  }

  /** Has a question asked that nobody waits for yet. */
  refresh(query: Query): void {
    if (this.inFlight >= FLIGHTS_MAX / 2 || this.#table.find(query) !== null) return;
    const share = this.#source.shareOf(query);
    if (share instanceof ResolveFailure || this.#table.isFull(share)) return;
    this.#counts[Counter.Prefetched]++;
    const flight = this.#open(query, share);
    flight.background = true;
    this.#source.begin(flight, share);
  }

  /** Looks through the waits; called every `TICK_MS` while there are any. */
  tick(): void {
    const nowMs = this.#options.nowMs();
    this.#table.recycle(); // A tick is nobody's turn: no flight is held by a caller.
    const { active } = this.#table;
    for (let i = active.length - 1; i >= 0; i--) {
      const flight = active[i];
      if (flight === undefined || flight.done) continue;
      if (!flight.servedStale && nowMs - flight.startedAtMs >= STALE_PATIENCE_MS) {
        this.#serveStale(flight);
      }
      flight.stage.tick(nowMs);
      if (!flight.done && flight.isOver(nowMs)) this.fail(flight, flight.stage.failure);
    }
    const isBusy = this.#source.tick(nowMs);
    if (active.length > 0 || isBusy) return;
    this.#table.rest();
    this.#tick(false);
  }

  /** Ends every wait: the isolate stops. Waiting clients get SERVFAIL. */
  close(): void {
    this.#isClosed = true;
    for (const flight of [...this.#table.active]) this.fail(flight, flight.stage.failure);
    this.#source.close();
    this.#tick(false);
  }

  answer(flight: Flight, message: BroughtMessage, errors: Uint8Array): void {
    if (flight.done) return;
    const isTaken = this.#options.judge?.take(flight, message, errors) ?? false;
    if (!isTaken) this.settle(flight, message, errors);
    else {
      flight.task!.end();
      this.#abandonChildren(flight);
    }
  }

  askElsewhere(flight: Flight): void {
    if (flight.done) return;
    const share = this.#source.shareOf(flight.query);
    this.#abandonChildren(flight);
    flight.judging?.end();
    flight.judging = null;
    if (share instanceof ResolveFailure) {
      this.fail(flight, share);
      return;
    }
    flight.attempt++;
    flight.avoids = flight.upstream;
    this.#table.move(flight, share);
    this.#source.begin(flight, share);
  }

  settle(flight: Flight, message: BroughtMessage, errors: Uint8Array): void {
    if (flight.done) return;
    const { finisher = null } = this.#options;
    if (finisher !== null && finisher.wants(flight, message)) {
      this.#leave(flight);
      finisher.begin(flight, message, errors);
      return;
    }
    const entry = this.#kept.keep(flight, message, errors);
    this.#close(flight);
    for (let waiter = this.#next(flight); waiter !== null; waiter = this.#next(flight)) {
      if (entry < 0) {
        this.#failWaiter(waiter, TOO_LARGE);
        continue;
      }
      const { query } = waiter;
      query.source = flight.source;
      query.upstream = flight.upstream;
      query.dnssecReason = flight.reason;
      this.#answerWaiter(waiter, entry, NO_ERROR);
    }
  }

  fail(flight: Flight, reason: ResolveFailure): void {
    if (flight.done) return;
    const failure = flight.doubt ?? reason;
    // What is not to be believed is the same however old it is.
    const isBogus = flight.dnssec === DnssecState.Bogus;
    const { finisher = null } = this.#options;
    const isLast = finisher === null || isBogus || this.#isClosed;
    if (
      !isLast && !flight.isOver(this.#options.nowMs()) && finisher.wantsInstead(flight, failure)
    ) {
      this.#leave(flight);
      finisher.beginInstead(flight, failure);
      return;
    }
    if (isBogus) this.#counts[Counter.DnssecBogus]++;
    if (!flight.servedStale && !isBogus) this.#serveStale(flight);
    this.#close(flight);
    const silent = flight.background || failure.isPassing ||
      (!isBogus && this.#kept.stale(flight.query) >= 0);
    if (!silent) this.#kept.keepFailure(flight, failure.errors);
    for (let waiter = this.#next(flight); waiter !== null; waiter = this.#next(flight)) {
      waiter.query.dnssec = flight.dnssec;
      waiter.query.dnssecReason = flight.reason;
      this.#failWaiter(waiter, failure);
    }
  }

  move(flight: Flight, share: Share): void {
    this.#table.move(flight, share);
  }

  ask(parent: Flight, query: Query, attempt: number): boolean {
    if (this.#isClosed || parent.done || parent.childCount >= CHILDREN_MAX) return false;
    const known = this.#table.find(query);
    this.#circleSteps = 0;
    if (known === null ? parent.depth >= DEPTH_MAX : this.#waitsFor(known, parent)) return false;
    const waiter = this.takeWaiter();
    if (waiter === null) return false;
    waiter.query.keep(query);
    waiter.query.isOwn = true;
    waiter.taker = this;
    waiter.parent = parent;
    waiter.trace = parent.trace;
    waiter.sibling = parent.children;
    parent.children = waiter;
    parent.childCount++;
    const entry = attempt === 0 ? this.#kept.fresh(waiter.query) : -1;
    if (entry >= 0) {
      parent.trace?.note(parent.depth + 1, { event: "cached", question: questionText(query) });
      this.#answerWaiter(waiter, entry, NO_ERROR);
    } else if (known !== null) this.#joinKnown(known, waiter);
    else this.#askFor(waiter, parent.depth + 1, attempt);
    return true;
  }

  onAnswer(child: Waiter, entry: number): void {
    const { parent } = child;
    if (parent === null) return;
    this.#forget(parent, child);
    parent.stage.onChild(child, entry);
  }

  onFailure(child: Waiter, failure: ResolveFailure): void {
    child.failure = failure;
    this.onAnswer(child, -1);
  }

  #tick(on: boolean): void {
    if (this.#ticking === on) return;
    this.#ticking = on;
    this.#options.ticking(on);
  }

  #open(query: Query, share: Share): Flight {
    const flight = this.#table.open(query, share, this.#options.nowMs());
    flight.isValidated = this.#options.judge !== null && (query.keyBits & KEY_CD) === 0;
    this.#tick(true);
    return flight;
  }

  /** Has a waiter wait for a question that is on its way by now. */
  #joinKnown(known: Flight, waiter: Waiter): void {
    const room = WAITERS_PER_FLIGHT_MAX - known.waiterCount;
    const isOver = this.#clients.isOver(waiter.client, Math.min(room, WAITERS_MAX - this.waiting));
    if (isOver || room <= 0) {
      this.#counts[Counter.FlightsFull]++;
      this.#failWaiter(waiter, isOver ? TOO_MANY_OF_CLIENT : TOO_MANY_CLIENTS);
      return;
    }
    const echo = known.task!.echo(waiter.query);
    if (echo !== null) {
      this.#failWaiter(waiter, echo);
      return;
    }
    this.#counts[Counter.Merged]++;
    known.background = false;
    known.trace ??= waiter.trace;
    this.#join(known, waiter);
    if (known.servedStale) this.#serveStale(known);
  }

  #join(flight: Flight, waiter: Waiter): void {
    waiter.flight = flight;
    waiter.next = flight.waiters;
    flight.waiters = waiter;
    flight.waiterCount++;
  }

  /** Takes the next of those who wait for a flight: what one is told may change who else waits. */
  #next(flight: Flight): Waiter | null {
    const waiter = flight.waiters;
    if (waiter === null) return null;
    flight.waiters = waiter.next;
    flight.waiterCount--;
    waiter.flight = null;
    return waiter;
  }

  #answerWaiter(waiter: Waiter, entry: number, ede: number): void {
    waiter.taker?.onAnswer(waiter, entry, ede);
    this.#release(waiter);
  }

  #failWaiter(waiter: Waiter, failure: ResolveFailure): void {
    waiter.taker?.onFailure(waiter, failure);
    this.#release(waiter);
  }

  #release(waiter: Waiter): void {
    this.#clients.leave(waiter.client);
    this.#waiters.release(waiter);
  }

  /** Answers those who wait with what is past its time, and goes on asking. */
  #serveStale(flight: Flight): void {
    const entry = this.#kept.stale(flight.query);
    if (entry < 0) return;
    flight.servedStale = true;
    for (let waiter = this.#next(flight); waiter !== null; waiter = this.#next(flight)) {
      this.#answerStale(waiter, entry);
    }
  }

  /** Has a waiter told of a refusal in a while, or at once where many are held. */
  #hold(waiter: Waiter, share: Share, refusal: ResolveFailure): void {
    const isFull = this.#held >= HELD_MAX || this.#table.isFull(share) ||
      this.#clients.isOver(waiter.client, FLIGHTS_MAX - this.inFlight);
    if (isFull || waiter.trace !== null) {
      this.#failWaiter(waiter, refusal);
      return;
    }
    const flight = this.#open(waiter.query, share);
    this.#held++;
    flight.task = new Held(flight, refusal, () => this.#held--);
    this.#join(flight, waiter);
  }

  /** Answers with what is past its time; false: there is nothing. */
  #answersStale(waiter: Waiter): boolean {
    const entry = this.#kept.stale(waiter.query);
    if (entry >= 0) this.#answerStale(waiter, entry);
    return entry >= 0;
  }

  #answerStale(waiter: Waiter, entry: number): void {
    const rcode = this.#options.cache.flags(entry) & RCODE_MASK;
    const ede = rcode === Rcode.NXDomain ? Ede.StaleNxdomainAnswer : Ede.StaleAnswer;
    this.#counts[Counter.Stale]++;
    waiter.query.source = Outcome.Cached;
    this.#answerWaiter(waiter, entry, ede);
  }

  #close(flight: Flight): void {
    this.#table.close(flight);
    this.#leave(flight);
    flight.task?.closed?.();
  }

  /** Ends what is done about a flight at the moment. */
  #leave(flight: Flight): void {
    flight.stage.end();
    this.#abandonChildren(flight);
  }

  /** Questions that it has had asked go on for the cache's sake. */
  #abandonChildren(flight: Flight): void {
    for (let child = flight.children; child !== null; child = flight.children) {
      this.#forget(flight, child);
      this.#abandon(child);
    }
  }

  /** A flight does not wait for a question any more. */
  #forget(parent: Flight, child: Waiter): void {
    let before: Waiter | null = null;
    let at = parent.children;
    while (at !== null && at !== child) [before, at] = [at, at.sibling];
    if (before === null) parent.children = child.sibling;
    else before.sibling = child.sibling;
    child.sibling = null;
    child.parent = null;
  }

  /** Nobody wants to be told of a question; it goes on for the cache's sake. */
  #abandon(child: Waiter): void {
    const flight = child.flight!;
    let before: Waiter | null = null;
    let at = flight.waiters;
    while (at !== null && at !== child) [before, at] = [at, at.next];
    if (before === null) flight.waiters = child.next;
    else before.next = child.next;
    flight.waiterCount--;
    if (flight.waiters === null) flight.background = true;
    this.#release(child);
  }

  /** Says whether a flight is another one, or waits for that in the end. */
  #waitsFor(flight: Flight, other: Flight): boolean {
    if (flight === other) return true;
    for (let waiter = other.waiters; waiter !== null; waiter = waiter.next) {
      if (++this.#circleSteps > CIRCLE_STEPS_MAX) return true;
      if (waiter.parent !== null && this.#waitsFor(flight, waiter.parent)) return true;
    }
    return false;
  }
}
