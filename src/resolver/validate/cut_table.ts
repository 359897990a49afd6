import { nameKey } from "../../dns/mod.ts";
import { type Cut, type CutCache } from "../../dnssec/mod.ts";
import { KeptBytes } from "./kept_bytes.ts";
import { WeighedMap } from "./weighed_map.ts";

/** Cuts that are remembered, with the keys of their zones: some 8,000 of the common kind. */
export const CUTS_BYTES_MAX: number = 4 * 1024 * 1024;
/** What a cut takes without keys, and a key beside its bytes, which it holds twice. */
const CUT_BYTES = 512;
const KEY_BYTES = 256;

/** Remembers the zones that the chains of many answers passed, with their keys. */
export class CutTable implements CutCache {
  readonly #bytes = new KeptBytes();
  readonly #cuts = new WeighedMap<Cut>(CUTS_BYTES_MAX);

  get bytes(): number {
    return this.#cuts.bytes;
  }

  get(name: Uint8Array): Cut | undefined {
    return this.#cuts.get(nameKey(name));
  }

  set(name: Uint8Array, cut: Cut): void {
    const keys = cut.kind === "zone" ? cut.zone.keys : [];
    const bytes = keys.reduce((sum, { rdata }) => sum + KEY_BYTES + rdata.length, CUT_BYTES);
    this.#cuts.set(nameKey(name), this.#kept(cut), bytes);
  }

  /** The same with bytes of its own. */
  #kept(cut: Cut): Cut {
    if (cut.kind !== "zone") return cut;
    const { name, keys, finding } = cut.zone;
    const kept = keys.map((key) => {
      const rdata = this.#bytes.copy(key.rdata);
      return { ...key, rdata, publicKey: rdata.subarray(rdata.length - key.publicKey.length) };
    });
    return { ...cut, zone: { name: this.#bytes.copy(name), keys: kept, finding } };
  }

  clear(): void {
    this.#cuts.clear();
  }
}
