/** Answers from the gaps that were proven before (RFC 8198), without opt-out. */
import { Qtype } from "../dns/mod.ts";
import type { Question } from "./aliases.ts";
import { type Denials, Proof } from "./denial.ts";
import { Allowance } from "./limits.ts";
import { nsecNameError, nsecNoData, nsecWildcard } from "./nsec.ts";
import { HashedDenials, nsec3NameError, nsec3NoData, nsec3Wildcard } from "./nsec3.ts";
import { nsec3Records, nsecRecords } from "./proofs.ts";
import { readSections, type RrSet } from "./rrset.ts";

/** What is known of a question without asking; `used` is the proof, to be sent with it. */
export type Deduced =
  | { readonly kind: "name_error" | "no_data"; readonly used: readonly RrSet[] }
  /** The name is not there; what this wildcard has is the answer, and no data is if it is known. */
  | { readonly kind: "wildcard"; readonly wildcard: Uint8Array; readonly used: readonly RrSet[] };

/**
 * Makes proofs of NSEC and NSEC3 RRsets of a zone that a `Verdict` said are secure and that have
 * not expired. Others are not to come here.
 */
export function readDenials(zone: Uint8Array, rrsets: readonly RrSet[]): Denials {
  const of = (wanted: number) => rrsets.filter(({ type }) => type === wanted);
  return {
    zone,
    nsecs: of(Qtype.NSEC).flatMap(nsecRecords),
    nsec3s: of(Qtype.NSEC3).flatMap((rrset) => nsec3Records(rrset, zone)),
  };
}

/**
 * Says whether the proofs in a response of a server of `zone`, in its first `length` bytes, deny that
 * a name is there, opt-out aside, if their signatures are good. Servers are known to deny names that
 * others stand below, with proofs that say so.
 */
export function deniesName(
  response: Uint8Array,
  length: number,
  zone: Uint8Array,
  name: Uint8Array,
): boolean {
  const denials = readDenials(zone, readSections(response, length)?.authority ?? []);
  if (nsecNameError(denials, name) !== null) return true;
  const hashed = new HashedDenials(denials, new Allowance("HASH_ROUNDS_MAX"));
  const { proof } = nsec3NameError(hashed, name);
  return proof === Proof.Proven || proof === Proof.OptOut || proof === Proof.Iterations;
}

function rrsetsOf(records: readonly { readonly rrset: RrSet }[]): RrSet[] {
  return [...new Set(records.map(({ rrset }) => rrset))];
}

/** What a zone's proofs say of a question in it, or `null` where it has to be asked. */
export function deduce(denials: Denials, { name, type }: Question): Deduced | null {
  return denials.nsecs.length > 0
    ? deduceByNsec(denials, name, type)
    : deduceByNsec3(denials, name, type);
}

function deduceByNsec(denials: Denials, name: Uint8Array, type: number): Deduced | null {
  const nameError = nsecNameError(denials, name);
  if (nameError !== null) return { kind: "name_error", used: rrsetsOf(nameError) };
  const noData = nsecNoData(denials, name, type);
  if (noData !== null) return { kind: "no_data", used: rrsetsOf(noData) };
  const found = nsecWildcard(denials, name);
  if (found === null) return null;
  return { kind: "wildcard", wildcard: found.wildcard, used: rrsetsOf(found.used) };
}

function deduceByNsec3(denials: Denials, name: Uint8Array, type: number): Deduced | null {
  const hashed = new HashedDenials(denials, new Allowance("HASH_ROUNDS_MAX"));
  const nameError = nsec3NameError(hashed, name);
  if (nameError.proof === Proof.Proven) {
    return { kind: "name_error", used: rrsetsOf(nameError.used) };
  }
  const noData = nsec3NoData(hashed, name, type);
  if (noData.proof === Proof.Proven) return { kind: "no_data", used: rrsetsOf(noData.used) };
  const found = nsec3Wildcard(hashed, name);
  if (found === null) return null;
  return { kind: "wildcard", wildcard: found.wildcard, used: rrsetsOf(found.used) };
}
