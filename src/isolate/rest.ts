import { FreeMemory } from "../free_memory.ts";

/** How much more of a heap than before is worth giving back. */
const GROWN_BYTES_MIN = 8 * 1024 * 1024;
/**
 * Queries, checks or records from one look to the next, at most, of an isolate at rest: to collect a
 * heap stops it for tens of milliseconds.
 */
const REST_QUERIES_MAX = 100;

/** Gives back what a busy time has left in the heap of an isolate, once it is at rest. */
export class Rest {
  readonly #queries: () => number;
  readonly #giveBack: () => void;
  readonly #heap: FreeMemory;
  #last = 0;
  /** V8 sweeps what a collection has found behind it: the next one gives that back. */
  #isHalfDone = false;

  /** `queries`, checks or records have come so far; `giveBack` collects a heap of `heapBytes`. */
  constructor(queries: () => number, heapBytes: () => number, giveBack: () => void) {
    this.#queries = queries;
    this.#giveBack = giveBack;
    const begin = () => {
      giveBack();
      this.#isHalfDone = true;
    };
    this.#heap = new FreeMemory(heapBytes, begin, GROWN_BYTES_MIN);
  }

  /** Called every now and then, some seconds apart. */
  look(): void {
    const queries = this.#queries();
    const isAtRest = queries - this.#last <= REST_QUERIES_MAX;
    this.#last = queries;
    if (!isAtRest) return;
    if (!this.#isHalfDone) return this.#heap.look();
    this.#isHalfDone = false;
    this.#giveBack();
  }
}
