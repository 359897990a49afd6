import { ODOH_SEED_BYTES } from "../transport/mod.ts";

/** A key is offered for this long, and accepted for as long again (RFC 9230 §6). */
const ROTATE_MS = 24 * 60 * 60 * 1_000;

/** Timers, as tests have them at hand. */
export interface Timers {
  /** Calls `work` again and again; returns what ends that. */
  every(ms: number, work: () => void): () => void;
}

/**
 * Seeds of the keys of Oblivious DoH. They live in memory only, so that who takes the disk can read
 * no query of the past.
 */
export class OdohKeys {
  #seeds: readonly Uint8Array<ArrayBuffer>[];

  /** `former` are those of a former process, the current one first. */
  constructor(former: readonly Uint8Array<ArrayBuffer>[] = []) {
    this.#seeds = former.length > 0 ? former : [newSeed()];
  }

  /** The current one first, then the former one, where there is one. */
  get seeds(): readonly Uint8Array<ArrayBuffer>[] {
    return this.#seeds;
  }

  /** Has a new key made every day, and tells of it. Returns what ends that. */
  rotateDaily(
    tell: (seeds: readonly Uint8Array[]) => void,
    timers: Timers = unreferenced,
  ): () => void {
    return timers.every(ROTATE_MS, () => {
      this.#seeds = [newSeed(), this.#seeds[0]];
      tell(this.#seeds);
    });
  }
}

/** Such a timer keeps no process running. */
const unreferenced: Timers = {
  every: (ms, work) => {
    const timer = setInterval(work, ms);
    Deno.unrefTimer(timer);
    return () => clearInterval(timer);
  },
};

function newSeed(): Uint8Array<ArrayBuffer> {
  return crypto.getRandomValues(new Uint8Array(ODOH_SEED_BYTES));
}
