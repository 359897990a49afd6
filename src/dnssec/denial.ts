/**
 * What an absence is proven with, and what the proof comes to. The records are of one zone, their
 * signatures were found good, and none was expanded from a wildcard: at another name than its own,
 * such a record denies what it should not.
 */
import { Qtype } from "../dns/mod.ts";
import { hasType, type Nsec, type Nsec3 } from "./records.ts";
import type { RrSet } from "./rrset.ts";

/** What a proof comes to. */
export const Proof = {
  Proven: 0,
  /** Proven but for an unsigned delegation, which the zone leaves out (RFC 5155 §6). */
  OptOut: 1,
  /** More iterations of NSEC3 than are worth it (RFC 9276 §3.2). */
  Iterations: 2,
  Unproven: 3,
  /** The rounds of hashing were used up. */
  Exhausted: 4,
} as const;
export type Proof = typeof Proof[keyof typeof Proof];

/** What the absence of a DS record says about a name within a zone. */
export const CutProof = {
  /** An unsigned delegation. */
  Delegation: 0,
  /** The name is there, and is no delegation; there may be one below it. */
  NoCut: 1,
  /** Neither the name nor anything below it is there. */
  Absent: 2,
  OptOut: 3,
  Iterations: 4,
  Unproven: 5,
  Exhausted: 6,
} as const;
export type CutProof = typeof CutProof[keyof typeof CutProof];

export interface NsecRecord extends Nsec {
  readonly owner: Uint8Array;
  readonly rrset: RrSet;
}

export interface Nsec3Record extends Nsec3 {
  /** The hash in the owner name. */
  readonly ownerHash: Uint8Array;
  readonly rrset: RrSet;
}

/** The NSEC and NSEC3 records of a zone that can be relied on. */
export interface Denials {
  readonly zone: Uint8Array;
  readonly nsecs: readonly NsecRecord[];
  readonly nsec3s: readonly Nsec3Record[];
}

/**
 * Says whether the types of a record at the very name deny a type there. A CNAME would be the
 * answer. At a delegation the parent's record speaks of DS alone, and the child's of all but DS
 * (RFC 6840 §4.1, §4.4); the root has no parent.
 */
export function deniesType(types: Uint8Array, type: number, isRoot: boolean): boolean {
  if (hasType(types, type) || hasType(types, Qtype.CNAME)) return false;
  if (type === Qtype.ANY) return false; // A name in a record has a type at least.
  if (type === Qtype.DS && !isRoot) return !hasType(types, Qtype.SOA);
  return !isDelegation(types);
}

/** Says whether types are those of a delegation, as its parent sees them. */
export function isDelegation(types: Uint8Array): boolean {
  return hasType(types, Qtype.NS) && !hasType(types, Qtype.SOA);
}

/**
 * Says whether a record with these types can speak of names below its owner: what is below a
 * delegation or a DNAME is elsewhere (RFC 6840 §4.1, RFC 5155 §8.3).
 */
export function speaksBelow(types: Uint8Array): boolean {
  return !isDelegation(types) && !hasType(types, Qtype.DNAME);
}

/** What the types at the very name of a possible cut say. */
export function cutOf(types: Uint8Array): CutProof {
  if (hasType(types, Qtype.DS) || hasType(types, Qtype.SOA)) return CutProof.Unproven;
  return hasType(types, Qtype.NS) ? CutProof.Delegation : CutProof.NoCut;
}
