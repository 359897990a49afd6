/** Decides about whole answers: which of their RRsets are secure, and what they prove. */
import {
  countLabels,
  Ede,
  equalNames,
  formatName,
  isAtOrBelow,
  Qtype,
  Rcode,
  rcodeName,
} from "../dns/mod.ts";
import { type Alias, followAliases, type Question, type Trail } from "./aliases.ts";
import type { TrustAnchors } from "./anchors.ts";
import { Chain, type ChainPorts, contextOf, deepestSigner, type RrSetResponse } from "./chain.ts";
import { Allowance, ANY_RRSETS_MAX } from "./limits.ts";
import { ancestor, parentName, wildcardOf } from "./names.ts";
import { bogus, type Finding, insecure, overLimit, SECURE, Security, weaker } from "./outcome.ts";
import {
  collectProofs,
  type Denied,
  denyCloser,
  denyName,
  denyType,
  findCut,
  type Proofs,
} from "./proofs.ts";
import type { RrSet } from "./rrset.ts";
import { type CheckContext, checkRrSet, describe, isExpanded } from "./signature.ts";
import { endAt, type Zone } from "./zone_keys.ts";

/** An RRset that has a part in an answer. */
export interface ValidatedRrSet {
  readonly rrset: RrSet;
  readonly security: Security;
  /** Seconds that it may be kept. */
  readonly ttl: number;
  /** The zone that has signed it: of SOA, of proofs, and of what a wildcard was expanded to. */
  readonly zone?: Uint8Array;
  /** The wildcard that was expanded, proven to be right here. */
  readonly wildcard?: Uint8Array;
}

/** What came of an answer. Nothing else of the response is to be passed on. */
export interface Verdict {
  /** Of the whole: the weakest of its parts. */
  readonly finding: Finding;
  /** What is proven: NOERROR in place of the NXDOMAIN of a server that takes it too lightly. */
  readonly rcode: number;
  /** In order: aliases, each with the CNAME that its DNAME stands for, and the RRsets asked for. */
  readonly answer: readonly ValidatedRrSet[];
  /** SOA, and the proofs that the answer stands on. */
  readonly authority: readonly ValidatedRrSet[];
}

/** What is known of where a response comes from. */
export interface Origin {
  /** The zone whose servers have answered: it saves questions about what is not signed. */
  readonly zone: Uint8Array | null;
  /** A name that what is said of was made here: nobody has signed that. */
  readonly madeHere?: Uint8Array | null;
}

const UNKNOWN: Origin = { zone: null };

/** Checks answers with what it is handed: time, records, signatures, memory. */
export class Validator {
  /** Can be changed; cuts that are remembered are then to be forgotten. */
  anchors: TrustAnchors;
  readonly #ports: ChainPorts;

  constructor(ports: ChainPorts, anchors: TrustAnchors) {
    this.#ports = ports;
    this.anchors = anchors;
  }

  /**
   * Validates a response to a question of class IN. `nowS` is seconds since 1970.
   */
  async validate(
    question: Question,
    response: RrSetResponse,
    nowS: number,
    origin: Origin = UNKNOWN,
  ): Promise<Verdict> {
    const validation = new Validation(this.#ports, this.anchors, response, nowS, origin);
    return await validation.run(question);
  }
}

/** An RRset that was looked at. */
interface Judged {
  readonly finding: Finding;
  readonly ttl: number;
  /** The zone that has signed it, and the labels under its signature; `null` unless secure. */
  readonly zone: Zone | null;
  readonly labels: number;
}

/** The validation of one answer. */
class Validation {
  readonly #anchors: TrustAnchors;
  readonly #response: RrSetResponse;
  readonly #context: CheckContext;
  readonly #origin: Origin;
  readonly #chain: Chain;
  readonly #checks = new Allowance("ANSWER_CHECKS_MAX");
  /** Proofs by zone. */
  readonly #proofs = new Map<Zone, Proofs>();
  #finding: Finding = SECURE;
  readonly #answer: ValidatedRrSet[] = [];
  readonly #authority = new Map<RrSet, ValidatedRrSet>();

  constructor(
    ports: ChainPorts,
    anchors: TrustAnchors,
    response: RrSetResponse,
    nowS: number,
    origin: Origin,
  ) {
    this.#anchors = anchors;
    this.#response = response;
    this.#context = contextOf(ports, nowS);
    this.#origin = origin;
    this.#chain = new Chain(ports, anchors, nowS, new Allowance("HASH_ROUNDS_MAX"));
  }

