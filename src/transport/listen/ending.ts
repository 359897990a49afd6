import type { Socket } from "node:net";
import type { Flow } from "./flow.ts";

/** A client that does not close its side of an ended connection is cut off after this. */
const LINGER_MS = 2_000;
/** What a client may send behind the end of a connection. */
const BEHIND_BYTES_MAX = 256 * 1024;
/** Longest wait, where connections are closed, for answers to leave. */
const FLUSH_MS_MAX = 500;
const FLUSH_POLL_MS = 5;

/**
 * The end of a connection from this side. What its client has on the way by then is read over: closed
 * with something unread the connection would be reset, and answers that are on theirs lost.
 */
export class Ending {
  readonly #socket: Socket;
  readonly #flow: Flow;
  /** 0: it has not ended. */
  #endedAtMs = 0;
  #behindBytes = 0;

  constructor(socket: Socket, flow: Flow) {
    this.#socket = socket;
    this.#flow = flow;
  }

  /** Nothing is sent any more, and nothing that comes is looked at. */
  get hasBegun(): boolean {
    return this.#endedAtMs > 0;
  }

  /** Ends it behind what was written. */
  begin(): void {
    if (this.hasBegun) return;
    this.#endedAtMs = performance.now();
    this.#socket.end();
    this.#flow.resume();
  }

  /** So many bytes have come behind the end. */
  readOver(lengthBytes: number): void {
    this.#behindBytes += lengthBytes;
    if (this.#behindBytes > BEHIND_BYTES_MAX) this.#socket.destroy();
  }

  /** Cuts off who takes too long; to be called about once a second. */
  tick(nowMs: number): void {
    if (this.hasBegun && nowMs - this.#endedAtMs > LINGER_MS) this.#socket.destroy();
  }
}

/** Waits for answers to leave, as long as `isBusy` says that some have not, for a while at most. */
export async function flushed(isBusy: () => boolean): Promise<void> {
  const endsAtMs = performance.now() + FLUSH_MS_MAX;
  while (isBusy() && performance.now() < endsAtMs) {
    await new Promise((resolve) => setTimeout(resolve, FLUSH_POLL_MS));
  }
}
