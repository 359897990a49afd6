import { SvcError } from "../../errors.ts";
import type { Found } from "../../resolver/mod.ts";
import type { ToDns } from "../messages.ts";

/** Look-ups that one isolate is asked for at a time. */
export const PENDING_MAX = 64;
/** Longest wait for one; the isolate itself gives up a little before. */
const LOOKUP_MS_MAX = 6_000;

/** Look-ups that an isolate was asked for and has not answered. */
export class PendingLookups {
  readonly #waiting = new Map<number, (found: Found) => void>();
  #lastId = 0;

  get size(): number {
    return this.#waiting.size;
  }

  /**
   * Asks through `tell`; resolves with what the isolate found.
   *
   * @throws {SvcError} `unavailable`.
   */
  async start(
    hostname: string,
    qtype: number,
    signal: AbortSignal,
    tell: (message: ToDns) => void,
  ): Promise<Found> {
    if (this.#waiting.size >= PENDING_MAX) {
      throw new SvcError("unavailable", `${hostname}: too many names are looked up at a time`);
    }
    const id = ++this.#lastId;
    const { promise, resolve } = Promise.withResolvers<Found>();
    const giveUp = (failure: string) => resolve({ addresses: [], ttl: 0, failure });
    const onAbort = () => giveUp("nobody waits for it any more");
    const timer = setTimeout(() => giveUp(`no answer within ${LOOKUP_MS_MAX} ms`), LOOKUP_MS_MAX);
    signal.addEventListener("abort", onAbort, { once: true });
    this.#waiting.set(id, resolve);
    try {
      if (signal.aborted) onAbort();
      else tell({ type: "lookup", id, hostname, qtype });
      const found = await promise;
      if (found.failure === null) return found;
      throw new SvcError("unavailable", `${hostname} can't be looked up: ${found.failure}`);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      this.#waiting.delete(id);
    }
  }

  /** The isolate answered. */
  end(id: number, found: Found): void {
    this.#waiting.get(id)?.(found);
  }

  /** The isolate will answer none of them. */
  fail(failure: string): void {
    for (const resolve of this.#waiting.values()) resolve({ addresses: [], ttl: 0, failure });
  }
}
