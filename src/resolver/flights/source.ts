import type { ResolveFailure } from "../failure.ts";
import type { Query } from "../query.ts";
import type { Flight } from "./flight.ts";
import type { BroughtMessage } from "./kept_answers.ts";
import type { Waiter } from "./waiter.ts";

/** A stub resolver gives up after five seconds: an answer must come before. */
export const FLIGHT_MS = 4_800;

/** Servers that a number of questions depend on, which have that many flights at most. */
export interface Share {
  /** Questions on their way to them; the flight table's own. */
  flights: number;
  /** How long a flight may take, in milliseconds. */
  readonly flightMs: number;
  /** Most flights that may depend on them, whatever room there is. */
  readonly flightsMax: number;
  /** The zone whose servers they are, uncompressed; left out: they are upstreams. */
  readonly zone?: Uint8Array;
}

/** What a source does about one flight, from its beginning to its end. */
export interface Task {
  /** What there is to say when the flight's time is over. */
  readonly failure: ResolveFailure;
  /** Looks through its waits. The flight may be over by now, and ends behind this call. */
  tick(nowMs: number): void;
  /** Nothing more is wanted of it: the flight goes on without it, or is done. */
  end(): void;
  /** Of a source's: the flight is done, with all that was looked up for it. */
  closed?(): void;
  /** Why a query like the flight's can't wait for it: it is our own, come back to us. */
  echo(query: Query): ResolveFailure | null;
  /**
   * A question that the flight has had asked (`Flight.ask`) has come to its end: its message is in
   * the cache under `entry`, or `entry` is negative and `child.failure` says why there is none.
   */
  onChild(child: Waiter, entry: number): void;
}

/** Looks at what a source brings before it is anybody's. */
export interface Judge {
  /**
   * Takes an answer on, which lasts until this returns: sets the flight's `judging`, and once this has
   * returned, `Flight.settle`, `fail` or `askElsewhere` is to follow. `false`: the answer, as it is
   * by now, needs no judgement.
   */
  take(flight: Flight, message: BroughtMessage, errors: Uint8Array): boolean;
  /** Why the servers of a zone are not to be asked a client's question, or `null`. */
  admit(query: Query, zone: Uint8Array): ResolveFailure | null;
  /** The same of one that was admitted, and is to be asked only now. */
  refusal(query: Query, zone: Uint8Array): ResolveFailure | null;
  /** The answer to a question that follows from what it knows, good until the next call, or `null`. */
  deduce(query: Query): BroughtMessage | null;
}

/** Has the last word about answers, before they are kept, and about failures. */
export interface Finisher {
  /** Says whether an answer is not the last word. */
  wants(flight: Flight, message: BroughtMessage): boolean;
  /** Says whether something else may come of a flight that fails. */
  wantsInstead(flight: Flight, failure: ResolveFailure): boolean;
  /**
   * Takes a flight on whose answer it wants: sets `judging`, and `Flight.settle` or `fail` is to follow.
   * The message and its errors last until this returns.
   */
  begin(flight: Flight, message: BroughtMessage, errors: Uint8Array): void;
  /** As `begin` for a failure that it wants. */
  beginInstead(flight: Flight, failure: ResolveFailure): void;
}

/** Brings answers to questions: from upstreams, or from the name servers of the Internet. */
export interface Source {
  /** The servers that a question depends on, or why there are none. */
  shareOf(query: Query): Share | ResolveFailure;
  /** Questions that these servers have room for at this moment, beside those on their way. */
  left(share: Share): number;
  /** As many flights depend on these servers as may: notes that, and says so. */
  full(share: Share): ResolveFailure;
  /**
   * Takes a flight on: sets its `task` first of all. `Flight.answer` or `Flight.fail` ends it, within
   * this call or later.
   */
  begin(flight: Flight, share: Share): void;
  /** Called every `TICK_MS`, behind the tasks; says whether it needs to be called again. */
  tick(nowMs: number): boolean;
  /** Nothing more is asked. */
  close(): void;
}
