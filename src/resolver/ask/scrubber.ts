/** Takes out of a response what belongs to its question, and writes that anew, to be kept. */
import { getU16, getU32 } from "../../bytes/mod.ts";
import { TTLS_MAX } from "../../cache/mod.ts";
import {
  AA_BIT,
  AD_BIT,
  copyRdata,
  equalNames,
  expandName,
  FOLD,
  HEADER_BYTES,
  isAtOrBelow,
  MessageWriter,
  NAME_BYTES_MAX,
  QR_BIT,
  Qtype,
  RA_BIT,
  Rcode,
  RCODE_MASK,
  readRecord,
  RecordView,
  Section,
  skipName,
  skipPlainName,
} from "../../dns/mod.ts";
import type { ResponseReader } from "./response.ts";

/** CNAME records that lead from a question to its answer, at most. */
export const ALIASES_MAX = 12;
/** Seconds that a denial is kept which does not say how long it holds (RFC 2308 §5). */
export const DENIAL_TTL = 10;
/** Records of the authority section that are looked at: proofs of a long chain have some thirty. */
const AUTHORITIES_MAX = 64;

const MESSAGE_BYTES_MAX = 0xffff;
const ROOT: Uint8Array = new Uint8Array(1);
/** Names take their full length once they are uncompressed; RDATA holds two at most. */
const RDATA_BYTES_MAX = MESSAGE_BYTES_MAX + 2 * NAME_BYTES_MAX;
/** Bytes of RRSIG RDATA before the signer's name (RFC 4034 §3.1). */
const RRSIG_SIGNER_OFFSET = 18;

/** Bounds on TTLs, from the configuration, in seconds. */
export interface TtlBounds {
  readonly min: number;
  readonly max: number;
  readonly negativeMax: number;
}

/** What is left of a response. */
export const Scrubbed = {
  /** An answer or a denial. */
  Whole: 0,
  /** A chain of CNAME records whose last target it says nothing about. */
  Open: 1,
  /** What belongs to the question is malformed, or has no room. */
  Broken: 2,
  /** A chain that leads in a circle, or too far. */
  Endless: 3,
  /** It speaks of something else; or it refers us to others, and does not recurse for us. */
  Nothing: 4,
} as const;
export type Scrubbed = typeof Scrubbed[keyof typeof Scrubbed];

/**
 * Keeps of a response the chain of CNAME records from its question (a DNAME that made one goes with
 * it), the RRset it leads to, or the denial with its proofs, and signatures over these. All else is
 * left out, whoever may have put it there: records of other names, of another class, a second CNAME,
 * glue (RFC 2181 §5.4.1). Owner names point to the question, so that they show whatever case of
 * letters the client's has, and never that of our query.
 *
 * Its fields speak of the last response.
 */
export class Scrubber {
  /** What is kept: a whole message, good until the next call. */
  readonly message: Uint8Array<ArrayBuffer> = new Uint8Array(MESSAGE_BYTES_MAX);
  length = 0;
  readonly ttlOffsets: Uint16Array = new Uint16Array(TTLS_MAX);
  ttlCount = 0;
  /** Seconds that it may be kept. */
  ttl = 0;
  /** It answers, or denies with an SOA. */
  isFounded = false;
  /**
   * It says nothing, on nobody's authority: who is asked for every name does not recurse for us, and
   * who is asked for names of its own denies.
   */
  isBare = false;
  /** The name that the chain leads to, uncompressed; the question's own without a chain. */
  readonly target: Uint8Array<ArrayBuffer> = new Uint8Array(NAME_BYTES_MAX);

  readonly #bounds: TtlBounds;
  readonly #writer = new MessageWriter(true);
  readonly #record = new RecordView();
  readonly #owner = new Uint8Array(NAME_BYTES_MAX);
  readonly #other = new Uint8Array(NAME_BYTES_MAX);
  readonly #rdata = new Uint8Array(RDATA_BYTES_MAX);
  /** Names that the chain has passed, one behind the other; the last is the target. */
  readonly #passed = new Uint8Array((ALIASES_MAX + 2) * NAME_BYTES_MAX);
  #passedCount = 0;
  #lead = ROOT;
  /** Where the owners of its DNAME records stand in the lead. */
  readonly #leadDnames: number[] = [];

