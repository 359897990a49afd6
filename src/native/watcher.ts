import { EventQueue, openEpoll, openWake, wake } from "./event_queue.ts";
import type { Native } from "./libc.ts";

/** Sockets, and what is done when one of them can be read. */
export class Watcher {
  readonly #native: Native;
  readonly #queue: EventQueue;
  readonly #epoll: number;
  /** By descriptor. One that is closed leaves the queue by itself, and its number comes again. */
  readonly #readers = new Map<number, () => void>();
  readonly #wake: number;
  #isStopped = false;
  /** Its descriptors are closed, and may be others by now. */
  #isClosed = false;

  /** @throws {SvcError} `unavailable`, when the system has no descriptors left. */
  constructor(native: Native) {
    this.#native = native;
    const memory = new SharedArrayBuffer(EventQueue.MEMORY_BYTES);
    this.#epoll = openEpoll(native);
    this.#queue = new EventQueue(native, this.#epoll, memory);
    try {
      this.#wake = openWake(native);
    } catch (error) {
      native.close(this.#epoll);
      throw error;
    }
    this.watch(this.#wake, () => {});
  }

  /** Has `onReadable` called from now on, until the socket is closed. */
  watch(fd: number, onReadable: () => void): void {
    if (this.#isClosed) return;
    this.#readers.set(fd, onReadable);
    this.#queue.add(fd, fd);
  }

  /** Serves the sockets until `stop`, this often at the most. */
  async run(gapMs = 0): Promise<void> {
    if (this.#isClosed) return;
    try {
      await this.#serve(gapMs);
    } finally {
      this.#isClosed = true;
      for (const fd of [this.#epoll, this.#wake]) this.#native.close(fd);
    }
  }

  async #serve(gapMs: number): Promise<void> {
    while (!this.#isStopped) {
      const count = await this.#queue.wait(-1);
      for (let i = 0; i < count && !this.#isStopped; i++) {
        this.#readers.get(this.#queue.token(i))?.();
      }
      if (gapMs > 0) await new Promise((resolve) => setTimeout(resolve, gapMs));
    }
  }

  stop(): void {
    this.#isStopped = true;
    if (!this.#isClosed) wake(this.#native, this.#wake);
  }
}
