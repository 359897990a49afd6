import { invariant } from "../errors.ts";
import { RecordAt } from "./layout.ts";

/** Bytes of records that a queue holds: a tenth of a second of 100,000 queries a second. */
export const QUEUE_BYTES = 2 * 1024 * 1024;
const QUEUE_BYTES_MIN = 4_096;
const QUEUE_BYTES_MAX = 1 << 30;

// The head of the memory: each end has a line of the CPU's cache for what it writes.
/** Bytes ever written and ever taken, modulo 2^32, as places of `Int32Array`. */
const HEAD = 0;
const TAIL = 16;
/** The reader's, beside `TAIL`: whether it waits to be told, and of which head. */
const IS_WAITING = 17;
const WAITS_FOR = 18;
/** Counts, as places of `Float64Array`: exact to 2^53, one writer each. */
const TAKEN = 16;
const PUSHED = 24;
const DROPPED = 32;
const DROPPED_KINDS = 16;
/** What the reader has heard of `DROPPED`. */
const HEARD = DROPPED + DROPPED_KINDS;
const DATA_BYTES = 512;

/**
 * With less than this part free a record finds room by chance, and ever less often: what is too much
 * is left out evenly, whoever asked.
 */
const SCARCE_PART = 1 / 4;
/** A linear congruential generator modulo 2^32 (Numerical Recipes, §7.1). */
const CHANCE_FACTOR = 1_664_525;
const CHANCE_STEP = 1_013_904_223;
const CHANCES = 2 ** 32;

/** The rest of the ring is left empty: the next record starts at its beginning. */
const SKIP = 0x8000_0000;

/** `QueueWriter.begin` found the queue full. */
export const NO_ROOM = -1;
/** `QueueReader.next` has seen everything. */
export const NO_RECORD = -1;

/** Memory of a queue. `bytes` is a power of two. */
export function queueMemory(bytes: number = QUEUE_BYTES): SharedArrayBuffer {
  const isPower = (bytes & (bytes - 1)) === 0;
  invariant(
    isPower && bytes >= QUEUE_BYTES_MIN && bytes <= QUEUE_BYTES_MAX,
    "a queue's size is a power of two, from 4 KiB to 1 GiB",
  );
  return new SharedArrayBuffer(DATA_BYTES + bytes);
}

/** What a queue has seen since the process started. */
export interface QueueFigures {
  /** Records that wait for their reader. */
  readonly waiting: number;
  /** What found no room, by kind. */
  readonly dropped: readonly number[];
}

/** Reads the counts of a queue; anyone may. */
export function queueFigures(memory: SharedArrayBuffer): QueueFigures {
  const counts = new Float64Array(memory, 0, DATA_BYTES / 8);
  const taken = counts[TAKEN]; // First: what is pushed meanwhile makes no negative number.
  return {
    waiting: Math.max(0, counts[PUSHED] - taken),
    dropped: Array.from(counts.subarray(DROPPED, DROPPED + DROPPED_KINDS)),
  };
}

/**
 * The writing end. Whoever takes a crashed writer's place goes on where that one ended: a record
 * that was not committed was never there.
 */
export class QueueWriter {
  /** The records, as words; `begin` returns places in it. */
  readonly words: Uint32Array;
  readonly #control: Int32Array;
  readonly #counts: Float64Array;
  readonly #capacity: number;
  #head: number;
  /** As last seen: the reader may be further. */
  #tail: number;
  #chance = 0;

  constructor(memory: SharedArrayBuffer) {
    this.#control = new Int32Array(memory, 0, DATA_BYTES / 4);
    this.#counts = new Float64Array(memory, 0, DATA_BYTES / 8);
    this.words = new Uint32Array(memory, DATA_BYTES);
    this.#capacity = this.words.byteLength;
    this.#head = Atomics.load(this.#control, HEAD) >>> 0;
    this.#tail = Atomics.load(this.#control, TAIL) >>> 0;
  }

  /** Says whether a further record is to be written: what is too much is left out by chance. */
  admits(): boolean {
    const scarce = this.#capacity * SCARCE_PART;
    if (this.#free() >= scarce) return true;
    this.#tail = Atomics.load(this.#control, TAIL) >>> 0;
    return this.#finds(this.#free() / scarce);
  }

  /**
   * Makes room for a record of so many bytes, a multiple of 4. Returns its first word in `words`, or
   * `NO_ROOM`. Nothing is there until `commit`.
   */
  begin(lengthBytes: number): number {
    const capacity = this.#capacity;
    const at = this.#head & (capacity - 1);
    const left = capacity - at;
    const needed = lengthBytes <= left ? lengthBytes : left + lengthBytes;
    if (this.#free() < needed) {
      this.#tail = Atomics.load(this.#control, TAIL) >>> 0;
      if (this.#free() < needed) return NO_ROOM;
    }
    if (lengthBytes <= left) return at >>> 2;
    this.words[at >>> 2] = (left | SKIP) >>> 0;
    this.#head = (this.#head + left) >>> 0;
    return 0;
  }

  /** Bytes that no record has; the reader may have given back more. */
  #free(): number {
    return this.#capacity - ((this.#head - this.#tail) >>> 0);
  }

  /** Draws whether something of this probability happens. */
  #finds(probability: number): boolean {
    if (probability >= 1) return true;
    this.#chance = (Math.imul(this.#chance, CHANCE_FACTOR) + CHANCE_STEP) >>> 0;
    return this.#chance < probability * CHANCES;
  }

