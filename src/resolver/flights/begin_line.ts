import { type ResolveFailure, TOO_MANY_WAIT } from "../failure.ts";
import { clientOf, type Query } from "../query.ts";
import { ClientLines } from "./client_lines.ts";
import type { Flight } from "./flight.ts";
import type { Share, Source, Task } from "./source.ts";

type Refusal = (query: Query, share: Share) => ResolveFailure | null;

/** A flight that waits for its source to begin. */
class Begin implements Task {
  readonly failure = TOO_MANY_WAIT;

  /** `former` is the flight's task of last time, which its source may use again. */
  constructor(
    readonly flight: Flight,
    readonly share: Share,
    readonly former: Task | null,
    private readonly lines: ClientLines<Begin>,
  ) {
    lines.push(clientOf(flight.query), this);
  }

  tick(): void {}

  /** Its time was over first. */
  end(): void {
    this.lines.remove(clientOf(this.flight.query), this);
  }

  echo(): null {
    return null;
  }

  onChild(): void {}
}

/**
 * A source that begins with clients' questions one by one while there is much to do, each client in
 * its turn: what is in the cache is answered in between. There are as many waiting as flights at most.
 */
export class BeginLine implements Source {
  readonly #source: Source;
  readonly #isBusy: () => boolean;
  readonly #refusal: Refusal;
  readonly #lines = new ClientLines<Begin>();

  /** `refusal` says of a question that has waited why it is not to be asked any more, or `null`. */
  constructor(source: Source, isBusy: () => boolean, refusal: Refusal) {
    this.#source = source;
    this.#isBusy = isBusy;
    this.#refusal = refusal;
  }

  /** Flights that wait to begin. */
  get waiting(): number {
    return this.#lines.length;
  }

  shareOf(query: Query): Share | ResolveFailure {
    return this.#source.shareOf(query);
  }

  left(share: Share): number {
    return this.#source.left(share) - this.waiting;
  }

  full(share: Share): ResolveFailure {
    return this.#source.full(share);
  }

  begin(flight: Flight, share: Share): void {
    // What was begun is brought to its end.
    const isFurther = flight.depth > 0 || flight.attempt > 0;
    if (isFurther || this.waiting === 0 && !this.#isBusy()) {
      this.#source.begin(flight, share);
      return;
    }
    flight.task = new Begin(flight, share, flight.task, this.#lines);
  }

  /** Has the source begin with the next flight; says whether there was one. */
  next(): boolean {
    const begin = this.#lines.next();
    if (begin === undefined) return false;
    const { flight, share, former } = begin;
    const refusal = this.#refusal(flight.query, share);
    if (refusal === null) {
      flight.task = former;
      this.#source.begin(flight, share);
    } else flight.fail(refusal);
    return true;
  }

  tick(nowMs: number): boolean {
    return this.#source.tick(nowMs); // Who waits is a flight, and looked after as one.
  }

  close(): void {
    this.#source.close();
  }
}
