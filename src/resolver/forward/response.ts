import { getU16, getU32, setU16, setU32 } from "../../bytes/mod.ts";
import { TTLS_MAX } from "../../cache/mod.ts";
import {
  AD_BIT,
  checkRdata,
  EdnsOption,
  expandName,
  FOLD,
  HEADER_BYTES,
  NAME_BYTES_MAX,
  OPCODE_MASK,
  QR_BIT,
  Qtype,
  RA_BIT,
  Rcode,
  RCODE_MASK,
  readRecord,
  RecordView,
  TC_BIT,
} from "../../dns/mod.ts";

/** What a packet from an upstream is to the question that was asked. */
export const Fit = {
  /** Not an answer to it: malformed, or to another question. The wait goes on. */
  Mismatched: 0,
  /** An answer to it, but for the case of the letters: forged, or from a server that folds them. */
  WrongCase: 4,
  /** An answer that may be kept. */
  Answer: 1,
  /** Cut; ask again over TCP. */
  Truncated: 2,
  /** The upstream can't or won't: another one may. */
  Failure: 3,
} as const;
export type Fit = typeof Fit[keyof typeof Fit];

/** Bounds on TTLs, from the configuration, in seconds. */
export interface TtlBounds {
  readonly min: number;
  readonly max: number;
  readonly negativeMax: number;
}

const DO_NSEC_TYPES: readonly number[] = [Qtype.NSEC, Qtype.NSEC3, Qtype.RRSIG];
/** Most records of one response that are read. */
const RECORDS_MAX = TTLS_MAX;
/** Extended errors that say the answer is bogus (RFC 8914 §4.6 to 4.13): the same everywhere. */
const EDE_BOGUS_MIN = 6;
const EDE_BOGUS_MAX = 12;

/**
 * Reads one response in place and makes it fit to keep: TTLs clamped, nothing behind the sections
 * that a client needs. One per forwarder; its fields speak of the last packet read.
 */
export class ResponseReader {
  rcode = 0;
  /** Bytes that are kept: a whole message with its counts patched. */
  length = 0;
  /** Seconds until the answer expires; 0 when it must not be kept. */
  ttl = 0;
  /** The upstream's own extended error, or -1. */
  ede = -1;
  /** It came with an OPT record. */
  hasOpt = false;
  readonly ttlOffsets: Uint16Array = new Uint16Array(TTLS_MAX);
  ttlCount = 0;

  readonly #record = new RecordView();
  /** Scratch for names that are only checked. */
  readonly #owner = new Uint8Array(NAME_BYTES_MAX);
  readonly #bounds: TtlBounds;

  constructor(bounds: TtlBounds) {
    this.#bounds = bounds;
  }

  /** The failure is one of validation, and asking elsewhere would only hide it. */
  get bogus(): boolean {
    return this.ede >= EDE_BOGUS_MIN && this.ede <= EDE_BOGUS_MAX;
  }

  /**
   * Reads the first `length` bytes of `packet` as a response to the query `asked`, byte for byte
   * the question that was sent, ID and case included (RFC 5452 §9.1). Over a stream of our own nobody
   * forges an answer, so that the case of the letters says nothing there, and one that is cut can't
   * be had whole: what it holds is handed on, and not kept.
   */
  read(
    packet: Uint8Array,
    length: number,
    asked: Uint8Array,
    questionEnd: number,
    dnssecOk: boolean,
    overStream = false,
  ): Fit {
    if (length < questionEnd) return Fit.Mismatched;
    if (getU16(packet, 0) !== getU16(asked, 0) || getU16(packet, 4) !== 1) return Fit.Mismatched;
    const flags = getU16(packet, 2);
    if ((flags & QR_BIT) === 0 || (flags & OPCODE_MASK) !== 0) return Fit.Mismatched;
    let sameCase = true;
    for (let i = HEADER_BYTES; i < questionEnd; i++) {
      if (packet[i] === asked[i]) continue;
      if (FOLD[packet[i]] !== FOLD[asked[i]]) return Fit.Mismatched;
      sameCase = false;
    }
    if (!sameCase && !overStream) return Fit.WrongCase;
    const isCut = (flags & TC_BIT) !== 0;
    if (isCut && !overStream) return Fit.Truncated;
    this.rcode = flags & RCODE_MASK;
    this.ede = -1;
    this.hasOpt = false;
    this.ttlCount = 0;
    // Cut to nothing, it is no denial but no answer at all.
    if (isCut && getU16(packet, 6) === 0) return Fit.Failure;
    const fit = this.#readSections(packet, length, questionEnd, dnssecOk, flags);
    if (isCut) this.ttl = 0;
    return fit;
  }

