import type { Native } from "../native/mod.ts";
import { EventQueue, openEpoll } from "../native/mod.ts";

/** Sockets, and what is done when one of them can be read. */
export class Watcher {
  readonly #queue: EventQueue;
  readonly #readers = new Map<number, () => void>();
  #isStopped = false;

  constructor(native: Native) {
    const memory = new SharedArrayBuffer(EventQueue.MEMORY_BYTES);
    this.#queue = new EventQueue(native, openEpoll(native), memory);
  }

  /** Has `onReadable` called from now on; a socket that is closed is no longer watched. */
  watch(fd: number, onReadable: () => void): void {
    this.#readers.set(fd, onReadable);
    this.#queue.add(fd, fd);
  }

  /** Serves the sockets until `stop`. */
  async run(): Promise<void> {
    while (!this.#isStopped) {
      const count = await this.#queue.wait();
      for (let i = 0; i < count && !this.#isStopped; i++) {
        this.#readers.get(this.#queue.token(i))?.();
      }
    }
  }

  stop(): void {
    this.#isStopped = true;
  }
}
