import { countLabels, isAtOrBelow, nameKey, Qtype, Rcode } from "../../dns/mod.ts";
import {
  ancestor,
  compareNames,
  deduce,
  type Nsec3Record,
  type NsecRecord,
  readDenials,
  type RrSet,
  Security,
  type TrustAnchors,
  type ValidatedRrSet,
  type Verdict,
  wildcardOf,
} from "../../dnssec/mod.ts";
import type { Query } from "../query.ts";
import type { Proven } from "./proven_message.ts";
import { WeighedMap } from "./weighed_map.ts";

/** What gaps take together; the zones go whose were used longest ago. */
export const GAPS_BYTES_MAX: number = 4 * 1024 * 1024;
/** Gaps of a zone: by name, and by hash, which are looked through one by one. */
export const NSECS_MAX = 512;
export const NSEC3S_MAX = 128;
/** RRsets of wildcards of a zone. */
export const WILDCARDS_MAX = 32;
/** Largest RRset of a gap with its signatures; those that are larger are not worth their room. */
const GAP_BYTES_MAX = 2_048;
/** What a zone takes without gaps, and a gap beside its bytes. */
const ZONE_BYTES = 1_024;
const GAP_BYTES = 768;
/** Types that the gaps of the name's own zone say nothing of, or not all. */
const OTHER_TYPES: readonly number[] = [Qtype.DS, Qtype.NSEC, Qtype.RRSIG, Qtype.ANY];

/** Something proven, with the second from which it does not hold any more. */
interface Held<T> {
  readonly record: T;
  readonly expiresAtS: number;
}

interface ZoneGaps {
  readonly zone: Uint8Array;
  /** What every denial is sent with. */
  soa: Held<ValidatedRrSet> | null;
  /** By owner name, in canonical order. */
  readonly nsecs: Held<NsecRecord>[];
  nsec3s: Held<Nsec3Record>[];
  /** What wildcards stand for, by type and name. */
  readonly wildcards: Map<string, Held<RrSet>>;
  /** What all of it takes, about. */
  bytes: number;
}

/**
 * What was proven not to be there, and what follows from that for other names (RFC 8198): a flood of
 * random names below a signed zone stays here. Zones with opt-out prove too little for it.
 */
export class Gaps {
  readonly #zones = new WeighedMap<ZoneGaps>(GAPS_BYTES_MAX);

  get bytes(): number {
    return this.#zones.bytes;
  }

  clear(): void {
    this.#zones.clear();
  }

  /** Takes note of an answer that is secure. */
  learn(
    { answer, authority }: Pick<Verdict, "answer" | "authority">,
    nowS: number,
  ): void {
    for (const part of answer) this.#learnWildcard(part, nowS);
    for (const part of authority) {
      const { rrset, zone, security, ttl } = part;
      if (zone === undefined || security !== Security.Secure || ttl <= 0) continue;
      if (bytesOf(rrset) > GAP_BYTES_MAX) continue;
      const gaps = this.#gapsOf(zone);
      const expiresAtS = nowS + ttl;
      if (rrset.type === Qtype.SOA) gaps.soa = { record: part, expiresAtS };
      const { nsecs, nsec3s } = readDenials(zone, [rrset]);
      for (const record of nsecs) insert(gaps, { record, expiresAtS });
      for (const record of nsec3s) {
        const others = gaps.nsec3s.filter(({ record: other, expiresAtS }) =>
          expiresAtS > nowS && nameKey(other.rrset.owner) !== nameKey(rrset.owner)
        );
        const former = sumOf(gaps.nsec3s);
        gaps.nsec3s = [...others.slice(-(NSEC3S_MAX - 1)), { record, expiresAtS }];
        gaps.bytes += sumOf(gaps.nsec3s) - former;
      }
      this.#zones.set(nameKey(zone), gaps, gaps.bytes);
    }
  }

