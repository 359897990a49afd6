/** Repeatable chance for tests: one seed, one run. The seed is printed; `SVC_SEED` sets it. */

/** mulberry32: 32 bits of state, plenty for making inputs, nothing for secrets. */
export class Prng {
  #state: number;

  constructor(readonly seed: number) {
    this.#state = seed | 0;
  }

  /** Any 32 bits, as 0 to 2^32 - 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  }

  /** An integer from 0 to `n` - 1. */
  int(n: number): number {
    return Math.floor((this.next() / 0x1_0000_0000) * n);
  }

  /** True in a share `p` of the calls. */
  chance(p: number): boolean {
    return this.next() < p * 0x1_0000_0000;
  }

  bytes(n: number): Uint8Array<ArrayBuffer> {
    const bytes = new Uint8Array(n);
    for (let i = 0; i < n; i++) bytes[i] = this.next() >>> 24;
    return bytes;
  }

  /** One element of `a`, which has at least one. */
  pick<T>(a: ArrayLike<T>): T {
    return a[this.int(a.length)];
  }
}

// Read while this is loaded: a test that is narrowed to what it needs may not.
const given = Deno.permissions.querySync({ name: "env", variable: "SVC_SEED" }).state === "granted"
  ? Deno.env.get("SVC_SEED")
  : undefined;

/** The seed to use: that of `SVC_SEED`, or a new one. Prints it. */
export function seedFromEnv(): number {
  if (given !== undefined && !/^\d{1,10}$/.test(given)) {
    throw new Error(`SVC_SEED: ${given} is no number from 0 to 4294967295`);
  }
  const seed = given === undefined
    ? crypto.getRandomValues(new Uint32Array(1))[0]
    : Number(given) >>> 0;
  console.log(`seed ${seed}: SVC_SEED=${seed} repeats it`);
  return seed;
}
