/** Digests of keys, as DS records hold them (RFC 4034 §5.1.4, 4509, 6605). */
import { createHash } from "node:crypto";
import { canonicalName } from "./names.ts";

const SHA1 = 1;
const DIGESTS: ReadonlyMap<number, readonly [hash: string, bytes: number]> = new Map([
  [SHA1, ["sha1", 20]],
  [2, ["sha256", 32]],
  [4, ["sha384", 48]],
]);

export function isSha1Digest(digestType: number): boolean {
  return digestType === SHA1;
}

/** Bytes of a digest, or `null` for a type that is not supported. */
export function digestBytes(digestType: number): number | null {
  return DIGESTS.get(digestType)?.[1] ?? null;
}

/** The digest of a zone's key, or `null` for a type that is not supported. */
export function digestKey(
  zone: Uint8Array,
  dnskeyRdata: Uint8Array,
  digestType: number,
): Uint8Array | null {
  const digest = DIGESTS.get(digestType);
  if (digest === undefined) return null;
  return createHash(digest[0]).update(canonicalName(zone)).update(dnskeyRdata).digest();
}
