/** Proofs by NSEC3 (RFC 5155 §8), whose names are hashed. */
import { countLabels, isAtOrBelow, nameKey } from "../dns/mod.ts";
import { equalBytes } from "../bytes/mod.ts";
import {
  cutOf,
  CutProof,
  type Denials,
  deniesType,
  type Nsec3Record,
  Proof,
  speaksBelow,
} from "./denial.ts";
import { type Allowance, NSEC3_ITERATIONS_MAX } from "./limits.ts";
import { ancestor, canonicalName, compareBytes, wildcardOf } from "./names.ts";
import { NSEC3_HASH_BYTES, type Nsec3Param, OPT_OUT_FLAG } from "./records.ts";
import { sha1, SHA1_INPUT_MAX } from "./sha1.ts";

/** Scratch of `nsec3Hash`: a name or a hash, and the salt behind it. */
const input = new Uint8Array(SHA1_INPUT_MAX);

/** The hash of a name (RFC 5155 §5). */
export function nsec3Hash(
  name: Uint8Array,
  { salt, iterations }: Pick<Nsec3Param, "salt" | "iterations">,
): Uint8Array<ArrayBuffer> {
  const lower = canonicalName(name);
  const hash = new Uint8Array(NSEC3_HASH_BYTES);
  input.set(lower);
  input.set(salt, lower.length);
  sha1(input, lower.length + salt.length, hash);
  for (let i = 0; i < iterations; i++) {
    input.set(hash);
    input.set(salt, NSEC3_HASH_BYTES);
    sha1(input, NSEC3_HASH_BYTES + salt.length, hash);
  }
  return hash;
}

/** Thrown within this file where no rounds are left, and caught in it. */
class Exhausted extends Error {}

/** What was found by the name itself and the names above it (RFC 5155 §8.3). */
interface Encloser {
  /** The closest encloser: the longest name above that is there. */
  readonly labels: number;
  readonly match: Nsec3Record;
  /** What covers the next closer name; `null` where nothing does. */
  readonly next: Nsec3Record | null;
}

/** The NSEC3 records of a zone with the same parameters, and the hashes of names under these. */
export class HashedDenials {
  readonly #records: readonly Nsec3Record[];
  readonly #hashes = new Map<string, Uint8Array>();

  constructor(readonly denials: Denials, readonly rounds: Allowance) {
    const { nsec3s } = denials;
    // A zone may be between two sets of parameters; an answer is of one (RFC 5155 §8.2).
    this.#records = nsec3s.filter((record) => hasParameters(record, nsec3s[0]));
  }

  /** Says whether the zone hashes more often than is worth following. */
  get hasTooManyIterations(): boolean {
    return this.#records.length > 0 && this.#records[0].iterations > NSEC3_ITERATIONS_MAX;
  }

  get isEmpty(): boolean {
    return this.#records.length === 0;
  }

  /** @throws {Exhausted} */
  #hash(name: Uint8Array): Uint8Array {
    const key = nameKey(name);
    const known = this.#hashes.get(key);
    if (known !== undefined) return known;
    const [parameters] = this.#records;
    if (!this.rounds.take(1 + parameters.iterations)) throw new Exhausted();
    const hash = nsec3Hash(name, parameters);
    this.#hashes.set(key, hash);
    return hash;
  }

  match(name: Uint8Array): Nsec3Record | null {
    const hash = this.#hash(name);
    return this.#records.find(({ ownerHash }) => equalBytes(ownerHash, hash)) ?? null;
  }

  cover(name: Uint8Array): Nsec3Record | null {
    const hash = this.#hash(name);
    return this.#records.find((record) => coversHash(record, hash)) ?? null;
  }

  /** The closest encloser of a name that has no record itself; `null` where none is found. */
  encloser(name: Uint8Array): Encloser | null {
    const { zone } = this.denials;
    const bottom = countLabels(name, 0);
    for (let labels = bottom - 1; labels >= countLabels(zone, 0); labels--) {
      const match = this.match(ancestor(name, labels));
      if (match === null) continue;
      if (!speaksBelow(match.types)) return null;
      return { labels, match, next: this.cover(ancestor(name, labels + 1)) };
    }
    return null;
  }
}

function hasParameters(a: Nsec3Record, b: Nsec3Record): boolean {
  return a.iterations === b.iterations && equalBytes(a.salt, b.salt);
}

function coversHash({ ownerHash, nextHash }: Nsec3Record, hash: Uint8Array): boolean {
  const isBehind = compareBytes(ownerHash, hash) < 0;
  const isBefore = compareBytes(hash, nextHash) < 0;
  // The last record of a zone leads back to the first; one alone leads to itself.
  if (compareBytes(ownerHash, nextHash) < 0) return isBehind && isBefore;
  return (isBehind || isBefore) && compareBytes(ownerHash, hash) !== 0;
}

function hasOptOut({ flags }: Nsec3Record): boolean {
  return (flags & OPT_OUT_FLAG) !== 0;
}

