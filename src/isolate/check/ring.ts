/**
 * The way between a dns isolate and a thread that checks signatures: two queues in shared memory, one
 * of checks and one of what came of them. Each has one writer and one reader, who tell each other when
 * there is something: see `CheckRing.put`.
 */
import type { SignatureCheck } from "../../dnssec/verify.ts";

/** A check with the number that its result comes back with: 32 bits. */
export interface NumberedCheck {
  readonly id: number;
  readonly check: SignatureCheck;
}

/** Checks that one thread has of one isolate. Results can't be more, and so find room. */
export const CHECKS_MAX = 16;
/** Bytes of the checks' queue. */
const QUEUE_BYTES = 512 * 1024;
/** Number, algorithm, and lengths of key, data and signature. */
const HEAD_BYTES = 16;
/** Largest check: so much may be passed over at the queue's end, and so much be needed then. */
const CHECK_BYTES_MAX = QUEUE_BYTES / 4;
/** In place of a number of bytes: the queue goes on at its beginning. */
const AT_START = -1;
const LENGTH_BYTES = 4;

/** Places of the counts, each written by one side alone: bytes, and results. */
const Place = { ChecksIn: 0, ChecksOut: 1, ResultsIn: 2, ResultsOut: 3 } as const;
const PLACES_BYTES = 16;
const RESULT_WORDS = 2;
const RESULTS_BYTES = 4 * RESULT_WORDS * CHECKS_MAX;

/** One end of a way; which, is said by what is called. */
export class CheckRing {
  static readonly MEMORY_BYTES: number = PLACES_BYTES + RESULTS_BYTES + QUEUE_BYTES;
  readonly #places: Int32Array<SharedArrayBuffer>;
  readonly #results: Int32Array<SharedArrayBuffer>;
  readonly #queue: Uint8Array<SharedArrayBuffer>;
  readonly #view: DataView<SharedArrayBuffer>;

  constructor(memory: SharedArrayBuffer) {
    this.#places = new Int32Array(memory, 0, PLACES_BYTES / 4);
    this.#results = new Int32Array(memory, PLACES_BYTES, RESULTS_BYTES / 4);
    this.#queue = new Uint8Array(memory, PLACES_BYTES + RESULTS_BYTES, QUEUE_BYTES);
    this.#view = new DataView(memory, PLACES_BYTES + RESULTS_BYTES, QUEUE_BYTES);
  }

  /** Says whether there is room for the largest check. */
  get hasRoom(): boolean {
    const places = this.#places;
    const used = places[Place.ChecksIn] - Atomics.load(places, Place.ChecksOut) | 0;
    return QUEUE_BYTES - used >= 2 * CHECK_BYTES_MAX;
  }

  /**
   * Adds a check; says that it is none for this way where it is too large. Without a result there may
   * be `CHECKS_MAX` at most, and there has to be room.
   */
  push(id: number, { algorithm, publicKey, data, signature }: SignatureCheck): boolean {
    const bytes = HEAD_BYTES + publicKey.length + data.length + signature.length;
    const length = LENGTH_BYTES + bytes + 3 & ~3;
    if (length > CHECK_BYTES_MAX) return false;
    const places = this.#places;
    // Counts of bytes go round at 2^32, of which the queue's length is a part.
    let end = places[Place.ChecksIn];
    const used = end - Atomics.load(places, Place.ChecksOut) | 0;
    let at = end & QUEUE_BYTES - 1;
    const rest = QUEUE_BYTES - at;
    const skipped = rest < length ? rest : 0;
    if (used + skipped + length > QUEUE_BYTES) return false;
    if (skipped > 0) {
      this.#view.setInt32(at, AT_START);
      end = end + skipped | 0;
      at = 0;
    }
    const view = this.#view;
    view.setInt32(at, length);
    at += LENGTH_BYTES;
    view.setUint32(at, id);
    view.setUint16(at + 4, algorithm);
    view.setUint16(at + 6, signature.length);
    view.setUint32(at + 8, publicKey.length);
    view.setUint32(at + 12, data.length);
    at += HEAD_BYTES;
    this.#queue.set(publicKey, at);
    this.#queue.set(data, at += publicKey.length);
    this.#queue.set(signature, at + data.length);
    Atomics.store(places, Place.ChecksIn, end + length | 0);
    return true;
  }

  /** Takes the oldest check out, in memory of its own; `null`: there is none. */
  take(): NumberedCheck | null {
    const places = this.#places;
    const view = this.#view;
    let out = places[Place.ChecksOut];
    if (Atomics.load(places, Place.ChecksIn) === out) return null;
    let at = out & QUEUE_BYTES - 1;
    if (view.getInt32(at) === AT_START) {
      out = out + QUEUE_BYTES - at | 0;
      at = 0;
    }
    const length = view.getInt32(at);
    at += LENGTH_BYTES;
    const [id, algorithm] = [view.getUint32(at), view.getUint16(at + 4)];
    const keyAt = at + HEAD_BYTES;
    const dataAt = keyAt + view.getUint32(at + 8);
    const signatureAt = dataAt + view.getUint32(at + 12);
    const part = (from: number, to: number) => new Uint8Array(this.#queue.subarray(from, to));
    const check = {
      algorithm,
      publicKey: part(keyAt, dataAt),
      data: part(dataAt, signatureAt),
      signature: part(signatureAt, signatureAt + view.getUint16(at + 6)),
    };
    Atomics.store(places, Place.ChecksOut, out + length | 0);
    return { id, check };
  }

  /**
   * Adds what came of a check. Says whether the reader is to be told: it has read all there was, so it
   * may have stopped looking.
   */
  put(id: number, fits: boolean): boolean {
    const places = this.#places;
    const count = places[Place.ResultsIn];
    const at = RESULT_WORDS * (count & CHECKS_MAX - 1);
    this.#results[at] = id;
    this.#results[at + 1] = fits ? 1 : 0;
    Atomics.store(places, Place.ResultsIn, count + 1 | 0);
    return Atomics.load(places, Place.ResultsOut) === count;
  }

  get hasResult(): boolean {
    const places = this.#places;
    return Atomics.load(places, Place.ResultsIn) !== places[Place.ResultsOut];
  }

  /** Hands so many results to `take` at most. */
  read(most: number, take: (id: number, fits: boolean) => void): void {
    const places = this.#places;
    for (let left = most; left > 0 && this.hasResult; left--) {
      const count = places[Place.ResultsOut];
      const at = RESULT_WORDS * (count & CHECKS_MAX - 1);
      const [id, fits] = [this.#results[at] >>> 0, this.#results[at + 1] === 1];
      Atomics.store(places, Place.ResultsOut, count + 1 | 0);
      take(id, fits);
    }
  }
}

/** Wakes a thread that waits for checks; what it waits for is shared by all who have some for it. */
export class Bell {
  static readonly MEMORY_BYTES = 4;
  readonly #word: Int32Array<SharedArrayBuffer>;

  constructor(memory: SharedArrayBuffer) {
    this.#word = new Int32Array(memory);
  }

  /** What is to be read before a look at whether there is something, for `wait`. */
  get count(): number {
    return Atomics.load(this.#word, 0);
  }

  ring(): void {
    Atomics.add(this.#word, 0, 1);
    Atomics.notify(this.#word, 0, 1);
  }

  /** Waits until it is rung, unless it was since it had this count; this thread does nothing else. */
  wait(count: number, timeoutMs: number): void {
    Atomics.wait(this.#word, 0, count, timeoutMs);
  }
}