  /** Hands over the record that was begun last. */
  commit(lengthBytes: number): void {
    this.words[(this.#head & (this.#capacity - 1)) >>> 2] = lengthBytes;
    this.#head = (this.#head + lengthBytes) >>> 0;
    this.#counts[PUSHED]++;
    Atomics.store(this.#control, HEAD, this.#head | 0);
    // Behind the store: of a reader that says now that it waits, one of both sees the other.
    if (Atomics.load(this.#control, IS_WAITING) !== 0) this.#tell();
  }

  /** Wakes a reader whose wait is over. */
  #tell(): void {
    const control = this.#control;
    if (((this.#head - Atomics.load(control, WAITS_FOR)) | 0) < 0) return;
    Atomics.store(control, IS_WAITING, 0);
    Atomics.notify(control, IS_WAITING);
  }

  /** Counts what found no room; `kind` is 0 to 15. */
  drop(kind: number): void {
    this.#counts[DROPPED + kind]++;
  }
}

/** The reading end. A reader that starts anew takes what the former one did not give back. */
export class QueueReader {
  readonly #control: Int32Array;
  readonly #counts: Float64Array;
  readonly #words: Uint32Array;
  readonly #capacity: number;
  /** Given back up to here, read up to here, to be read up to here: 32 bits, of whatever sign. */
  #tail: number;
  #at: number;
  #mark: number;
  #read = 0;

  constructor(memory: SharedArrayBuffer) {
    this.#control = new Int32Array(memory, 0, DATA_BYTES / 4);
    this.#counts = new Float64Array(memory, 0, DATA_BYTES / 8);
    this.#words = new Uint32Array(memory, DATA_BYTES);
    this.#capacity = this.#words.byteLength;
    this.#tail = this.#at = this.#mark = Atomics.load(this.#control, TAIL);
  }

  /** Bytes that wait, as part of what the queue holds. */
  get fill(): number {
    const head = Atomics.load(this.#control, HEAD) >>> 0;
    return ((head - this.#tail) >>> 0) / this.#capacity;
  }

  /** There is more up to the mark. */
  get isBehind(): boolean {
    return this.#at !== this.#mark;
  }

  /** The least number of bytes that are more than this part of what the queue holds. */
  bytesOver(part: number): number {
    return Math.floor(part * this.#capacity) + 1;
  }

  /**
   * Resolves once so many bytes wait, at least 1, or another wait begins: a reader has one at a time
   * and looks again when it ends.
   */
  waitFor(bytes: number): Promise<void> {
    const control = this.#control;
    this.endWait();
    Atomics.store(control, WAITS_FOR, (this.#tail + bytes) | 0);
    Atomics.store(control, IS_WAITING, 1);
    if (((Atomics.load(control, HEAD) - this.#tail) >>> 0) >= bytes) {
      Atomics.store(control, IS_WAITING, 0);
      return Promise.resolve();
    }
    const wait = Atomics.waitAsync(control, IS_WAITING, 1);
    return wait.async ? wait.value.then(() => {}) : Promise.resolve();
  }

  /** Ends a wait: nothing of it stays behind. */
  endWait(): void {
    Atomics.store(this.#control, IS_WAITING, 0);
    Atomics.notify(this.#control, IS_WAITING);
  }

  /** Has `next` go as far as the writer is now. */
  mark(): void {
    this.#mark = Atomics.load(this.#control, HEAD);
  }

  /**
   * Copies the next record into `target`. Returns its bytes, or `NO_RECORD` at the mark.
   *
   * @throws {InvariantError} For what is no record; nothing behind it can be read.
   */
  next(target: Uint32Array): number {
    while (this.#at !== this.#mark) {
      const at = (this.#at & (this.#capacity - 1)) >>> 2;
      const length = this.#words[at];
      const bytes = (length & ~SKIP) >>> 0;
      const left = (this.#mark - this.#at) >>> 0;
      invariant(
        bytes >= 4 && bytes % 4 === 0 && bytes <= left && bytes <= this.#capacity - at * 4,
        "a record of the query log's queue has a length within the queue",
      );
      this.#at = (this.#at + bytes) | 0;
      if ((length & SKIP) !== 0) continue;
      invariant(
        bytes >= RecordAt.End * 4 && bytes <= target.byteLength,
        "a record of the query log's queue has the length of one",
      );
      for (let i = 0; i < bytes >>> 2; i++) target[i] = this.#words[at + i];
      this.#read++;
      return bytes;
    }
    return NO_RECORD;
  }

  /** Gives back what was read since the last time. */
  release(): void {
    this.#tail = this.#at;
    this.#counts[TAKEN] += this.#read;
    this.#read = 0;
    Atomics.store(this.#control, TAIL, this.#tail);
  }

  /** What found no room since the last call, by kind; also of a former reader's last call. */
  takeDropped(): number[] {
    return Array.from({ length: DROPPED_KINDS }, (_, kind) => {
      const dropped = this.#counts[DROPPED + kind];
      const news = dropped - this.#counts[HEARD + kind];
      this.#counts[HEARD + kind] = dropped;
      return news;
    });
  }

  /** Has everything that was not given back read again. */
  rewind(): void {
    this.#at = this.#tail;
    this.#read = 0;
  }

  /**
   * Gives up everything that waits, which can't be read; it counts as taken. Returns how many records
   * that were.
   */
  discard(): number {
    const waiting = this.#counts[PUSHED] - this.#counts[TAKEN];
    this.mark();
    this.#at = this.#mark;
    this.#read = waiting;
    this.release();
    return waiting;
  }
}
