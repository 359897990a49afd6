/** Whether the keys that a zone publishes are its own: by DS records or trust anchors. */
import { equalBytes } from "../bytes/mod.ts";
import { Ede, formatName } from "../dns/mod.ts";
import type { Trust } from "./anchors.ts";
import { digestBytes, digestKey, isSha1Digest } from "./digest.ts";
import { isSupported, isUsable, readDnskeys } from "./keys.ts";
import { type Allowance, DS_MAX, KEYS_PER_TAG_MAX } from "./limits.ts";
import { bogus, type Finding, insecure, SECURE } from "./outcome.ts";
import { type Dnskey, type Ds, readDs, REVOKE_FLAG, ZONE_FLAG } from "./records.ts";
import type { RrSet } from "./rrset.ts";
import { type CheckContext, checkRrSet } from "./signature.ts";

/** A zone with its keys, or the end of the chain that leads to it. */
export interface Zone {
  readonly name: Uint8Array;
  /** None where the finding is not secure. */
  readonly keys: readonly Dnskey[];
  readonly finding: Finding;
}

/** A zone that ends the chain. */
export function endAt(name: Uint8Array, finding: Finding): Zone {
  return { name, keys: [], finding };
}

/** The digests of a DS RRset, malformed ones left out. */
export function readTrust(ds: RrSet): Trust {
  return { ds: ds.rdatas.map(readDs).filter((record) => record !== null), keys: [] };
}

/**
 * What of a trust can be followed: algorithms and digests that are known, SHA-1 only where nothing
 * stronger vouches (RFC 4509 §3), and `DS_MAX` of those. All are looked at before: in which order they
 * come is not signed, so that those that count could be put behind any bound.
 */
function usableTrust({ ds, keys }: Trust): Trust {
  const known = ds.filter(({ algorithm, digestType }) =>
    isSupported(algorithm) && digestBytes(digestType) !== null
  );
  const strong = known.filter(({ digestType }) => !isSha1Digest(digestType));
  return {
    ds: (strong.length > 0 ? strong : known).slice(0, DS_MAX),
    keys: keys.filter(({ algorithm }) => isSupported(algorithm)),
  };
}

/** Why a zone counts as unsigned for who can't follow its trust (RFC 4035 §5.2), or `null`. */
export function unsupportedBy(zone: Uint8Array, trust: Trust): Finding | null {
  const usable = usableTrust(trust);
  if (usable.ds.length + usable.keys.length > 0) return null;
  const place = formatName(zone);
  if (trust.ds.some(({ algorithm }) => isSupported(algorithm))) {
    return insecure(`${place}: no DS of a known digest`, Ede.UnsupportedDsDigestType);
  }
  return insecure(`${place}: no key of a known algorithm`, Ede.UnsupportedDnskeyAlgorithm);
}

/** Keys that a trust vouches for. */
function trustedKeys(zone: Uint8Array, trust: Trust, keys: readonly Dnskey[]): Dnskey[] {
  const { ds, keys: anchored } = usableTrust(trust);
  const found = new Set<Dnskey>();
  for (const record of ds) {
    for (const key of keysOf(record, keys)) {
      const digest = digestKey(zone, key.rdata, record.digestType);
      if (digest !== null && equalBytes(digest, record.digest)) found.add(key);
    }
  }
  for (const { algorithm, publicKey, flags } of anchored) {
    if ((flags & REVOKE_FLAG) !== 0) continue; // It was revoked, whatever is said of it now.
    for (const key of keys) {
      if (key.algorithm === algorithm && equalBytes(key.publicKey, publicKey)) found.add(key);
    }
  }
  return [...found];
}

/** The keys that a DS record names, as many as are tried. */
function keysOf({ tag, algorithm }: Ds, keys: readonly Dnskey[]): Dnskey[] {
  return keys.filter((key) => key.tag === tag && key.algorithm === algorithm)
    .slice(0, KEYS_PER_TAG_MAX);
}

export interface CheckedKeys {
  readonly zone: Zone;
  /** The keys that the trust vouches for, where the zone is secure. */
  readonly trusted: readonly Dnskey[];
  /** Seconds that the keys may be kept. */
  readonly ttl: number;
}

/**
 * Checks the DNSKEY RRset of a zone: a key that the trust vouches for has to have signed it
 * (RFC 4035 §5.2). Whether a key has the SEP flag does not matter (RFC 4034 §2.1.1). The trust is
 * one that `unsupportedBy` does not object to.
 */
export async function checkZoneKeys(
  rrset: RrSet,
  trust: Trust,
  context: CheckContext,
  allowance: Allowance,
): Promise<CheckedKeys> {
  const { owner } = rrset;
  const failed = (finding: Finding) => ({ zone: endAt(owner, finding), trusted: [], ttl: 0 });
  const keys = readDnskeys(rrset.rdatas);
  const trusted = trustedKeys(owner, trust, keys);
  const usable = trusted.filter(isUsable);
  if (usable.length === 0) {
    const place = formatName(owner);
    if (trusted.some(({ flags }) => (flags & ZONE_FLAG) === 0)) {
      const reason = `${place}: the trusted key is none of a zone`;
      return failed(bogus(reason, Ede.NoZoneKeyBitSet));
    }
    if (trusted.length > 0) {
      return failed(bogus(`${place}: the trusted key is revoked or malformed`, Ede.DnskeyMissing));
    }
    return failed(bogus(`${place}: no key that DS or trust anchor names`, Ede.DnskeyMissing));
  }
  const { finding, ttl } = await checkRrSet(rrset, owner, usable, context, allowance);
  if (finding !== SECURE) return failed(finding);
  const zone = { name: owner, keys: keys.filter(isUsable), finding: SECURE };
  return { zone, trusted: usable, ttl };
}
