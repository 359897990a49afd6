import type { Socket } from "node:net";

/** What the runtime has below a socket, as far as it is of use here. */
interface Handle {
  readStop?(): unknown;
  readStart?(): unknown;
}

/** Input that a paused socket may hand over all the same: what was on its way to it. */
const AHEAD_BYTES_MAX = 4 * 1024 * 1024;

/**
 * Holds back what comes in on a socket, so that it waits with the system and then with the client,
 * and lets it in again. A TLS socket that is paused goes on decrypting whatever comes and keeps it,
 * without a bound: there the reading of the socket below is stopped as well. One that is still read
 * on is ended.
 */
export class Flow {
  readonly #socket: Socket;
  /** The socket below one of TLS. */
  readonly #raw: Socket | null;
  #isPaused = false;

  constructor(socket: Socket, raw: Socket | null = null) {
    this.#socket = socket;
    this.#raw = raw;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  pause(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    this.#socket.pause();
    this.#handle?.readStop?.();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    if (this.#socket.readableLength > AHEAD_BYTES_MAX) {
      this.#socket.destroy();
      return;
    }
    this.#handle?.readStart?.();
    this.#socket.resume();
  }

  get #handle(): Handle | null {
    return (this.#raw as { readonly _handle?: Handle | null } | null)?._handle ?? null;
  }
}
