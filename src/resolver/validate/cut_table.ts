import { type Cut, type CutCache, nameKey } from "../../dnssec/mod.ts";

/** Cuts that are remembered: those asked for last. */
export const CUTS_MAX = 4_096;

/** Remembers the zones that the chains of many answers passed, with their keys. */
export class CutTable implements CutCache {
  /** In the order of their last use. */
  readonly #cuts = new Map<string, Cut>();

  get size(): number {
    return this.#cuts.size;
  }

  get(name: Uint8Array): Cut | undefined {
    const key = nameKey(name);
    const cut = this.#cuts.get(key);
    if (cut === undefined) return undefined;
    this.#cuts.delete(key);
    this.#cuts.set(key, cut);
    return cut;
  }

  set(name: Uint8Array, cut: Cut): void {
    const key = nameKey(name);
    this.#cuts.delete(key);
    this.#cuts.set(key, cut);
    if (this.#cuts.size <= CUTS_MAX) return;
    for (const oldest of this.#cuts.keys()) {
      this.#cuts.delete(oldest);
      return;
    }
  }

  clear(): void {
    this.#cuts.clear();
  }
}