  #readSections(
    packet: Uint8Array,
    length: number,
    questionEnd: number,
    dnssecOk: boolean,
    flags: number,
  ): Fit {
    const answers = getU16(packet, 6);
    const authorities = getU16(packet, 8);
    const additionals = getU16(packet, 10);
    if (answers + authorities + additionals > RECORDS_MAX) return Fit.Mismatched;
    const qtype = getU16(packet, questionEnd - 4);
    const record = this.#record;
    let at = questionEnd;
    let answerTtl = 0xffffffff;
    let hasAnswer = false;
    for (let i = 0; i < answers; i++) {
      at = this.#readWhole(packet, at, length);
      if (at < 0) return Fit.Mismatched;
      hasAnswer ||= record.type === qtype;
      answerTtl = Math.min(answerTtl, this.#clampTtl(packet, record.rdataOffset - 6));
    }
    const answersEnd = at;
    let soaTtl = -1;
    let referral = false;
    for (let i = 0; i < authorities; i++) {
      at = this.#readWhole(packet, at, length);
      if (at < 0) return Fit.Mismatched;
      if (record.type === Qtype.SOA && record.rdataLength >= 22) {
        // The time of a negative answer (RFC 2308 §5): the SOA's own TTL or its last field.
        soaTtl = Math.min(record.ttl, getU32(packet, at - 4), this.#bounds.negativeMax);
        soaTtl = Math.max(soaTtl, Math.min(this.#bounds.min, this.#bounds.negativeMax));
        setU32(packet, record.rdataOffset - 6, soaTtl);
        this.#note(record.rdataOffset - 6);
      } else {
        referral ||= record.type === Qtype.NS;
        this.#clampTtl(packet, record.rdataOffset - 6);
      }
    }
    const authoritiesEnd = at;
    const authorityTtls = this.ttlCount;
    let extended = 0;
    let hasOpt = false;
    for (let i = 0; i < additionals; i++) {
      at = this.#readWhole(packet, at, length);
      if (at < 0) return Fit.Mismatched;
      if (record.type === Qtype.OPT) {
        this.hasOpt = true;
        if (hasOpt) return Fit.Mismatched; // One at most (RFC 6891 §6.1.1).
        hasOpt = true;
        extended = record.ttl >>> 24;
        this.#readOptions(packet, record.rdataOffset, at);
      }
    }
    if (extended !== 0) return Fit.Failure;
    if (this.rcode !== Rcode.NoError && this.rcode !== Rcode.NXDomain) {
      // YXDOMAIN is a DNAME too long, an answer (RFC 6672 §2.2); the others are no answers.
      if (this.rcode !== Rcode.YXDomain) return Fit.Failure;
    }
    const negative = this.rcode !== Rcode.NoError || !hasAnswer;
    // Neither an answer nor a denial: this upstream does not recurse for us.
    if (negative && answers === 0 && soaTtl < 0 && referral) return Fit.Failure;
    if (negative && answers === 0 && (flags & RA_BIT) === 0 && soaTtl < 0) return Fit.Failure;

    // A positive answer needs no authority section, but for the proofs of a wildcard.
    const keepAuthority = negative ||
      (dnssecOk && this.#hasProofs(packet, answersEnd, authorities));
    this.length = keepAuthority ? authoritiesEnd : answersEnd;
    this.ttlCount = keepAuthority ? authorityTtls : answers;
    if (!keepAuthority) setU16(packet, 8, 0);
    setU16(packet, 10, 0);
    // AA is not ours to say, RA is; Z is left out.
    setU16(packet, 2, (flags & (QR_BIT | AD_BIT | RCODE_MASK)) | RA_BIT);
    this.ttl = negative
      ? (soaTtl < 0 ? 0 : answers === 0 ? soaTtl : Math.min(soaTtl, answerTtl))
      : answerTtl;
    return Fit.Answer;
  }

  /** Reads the next record if its owner and its RDATA are well formed, else returns -1. */
  #readWhole(packet: Uint8Array, at: number, end: number): number {
    const record = this.#record;
    const next = readRecord(packet, at, end, record);
    // To the record's own end: what stands behind it may not be kept, and no name may reach there.
    if (next < 0 || expandName(packet, at, this.#owner, 0, next) < 0) return -1;
    const { type, rdataOffset, rdataLength } = record;
    return checkRdata(packet, type, rdataOffset, rdataLength) ? next : -1;
  }

  #hasProofs(packet: Uint8Array, from: number, count: number): boolean {
    let at = from;
    for (let i = 0; i < count; i++) {
      at = readRecord(packet, at, packet.length, this.#record);
      if (at < 0) return false;
      if (DO_NSEC_TYPES.includes(this.#record.type)) return true;
    }
    return false;
  }

  /** Clamps the TTL at `at` in place, and notes where it stands. */
  #clampTtl(packet: Uint8Array, at: number): number {
    const raw = getU32(packet, at);
    // The top bit set means zero (RFC 2181 §8).
    const ttl = raw > 0x7fffffff ? 0 : raw;
    const clamped = Math.min(Math.max(ttl, this.#bounds.min), this.#bounds.max);
    if (clamped !== raw) setU32(packet, at, clamped);
    this.#note(at);
    return clamped;
  }

  #note(at: number): void {
    this.ttlOffsets[this.ttlCount++] = at;
  }

  #readOptions(packet: Uint8Array, from: number, end: number): void {
    let at = from;
    while (at + 4 <= end) {
      const length = getU16(packet, at + 2);
      if (at + 4 + length > end) return;
      if (getU16(packet, at) === EdnsOption.Ede && length >= 2 && this.ede < 0) {
        this.ede = getU16(packet, at + 4);
      }
      at += 4 + length;
    }
  }
}
