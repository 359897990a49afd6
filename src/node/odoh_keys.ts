import { ODOH_SEED_BYTES } from "../transport/mod.ts";

/** A key is offered for this long, and accepted for as long again (RFC 9230 §6). */
const ROTATE_MS = 24 * 60 * 60 * 1_000;

/** Timers, as tests have them at hand. */
export interface Timers {
  setInterval(callback: () => void, ms: number): unknown;
}

/**
 * Seeds of the keys of Oblivious DoH. They live in memory only, so that who takes the disk can read
 * no query of the past.
 */
export class OdohKeys {
  #seeds: readonly Uint8Array[] = [newSeed()];

  /** The current one first, then the former one, where there is one. */
  get seeds(): readonly Uint8Array[] {
    return this.#seeds;
  }

  /** Has a new key made every day, and tells of it. */
  rotateDaily(
    tell: (seeds: readonly Uint8Array[]) => void,
    timers: Timers = unreferenced,
  ): void {
    timers.setInterval(() => {
      this.#seeds = [newSeed(), this.#seeds[0]];
      tell(this.#seeds);
    }, ROTATE_MS);
  }
}

/** Such a timer keeps no process running. */
const unreferenced: Timers = {
  setInterval: (callback, ms) => Deno.unrefTimer(setInterval(callback, ms)),
};

function newSeed(): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(ODOH_SEED_BYTES));
}
