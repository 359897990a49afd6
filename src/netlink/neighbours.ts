import { type Native, Watcher, wouldBlock } from "../native/mod.ts";
import { type Neighbour, neighboursRequest, readNeighbours } from "./messages.ts";
import { News, openNetlink } from "./socket.ts";

const MSG_DONTWAIT = 0x40;
/** More than the kernel puts into one answer. */
const ANSWER_BYTES = 64 * 1024;
/** Answers and news read in one go; a table of the largest network has fewer. */
const PARTS_MAX = 1_024;
/** News of a busy network are read together, that much apart at least. */
const GATHERED_MS = 250;

/**
 * Who is on the same links, as the kernel knows: all of them first, then each as it comes or gets
 * another address. What comes faster than it is read is made up for by asking for all again.
 */
export class Neighbours {
  readonly #native: Native;
  readonly #watcher: Watcher;
  readonly #answer = new Uint8Array(ANSWER_BYTES);
  #fd = -1;
  #sequence = 0;

  /** Bound before an isolate gives up the right to call the C library. */
  constructor(native: Native) {
    this.#native = native;
    this.#watcher = new Watcher(native);
  }

  /**
   * Tells of all there are, before this returns, and of each that comes until `stop`.
   *
   * @throws {SvcError} `unavailable`, when the system refuses.
   */
  start(tell: (found: readonly Neighbour[]) => void): void {
    if (this.#fd >= 0) return;
    this.#fd = openNetlink(this.#native, News.Neighbours);
    this.#ask();
    tell(this.#read());
    this.#watcher.watch(this.#fd, () => tell(this.#read()));
    void this.#watcher.run(GATHERED_MS);
  }

  stop(): void {
    this.#watcher.stop();
    if (this.#fd >= 0) this.#native.close(this.#fd);
    this.#fd = -1;
  }

  #ask(): void {
    const request = neighboursRequest(++this.#sequence);
    this.#native.send(this.#fd, request, BigInt(request.length), MSG_DONTWAIT);
  }

  #read(): Neighbour[] {
    const found: Neighbour[] = [];
    let isAsked = false;
    for (let part = 0; part < PARTS_MAX; part++) {
      const length = Number(
        this.#native.recv(this.#fd, this.#answer, BigInt(ANSWER_BYTES), MSG_DONTWAIT),
      );
      if (length > 0) found.push(...readNeighbours(this.#answer.subarray(0, length)));
      else if (isAsked || wouldBlock(this.#native)) break;
      else {
        // There was no room for all the news.
        isAsked = true;
        this.#ask();
      }
    }
    return found;
  }
}
