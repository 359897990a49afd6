import { getU16 } from "../../bytes/mod.ts";
import type { ResolveFailure } from "../failure.ts";
import { Outcome } from "../outcome.ts";
import { DnssecState, keptQuery, KEY_CD, KEY_DO, type Query } from "../query.ts";
import type { Trace } from "../trace.ts";
import type { BroughtMessage } from "./kept_answers.ts";
import type { Share, Task } from "./source.ts";
import type { Waiter } from "./waiter.ts";

/** Whoever has flights, and ends them. */
export interface FlightOwner {
  answer(flight: Flight, message: BroughtMessage, errors: Uint8Array): void;
  settle(flight: Flight, message: BroughtMessage, errors: Uint8Array): void;
  askElsewhere(flight: Flight): void;
  fail(flight: Flight, failure: ResolveFailure): void;
  move(flight: Flight, share: Share): void;
  ask(parent: Flight, query: Query, attempt: number): boolean;
}

const NOBODY: Share = { flights: 0, flightMs: 0, flightsMax: 0 };

/** A question on its way. Used again a while after it is done: see `FlightTable`. */
export class Flight {
  readonly query: Query = keptQuery();
  startedAtMs = 0;
  /** Which servers it depends on; their `flights` count this one. */
  share: Share = NOBODY;
  /** What its source does about it; that of its last question until the source has begun. */
  task: Task | null = null;
  /** What is done about the answer that the source has brought; `null`: there is none yet. */
  judging: Task | null = null;
  waiters: Waiter | null = null;
  waiterCount = 0;
  /** Waiters have been given the stale answer. */
  servedStale = false;
  /** No client waits: an entry is renewed. */
  background = false;
  done = false;
  /** Records what is done about it; `null`: nobody wants to know. */
  trace: Trace | null = null;

  /** What the source says of its answer: where that comes from, and what validation said. */
  source: Outcome = Outcome.Forwarded;
  /** The upstream, by its place in the configuration; -1 for none. */
  upstream = -1;
  dnssec: DnssecState = DnssecState.None;
  /** Why that is not secure; "" where it is, or where nobody has validated. */
  reason = "";
  /** Its answer is for the subnet that it was asked for, and for nobody else. */
  isScoped = false;
  /** The finisher has had its word. */
  isFinished = false;
  /** Its answer is validated before it is anybody's. */
  isValidated = false;
  /** The zone whose servers have answered, uncompressed; `null`: nobody knows. */
  zone: Uint8Array | null = null;
  /** The same for the name of the question itself, whatever its aliases lead to. */
  home: Uint8Array | null = null;
  /** Where its aliases lead, uncompressed, if what is said of that is made here: nobody has signed it. */
  madeHere: Uint8Array | null = null;
  /** 1 where it is asked once more because what `avoids`, an upstream, said is not to be believed. */
  attempt = 0;
  avoids = -1;
  /** Why what was said first is not to be believed. */
  doubt: ResolveFailure | null = null;
  /** Every server of it has domains of its own: their addresses are those of one's network. */
  isOwnDomain = false;

  /** Flights above this one, each waiting for the next. */
  depth = 0;
  /** Questions that it has had asked, all told, and those it waits for. */
  childCount = 0;
  children: Waiter | null = null;

  /** The table's own: its place among the active ones, and the next one of its bucket. */
  place = 0;
  next: Flight | null = null;
  readonly #owner: FlightOwner;

  constructor(owner: FlightOwner) {
    this.#owner = owner;
  }

  /** Makes it a new one, about the question of `query`. */
  start(query: Query, share: Share, nowMs: number): void {
    this.query.keep(query);
    this.share = share;
    this.startedAtMs = nowMs;
    this.waiters = this.children = this.trace = null;
    this.waiterCount = this.depth = this.childCount = 0;
    this.servedStale =
      this.background =
      this.done =
      this.isOwnDomain =
      this.isFinished =
      this.isScoped =
      this.isValidated =
        false;
    this.source = Outcome.Forwarded;
    this.upstream = -1;
    this.dnssec = DnssecState.None;
    this.reason = "";
    this.judging =
      this.zone =
      this.home =
      this.madeHere =
      this.doubt =
        null;
    this.attempt = 0;
    this.avoids = -1;
  }

  /** Who has it at the moment: its judge, or else its source. */
  get stage(): Task {
    return this.judging ?? this.task!;
  }

  /**
   * DO and CD as servers are to be asked: for what is validated here with both (RFC 6840 §5.9), and
   * the second time without CD, so that a server that validates looks for what it can prove.
   */
  get askBits(): number {
    const bits = this.isValidated ? KEY_DO | KEY_CD : this.query.keyBits;
    return this.attempt === 0 ? bits : bits & ~KEY_CD;
  }

  /** Its time is over. */
  isOver(nowMs: number): boolean {
    return nowMs - this.startedAtMs >= this.share.flightMs;
  }

  /** The source's answer, with its extended errors, good until this returns: for the judge, if any. */
  answer(message: BroughtMessage, errors: Uint8Array): void {
    this.#owner.answer(this, message, errors);
  }

  /** Ends it: keeps the message with its extended errors, and hands it to all who wait. */
  settle(message: BroughtMessage, errors: Uint8Array): void {
    this.#owner.settle(this, message, errors);
  }

  /** Has the source ask once more, and another server where there is one. */
  askElsewhere(doubt: ResolveFailure): void {
    this.doubt = doubt;
    this.#owner.askElsewhere(this);
  }

  /** Gives up: a stale answer where there is one, else SERVFAIL, which is remembered a while. */
  fail(failure: ResolveFailure): void {
    this.#owner.fail(this, failure);
  }

  /** Goes on to other servers. */
  move(share: Share): void {
    this.#owner.move(this, share);
  }

  /**
   * Has a question asked that this one depends on, an address or a key; `query.keyHash` is that of
   * its cache key. The task is told of its end, now or later. False: it can't be asked, because it
   * waits for this very flight in the end, or there is no room for more. `attempt` is 1 where what is
   * in the cache is not to be believed.
   */
  ask(query: Query, attempt = 0): boolean {
    return this.#owner.ask(this, query, attempt);
  }
}

/** Says whether two queries ask the same, ASCII letters in either case (RFC 4343). */
export function sameQuestion(a: Query, b: Query): boolean {
  if (a.qtype !== b.qtype || a.keyBits !== b.keyBits || a.qnameLength !== b.qnameLength) {
    return false;
  }
  if (a.subnet !== b.subnet) return false;
  if (getU16(a.packet, a.qname + a.qnameLength) !== b.qtype) return false;
  for (let i = 0; i < a.qnameLength; i++) {
    const [x, y] = [a.packet[a.qname + i], b.packet[b.qname + i]];
    if (x === y) continue;
    const lower = x | 0x20;
    if (lower !== (y | 0x20) || lower < 0x61 || lower > 0x7a) return false;
  }
  return true;
}
