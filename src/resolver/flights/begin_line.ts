import { type ResolveFailure, TOO_MANY_WAIT } from "../failure.ts";
import { clientOf, type Query } from "../query.ts";
import type { Flight } from "./flight.ts";
import type { Share, Source, Task } from "./source.ts";

/** Lines; clients that share one share its turn. */
const LINES = 64;

/** A flight that waits for its source to begin. */
class Begin implements Task {
  readonly failure = TOO_MANY_WAIT;

  constructor(
    readonly flight: Flight,
    readonly share: Share,
    private readonly line: Begin[],
    private readonly left: () => void,
  ) {
    line.push(this);
  }

  tick(): void {}

  /** Its time was over first. */
  end(): void {
    const at = this.line.indexOf(this);
    if (at < 0) return;
    this.line.splice(at, 1);
    this.left();
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
  readonly #lines: Begin[][] = Array.from({ length: LINES }, () => []);
  #waiting = 0;
  #last = 0;

  constructor(source: Source, isBusy: () => boolean) {
    this.#source = source;
    this.#isBusy = isBusy;
  }

  /** Flights that wait to begin. */
  get waiting(): number {
    return this.#waiting;
  }

  shareOf(query: Query): Share | ResolveFailure {
    return this.#source.shareOf(query);
  }

  left(share: Share): number {
    return this.#source.left(share) - this.#waiting;
  }

  full(share: Share): ResolveFailure {
    return this.#source.full(share);
  }

  begin(flight: Flight, share: Share): void {
    // What was begun is brought to its end.
    const isFurther = flight.depth > 0 || flight.attempt > 0;
    if (isFurther || this.#waiting === 0 && !this.#isBusy()) {
      this.#source.begin(flight, share);
      return;
    }
    this.#waiting++;
    const line = this.#lines[clientOf(flight.query) & (LINES - 1)];
    flight.task = new Begin(flight, share, line, () => this.#waiting--);
  }

  /** Has the source begin with the next flight; says whether there was one. */
  next(): boolean {
    if (this.#waiting === 0) return false;
    do this.#last = (this.#last + 1) & (LINES - 1); while (this.#lines[this.#last].length === 0);
    const { flight, share } = this.#lines[this.#last].shift()!;
    this.#waiting--;
    this.#source.begin(flight, share);
    return true;
  }

  tick(nowMs: number): boolean {
    return this.#source.tick(nowMs) || this.#waiting > 0;
  }

  close(): void {
    this.#source.close();
  }
}
