import {
  compilePrefixes,
  type IpPrefix,
  networkHigh,
  networkLow,
  NO_VALUE,
  PrefixTable,
} from "../addr/mod.ts";
import { finishHash } from "../dns/mod.ts";

export interface RateLimitOptions {
  /** 1 or more. */
  readonly queriesPerSecond: number;
  /** Queries that a client may ask at once after a silence; 1 or more. */
  readonly burst: number;
  /** Networks never limited. */
  readonly exempt: readonly IpPrefix[];
}

/** Buckets of one set, which a hash picks; a set fills one line of the processor's cache. */
const WAYS = 5;
/** Two words say whose a bucket is, the third how full. */
const BUCKET_WORDS = 3;
const FULLNESS = 2;
const SET_WORDS = 16;
const SETS = 2 ** 13;
const WORD_BYTES = 4;

const PRIME = 0x9e3779b1 | 0;
const MS_PER_SECOND = 1_000;
/** Isolates set their clocks once a batch: so far apart they may be. */
const CLOCKS_APART_MS_MAX = 1_000;

/**
 * The limit of queries per client, an IPv4 address or an IPv6 /64: a token bucket each, in one table
 * that all isolates share, as a client's queries come in at several of them.
 *
 * Whole queries are what the buckets count: at the rate of 300 a second a clock ticks 300 times a
 * second, and a bucket is the tick at which it will be full again. Its debt is what is missing: a
 * query adds one, and is over the limit where that would be more than the burst. All of it is in one
 * word of 32 bits, which wraps around: a debt that no client can have, whichever isolate's clock it
 * is by, is one that is long paid.
 *
 * The table stays as it is under a flood of forged addresses: a newcomer takes the bucket of its set
 * that misses least, so that whoever is at the limit stays there.
 */
export class RateLimiter {
  /** Memory of the table, shared by all isolates. */
  static readonly MEMORY_BYTES: number = SETS * SET_WORDS * WORD_BYTES;

  readonly #table: Int32Array;
  readonly #exempt: PrefixTable;
  readonly #queriesPerSecond: number;
  readonly #burst: number;
  /** What a bucket may miss by a clock that is behind. */
  readonly #debtMax: number;
  readonly #seed: number;
  /** The clock, in ticks of which each is one query more. */
  #now = 0;

  /** `seed` is the same in every isolate, and nothing that clients can know. */
  constructor(options: RateLimitOptions, memory: SharedArrayBuffer, seed: number) {
    this.#queriesPerSecond = options.queriesPerSecond;
    this.#burst = options.burst;
    const apart = Math.ceil(options.queriesPerSecond * CLOCKS_APART_MS_MAX / MS_PER_SECOND);
    this.#debtMax = options.burst + apart;
    this.#exempt = new PrefixTable(
      compilePrefixes(options.exempt.map((prefix) => ({ prefix, value: 0 }))),
    );
    this.#table = new Int32Array(memory);
    this.#seed = seed;
  }

  /** Sets the clock to `nowMs`, milliseconds since 1970: once a batch. */
  setTime(nowMs: number): void {
    this.#now = Math.floor(nowMs * this.#queriesPerSecond / MS_PER_SECOND) | 0;
  }

  /**
   * Counts a query from an address of 4 or 16 bytes and says whether it is within the limit; one
   * that is not leaves the bucket as it is. Leaves no garbage.
   */
  take(bytes: Uint8Array, offset: number, lengthBytes: number): boolean {
    if (lengthBytes === 0) return true;
    if (this.#exempt.find(bytes, offset, lengthBytes) !== NO_VALUE) return true;
    const first = networkHigh(bytes, offset, lengthBytes);
    const second = networkLow(bytes, offset, lengthBytes);
    const hash = finishHash(Math.imul(this.#seed ^ first, PRIME) ^ second);
    const set = (hash & (SETS - 1)) * SET_WORDS;
    const table = this.#table;
    let bucket = -1;
    let leastDebt = Infinity;
    for (let i = 0; i < WAYS; i++) {
      const at = set + i * BUCKET_WORDS;
      if (table[at] === first && table[at + 1] === second) return this.#takeFrom(at + FULLNESS);
      const debt = this.#debt(table[at + FULLNESS]);
      if (debt >= leastDebt) continue;
      leastDebt = debt;
      bucket = at;
    }
    table[bucket] = first;
    table[bucket + 1] = second;
    table[bucket + FULLNESS] = (this.#now + 1) | 0;
    return true;
  }

  #takeFrom(at: number): boolean {
    const table = this.#table;
    let full = table[at];
    // Where another isolate came in between, it has counted a query: none can do so for ever.
    for (let i = 0; i <= this.#burst; i++) {
      const debt = this.#debt(full);
      if (debt >= this.#burst) return false;
      const fuller = (this.#now + debt + 1) | 0;
      const found = Atomics.compareExchange(table, at, full, fuller);
      if (found === full) return true;
      full = found;
    }
    return false;
  }

  /** Queries that are missing in a bucket which is full at the tick `full`. */
  #debt(full: number): number {
    const debt = (full - this.#now) | 0;
    return debt > 0 && debt <= this.#debtMax ? debt : 0;
  }
}
