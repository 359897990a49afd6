/** Every bound on the work that one answer can cause, and who counts it. */

/** Signature checks of an answer's own RRsets. */
export const ANSWER_CHECKS_MAX = 16;
/** Signature checks on the way from the trust anchors down to the zones of an answer. */
export const CHAIN_CHECKS_MAX = 48;
/**
 * Signature checks of one RRset, over all its signatures and all keys of the same tag (KeyTrap,
 * CVE-2023-50387): a zone in a roll of its algorithm has four signatures.
 */
export const RRSET_CHECKS_MAX = 4;
/**
 * Bytes that a signature covers, the owner's name with every record: a message of 64 KiB could stand
 * for a million.
 */
export const SIGNED_BYTES_MAX = 100_000;
/** Keys with the tag and algorithm of a DS record that are compared with it (HashTrap). */
export const KEYS_PER_TAG_MAX = 4;
/** Keys of a DNSKEY RRset that are looked at. */
export const DNSKEYS_MAX = 64;
/** Signatures of an RRset that are looked at. */
export const RRSIGS_MAX = 32;
/** DS records of a delegation, or of a trust anchor, that are compared with keys. */
export const DS_MAX = 8;
/** DS and DNSKEY RRsets that are looked up for an answer; a PTR of IPv6 has 34 labels. */
export const CHAIN_LOOKUPS_MAX = 40;
/** CNAME and DNAME records followed in one answer. */
export const ALIASES_MAX = 12;
/** RRsets of a zone in an authority section that prove an absence; three are needed at most. */
export const PROOF_RRSETS_MAX = 8;
/** RRsets of an answer to a question for any type. */
export const ANY_RRSETS_MAX = 16;
/** Iterations of NSEC3 above which a zone counts as insecure (RFC 9276 §3.2). */
export const NSEC3_ITERATIONS_MAX = 50;
/** Rounds of SHA-1 for the NSEC3 hashes of an answer (CVE-2023-50868). */
export const HASH_ROUNDS_MAX = 1_024;

/** What can be used up, by the name of its bound. */
export type Limit =
  | "ANSWER_CHECKS_MAX"
  | "CHAIN_CHECKS_MAX"
  | "RRSET_CHECKS_MAX"
  | "SIGNED_BYTES_MAX"
  | "CHAIN_LOOKUPS_MAX"
  | "ALIASES_MAX"
  | "PROOF_RRSETS_MAX"
  | "ANY_RRSETS_MAX"
  | "HASH_ROUNDS_MAX";

/** What a bound counts, for the text of an extended error. */
const WHAT: Readonly<Record<Limit, readonly [max: number, what: string]>> = {
  ANSWER_CHECKS_MAX: [ANSWER_CHECKS_MAX, "signature checks of an answer"],
  CHAIN_CHECKS_MAX: [CHAIN_CHECKS_MAX, "signature checks of a chain of trust"],
  RRSET_CHECKS_MAX: [RRSET_CHECKS_MAX, "signature checks of an RRset"],
  SIGNED_BYTES_MAX: [SIGNED_BYTES_MAX, "bytes under a signature"],
  CHAIN_LOOKUPS_MAX: [CHAIN_LOOKUPS_MAX, "DS and DNSKEY RRsets looked up"],
  ALIASES_MAX: [ALIASES_MAX, "aliases followed"],
  PROOF_RRSETS_MAX: [PROOF_RRSETS_MAX, "RRsets that deny"],
  ANY_RRSETS_MAX: [ANY_RRSETS_MAX, "RRsets of an answer"],
  HASH_ROUNDS_MAX: [HASH_ROUNDS_MAX, "rounds of NSEC3 hashing"],
};

/** `more than 16 signature checks of an answer`. */
export function describeLimit(limit: Limit): string {
  const [max, what] = WHAT[limit];
  return `more than ${max} ${what}`;
}

/** What is left of one bound. */
export class Allowance {
  #left: number;

  constructor(readonly limit: Limit) {
    this.#left = WHAT[limit][0];
  }

  /** Takes `count`, or says that so much is not left and takes nothing. */
  take(count = 1): boolean {
    if (count > this.#left) return false;
    this.#left -= count;
    return true;
  }
}
