/** Longest pause for one message; only a thread that is stopped takes as long. */
const ARRIVE_MS_MAX = 50;

/**
 * Counts the messages of a dns isolate that are on their way. An isolate whose sockets are never
 * empty is back from each wait at once, and the runtime hands it a message only every now and then,
 * up to 100 ms late. With the count it knows of them and pauses until they are there.
 */
export class Inbox {
  readonly #sent: Int32Array;
  #heard = 0;
  #arrived: (() => void) | null = null;

  static readonly MEMORY_BYTES = 4;

  /** For the isolate; the memory is the one that `announce` counts in, from its first message on. */
  constructor(memory: SharedArrayBuffer) {
    this.#sent = new Int32Array(memory);
  }

  /** For who sends: called before each message. */
  static announce(memory: SharedArrayBuffer): void {
    Atomics.add(new Int32Array(memory), 0, 1);
  }

  /** Says whether a message is on its way. */
  get isExpecting(): boolean {
    return Atomics.load(this.#sent, 0) !== this.#heard;
  }

  /** A message has come. */
  heard(): void {
    this.#heard++;
    if (!this.isExpecting) this.#arrived?.();
  }

  /** Resolves once every message on its way has come, or `ARRIVE_MS_MAX` are over. */
  async arrivals(): Promise<void> {
    if (!this.isExpecting) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#arrived = resolve;
    const timer = setTimeout(resolve, ARRIVE_MS_MAX);
    await promise;
    clearTimeout(timer);
    this.#arrived = null;
  }
}
