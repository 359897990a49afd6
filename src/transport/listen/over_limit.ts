/** Queries of one client over its limit that are refused in a second; more of it is not read. */
export const REFUSALS_PER_SECOND = 128;
const SECOND_MS = 1_000;
/** Clients that are kept in mind; one more pushes out the first. */
const CLIENTS_MAX = 4_096;

interface Refused {
  sinceMs: number;
  count: number;
}

/**
 * Who asks far over the limit of queries. A refusal costs as much as an answer, so a client that has
 * had `REFUSALS_PER_SECOND` is not read until the second is over: what it sends waits with the system
 * and then with itself. That also is the better treatment of whoever shares an address with it, as
 * their queries wait rather than be refused.
 */
export class OverLimit {
  readonly #clients = new Map<string, Refused>();

  /** A query of the client was refused for being over the limit. */
  note(client: string, nowMs: number): void {
    const refused = this.#clients.get(client);
    if (refused !== undefined && nowMs - refused.sinceMs < SECOND_MS) {
      refused.count++;
      return;
    }
    this.#clients.delete(client);
    if (this.#clients.size >= CLIENTS_MAX) {
      for (const first of this.#clients.keys()) {
        this.#clients.delete(first);
        break;
      }
    }
    this.#clients.set(client, { sinceMs: nowMs, count: 1 });
  }

  /** How long the client is not to be read; 0 where it is. */
  waitMs(client: string, nowMs: number): number {
    if (this.#clients.size === 0) return 0; // Nobody is, on most days.
    const refused = this.#clients.get(client);
    if (refused === undefined || refused.count < REFUSALS_PER_SECOND) return 0;
    return Math.max(0, refused.sinceMs + SECOND_MS - nowMs);
  }
}
