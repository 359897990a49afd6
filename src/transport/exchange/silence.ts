/** An idle connection is kept this long: a handshake costs more than an open one (RFC 7858 §3.4). */
export const IDLE_MS = 30_000;
/** A connection that says nothing for this long, with queries on it, is taken for a dead one. */
export const SILENCE_MS_MAX = 2_000;

/** How long a connection has been idle, or been silent though it owes answers. */
export class Silence {
  #usedAtMs: number;
  /** Since when it owes a word; -1: it does not. */
  #owesSinceMs = -1;

  constructor(private readonly nowMs: () => number = () => performance.now()) {
    this.#usedAtMs = nowMs();
  }

  /** A query goes out. */
  asked(): void {
    this.#usedAtMs = this.nowMs();
    if (this.#owesSinceMs < 0) this.#owesSinceMs = this.#usedAtMs;
  }

  /** Something came in; `pending` queries still wait. */
  heard(pending: number): void {
    this.#usedAtMs = this.nowMs();
    this.#owesSinceMs = pending > 0 ? this.#usedAtMs : -1;
  }

  /** Says whether the connection is of no more use; `pending` queries wait on it. */
  isOver(nowMs: number, pending: number): boolean {
    if (this.#owesSinceMs >= 0 && nowMs - this.#owesSinceMs > SILENCE_MS_MAX) return true;
    return pending === 0 && nowMs - this.#usedAtMs > IDLE_MS;
  }
}
