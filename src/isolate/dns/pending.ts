import { SvcError } from "../../errors.ts";

/** Questions that one isolate is asked at a time. */
export const PENDING_MAX = 64;
/** Longest wait for an answer; the isolate itself gives up a little before. */
const ANSWER_MS_MAX = 6_000;

interface Waiting<T> {
  readonly resolve: (answer: T) => void;
  readonly giveUp: (failure: string) => void;
}

/** Questions that an isolate was asked and has not answered. */
export class Pending<T> {
  readonly #waiting = new Map<number, Waiting<T>>();
  #lastId = 0;

  get size(): number {
    return this.#waiting.size;
  }

  /**
   * Asks through `tell`, which gets the number that the answer comes back with; resolves with that.
   * `what` leads a failure: "www.example can't be looked up".
   *
   * @throws {SvcError} `unavailable`.
   */
  async start(what: string, signal: AbortSignal, tell: (id: number) => void): Promise<T> {
    if (this.#waiting.size >= PENDING_MAX) {
      throw new SvcError("unavailable", `${what}: too many are asked for at a time`);
    }
    const id = ++this.#lastId;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const giveUp = (failure: string) => reject(new SvcError("unavailable", `${what}: ${failure}`));
    const onAbort = () => giveUp("nobody waits for it any more");
    const timer = setTimeout(() => giveUp(`no answer within ${ANSWER_MS_MAX} ms`), ANSWER_MS_MAX);
    signal.addEventListener("abort", onAbort, { once: true });
    this.#waiting.set(id, { resolve, giveUp });
    try {
      if (signal.aborted) onAbort();
      else tell(id);
      return await promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      this.#waiting.delete(id);
    }
  }

  /** The isolate answered. */
  end(id: number, answer: T): void {
    this.#waiting.get(id)?.resolve(answer);
  }

  /** The isolate will answer none of them. */
  fail(failure: string): void {
    for (const { giveUp } of this.#waiting.values()) giveUp(failure);
  }
}
