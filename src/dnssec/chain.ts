/**
 * Finds the zone that a name is in, from the trust anchor above it down, with its keys or with the
 * reason why it has none. DS and DNSKEY RRsets are looked up by a port, and what each cut came to is
 * remembered by another.
 */
import {
  countLabels,
  Ede,
  equalNames,
  formatName,
  isAtOrBelow,
  nameKey,
  Qclass,
  Qtype,
  qtypeName,
} from "../dns/mod.ts";
import type { Trust, TrustAnchors } from "./anchors.ts";
import { Allowance, type Limit } from "./limits.ts";
import { ancestor } from "./names.ts";
import {
  bogus,
  type Finding,
  indeterminate,
  insecure,
  overLimit,
  SECURE,
  Security,
} from "./outcome.ts";
import { collectProofs, denyCloser, findCut, type Proofs } from "./proofs.ts";
import type { RrSet } from "./rrset.ts";
import {
  type CheckContext,
  checkRrSet,
  describe,
  isExpanded,
  plausibleSignatures,
} from "./signature.ts";
import type { SignatureChecker } from "./verify.ts";
import { checkZoneKeys, endAt, readTrust, unsupportedBy, type Zone } from "./zone_keys.ts";

/** A response as validation sees it. */
export interface RrSetResponse {
  readonly rcode: number;
  readonly answer: readonly RrSet[];
  readonly authority: readonly RrSet[];
}

/**
 * What a name where a zone may begin came to: the zone that begins there, `none` where the name is
 * in the zone above, `absent` where that is so of all below it too.
 */
export type Cut =
  | { readonly kind: "zone"; readonly zone: Zone; readonly expiresAtS: number }
  | { readonly kind: "none" | "absent"; readonly expiresAtS: number };

/** Remembers cuts over many answers; bounded by whoever makes it, and emptied with new anchors. */
export interface CutCache {
  /** By name in wire format, its letters in either case: `nameKey` makes one key of them. */
  get(name: Uint8Array): Cut | undefined;
  set(name: Uint8Array, cut: Cut): void;
}

export interface ChainPorts {
  /**
   * Asks for DS or DNSKEY records, with DO and CD set and signatures wanted. DS is asked of the
   * parent's servers. `attempt` is 1 where what came before was not to be believed: a cached answer
   * is of no use then, and another server is. `null` where nothing was to be had; a rejection ends
   * the validation with it.
   */
  readonly lookUp: (
    name: Uint8Array,
    type: number,
    attempt: number,
  ) => Promise<RrSetResponse | null>;
  readonly check: SignatureChecker;
  readonly cuts: CutCache;
  /** See `CheckContext.pastS`. */
  readonly pastS?: number | null;
}

export function contextOf({ check, pastS = null }: ChainPorts, nowS: number): CheckContext {
  return { nowS, pastS, check };
}

/** A name whose zone above has a DS for it. */
interface Vouched {
  readonly kind: "vouched";
  readonly trust: Trust;
  readonly ttl: number;
}

/** Attempts to look up what turns out bogus: a server may be lame, or behind. */
const ATTEMPTS_MAX = 2;
/** Seconds that a bogus cut is remembered (RFC 9520 §3.2: 1 to 300). */
const BOGUS_TTL_S = 30;

/** Bounds of one answer's work: what reached them says nothing about the next answer. */
const ANSWER_LIMITS: readonly (Limit | null)[] = [
  "CHAIN_CHECKS_MAX",
  "CHAIN_LOOKUPS_MAX",
  "HASH_ROUNDS_MAX",
];

/** Says whether it may help to ask somebody else for a DS. */
function isDoubtful(judged: Cut | Vouched): boolean {
  return judged.kind === "zone" && judged.zone.finding.security >= Security.Indeterminate;
}

function isBelow(name: Uint8Array, above: Uint8Array): boolean {
  return isAtOrBelow(name, 0, above, 0) && !equalNames(name, 0, above, 0);
}

/** The RRset of a name and a type. */
export function findRrSet(
  section: readonly RrSet[],
  name: Uint8Array,
  type: number,
): RrSet | undefined {
  return section.find((rrset) =>
    rrset.type === type && rrset.cls === Qclass.IN && equalNames(rrset.owner, 0, name, 0)
  );
}

