/** Bytes of bodies that are not whole yet, on one connection. */
export const CONNECTION_WINDOW_BYTES: number = 256 * 1024;
/** The client's window is opened again when this much of it is used. */
const WINDOW_UPDATE_BYTES = CONNECTION_WINDOW_BYTES / 4;

/** What the client may send on a connection, and what of it is free again without its knowing. */
export class ReceiveWindow {
  #open = CONNECTION_WINDOW_BYTES;
  #unreturned = 0;

  /** Bytes that came in and are not done with. */
  get heldBytes(): number {
    return CONNECTION_WINDOW_BYTES - this.#open - this.#unreturned;
  }

  /** So many bytes came in; returns false when the client may not send as many. */
  take(bytes: number): boolean {
    if (bytes > this.#open) return false;
    this.#open -= bytes;
    return true;
  }

  /** So many are done with; returns by how much to open the client's window, or 0. */
  giveBack(bytes: number): number {
    this.#unreturned += bytes;
    if (this.#unreturned < WINDOW_UPDATE_BYTES) return 0;
    const increment = this.#unreturned;
    this.#open += increment;
    this.#unreturned = 0;
    return increment;
  }
}
