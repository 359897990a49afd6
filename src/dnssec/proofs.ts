/** Takes the proofs out of an authority section, and asks them. */
import { decodeBase32hex } from "../bytes/mod.ts";
import { Ede, equalNames, formatName, Qtype, qtypeName } from "../dns/mod.ts";
import { CutProof, type Nsec3Record, type NsecRecord, Proof } from "./denial.ts";
import { Allowance, PROOF_RRSETS_MAX } from "./limits.ts";
import { parentName } from "./names.ts";
import { nsecCut, nsecNameError, nsecNoCloser, nsecNoData } from "./nsec.ts";
import {
  HashedDenials,
  nsec3Cut,
  nsec3NameError,
  nsec3NoCloser,
  nsec3NoData,
  type Nsec3Proof,
} from "./nsec3.ts";
import { bogus, type Finding, insecure, overLimit, SECURE } from "./outcome.ts";
import { NSEC3_HASH_BYTES, NSEC3_SHA1, OPT_OUT_FLAG, readNsec, readNsec3 } from "./records.ts";
import type { RrSet } from "./rrset.ts";
import { type CheckContext, checkRrSet, isExpanded, plausibleSignatures } from "./signature.ts";
import type { Zone } from "./zone_keys.ts";

/** A zone's proofs of absence within one response. */
export interface Proofs {
  /** Secure, or why the proofs are not to be asked. */
  readonly finding: Finding;
  readonly hashed: HashedDenials;
  /** Seconds that the shortest of them may be kept. */
  readonly ttl: number;
  /** All of them, with the seconds that each may be kept. */
  readonly ttls: ReadonlyMap<RrSet, number>;
}

/** Says whether a signature of an RRset claims to be of a zone. */
export function isSignedBy(rrset: RrSet, zone: Uint8Array): boolean {
  return plausibleSignatures(rrset).some(({ signer }) => equalNames(signer, 0, zone, 0));
}

/** The records of an NSEC RRset. */
export function nsecRecords(rrset: RrSet): NsecRecord[] {
  return rrset.rdatas.map(readNsec).filter((nsec) => nsec !== null)
    .map((nsec) => ({ ...nsec, owner: rrset.owner, rrset }));
}

/**
 * The NSEC3 records of an RRset whose owner is a hash right below the zone. One at the apex of a
 * zone of its own, whose name was chosen to look like a hash, is none. Hashes and flags that are
 * not known are passed over (RFC 5155 §8.1, §8.2).
 */
export function nsec3Records(rrset: RrSet, zone: Uint8Array): Nsec3Record[] {
  const { owner } = rrset;
  if (owner[0] === 0 || !equalNames(parentName(owner), 0, zone, 0)) return [];
  const label = String.fromCharCode(...owner.subarray(1, 1 + owner[0]));
  const ownerHash = decodeBase32hex(label);
  if (ownerHash?.length !== NSEC3_HASH_BYTES) return [];
  return rrset.rdatas.map(readNsec3).filter((nsec3) =>
    nsec3 !== null && nsec3.algorithm === NSEC3_SHA1 && (nsec3.flags & ~OPT_OUT_FLAG) === 0 &&
    nsec3.nextHash.length === NSEC3_HASH_BYTES
  ).map((nsec3) => ({ ...nsec3!, ownerHash, rrset }));
}

/** Checks the NSEC and NSEC3 RRsets of an authority section that `zone` has signed. */
export async function collectProofs(
  authority: readonly RrSet[],
  zone: Zone,
  context: CheckContext,
  checks: Allowance,
  rounds: Allowance,
): Promise<Proofs> {
  const nsecs: NsecRecord[] = [];
  const nsec3s: Nsec3Record[] = [];
  const ttls = new Map<RrSet, number>();
  const done = (finding: Finding): Proofs => {
    const hashed = new HashedDenials({ zone: zone.name, nsecs, nsec3s }, rounds);
    return { finding, hashed, ttl: Math.min(...ttls.values()), ttls };
  };
  for (const rrset of authority) {
    if (rrset.type !== Qtype.NSEC && rrset.type !== Qtype.NSEC3) continue;
    if (!isSignedBy(rrset, zone.name)) continue;
    const own = rrset.type === Qtype.NSEC ? nsecRecords(rrset) : nsec3Records(rrset, zone.name);
    if (own.length === 0) continue;
    if (ttls.size === PROOF_RRSETS_MAX) {
      return done(overLimit("PROOF_RRSETS_MAX", formatName(zone.name)));
    }
    const checked = await checkRrSet(rrset, zone.name, zone.keys, context, checks);
    if (checked.finding !== SECURE) return done(checked.finding);
    if (isExpanded(rrset, checked.labels)) continue;
    ttls.set(rrset, checked.ttl);
    if (rrset.type === Qtype.NSEC) nsecs.push(...own as NsecRecord[]);
    else nsec3s.push(...own as Nsec3Record[]);
  }
  return done(SECURE);
}

