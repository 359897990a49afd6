/** Finds among an RRset's signatures and a zone's keys the pair that fits, within bounds. */
import { Ede, equalNames, formatName, isAtOrBelow, Qclass, qtypeName } from "../dns/mod.ts";
import { canonicalRdatas, signedData } from "./canonical.ts";
import { isSignatureLength, isSupported, isUsable } from "./keys.ts";
import { type Allowance, RRSET_CHECKS_MAX, RRSIGS_MAX, SIGNED_BYTES_MAX } from "./limits.ts";
import { signedLabels } from "./names.ts";
import { bogus, type Finding, insecure, overLimit, SECURE, Security } from "./outcome.ts";
import { type Dnskey, readRrsig, type Rrsig } from "./records.ts";
import type { RrSet } from "./rrset.ts";
import type { SignatureChecker } from "./verify.ts";

/** What a check needs beside the records. */
export interface CheckContext {
  /** Seconds since 1970. */
  readonly nowS: number;
  /** Where that is of a clock that is behind: the time is past this at least. Else left out, or `null`. */
  readonly pastS?: number | null;
  readonly check: SignatureChecker;
}

export interface CheckedRrSet {
  readonly finding: Finding;
  /** Labels under the signature; fewer than the owner has where a wildcard was expanded. */
  readonly labels: number;
  /** Seconds that the RRset may be kept: its TTL, the original one, and the signature's life. */
  readonly ttl: number;
}

/** `www.example A`, for texts. */
export function describe({ owner, type }: Pick<RrSet, "owner" | "type">): string {
  return `${formatName(owner)} ${qtypeName(type)}`;
}

/** Says whether the RRset's owner stands for more than itself: a wildcard was expanded to it. */
export function isExpanded(rrset: RrSet, labels: number): boolean {
  return labels < signedLabels(rrset.owner);
}

/** Says whether `a` is at or before `b` in serial arithmetic (RFC 1982; RFC 4034 §3.1.5). */
function isAtOrBefore(a: number, b: number): boolean {
  return ((b - a) | 0) >= 0;
}

/** Seconds of a serial time from now on, where it lies ahead. */
function secondsUntil(time: number, nowS: number): number {
  return (time - nowS) | 0;
}

/**
 * The signatures of an RRset that can be of it: they cover its type, and their signer is at or
 * above its owner.
 */
export function plausibleSignatures(rrset: RrSet): Rrsig[] {
  const found: Rrsig[] = [];
  for (const rdata of rrset.signatures.slice(0, RRSIGS_MAX)) {
    const rrsig = readRrsig(rdata);
    if (rrsig === null || rrsig.covered !== rrset.type) continue;
    if (!isAtOrBelow(rrset.owner, 0, rrsig.signer, 0)) continue;
    if (rrsig.labels <= signedLabels(rrset.owner)) found.push(rrsig);
  }
  return found;
}

/**
 * Why a signature is of no use before it is checked, or `null`. By a clock that is behind nobody can
 * say of one that is later whether it holds: it counts as none.
 */
function flawOf(
  rrset: RrSet,
  rrsig: Rrsig,
  { nowS, pastS = null }: CheckContext,
): Finding | null {
  const { inception, expiration } = rrsig;
  const starts = isAtOrBefore(inception, expiration);
  if (starts && isAtOrBefore(nowS, expiration) && isAtOrBefore(inception, nowS)) return null;
  const place = `${describe(rrset)}: the signature of key ${rrsig.tag}`;
  if (!starts) return bogus(`${place} expires before it begins`, Ede.SignatureExpired);
  if (!isAtOrBefore(nowS, expiration)) {
    return bogus(`${place} expired ${formatTime(expiration, nowS)}`, Ede.SignatureExpired);
  }
  const begins = formatTime(inception, nowS);
  if (pastS !== null && isAtOrBefore(pastS, expiration)) {
    return insecure(`${place} is valid from ${begins} on, and the system's clock is behind`);
  }
  return bogus(`${place} is valid from ${begins} on`, Ede.SignatureNotYetValid);
}

/** A serial time as the nearest date (RFC 4034 §3.1.5). */
function formatTime(time: number, nowS: number): string {
  const date = new Date((nowS + secondsUntil(time, nowS)) * 1000);
  return date.toISOString().replace(/\.\d+Z$/, "Z");
}

/**
 * Checks an RRset by the keys of the zone `signer`. One good signature is enough (RFC 6840 §5.11).
 * `allowance` bounds the checks of whatever the RRset belongs to, beside the RRset's own bound.
 */
export async function checkRrSet(
  rrset: RrSet,
  signer: Uint8Array,
  keys: readonly Dnskey[],
  context: CheckContext,
  allowance: Allowance,
): Promise<CheckedRrSet> {
  const failed = (finding: Finding): CheckedRrSet => {
    const ttl = finding.security === Security.Insecure ? rrset.ttl : 0;
    return { finding, labels: 0, ttl };
  };
  if (rrset.cls !== Qclass.IN) return failed(bogus(`${describe(rrset)}: not of class IN`));
  const signatures = plausibleSignatures(rrset).filter((rrsig) =>
    equalNames(rrsig.signer, 0, signer, 0)
  );
  if (signatures.length === 0) {
    const place = `${describe(rrset)}: no signature by ${formatName(signer)}`;
    return failed(bogus(place, Ede.RrsigsMissing));
  }
  const rdatas = canonicalRdatas(rrset);
  let worst: Finding | null = null;
  let checks = 0;
  for (const rrsig of signatures) {
    const flaw = flawOf(rrset, rrsig, context);
    if (flaw !== null) {
      worst ??= flaw;
      continue;
    }
    const candidates = keysFor(keys, rrsig);
    if (candidates.length === 0) {
      const reason = `${describe(rrset)}: ${formatName(signer)} has no key ${rrsig.tag} for it`;
      worst ??= bogus(reason, Ede.DnskeyMissing);
      continue;
    }
    const data = signedData(rrset, rdatas, rrsig);
    if (data === null) continue; // Ruled out by `plausibleSignatures`.
    if (data.length > SIGNED_BYTES_MAX) {
      return failed(overLimit("SIGNED_BYTES_MAX", describe(rrset)));
    }
    for (const { algorithm, publicKey } of candidates) {
      if (++checks > RRSET_CHECKS_MAX) {
        return failed(overLimit("RRSET_CHECKS_MAX", describe(rrset)));
      }
      if (!allowance.take()) return failed(overLimit(allowance.limit, describe(rrset)));
      const { signature } = rrsig;
      if (await context.check({ algorithm, publicKey, data, signature })) {
        const ttl = Math.min(
          rrset.ttl,
          rrsig.originalTtl,
          secondsUntil(rrsig.expiration, context.nowS),
        );
        return { finding: SECURE, labels: rrsig.labels, ttl };
      }
    }
    // A signature that was checked and fails says more than one that could not be.
    worst = bogus(`${describe(rrset)}: the signature of key ${rrsig.tag} does not fit`);
  }
  return failed(worst ?? bogus(`${describe(rrset)}: no signature that could be checked`));
}

/** The usable keys that a signature names. */
function keysFor(keys: readonly Dnskey[], { tag, algorithm, signature }: Rrsig): Dnskey[] {
  if (!isSupported(algorithm) || !isSignatureLength(algorithm, signature.length)) return [];
  return keys.filter((key) => key.tag === tag && key.algorithm === algorithm && isUsable(key));
}
