import { ODOH_SEED_BYTES } from "../transport/mod.ts";

/** A key is offered for this long, and accepted for as long again (RFC 9230 §6). */
const ROTATE_MS = 24 * 60 * 60 * 1_000;

/** Timers, as tests have them at hand. */
export interface Timers {
  /** Milliseconds, monotonic. */
  nowMs(): number;
  /** Calls `work` once; returns what calls that off. */
  after(ms: number, work: () => void): () => void;
}

/**
 * Seeds of the keys of Oblivious DoH. They live in memory only, so that who takes the disk can read
 * no query of the past.
 */
export class OdohKeys {
  #seeds: readonly Uint8Array<ArrayBuffer>[];
  /** When the current one was made. */
  #madeAtMs: number;
  readonly #timers: Timers;

  /** `former` are those of a former process, the current one first, which is `ageMs` old. */
  constructor(
    former: readonly Uint8Array<ArrayBuffer>[] = [],
    ageMs = 0,
    timers: Timers = unreferenced,
  ) {
    this.#seeds = former.length > 0 ? former : [newSeed()];
    this.#timers = timers;
    this.#madeAtMs = timers.nowMs() - ageMs;
  }

  /** The current one first, then the former one, where there is one. */
  get seeds(): readonly Uint8Array<ArrayBuffer>[] {
    return this.#seeds;
  }

  /** How long the current one has been offered. */
  get ageMs(): number {
    return this.#timers.nowMs() - this.#madeAtMs;
  }

  /** Has a new key made every day, and tells of it. Returns what ends that. */
  rotateDaily(tell: (seeds: readonly Uint8Array[]) => void): () => void {
    const wait = () =>
      this.#timers.after(Math.max(0, ROTATE_MS - this.ageMs), () => {
        this.#seeds = [newSeed(), this.#seeds[0]];
        this.#madeAtMs = this.#timers.nowMs();
        callOff = wait();
        tell(this.#seeds);
      });
    let callOff = wait();
    return () => callOff();
  }
}

/** Such a timer keeps no process running. */
const unreferenced: Timers = {
  nowMs: () => performance.now(),
  after: (ms, work) => {
    const timer = setTimeout(work, ms);
    Deno.unrefTimer(timer);
    return () => clearTimeout(timer);
  },
};

function newSeed(): Uint8Array<ArrayBuffer> {
  return crypto.getRandomValues(new Uint8Array(ODOH_SEED_BYTES));
}
