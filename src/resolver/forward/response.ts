import { getU16 } from "../../bytes/mod.ts";
import { TTLS_MAX } from "../../cache/mod.ts";
import {
  AA_BIT,
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
import { ExtendedErrors } from "../extended_errors.ts";
import { Scrubbed, Scrubber, type TtlBounds } from "./scrubber.ts";

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
  /** An answer to it that is malformed: another upstream may do better, and a true one may follow. */
  Broken: 5,
  /** A chain of CNAME records whose end is still to be asked for. */
  Open: 6,
  /** A chain of CNAME records that leads in a circle, or too far. */
  Endless: 7,
} as const;
export type Fit = typeof Fit[keyof typeof Fit];

/** What a scrubbed response is to its question. */
const FITS: Readonly<Record<Scrubbed, Fit>> = {
  [Scrubbed.Whole]: Fit.Answer,
  [Scrubbed.Open]: Fit.Open,
  [Scrubbed.Broken]: Fit.Broken,
  [Scrubbed.Endless]: Fit.Endless,
};

/** Most records of one response that are read. */
const RECORDS_MAX = TTLS_MAX;
/** Extended errors that say the answer is bogus (RFC 8914 §4.6 to 4.13): the same everywhere. */
const EDE_BOGUS_MIN = 6;
const EDE_BOGUS_MAX = 12;

/**
 * Reads one response and makes of it what may be kept: see `Scrubber`. One per forwarder; its fields
 * speak of the last packet read.
 */
export class ResponseReader {
  rcode = 0;
  /** Bytes that are kept. */
  length = 0;
  /** Seconds until the answer expires; 0 when it must not be kept. */
  ttl = 0;
  ttlCount = 0;
  /** The upstream's own extended errors. */
  readonly errors: ExtendedErrors = new ExtendedErrors();
  /** It came with an OPT record. */
  hasOpt = false;
  /**
   * It says nothing, on nobody's authority: who is asked for every name does not recurse for us, and
   * who is asked for names of its own denies.
   */
  isBare = false;

  readonly #record = new RecordView();
  /** Scratch for names that are only checked. */
  readonly #owner = new Uint8Array(NAME_BYTES_MAX);
  readonly #scrubber: Scrubber;

  constructor(bounds: TtlBounds) {
    this.#scrubber = new Scrubber(bounds);
  }

  /** What is kept of an answer or of a chain: a whole message, good until the next `read`. */
  get message(): Uint8Array {
    return this.#scrubber.message;
  }

  get ttlOffsets(): Uint16Array {
    return this.#scrubber.ttlOffsets;
  }

  /** The name that is still to be asked for, uncompressed. */
  get target(): Uint8Array {
    return this.#scrubber.target;
  }

  /** The failure is one of validation, and asking elsewhere would only hide it. */
  get bogus(): boolean {
    return this.errors.has(EDE_BOGUS_MIN, EDE_BOGUS_MAX);
  }

  /**
   * Reads the first `length` bytes of `packet` as a response to the query `asked`, byte for byte
   * the question that was sent, ID and case included (RFC 5452 §9.1). Over a stream of our own nobody
   * forges an answer, so that the case of the letters says nothing there, and one that is cut can't
   * be had whole: what it holds is handed on, and not kept. `lead` is what the answer goes behind:
   * the client's question, or a message with the chain so far.
   */
  read(
    packet: Uint8Array,
    length: number,
    asked: Uint8Array,
    questionEnd: number,
    dnssecOk: boolean,
    overStream = false,
    lead: Uint8Array = asked,
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
    this.errors.clear();
    this.hasOpt = false;
    // Cut to nothing, it is no denial but no answer at all.
    if (isCut && getU16(packet, 6) === 0) return Fit.Failure;
    const fit = this.#readSections(packet, length, questionEnd, dnssecOk, lead);
    if (isCut) this.ttl = 0;
    return fit;
  }

  #readSections(
    packet: Uint8Array,
    length: number,
    questionEnd: number,
    dnssecOk: boolean,
    lead: Uint8Array,
  ): Fit {
    const flags = getU16(packet, 2);
    const answers = getU16(packet, 6);
    const authorities = getU16(packet, 8);
    const additionals = getU16(packet, 10);
    if (answers + authorities + additionals > RECORDS_MAX) return Fit.Broken;
    let at = questionEnd;
    for (let i = 0; i < answers && at >= 0; i++) at = this.#readWhole(packet, at, length);
    const authoritiesAt = at;
    let refers = false;
    for (let i = 0; i < authorities && at >= 0; i++) {
      at = this.#readWhole(packet, at, length);
      refers ||= this.#record.type === Qtype.NS;
    }
    let extended = 0;
    for (let i = 0; i < additionals && at >= 0; i++) {
      at = this.#readRecord(packet, at, length);
      if (at < 0 || this.#record.type !== Qtype.OPT) continue;
      if (this.hasOpt) return Fit.Broken; // One at most (RFC 6891 §6.1.1).
      this.hasOpt = true;
      extended = this.#record.ttl >>> 24;
      this.#readOptions(packet, this.#record.rdataOffset, at);
    }
    if (at < 0) return Fit.Broken;
    if (extended !== 0) return Fit.Failure;
    if (this.rcode !== Rcode.NoError && this.rcode !== Rcode.NXDomain) {
      // YXDOMAIN is a DNAME too long, an answer (RFC 6672 §2.2); the others are no answers.
      if (this.rcode !== Rcode.YXDomain) return Fit.Failure;
    }
    const scrubber = this.#scrubber;
    const scrubbed = scrubber.scrub(packet, length, questionEnd, authoritiesAt, dnssecOk, lead);
    this.length = scrubber.length;
    this.ttl = scrubber.ttl;
    this.ttlCount = scrubber.ttlCount;
    if (scrubbed !== Scrubbed.Whole) return FITS[scrubbed];
    this.isBare = false;
    if (!scrubber.isEmpty) return Fit.Answer;
    // What it speaks of is something else; or it refers us to others, and does not recurse for us.
    if (answers > 0 || (refers && (flags & AA_BIT) === 0)) return Fit.Failure;
    this.isBare = (flags & (AA_BIT | RA_BIT)) === 0;
    return Fit.Answer;
  }

  /** As `#readRecord` for a record that may be kept, whose RDATA has to be well formed as well. */
  #readWhole(packet: Uint8Array, at: number, end: number): number {
    const next = this.#readRecord(packet, at, end);
    const { type, rdataOffset, rdataLength } = this.#record;
    return next >= 0 && checkRdata(packet, type, rdataOffset, rdataLength) ? next : -1;
  }

  /** Reads the next record if it is whole and its owner well formed, else returns -1. */
  #readRecord(packet: Uint8Array, at: number, end: number): number {
    const next = readRecord(packet, at, end, this.#record);
    // To the record's own end: no name may reach behind it.
    return next < 0 || expandName(packet, at, this.#owner, 0, next) < 0 ? -1 : next;
  }

  #readOptions(packet: Uint8Array, from: number, end: number): void {
    let at = from;
    while (at + 4 <= end) {
      const length = getU16(packet, at + 2);
      if (at + 4 + length > end) return;
      if (getU16(packet, at) === EdnsOption.Ede) this.errors.add(packet, at + 4, length);
      at += 4 + length;
    }
  }
}