  async run(question: Question): Promise<Verdict> {
    const { rcode } = this.#response;
    const trail = followAliases(this.#response.answer, question);
    if (trail.end === "loop") {
      this.#note(overLimit("ALIASES_MAX", formatName(question.name)));
      return this.#verdict(rcode);
    }
    let proven = rcode;
    for (const alias of trail.aliases) {
      if (!await this.#takeAlias(alias)) return this.#verdict(proven);
    }
    switch (trail.end) {
      case "long":
        proven = Rcode.YXDomain;
        break;
      case "found":
        proven = Rcode.NoError;
        await this.#takeFound(trail, question.type);
        break;
      case "missing":
        proven = await this.#takeMissing(trail.name, question.type);
        break;
    }
    return this.#verdict(proven);
  }

  #verdict(rcode: number): Verdict {
    const finding = this.#finding;
    return { finding, rcode, answer: this.#answer, authority: [...this.#authority.values()] };
  }

  /** Adds a part's finding to the answer's; `false` once nothing can save it. */
  #note(finding: Finding): boolean {
    this.#finding = weaker(this.#finding, finding);
    return this.#finding.security < Security.Indeterminate;
  }

  async #takeAlias({ rrset, synthesized }: Alias): Promise<boolean> {
    const judged = await this.#judge(rrset);
    if (!this.#note(judged.finding)) return false;
    const { finding: { security }, ttl } = judged;
    // A chain may pass the same DNAME twice.
    const isThere = this.#answer.some((part) => part.rrset === rrset);
    if (!isThere) this.#answer.push({ rrset, security, ttl });
    if (synthesized !== null) this.#answer.push({ rrset: synthesized, security, ttl });
    if (rrset.type === Qtype.DNAME && judged.zone !== null && isExpanded(rrset, judged.labels)) {
      return this.#note(bogus(`${describe(rrset)}: from a wildcard`)); // RFC 4592 §4.4.
    }
    return await this.#takeExpansion(rrset, judged);
  }

  async #takeFound({ rrsets }: Trail, type: number): Promise<void> {
    if (rrsets.length > ANY_RRSETS_MAX) {
      this.#note(overLimit("ANY_RRSETS_MAX", formatName(rrsets[0].owner)));
      return;
    }
    if (type === Qtype.RRSIG) {
      this.#note(insecure("RRSIG records are not signed themselves"));
      const [{ ttl }] = rrsets;
      for (const rrset of rrsets) this.#answer.push({ rrset, security: Security.Insecure, ttl });
      return;
    }
    for (const rrset of rrsets) {
      const judged = await this.#judge(rrset);
      if (!this.#note(judged.finding)) return;
      const { zone, labels, ttl } = judged;
      const encloser = zone !== null && isExpanded(rrset, labels)
        ? ancestor(rrset.owner, labels)
        : null;
      const wildcard = encloser === null ? null : wildcardOf(encloser);
      const expanded = wildcard === null ? {} : { wildcard, zone: zone!.name };
      this.#answer.push({ rrset, security: judged.finding.security, ttl, ...expanded });
      if (!await this.#takeExpansion(rrset, judged)) return;
    }
  }

  /** What a wildcard was expanded to needs the proof that nothing is closer (RFC 4035 §5.3.4). */
  async #takeExpansion(rrset: RrSet, { zone, labels }: Judged): Promise<boolean> {
    if (zone === null || !isExpanded(rrset, labels)) return true;
    const proofs = await this.#proofsOf(zone);
    if (proofs.finding !== SECURE) return this.#note(proofs.finding);
    return this.#takeDenied(proofs, denyCloser(proofs, rrset.owner, labels));
  }

  #takeDenied({ ttls, hashed: { denials: { zone } } }: Proofs, { finding, used }: Denied): boolean {
    for (const rrset of used) {
      const ttl = ttls.get(rrset) ?? 0;
      this.#authority.set(rrset, { rrset, security: Security.Secure, ttl, zone });
    }
    return this.#note(finding);
  }

  async #proofsOf(zone: Zone): Promise<Proofs> {
    const known = this.#proofs.get(zone);
    if (known !== undefined) return known;
    const proofs = await collectProofs(
      this.#response.authority,
      zone,
      this.#context,
      this.#checks,
      this.#chain.rounds,
    );
    this.#proofs.set(zone, proofs);
    return proofs;
  }