/** What a question to the proofs came to. */
export interface Denied {
  readonly finding: Finding;
  /** What the answer stands on, and a client can check it by. */
  readonly used: readonly RrSet[];
}

function deny(nsecs: readonly NsecRecord[] | null, ask: () => Nsec3Proof): Nsec3Proof | Proven {
  return nsecs === null ? ask() : { proof: Proof.Proven, used: nsecs };
}

interface Proven {
  readonly proof: typeof Proof.Proven;
  readonly used: readonly NsecRecord[];
}

function denied(proofs: Proofs, { proof, used }: Nsec3Proof | Proven, missing: string): Denied {
  const rrsets = [...new Set(used.map(({ rrset }) => rrset))];
  const zone = formatName(proofs.hashed.denials.zone);
  switch (proof) {
    case Proof.Proven:
      return { finding: SECURE, used: rrsets };
    case Proof.OptOut:
      return {
        finding: insecure(`${zone}: opt-out, so what is missing may be there unsigned`),
        used: rrsets,
      };
    case Proof.Iterations:
      return { finding: tooManyIterations(zone), used: [...proofs.ttls.keys()] };
    case Proof.Unproven:
      return { finding: bogus(`${zone}: no proof that ${missing}`, Ede.NsecMissing), used: [] };
    case Proof.Exhausted:
      return { finding: overLimit("HASH_ROUNDS_MAX", zone), used: [] };
  }
}

function tooManyIterations(zone: string): Finding {
  const reason = `${zone}: more NSEC3 iterations than are followed`;
  return insecure(reason, Ede.UnsupportedNsec3Iterations);
}

/** Neither the name is there nor a wildcard for it. */
export function denyName(proofs: Proofs, name: Uint8Array): Denied {
  const { hashed } = proofs;
  const proof = deny(nsecNameError(hashed.denials, name), () => nsec3NameError(hashed, name));
  return denied(proofs, proof, `${formatName(name)} does not exist`);
}

/** The name, or the wildcard for it, has no such type. */
export function denyType(proofs: Proofs, name: Uint8Array, type: number): Denied {
  const { hashed } = proofs;
  const proof = deny(
    nsecNoData(hashed.denials, name, type),
    () => nsec3NoData(hashed, name, type),
  );
  return denied(proofs, proof, `${formatName(name)} has no ${qtypeName(type)}`);
}

/** Nothing is closer to the name than the wildcard below its ancestor with `labels` labels. */
export function denyCloser(proofs: Proofs, name: Uint8Array, labels: number): Denied {
  const { hashed } = proofs;
  const nsec = nsecNoCloser(hashed.denials, name, labels);
  const proof = deny(nsec && [nsec], () => nsec3NoCloser(hashed, name, labels));
  return denied(proofs, proof, `nothing is closer to ${formatName(name)} than the wildcard`);
}

/** Whether a name without DS is where an unsigned zone begins. */
export type CutFinding =
  | { readonly kind: "ends"; readonly finding: Finding }
  | { readonly kind: "none" | "absent" };

export function findCut(proofs: Proofs, name: Uint8Array): CutFinding {
  const { hashed } = proofs;
  const byNsec = nsecCut(hashed.denials, name);
  const cut = byNsec === CutProof.Unproven ? nsec3Cut(hashed, name) : byNsec;
  const zone = formatName(hashed.denials.zone);
  const place = formatName(name);
  const ends = (finding: Finding): CutFinding => ({ kind: "ends", finding });
  switch (cut) {
    case CutProof.Delegation:
      return ends(insecure(`${place}: delegated unsigned, ${zone} has no DS for it`));
    case CutProof.OptOut:
      return ends(insecure(`${place}: delegated unsigned, or not at all, by opt-out of ${zone}`));
    case CutProof.Iterations:
      return ends(tooManyIterations(zone));
    case CutProof.NoCut:
      return { kind: "none" };
    case CutProof.Absent:
      return { kind: "absent" };
    case CutProof.Unproven:
      return ends(bogus(`${zone}: no proof that ${place} has no DS`, Ede.NsecMissing));
    case CutProof.Exhausted:
      return ends(overLimit("HASH_ROUNDS_MAX", zone));
  }
}
