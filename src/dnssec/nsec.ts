/** Proofs by NSEC (RFC 4035 §5.4, RFC 6840 §4). */
import { countLabels, equalNames, isAtOrBelow } from "../dns/mod.ts";
import {
  cutOf,
  CutProof,
  type Denials,
  deniesType,
  type NsecRecord,
  speaksBelow,
} from "./denial.ts";
import { ancestor, commonLabels, compareNames, wildcardOf } from "./names.ts";

/** The record at the name itself. */
export function matchingNsec(denials: Denials, name: Uint8Array): NsecRecord | null {
  return denials.nsecs.find(({ owner }) => equalNames(owner, 0, name, 0)) ?? null;
}

/** A record in whose gap the name lies, and which can speak of it. */
export function coveringNsec(denials: Denials, name: Uint8Array): NsecRecord | null {
  return denials.nsecs.find((nsec) => covers(nsec, name, denials.zone)) ?? null;
}

function covers({ owner, next, types }: NsecRecord, name: Uint8Array, zone: Uint8Array): boolean {
  if (!isAtOrBelow(name, 0, zone, 0) || compareNames(owner, name) >= 0) return false;
  // The last record of a zone leads back to its apex.
  if (compareNames(name, next) >= 0 && !equalNames(next, 0, zone, 0)) return false;
  return !isAtOrBelow(name, 0, owner, 0) || speaksBelow(types);
}

/** Says whether a covered name is there all the same, as a name between others (RFC 7719). */
function isEmptyNonTerminal({ next }: NsecRecord, name: Uint8Array): boolean {
  return isAtOrBelow(next, 0, name, 0);
}

/** The longest name above a covered one that is there, by what stands on both sides of it. */
function closestEncloser({ owner, next }: NsecRecord, name: Uint8Array): Uint8Array {
  return ancestor(name, Math.max(commonLabels(owner, name), commonLabels(next, name)));
}

/** The record that proves that a name is not there, nothing below it included. */
function denyingNsec(denials: Denials, name: Uint8Array): NsecRecord | null {
  const nsec = coveringNsec(denials, name);
  return nsec === null || isEmptyNonTerminal(nsec, name) ? null : nsec;
}

/** The records that prove that neither the name nor a wildcard for it is there, or `null`. */
export function nsecNameError(denials: Denials, name: Uint8Array): NsecRecord[] | null {
  const nsec = denyingNsec(denials, name);
  if (nsec === null) return null;
  const wildcard = wildcardOf(closestEncloser(nsec, name));
  if (wildcard === null) return [nsec];
  const other = denyingNsec(denials, wildcard);
  return other === null ? null : nsec === other ? [nsec] : [nsec, other];
}

/** The records that prove that the name, or the wildcard for it, has no such type, or `null`. */
export function nsecNoData(denials: Denials, name: Uint8Array, type: number): NsecRecord[] | null {
  const isRoot = name.length === 1;
  const match = matchingNsec(denials, name);
  if (match !== null) return deniesType(match.types, type, isRoot) ? [match] : null;
  const nsec = coveringNsec(denials, name);
  if (nsec === null) return null;
  if (isEmptyNonTerminal(nsec, name)) return [nsec];
  const wildcard = wildcardOf(closestEncloser(nsec, name));
  if (wildcard === null) return null;
  const other = matchingNsec(denials, wildcard);
  if (other !== null) return deniesType(other.types, type, false) ? [nsec, other] : null;
  // The wildcard, too, can be a name between others (RFC 4592 §2.2.2).
  const around = coveringNsec(denials, wildcard);
  return around !== null && isEmptyNonTerminal(around, wildcard) ? [nsec, around] : null;
}

/**
 * The record that proves that nothing stands closer to the name than the wildcard below the name
 * with `labels` labels, from which an answer was expanded, or `null`.
 */
export function nsecNoCloser(
  denials: Denials,
  name: Uint8Array,
  labels: number,
): NsecRecord | null {
  const nsec = denyingNsec(denials, name);
  return nsec !== null && countLabels(closestEncloser(nsec, name), 0) === labels ? nsec : null;
}

/** What NSEC says of a name where a zone could be delegated. */
export function nsecCut(denials: Denials, name: Uint8Array): CutProof {
  const match = matchingNsec(denials, name);
  if (match !== null) return cutOf(match.types);
  const nsec = coveringNsec(denials, name);
  if (nsec === null) return CutProof.Unproven;
  return isEmptyNonTerminal(nsec, name) ? CutProof.NoCut : CutProof.Absent;
}

/** The wildcard that answers for a name that is not there, with the proof of that; or `null`. */
export function nsecWildcard(
  denials: Denials,
  name: Uint8Array,
): { readonly wildcard: Uint8Array; readonly used: NsecRecord[] } | null {
  const nsec = denyingNsec(denials, name);
  if (nsec === null) return null;
  const wildcard = wildcardOf(closestEncloser(nsec, name));
  if (wildcard === null) return null;
  return { wildcard, used: [nsec] };
}
