import { EventQueue, openEpoll, openWake, wake } from "./event_queue.ts";
import type { Native } from "./libc.ts";

/** Sockets, and what is done when one of them can be read. */
export class Watcher {
  readonly #native: Native;
  readonly #queue: EventQueue;
  /** By descriptor. One that is closed leaves the queue by itself, and its number comes again. */
  readonly #readers = new Map<number, () => void>();
  readonly #wake: number;
  #isStopped = false;

  constructor(native: Native) {
    this.#native = native;
    const memory = new SharedArrayBuffer(EventQueue.MEMORY_BYTES);
    this.#queue = new EventQueue(native, openEpoll(native), memory);
    this.#wake = openWake(native);
    this.watch(this.#wake, () => {});
  }

  /** Has `onReadable` called from now on, until the socket is closed. */
  watch(fd: number, onReadable: () => void): void {
    this.#readers.set(fd, onReadable);
    this.#queue.add(fd, fd);
  }

  /** Serves the sockets until `stop`, this often at the most. */
  async run(gapMs = 0): Promise<void> {
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
    wake(this.#native, this.#wake);
  }
}