  #learnWildcard({ rrset, zone, wildcard, ttl }: ValidatedRrSet, nowS: number): void {
    if (zone === undefined || wildcard === undefined || ttl <= 0) return;
    if (bytesOf(rrset) > GAP_BYTES_MAX) return;
    const gaps = this.#gapsOf(zone);
    const { wildcards } = gaps;
    const key = `${rrset.type} ${nameKey(wildcard)}`;
    const former = wildcards.get(key);
    if (former === undefined && wildcards.size >= WILDCARDS_MAX) return;
    const held = { record: rrset, expiresAtS: nowS + ttl };
    wildcards.set(key, held);
    gaps.bytes += GAP_BYTES + bytesOf(rrset);
    if (former !== undefined) gaps.bytes -= GAP_BYTES + bytesOf(former.record);
    this.#zones.set(nameKey(zone), gaps, gaps.bytes);
  }

  /** What is known of a question without asking, or `null`. */
  deduce(
    { packet, qname, qnameLength, qtype: type }: Query,
    anchors: TrustAnchors,
    nowS: number,
  ): Proven | null {
    if (this.#zones.size === 0 || OTHER_TYPES.includes(type)) return null;
    const name = packet.slice(qname, qname + qnameLength);
    const gaps = this.#find(name);
    if (gaps === null) return null;
    // Of what is exempt, or anchored further down, the zones above prove nothing.
    const point = anchors.closest(name);
    if (point?.kind !== "anchor" || !isAtOrBelow(gaps.zone, 0, point.zone, 0)) return null;
    const nsecs = around(gaps, name).filter(({ expiresAtS }) => expiresAtS > nowS);
    const nsec3s = gaps.nsec3s.filter(({ expiresAtS }) => expiresAtS > nowS);
    const denials = {
      zone: gaps.zone,
      nsecs: nsecs.map(({ record }) => record),
      nsec3s: nsec3s.map(({ record }) => record),
    };
    const deduced = deduce(denials, { name, type });
    if (deduced === null) return null;
    const secondsOf = new Map(
      [...nsecs, ...nsec3s].map(({ record: { rrset }, expiresAtS }) =>
        [rrset, expiresAtS - nowS] as const
      ),
    );
    const proofs = deduced.used.map((rrset) => ({
      rrset,
      security: Security.Secure,
      ttl: secondsOf.get(rrset) ?? 0,
    }));
    const common = { security: Security.Secure, ttlMax: Infinity };
    if (deduced.kind === "wildcard") {
      const key = `${type} ${nameKey(deduced.wildcard)}`;
      const held = gaps.wildcards.get(key);
      if (held === undefined) return null;
      const ttl = held.expiresAtS - nowS;
      if (ttl <= 0) {
        gaps.wildcards.delete(key);
        gaps.bytes -= GAP_BYTES + bytesOf(held.record);
        return null;
      }
      const rrset = { ...held.record, owner: name };
      const answer = [{ rrset, security: Security.Secure, ttl }];
      return { ...common, rcode: Rcode.NoError, answer, authority: proofs };
    }
    const { soa } = gaps;
    if (soa === null || soa.expiresAtS <= nowS) return null;
    const rcode = deduced.kind === "name_error" ? Rcode.NXDomain : Rcode.NoError;
    const authority = [{ ...soa.record, ttl: soa.expiresAtS - nowS }, ...proofs];
    return { ...common, rcode, answer: [], authority };
  }

  /** The gaps of the zone that is closest to a name, of those that are known. */
  #find(name: Uint8Array): ZoneGaps | null {
    for (let at = 0;; at += 1 + name[at]) {
      const gaps = this.#zones.get(nameKey(name, at));
      if (gaps !== undefined) return gaps;
      if (name[at] === 0) return null;
    }
  }

  #gapsOf(zone: Uint8Array): ZoneGaps {
    return this.#zones.get(nameKey(zone)) ??
      { zone, soa: null, nsecs: [], nsec3s: [], wildcards: new Map(), bytes: ZONE_BYTES };
  }
}

/** Bytes of an RRset's data and signatures. */
function bytesOf({ rdatas, signatures }: RrSet): number {
  return [...rdatas, ...signatures].reduce((sum, { length }) => sum + length, 0);
}

/** What some gaps take. */
function sumOf(held: readonly Held<{ readonly rrset: RrSet }>[]): number {
  return held.reduce((bytes, { record: { rrset } }) => bytes + GAP_BYTES + bytesOf(rrset), 0);
}

/** The place of the last record whose owner is at or before a name, or -1. */
function placeOf(nsecs: readonly Held<NsecRecord>[], name: Uint8Array): number {
  let low = 0;
  let high = nsecs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compareNames(nsecs[middle].record.owner, name) <= 0) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** Adds a record in its order, in place of a former one; where there are too many, the oldest goes. */
function insert(gaps: ZoneGaps, held: Held<NsecRecord>): void {
  const { nsecs } = gaps;
  const { owner } = held.record;
  const at = placeOf(nsecs, owner);
  const isKnown = at >= 0 && compareNames(nsecs[at].record.owner, owner) === 0;
  const gone = isKnown ? nsecs.splice(at, 1, held) : [];
  if (!isKnown) nsecs.splice(at + 1, 0, held);
  if (nsecs.length > NSECS_MAX) {
    let oldest = 0;
    for (const [i, { expiresAtS }] of nsecs.entries()) {
      if (expiresAtS < nsecs[oldest].expiresAtS) oldest = i;
    }
    gone.push(...nsecs.splice(oldest, 1));
  }
  gaps.bytes += sumOf([held]) - sumOf(gone);
}

/** The records that can have a part in the proof: about the name, and about wildcards above it. */
function around({ zone, nsecs }: ZoneGaps, name: Uint8Array): Held<NsecRecord>[] {
  if (nsecs.length === 0) return [];
  const places = new Set([placeOf(nsecs, name)]);
  for (let labels = countLabels(name, 0) - 1; labels >= countLabels(zone, 0); labels--) {
    const wildcard = wildcardOf(ancestor(name, labels));
    if (wildcard !== null) places.add(placeOf(nsecs, wildcard));
  }
  places.delete(-1);
  return [...places].map((place) => nsecs[place]);
}