/** The signed CNAME of a name, or else the DNAME closest above it. */
export function findAlias(section: readonly RrSet[], name: Uint8Array): RrSet | undefined {
  const cname = findRrSet(section, name, Qtype.CNAME);
  if (cname !== undefined && cname.signatures.length > 0) return cname;
  let closest: RrSet | undefined;
  for (const rrset of section) {
    if (rrset.type !== Qtype.DNAME || !isBelow(name, rrset.owner)) continue;
    if (closest === undefined || rrset.owner.length > closest.owner.length) closest = rrset;
  }
  return closest;
}

/** The closest name above `name` that has signed its DS, or something said in its place. */
function signerAbove({ answer, authority }: RrSetResponse, name: Uint8Array): Uint8Array | null {
  const own = findRrSet(answer, name, Qtype.DS) ?? findAlias(answer, name);
  const said = own !== undefined
    ? [own]
    : authority.filter(({ type }) => type === Qtype.NSEC || type === Qtype.NSEC3);
  return deepestSigner(said, (signer) => isBelow(name, signer));
}

/** The longest signer's name of some RRsets that is `fit`, or `null`. */
export function deepestSigner(
  rrsets: readonly RrSet[],
  fit: (signer: Uint8Array) => boolean,
): Uint8Array | null {
  let deepest: Uint8Array | null = null;
  for (const rrset of rrsets) {
    for (const { signer } of plausibleSignatures(rrset)) {
      if (fit(signer) && !(deepest !== null && deepest.length >= signer.length)) deepest = signer;
    }
  }
  return deepest;
}

/** The way down for one answer, whose bounds it counts. */
export class Chain {
  readonly #ports: ChainPorts;
  readonly #anchors: TrustAnchors;
  readonly #context: CheckContext;
  readonly #checks = new Allowance("CHAIN_CHECKS_MAX");
  readonly #lookUps = new Allowance("CHAIN_LOOKUPS_MAX");
  readonly #responses = new Map<string, RrSetResponse | null>();
  /** What this answer has found out, all of which may not be worth remembering. */
  readonly #cuts = new Map<string, Cut>();
  #lookUpsUsedUp = false;

  /** `rounds` are those of the whole answer. */
  constructor(ports: ChainPorts, anchors: TrustAnchors, nowS: number, readonly rounds: Allowance) {
    this.#ports = ports;
    this.#anchors = anchors;
    this.#context = contextOf(ports, nowS);
  }

  /**
   * The zone that `target` is in. `hint`, at or above it, is where that zone is likely to begin: it
   * saves questions about the names in between.
   */
  async zoneOf(target: Uint8Array, hint: Uint8Array | null): Promise<Zone> {
    const point = this.#anchors.closest(target);
    if (point === null) return endAt(target, insecure("no trust anchor is above it"));
    if (point.kind === "negative") {
      const reason = `${formatName(point.zone)} has a negative trust anchor`;
      return endAt(point.zone, insecure(reason));
    }
    const zone = await this.#anchored(point.zone, point.trust);
    return await this.#descend(zone, target, hint);
  }

