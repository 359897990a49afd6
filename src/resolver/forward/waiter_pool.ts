import { Waiter } from "./flight.ts";

/** Waiters that are used again and again. */
export class WaiterPool {
  /** Those in use. */
  count = 0;
  readonly #max: number;
  readonly #peerBytes: number;
  #free: Waiter | null = null;

  /** `peerBytes` is the size of `Waiter.peer`. */
  constructor(max: number, peerBytes: number) {
    this.#max = max;
    this.#peerBytes = peerBytes;
  }

  /** One to fill in, or `null` when as many are in use as may be. */
  take(): Waiter | null {
    if (this.count >= this.#max) return null;
    const waiter = this.#free ?? new Waiter(this.#peerBytes);
    this.#free = waiter.next;
    waiter.next = null;
    this.count++;
    return waiter;
  }

  release(waiter: Waiter): void {
    waiter.responder = null;
    waiter.next = this.#free;
    this.#free = waiter;
    this.count--;
  }
}