  #packet: Uint8Array = new Uint8Array(0);
  #end = 0;
  #answersAt = 0;
  #answers = 0;
  #authoritiesAt = 0;
  #authorities = 0;
  #qtype = 0;
  #dnssecOk = false;
  #zone = ROOT;
  #isBroken = false;

  constructor(bounds: TtlBounds) {
    this.#bounds = bounds;
  }

  /**
   * Scrubs a response that fits its question. `lead` is what goes before: the client's question, or
   * a message with that and with the chain so far. Of a name server, asked for a `zone`, nothing is kept
   * that is not at or below that, and of a chain no more than the first link: what the target has is for
   * the target's own answer to say.
   */
  scrub(
    response: ResponseReader,
    dnssecOk: boolean,
    lead: Uint8Array,
    zone: Uint8Array | null = null,
  ): Scrubbed {
    const { packet, flags, rcode } = response;
    this.#packet = packet;
    this.#end = response.length;
    this.#answersAt = response.answersAt;
    this.#answers = response.answers;
    this.#authoritiesAt = response.authoritiesAt;
    this.#authorities = Math.min(response.authorities, AUTHORITIES_MAX);
    this.#qtype = getU16(packet, response.answersAt - 4);
    this.#dnssecOk = dnssecOk;
    this.#zone = zone ?? ROOT;
    this.#isBroken = false;
    this.ttlCount = 0;
    this.ttl = 0xffffffff;
    this.isFounded = false;
    const before = this.#start(lead);
    const leadCount = this.ttlCount;
    this.#passedCount = 0;
    this.#pass(packet, HEADER_BYTES);
    let aliases = 0;
    let hasAnswer = this.#copyRrset(this.#qtype);
    while (!hasAnswer && (this.#follow() || (rcode !== Rcode.YXDomain && this.#expand()))) {
      if (before + ++aliases > ALIASES_MAX) return Scrubbed.Endless;
      // Who asks for a CNAME has it by now: the one that a DNAME stands for.
      hasAnswer = this.#qtype === Qtype.CNAME;
      if (hasAnswer || zone !== null) break;
      hasAnswer = this.#copyRrset(this.#qtype);
    }
    // A DNAME whose CNAME would be too long is all there is to say (RFC 6672 §2.2).
    if (rcode === Rcode.YXDomain) this.#copyDname();
    const isOpen = !hasAnswer && aliases > 0 &&
      (zone !== null || (rcode === Rcode.NoError && !this.#hasSoa()));
    this.#copyProofs(lead);
    this.#copyAuthority(isOpen || (hasAnswer && rcode === Rcode.NoError));
    if (this.#isBroken) return Scrubbed.Broken;
    this.length = this.#writer.lengthBytes;
    if (!isOpen) {
      this.isFounded ||= hasAnswer;
      if (!this.isFounded) this.ttl = Math.min(this.ttl, DENIAL_TTL, this.#bounds.negativeMax);
    }
    if (response.isCut) this.ttl = 0;
    if (isOpen) return Scrubbed.Open;
    const isEmpty = this.ttlCount === leadCount;
    this.isBare = isEmpty && (flags & (AA_BIT | RA_BIT)) === 0;
    const isOther = this.#answers > 0 || (response.refers && (flags & AA_BIT) === 0);
    return isEmpty && isOther ? Scrubbed.Nothing : Scrubbed.Whole;
  }

  /** Writes header, question and the records of `lead`; returns the CNAME records among them. */
  #start(lead: Uint8Array): number {
    const packet = this.#packet;
    const flags = getU16(packet, 2);
    const leadFlags = getU16(lead, 2);
    // One part that nobody has vouched for is enough to lose AD; a query says nothing about that.
    const ad = (leadFlags & QR_BIT) === 0 ? AD_BIT : leadFlags & AD_BIT;
    // AA is not ours to say, RA is; Z is left out.
    const kept = QR_BIT | RA_BIT | (flags & (RCODE_MASK | ad));
    const writer = this.#writer;
    const nameEnd = skipName(lead, HEADER_BYTES, lead.length);
    const [qtype, qclass] = [getU16(lead, nameEnd), getU16(lead, nameEnd + 2)];
    const isWritten = writer.start(this.message, 0, MESSAGE_BYTES_MAX, getU16(packet, 0), kept) &&
      writer.question(lead.subarray(HEADER_BYTES, nameEnd), qtype, qclass);
    this.#isBroken = !isWritten;
    this.#lead = lead;
    this.#leadDnames.length = 0;
    let aliases = 0;
    let at = nameEnd + 4;
    for (let left = getU16(lead, 6); left > 0; left--) {
      at = readRecord(lead, at, lead.length, this.#record);
      const { type, ownerOffset } = this.#record;
      if (type === Qtype.CNAME) aliases++;
      if (type === Qtype.DNAME) this.#leadDnames.push(ownerOffset);
      this.#copy(lead, Section.Answer);
    }
    return aliases;
  }

  /** Copies the proofs that go with the chain so far. */
  #copyProofs(lead: Uint8Array): void {
    let at = skipName(lead, HEADER_BYTES, lead.length) + 4;
    for (let i = getU16(lead, 6); i > 0; i--) at = readRecord(lead, at, lead.length, this.#record);
    for (let i = getU16(lead, 8); i > 0; i--) {
      at = readRecord(lead, at, lead.length, this.#record);
      this.#copy(lead, Section.Authority);
    }
  }

  /** Goes on to the name at `offset`. */
  #pass(packet: Uint8Array, offset: number): void {
    if (expandName(packet, offset, this.target, 0, this.#end) < 0) this.#isBroken = true;
    this.#notePassed();
  }

  #notePassed(): void {
    this.#passed.set(this.target, this.#passedCount++ * NAME_BYTES_MAX);
  }

  /** Reads the record at `at` and its owner; returns where the next is. */
  #read(at: number): number {
    const next = readRecord(this.#packet, at, this.#end, this.#record);
    expandName(this.#packet, at, this.#owner, 0, this.#end);
    return next;
  }

  /** Says whether the record at hand is of the question's class, and of a name in the zone. */
  #isOurs(): boolean {
    return this.#record.cls === getU16(this.#packet, this.#answersAt - 2) &&
      (this.#zone.length === 1 || isAtOrBelow(this.#owner, 0, this.#zone, 0));
  }

  /** Copies the RRset of `type` of the target, one record of a CNAME; false: there is none. */
  #copyRrset(type: number): boolean {
    const record = this.#record;
    let at = this.#answersAt;
    let isFound = false;
    for (let i = 0; i < this.#answers; i++) {
      at = this.#read(at);
      if (record.type !== type || !this.#isOurs()) continue;
      if (isFound && type === Qtype.CNAME) continue; // A name has one (RFC 2181 §10.1).
      if (!equalNames(this.#owner, 0, this.target, 0)) continue;
      this.#copy(this.#packet, Section.Answer);
      isFound = true;
    }
    if (isFound) this.#copySignatures(type, this.target);
    return isFound;
  }

  /** Copies the signatures over an RRset. */
  #copySignatures(type: number, owner: Uint8Array): void {
    if (!this.#dnssecOk) return;
    const record = this.#record;
    let at = this.#answersAt;
    for (let i = 0; i < this.#answers; i++) {
      at = this.#read(at);
      if (record.type !== Qtype.RRSIG || !this.#isOurs() || this.#covered() !== type) continue;
      if (equalNames(this.#owner, 0, owner, 0)) this.#copy(this.#packet, Section.Answer);
    }
  }

  /** Copies the CNAME of the target, and goes on to its own; false: there is none. */
  #follow(): boolean {
    const record = this.#record;
    let at = this.#answersAt;
    for (let i = 0; i < this.#answers; i++) {
      at = this.#read(at);
      if (record.type !== Qtype.CNAME || !this.#isOurs()) continue;
      if (!equalNames(this.#owner, 0, this.target, 0)) continue;
      const { rdataOffset } = record;
      this.#copyDname();
      this.#copyRrset(Qtype.CNAME);
      this.#pass(this.#packet, rdataOffset);
      return true;
    }
    return false;
  }

  /**
   * Goes on by the DNAME above the target, and writes the CNAME it stands for, which the server has
   * left out (RFC 6672 §3.1); false: there is none.
   */
  #expand(): boolean {
    const at = this.#copyDname();
    if (at < 0) return false;
    this.#read(at);
    const { cls, ttl, rdataOffset, end } = this.#record;
    const owner = this.target.slice(0, skipPlainName(this.target, 0));
    const prefixLength = owner.length - skipPlainName(this.#owner, 0);
    const made = this.#rdata;
    // The case of our query's letters is nobody's business.
    for (let i = 0; i < prefixLength; i++) made[i] = FOLD[owner[i]];
    const length = expandName(this.#packet, rdataOffset, this.#other, 0, end);
    if (length < 0 || prefixLength + length > NAME_BYTES_MAX) {
      this.#isBroken = true;
      return false;
    }
    made.set(this.#other.subarray(0, length), prefixLength);
    const name = made.subarray(0, prefixLength + length);
    this.#write(Section.Answer, owner, Qtype.CNAME, cls, this.#clamped(ttl), name);
    this.target.set(name);
    this.#notePassed();
    return true;
  }

  /** Copies the DNAME above the target; returns where it stands, or -1. */
  #copyDname(): number {
    const record = this.#record;
    let next = this.#answersAt;
    for (let i = 0; i < this.#answers; i++) {
      const at = next;
      next = this.#read(at);
      if (record.type !== Qtype.DNAME || !this.#isOurs()) continue;
      if (!isAtOrBelow(this.target, 0, this.#owner, 0)) continue;
      if (equalNames(this.target, 0, this.#owner, 0)) continue;
      if (this.#isInLead(this.#owner)) return at; // A chain may pass the same one twice.
      this.#copy(this.#packet, Section.Answer);
      this.#other.set(this.#owner);
      this.#copySignatures(Qtype.DNAME, this.#other);
      return at;
    }
    return -1;
  }

  #isInLead(dname: Uint8Array): boolean {
    return this.#leadDnames.some((at) =>
      expandName(this.#lead, at, this.#other, 0) >= 0 && equalNames(this.#other, 0, dname, 0)
    );
  }

  /** Says whether the authority section holds an SOA for the target. */
  #hasSoa(): boolean {
    let at = this.#authoritiesAt;
    for (let i = 0; i < this.#authorities; i++) {
      at = this.#read(at);
      if (this.#isSoaOfTarget()) return true;
    }
    return false;
  }

  #isSoaOfTarget(): boolean {
    return this.#record.type === Qtype.SOA && this.#isOurs() &&
      isAtOrBelow(this.target, 0, this.#owner, 0);
  }

  /** Copies the SOA of a denial, and for who asks for them the proofs of what was said. */
  #copyAuthority(isPositive: boolean): void {
    let at = this.#authoritiesAt;
    let hasSoa = false;
    for (let i = 0; i < this.#authorities; i++) {
      const start = at;
      at = this.#read(at);
      if (!isPositive && !hasSoa && this.#isSoaOfTarget()) {
        hasSoa = this.isFounded = true;
        this.#copySoa(at);
      } else if (this.#dnssecOk && this.#isOurs() && this.#isProof(start)) {
        this.#read(start);
        if (isPositive && this.#isAboutSoa()) continue;
        this.#copy(this.#packet, Section.Authority);
      }
    }
  }

  /** A signature over an SOA, which a positive answer does not have. */
  #isAboutSoa(): boolean {
    return this.#record.type === Qtype.RRSIG && this.#covered() === Qtype.SOA;
  }

  /** Says whether the record at `at` is part of a signed proof about a name of the chain. */
  #isProof(at: number): boolean {
    const record = this.#record;
    const { type } = record;
    if (type === Qtype.RRSIG) {
      const covered = this.#covered();
      return (covered === Qtype.SOA || isProofType(covered)) && this.#isSignedHere();
    }
    if (!isProofType(type)) return false;
    this.#other.set(this.#owner);
    let next = this.#authoritiesAt;
    for (let i = 0; i < this.#authorities; i++) {
      if (next === at) {
        next = this.#read(next);
        continue;
      }
      next = this.#read(next);
      if (record.type !== Qtype.RRSIG || this.#covered() !== type) continue;
      if (equalNames(this.#owner, 0, this.#other, 0) && this.#isSignedHere()) return true;
    }
    return false;
  }

  /** Says whether the signature at hand is of a zone above its owner and a name of the chain. */
  #isSignedHere(): boolean {
    const { rdataOffset, end } = this.#record;
    const signer = this.#rdata;
    const at = rdataOffset + RRSIG_SIGNER_OFFSET;
    if (at >= end || expandName(this.#packet, at, signer, 0, end) < 0) return false;
    if (!isAtOrBelow(this.#owner, 0, signer, 0)) return false;
    for (let i = 0; i < this.#passedCount; i++) {
      if (isAtOrBelow(this.#passed, i * NAME_BYTES_MAX, signer, 0)) return true;
    }
    return false;
  }

  /** The type that the RRSIG at hand covers. */
  #covered(): number {
    const { rdataOffset, rdataLength } = this.#record;
    return rdataLength < RRSIG_SIGNER_OFFSET ? 0 : getU16(this.#packet, rdataOffset);
  }

  /** The time of a denial (RFC 2308 §5): the SOA's own TTL or its last field. */
  #copySoa(end: number): void {
    const { min, negativeMax } = this.#bounds;
    const soaTtl = Math.min(seconds(this.#record.ttl), getU32(this.#packet, end - 4), negativeMax);
    this.#copy(this.#packet, Section.Authority, Math.max(soaTtl, Math.min(min, negativeMax)));
  }

  /** Copies the record at hand, its TTL clamped. */
  #copy(packet: Uint8Array, section: Section, ttl = this.#clamped(this.#record.ttl)): void {
    const { type, cls, ownerOffset, rdataOffset, rdataLength } = this.#record;
    const rdata = this.#rdata;
    const ownerLength = expandName(packet, ownerOffset, this.#owner, 0);
    const length = copyRdata(packet, type, rdataOffset, rdataLength, rdata, 0);
    if (length < 0) this.#isBroken = true;
    else {
      const owner = this.#owner.subarray(0, ownerLength);
      this.#write(section, owner, type, cls, ttl, rdata.subarray(0, length));
    }
  }

  #write(
    section: Section,
    owner: Uint8Array,
    type: number,
    cls: number,
    ttl: number,
    rdata: Uint8Array,
  ): void {
    const isWritten = this.ttlCount < TTLS_MAX && rdata.length <= MESSAGE_BYTES_MAX &&
      this.#writer.record(section, owner, type, cls, ttl, rdata);
    if (!isWritten) {
      this.#isBroken = true;
      return;
    }
    this.ttlOffsets[this.ttlCount++] = this.#writer.ttlOffset;
    // Proofs have their own times, which validators look at.
    if (section === Section.Answer || type === Qtype.SOA) this.ttl = Math.min(this.ttl, ttl);
  }

  #clamped(ttl: number): number {
    return Math.min(Math.max(seconds(ttl), this.#bounds.min), this.#bounds.max);
  }
}

/** The top bit set means zero (RFC 2181 §8). */
function seconds(ttl: number): number {
  return ttl > 0x7fffffff ? 0 : ttl;
}

function isProofType(type: number): boolean {
  return type === Qtype.NSEC || type === Qtype.NSEC3;
}
