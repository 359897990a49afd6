import { Attempt, type Flight } from "./flight.ts";
import type { Upstream } from "./upstream.ts";

/**
 * Ways that questions are being sent. How many there may be is shared out as it is needed: one
 * upstream has as many as are left for the others, so that a silent one never takes them all.
 */
export class AttemptTable {
  readonly #all: Attempt[] = [];
  readonly #free: Attempt[] = [];
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  get inUse(): number {
    return this.#all.length - this.#free.length;
  }

  /** Says whether an upstream has as many as it may. */
  isFull(upstream: Upstream): boolean {
    return upstream.open >= this.#max - this.inUse;
  }

  /** The attempt of a token, or `null` when nothing is wanted for it any more. */
  find(token: number): Attempt | null {
    const attempt = this.#all[token];
    return attempt === undefined || attempt.flight === null ? null : attempt;
  }

  take(flight: Flight, upstream: Upstream, nowMs: number): Attempt {
    const attempt = this.#free.pop() ?? this.#new(upstream);
    attempt.flight = flight;
    attempt.upstream = upstream;
    attempt.sentAtMs = nowMs;
    attempt.overStream = upstream.spec.transport !== "udp";
    attempt.mismatches = 0;
    attempt.failed = attempt.isDoubted = attempt.hasBeside = false;
    flight.attempts.push(attempt);
    upstream.open++;
    return attempt;
  }

  /** Takes an attempt back; its flight goes on, or is done and forgets its attempts itself. */
  release(attempt: Attempt): void {
    attempt.flight = null;
    attempt.upstream.open--;
    this.#free.push(attempt);
  }

  #new(upstream: Upstream): Attempt {
    const attempt = new Attempt(this.#all.length, upstream);
    this.#all.push(attempt);
    return attempt;
  }
}