  async #descend(from: Zone, target: Uint8Array, hint: Uint8Array | null): Promise<Zone> {
    let zone = from;
    let reached = zone.name;
    if (hint !== null && isAtOrBelow(target, 0, hint, 0) && isBelow(hint, zone.name)) {
      const jumped = zone.finding === SECURE ? await this.#jump(zone, hint) : null;
      if (jumped !== null) {
        zone = jumped;
        reached = hint;
      }
    }
    const bottom = countLabels(target, 0);
    for (let labels = countLabels(reached, 0) + 1; labels <= bottom; labels++) {
      if (zone.finding !== SECURE) return zone;
      const cut = await this.#cutAt(zone, ancestor(target, labels));
      if (cut.kind === "absent") return zone;
      if (cut.kind === "zone") zone = cut.zone;
    }
    return zone;
  }

  /**
   * Goes to `name` by who has signed its DS, or the proof that there is none; `null` where nobody
   * has, so that the names above it are to be asked first.
   */
  async #jump(zone: Zone, name: Uint8Array): Promise<Zone | null> {
    const known = this.#known(name);
    if (known !== null) return known.kind === "zone" ? known.zone : null;
    const end = this.#knownEnd(zone, name);
    if (end !== null) return end;
    const response = await this.#lookUp(name, Qtype.DS, 0);
    const signer = response === null ? null : signerAbove(response, name);
    if (signer === null || !isAtOrBelow(signer, 0, zone.name, 0)) return null;
    // Each signer is above the last, so this ends.
    const parent = await this.#descend(zone, signer, signer);
    if (parent.finding !== SECURE) return parent;
    if (!equalNames(parent.name, 0, signer, 0)) return null;
    const cut = await this.#cutAt(parent, name);
    return cut.kind === "zone" ? cut.zone : parent;
  }

  /** The zone between `zone` and `name` that is known to end the chain. */
  #knownEnd(zone: Zone, name: Uint8Array): Zone | null {
    const bottom = countLabels(name, 0);
    for (let labels = countLabels(zone.name, 0) + 1; labels < bottom; labels++) {
      const known = this.#known(ancestor(name, labels));
      if (known?.kind === "zone" && known.zone.finding !== SECURE) return known.zone;
    }
    return null;
  }

  #known(name: Uint8Array): Cut | null {
    const own = this.#cuts.get(nameKey(name));
    if (own !== undefined) return own;
    const known = this.#ports.cuts.get(name);
    return known !== undefined && known.expiresAtS > this.#context.nowS ? known : null;
  }

  #keep(name: Uint8Array, cut: Cut): Cut {
    const finding = cut.kind === "zone" ? cut.zone.finding : SECURE;
    const isPassing = finding.security === Security.Indeterminate ||
      ANSWER_LIMITS.includes(finding.limit);
    this.#cuts.set(nameKey(name), cut);
    if (!isPassing) this.#ports.cuts.set(name, cut);
    return cut;
  }

  #endsAt(name: Uint8Array, finding: Finding, ttl: number): Cut {
    const life = finding.security === Security.Insecure ? ttl : BOGUS_TTL_S;
    return { kind: "zone", zone: endAt(name, finding), expiresAtS: this.#context.nowS + life };
  }

  /** The zone of a trust anchor. */
  async #anchored(name: Uint8Array, trust: Trust): Promise<Zone> {
    const known = this.#known(name);
    if (known?.kind === "zone") return known.zone;
    const cut = await this.#enter(name, trust, Infinity);
    const { zone } = cut;
    // Nothing stands above an anchor: if its keys fail by time alone, the clock may be what is off.
    const byTime: readonly (number | null)[] = [Ede.SignatureExpired, Ede.SignatureNotYetValid];
    if (!byTime.includes(zone.finding.ede)) return this.#keep(name, cut), zone;
    const suspect = endAt(name, { ...zone.finding, clockSuspect: true });
    this.#keep(name, { ...cut, zone: suspect });
    return suspect;
  }

  /** What begins at a name right within a secure zone, or below names that are no cuts. */
  async #cutAt(zone: Zone, name: Uint8Array): Promise<Cut> {
    const known = this.#known(name);
    if (known !== null) return known;
    let judged = await this.#judgeDs(zone, name, 0);
    for (let attempt = 1; attempt < ATTEMPTS_MAX && isDoubtful(judged); attempt++) {
      judged = await this.#judgeDs(zone, name, attempt);
    }
    const cut = judged.kind === "vouched"
      ? await this.#enter(name, judged.trust, judged.ttl)
      : judged;
    return this.#keep(name, cut);
  }

  async #judgeDs(zone: Zone, name: Uint8Array, attempt: number): Promise<Cut | Vouched> {
    const response = await this.#lookUp(name, Qtype.DS, attempt);
    if (response === null) return this.#endsAt(name, this.#unavailable(name, Qtype.DS), 0);
    const found = findRrSet(response.answer, name, Qtype.DS) ?? findAlias(response.answer, name);
    if (found !== undefined) {
      const { finding, labels, ttl } = await this.#checkRrSet(found, zone);
      if (finding !== SECURE) return this.#endsAt(name, finding, 0);
      const expiresAtS = this.#context.nowS + ttl;
      if (isExpanded(found, labels)) {
        return await this.#judgeExpanded(zone, found, labels, response);
      }
      // A name that is an alias is no delegation (RFC 1034 §3.6.2), and none is below a DNAME.
      if (found.type === Qtype.CNAME) return { kind: "none", expiresAtS };
      if (found.type === Qtype.DNAME) return { kind: "absent", expiresAtS };
      return { kind: "vouched", trust: readTrust(found), ttl };
    }
    const proofs = await this.#proofsOf(zone, response);
    if (proofs.finding !== SECURE) return this.#endsAt(name, proofs.finding, 0);
    const cut = findCut(proofs, name);
    if (cut.kind === "ends") return this.#endsAt(name, cut.finding, proofs.ttl);
    return { kind: cut.kind, expiresAtS: this.#context.nowS + proofs.ttl };
  }

  /** A wildcard has an alias for names that are not there: a delegation with that name is proven away. */
  async #judgeExpanded(
    zone: Zone,
    found: RrSet,
    labels: number,
    response: RrSetResponse,
  ): Promise<Cut> {
    const { owner, type } = found;
    if (type !== Qtype.CNAME) {
      return this.#endsAt(owner, bogus(`${describe(found)}: from a wildcard`), 0);
    }
    const proofs = await this.#proofsOf(zone, response);
    if (proofs.finding !== SECURE) return this.#endsAt(owner, proofs.finding, 0);
    const { finding } = denyCloser(proofs, owner, labels);
    if (finding !== SECURE) return this.#endsAt(owner, finding, proofs.ttl);
    return { kind: "none", expiresAtS: this.#context.nowS + proofs.ttl };
  }

  async #proofsOf(zone: Zone, { authority }: RrSetResponse): Promise<Proofs> {
    return await collectProofs(authority, zone, this.#context, this.#checks, this.rounds);
  }

  #checkRrSet(rrset: RrSet, zone: Zone) {
    return checkRrSet(rrset, zone.name, zone.keys, this.#context, this.#checks);
  }

  /** Goes into a zone that is vouched for. */
  async #enter(name: Uint8Array, trust: Trust, ttl: number): Promise<Cut & { kind: "zone" }> {
    const unsupported = unsupportedBy(name, trust);
    const { nowS } = this.#context;
    if (unsupported !== null) {
      return { kind: "zone", zone: endAt(name, unsupported), expiresAtS: nowS + ttl };
    }
    let cut: Cut & { kind: "zone" } | null = null;
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const { zone, ttl: keysTtl } = await this.#lookUpKeys(name, trust, attempt);
      const life = zone.finding === SECURE ? Math.min(ttl, keysTtl) : BOGUS_TTL_S;
      cut = { kind: "zone", zone, expiresAtS: nowS + life };
      if (zone.finding.security <= Security.Insecure) break;
    }
    return cut!;
  }

  async #lookUpKeys(name: Uint8Array, trust: Trust, attempt: number) {
    const response = await this.#lookUp(name, Qtype.DNSKEY, attempt);
    if (response === null) {
      return { zone: endAt(name, this.#unavailable(name, Qtype.DNSKEY)), ttl: 0 };
    }
    const rrset = findRrSet(response.answer, name, Qtype.DNSKEY);
    if (rrset === undefined) {
      const reason = `${formatName(name)}: no DNSKEY, and a DS or trust anchor for it`;
      return { zone: endAt(name, bogus(reason, Ede.DnskeyMissing)), ttl: 0 };
    }
    return await checkZoneKeys(rrset, trust, this.#context, this.#checks);
  }

  #unavailable(name: Uint8Array, type: number): Finding {
    if (this.#lookUpsUsedUp) return overLimit("CHAIN_LOOKUPS_MAX", formatName(name));
    return indeterminate(`${formatName(name)} ${qtypeName(type)}: no answer`);
  }

  /** Fetches once for an answer. */
  async #lookUp(name: Uint8Array, type: number, attempt: number): Promise<RrSetResponse | null> {
    const key = `${type},${attempt},${nameKey(name)}`;
    const known = this.#responses.get(key);
    if (known !== undefined) return known;
    if (!this.#lookUps.take()) {
      this.#lookUpsUsedUp = true;
      return null;
    }
    const response = await this.#ports.lookUp(name, type, attempt);
    this.#responses.set(key, response);
    return response;
  }
}