  /** The name whose zone answers for a name and a type: DS is the parent's. */
  #placeOf(name: Uint8Array, type: number): Uint8Array {
    return type === Qtype.DS ? parentName(name) : name;
  }

  /**
   * The zone that `place` is in, and the signer that said so. Who signs from above the closest trust
   * anchor is not heard: else an unsigned zone there could take a signed one below it over.
   */
  async #zoneOf(place: Uint8Array, signed: readonly RrSet[]) {
    const { madeHere = null } = this.#origin;
    if (madeHere !== null && equalNames(place, 0, madeHere, 0)) {
      const finding = insecure(`${formatName(place)} is answered here`);
      return { signer: null, zone: endAt(place, finding) };
    }
    const point = this.#anchors.closest(place);
    const top = point?.kind === "anchor" ? point.zone : null;
    const signer = top === null ? null : deepestSigner(
      signed,
      (name) => isAtOrBelow(place, 0, name, 0) && isAtOrBelow(name, 0, top, 0),
    );
    const zone = await this.#chain.zoneOf(signer ?? place, signer ?? this.#origin.zone);
    return { signer, zone };
  }

  async #judge(rrset: RrSet): Promise<Judged> {
    const weak = (finding: Finding): Judged => ({ finding, ttl: rrset.ttl, zone: null, labels: 0 });
    const { signer, zone } = await this.#zoneOf(this.#placeOf(rrset.owner, rrset.type), [rrset]);
    if (zone.finding !== SECURE) return weak(zone.finding);
    if (signer === null) {
      const reason = `${describe(rrset)}: not signed, and ${formatName(zone.name)} is`;
      return weak(bogus(reason, Ede.RrsigsMissing));
    }
    if (!equalNames(zone.name, 0, signer, 0)) {
      return weak(bogus(`${describe(rrset)}: signed by ${formatName(signer)}, which is no zone`));
    }
    const checked = await checkRrSet(rrset, signer, zone.keys, this.#context, this.#checks);
    return { ...checked, zone: checked.finding === SECURE ? zone : null };
  }

  /** Takes an answer without what was asked for; returns the response code that is proven. */
  async #takeMissing(name: Uint8Array, type: number): Promise<number> {
    const { rcode, authority } = this.#response;
    const denying = authority.filter(({ type }) =>
      type === Qtype.SOA || type === Qtype.NSEC || type === Qtype.NSEC3
    );
    const { signer, zone } = await this.#zoneOf(this.#placeOf(name, type), denying);
    if (zone.finding !== SECURE) return this.#takeUnproven(denying, zone.finding);
    if (signer === null) {
      const reason = `${formatName(zone.name)}: no proof that ${describe({ owner: name, type })}` +
        " is missing";
      this.#note(bogus(reason, Ede.NsecMissing));
      return rcode;
    }
    if (!equalNames(zone.name, 0, signer, 0)) {
      const place = describe({ owner: name, type });
      this.#note(bogus(`${place}: denied by ${formatName(signer)}, which is no zone`));
      return rcode;
    }
    if (!await this.#takeSoa(denying, zone)) return rcode;
    const proofs = await this.#proofsOf(zone);
    if (proofs.finding !== SECURE) return this.#takeUnproven(denying, proofs.finding);
    return this.#takeProof(proofs, name, type);
  }

  /** Takes a denial as it came, where that need not be proven. */
  #takeUnproven(denying: readonly RrSet[], finding: Finding): number {
    this.#note(finding);
    const { security } = this.#finding;
    if (security === Security.Insecure) {
      for (const rrset of denying) {
        this.#authority.set(rrset, { rrset, security, ttl: rrset.ttl });
      }
    }
    return this.#response.rcode;
  }

  async #takeSoa(denying: readonly RrSet[], zone: Zone): Promise<boolean> {
    const soa = denying.find(({ owner, type }) =>
      type === Qtype.SOA && equalNames(owner, 0, zone.name, 0)
    );
    if (soa === undefined) return true;
    const { finding, ttl } = await this.#judge(soa);
    this.#authority.set(soa, { rrset: soa, security: finding.security, ttl, zone: zone.name });
    return this.#note(finding);
  }

  #takeProof(proofs: Proofs, name: Uint8Array, type: number): number {
    const { rcode } = this.#response;
    if (rcode !== Rcode.NoError && rcode !== Rcode.NXDomain) {
      this.#note(bogus(`${formatName(name)}: ${rcodeName(rcode)} can't be proven`));
      return rcode;
    }
    const nameError = rcode === Rcode.NXDomain ? denyName(proofs, name) : null;
    if (nameError !== null && !isMissing(nameError)) {
      this.#takeDenied(proofs, nameError);
      return rcode;
    }
    // Servers answer NXDOMAIN where only names below are there: what is proven counts.
    const noData = denyType(proofs, name, type);
    const counts = nameError === null || noData.finding === SECURE;
    if (counts && !isMissing(noData)) {
      this.#takeDenied(proofs, noData);
      return Rcode.NoError;
    }
    const unsigned = findUnsigned(proofs, this.#placeOf(name, type));
    this.#takeDenied(proofs, { finding: unsigned ?? (nameError ?? noData).finding, used: [] });
    return rcode;
  }
}

function isMissing({ finding }: Denied): boolean {
  return finding.ede === Ede.NsecMissing;
}

/**
 * The unsigned delegation at or above a name, if the proofs show one: a server of the zone and of an
 * unsigned one in it may deny with the SOA and the proofs of the former.
 */
function findUnsigned(proofs: Proofs, place: Uint8Array): Finding | null {
  const top = countLabels(proofs.hashed.denials.zone, 0);
  for (let labels = top + 1; labels <= countLabels(place, 0); labels++) {
    const cut = findCut(proofs, ancestor(place, labels));
    if (cut.kind !== "ends") continue;
    return cut.finding.security === Security.Insecure ? cut.finding : null;
  }
  return null;
}