/** A proof, and what it stands on. */
export interface Nsec3Proof {
  readonly proof: Proof;
  readonly used: readonly Nsec3Record[];
}

const UNPROVEN: Nsec3Proof = { proof: Proof.Unproven, used: [] };

function guarded(hashed: HashedDenials, name: Uint8Array, prove: () => Nsec3Proof): Nsec3Proof {
  if (hashed.isEmpty || !isAtOrBelow(name, 0, hashed.denials.zone, 0)) return UNPROVEN;
  if (hashed.hasTooManyIterations) return { proof: Proof.Iterations, used: [] };
  try {
    return prove();
  } catch (error) {
    if (error instanceof Exhausted) return { proof: Proof.Exhausted, used: [] };
    throw error;
  }
}

/** Proven, or but for what opt-out leaves out, by the record of the next closer name. */
function provenBy(next: Nsec3Record, used: readonly Nsec3Record[]): Nsec3Proof {
  return { proof: hasOptOut(next) ? Proof.OptOut : Proof.Proven, used: [...new Set(used)] };
}

/** Neither the name nor a wildcard for it is there (RFC 5155 §8.4). */
export function nsec3NameError(hashed: HashedDenials, name: Uint8Array): Nsec3Proof {
  return guarded(hashed, name, () => {
    if (hashed.match(name) !== null) return UNPROVEN;
    const encloser = hashed.encloser(name);
    if (encloser === null || encloser.next === null) return UNPROVEN;
    const wildcard = wildcardOf(ancestor(name, encloser.labels));
    const cover = wildcard === null ? encloser.next : hashed.cover(wildcard);
    if (cover === null) return UNPROVEN;
    return provenBy(encloser.next, [encloser.match, encloser.next, cover]);
  });
}

/** The name, or the wildcard for it, has no such type (RFC 5155 §8.5 to §8.7). */
export function nsec3NoData(hashed: HashedDenials, name: Uint8Array, type: number): Nsec3Proof {
  return guarded(hashed, name, () => {
    const match = hashed.match(name);
    if (match !== null) {
      // A record that has no types is of a name between others.
      const isDenied = match.types.length === 0 || deniesType(match.types, type, name.length === 1);
      return isDenied ? { proof: Proof.Proven, used: [match] } : UNPROVEN;
    }
    const encloser = hashed.encloser(name);
    if (encloser === null || encloser.next === null) return UNPROVEN;
    const wildcardName = wildcardOf(ancestor(name, encloser.labels));
    const wildcard = wildcardName === null ? null : hashed.match(wildcardName);
    if (wildcard !== null) {
      if (!deniesType(wildcard.types, type, false)) return UNPROVEN;
      return provenBy(encloser.next, [encloser.match, encloser.next, wildcard]);
    }
    // An unsigned delegation, or a name between others that leads only to such (RFC 5155 §7.1).
    if (!hasOptOut(encloser.next)) return UNPROVEN;
    return provenBy(encloser.next, [encloser.match, encloser.next]);
  });
}

/** Nothing stands closer to the name than a wildcard below `labels` labels (RFC 5155 §8.8). */
export function nsec3NoCloser(
  hashed: HashedDenials,
  name: Uint8Array,
  labels: number,
): Nsec3Proof {
  return guarded(hashed, name, () => {
    const next = hashed.cover(ancestor(name, labels + 1));
    return next === null ? UNPROVEN : provenBy(next, [next]);
  });
}

/** What NSEC3 says of a name where a zone could be delegated (RFC 5155 §8.6, §8.9). */
export function nsec3Cut(hashed: HashedDenials, name: Uint8Array): CutProof {
  let cut: CutProof = CutProof.Unproven;
  const { proof } = guarded(hashed, name, () => {
    const match = hashed.match(name);
    if (match !== null) {
      cut = cutOf(match.types);
      return { proof: Proof.Proven, used: [match] };
    }
    const next = hashed.encloser(name)?.next ?? null;
    if (next === null) return UNPROVEN;
    cut = hasOptOut(next) ? CutProof.OptOut : CutProof.Absent;
    return { proof: Proof.Proven, used: [next] };
  });
  if (proof === Proof.Iterations) return CutProof.Iterations;
  return proof === Proof.Exhausted ? CutProof.Exhausted : cut;
}

/** The wildcard that answers for a name that is not there, with the proof of that; or `null`. */
export function nsec3Wildcard(
  hashed: HashedDenials,
  name: Uint8Array,
): { readonly wildcard: Uint8Array; readonly used: readonly Nsec3Record[] } | null {
  let wildcard: Uint8Array | null = null;
  const { proof, used } = guarded(hashed, name, () => {
    if (hashed.match(name) !== null) return UNPROVEN;
    const encloser = hashed.encloser(name);
    if (encloser === null || encloser.next === null) return UNPROVEN;
    wildcard = wildcardOf(ancestor(name, encloser.labels));
    return provenBy(encloser.next, [encloser.match, encloser.next]);
  });
  return proof !== Proof.Proven || wildcard === null ? null : { wildcard, used };
}
