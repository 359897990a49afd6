import { CacheHit } from "../../cache/mod.ts";
import type { HashedName } from "../../dns/mod.ts";
import type { Flight } from "../flights/mod.ts";
import { DnssecState, KEY_DO, keyHashOf } from "../query.ts";
import type { Means } from "./means.ts";

/**
 * The entry that answers for the name that an alias of a flight leads to, or -1. What is validated is
 * so once more with the alias: of what is secure that takes the signatures, which not every entry has.
 */
export function knownTarget(
  { cache, nowSeconds }: Means,
  { query, isValidated, attempt }: Flight,
  hashed: HashedName,
  name: Uint8Array,
): number {
  if (attempt > 0) return -1; // What is not believed is asked for anew.
  const { qtype, keyBits } = query;
  const length = hashed.offsets[hashed.count] + 1;
  for (const bits of isValidated ? [keyBits | KEY_DO, keyBits] : [keyBits]) {
    const hash = keyHashOf(hashed.hashes[0], qtype, bits);
    const entry = cache.find(hash, qtype, bits, name, 0, length);
    if (entry < 0 || cache.freshness(entry, nowSeconds()) !== CacheHit.Fresh) continue;
    const isBare = isValidated && (bits & KEY_DO) === 0 &&
      cache.state(entry) === DnssecState.Secure;
    if (!isBare) return entry;
  }
  return -1;
}
