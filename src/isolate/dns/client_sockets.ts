import type { UdpListener } from "../../transport/mod.ts";

/** A cached answer waits this long for work that takes longer, and for so many packets before it. */
const BETWEEN_MS = 0.2;
const PACKETS_MAX = 64;

/** The UDP sockets of an isolate at which clients ask. */
export class ClientSockets {
  readonly #listeners: UdpListener[] = [];
  readonly #beginTurn: () => void;
  #tookAtMs = 0;
  /** Nothing is taken any more: a successor does. */
  #isClosed = false;

  constructor(beginTurn: () => void) {
    this.#beginTurn = beginTurn;
  }

  /** Adds one, whose number is that of those before it. */
  add(listener: UdpListener): void {
    this.#listeners.push(listener);
  }

  /** Takes what has come to one of them. */
  take(number: number): void {
    if (!this.#isClosed) this.#listeners[number].receive();
  }

  /** Takes some of what has come to each. */
  takeSome(): void {
    this.#beginTurn();
    if (!this.#isClosed) { for (const listener of this.#listeners) listener.receive(PACKETS_MAX); }
    this.#tookAtMs = performance.now();
  }

  /** The same in the middle of work, where that lasts. */
  readonly between = (): void => {
    if (performance.now() - this.#tookAtMs >= BETWEEN_MS) this.takeSome();
  };

  /** Sends the answers of queries that waited. */
  flush(): void {
    for (const { batch } of this.#listeners) if (batch.queued > 0) batch.flush();
  }

  /** Takes what has come by now, and nothing after it. */
  close(): void {
    for (const listener of this.#listeners) listener.receive();
    this.#isClosed = true;
  }
}
