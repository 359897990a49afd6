import type { Outcome } from "./frames.ts";

/** Most requests to a leader whose answers are waited for. */
const ANSWERS_MAX = 4_096;

/** Requests to a leader that wait for their answers, by number; too old ones are waited for no more. */
export class Answers {
  readonly #waiting = new Map<number, (outcome: Outcome) => void>();
  #last = 0;

  /** A number for a request. */
  expect(answer: (outcome: Outcome) => void): number {
    const number = ++this.#last >>> 0;
    this.#waiting.set(number, answer);
    for (const oldest of this.#waiting.keys()) {
      if (this.#waiting.size <= ANSWERS_MAX) break;
      this.#waiting.delete(oldest);
    }
    return number;
  }

  came(number: number, outcome: Outcome): void {
    const answer = this.#waiting.get(number);
    this.#waiting.delete(number);
    answer?.(outcome);
  }
}
