import { getU16 } from "../../bytes/mod.ts";
import { TTLS_MAX } from "../../cache/mod.ts";
import {
  checkRdata,
  EdnsOption,
  expandName,
  FOLD,
  HEADER_BYTES,
  NAME_BYTES_MAX,
  OPCODE_MASK,
  QR_BIT,
  Qtype,
  Rcode,
  RCODE_MASK,
  readRecord,
  RecordView,
  skipQuestion,
  TC_BIT,
} from "../../dns/mod.ts";
import { ExtendedErrors } from "../extended_errors.ts";

/** What a packet is to the question that was asked. */
export const Fit = {
  /** Not a response to it: malformed, or to another question. The wait goes on. */
  Mismatched: 0,
  /** A response to it, but for the case of the letters: forged, or from a server that folds them. */
  WrongCase: 1,
  /** A response to it: what that says is to be read. */
  Response: 2,
  /** Cut; ask again over TCP. */
  Truncated: 3,
  /** The server can't or won't: another one may. */
  Failure: 4,
  /** A response to it that is malformed: another server may do better, and a true one may follow. */
  Broken: 5,
} as const;
export type Fit = typeof Fit[keyof typeof Fit];

const NOTHING = new Uint8Array(0);
/** Bytes of both cookies, the client's and the server's (RFC 7873 §4). */
const COOKIE_BYTES_MIN = 16;
export const COOKIE_BYTES_MAX = 40;
/** Most records of one response that are read. */
const RECORDS_MAX = TTLS_MAX;
/** Extended errors that say the answer is bogus (RFC 8914 §4.6 to 4.13): the same everywhere. */
const EDE_BOGUS_MIN = 6;
const EDE_BOGUS_MAX = 12;

/**
 * Reads a packet as the response to a question: whether it fits, what it says of itself, and where
 * its records are, all of them, referrals and glue as well. What is kept of it is another step's, the
 * `Scrubber`'s. Its fields speak of the packet read last, as long as the caller leaves that as it is.
 */
export class ResponseReader {
  packet: Uint8Array = NOTHING;
  /** Bytes of the message. */
  length = 0;
  flags = 0;
  rcode = 0;
  /** Records of each section, and where its first one is. OPT is one of the additional ones. */
  answers = 0;
  answersAt = 0;
  authorities = 0;
  authoritiesAt = 0;
  additionals = 0;
  additionalsAt = 0;
  /** The authority section holds NS records: of a server that is not AA, a referral. */
  refers = false;
  /** It was cut, and came over a stream: what it holds is not to be kept. */
  isCut = false;
  /** The server's own extended errors. */
  readonly errors: ExtendedErrors = new ExtendedErrors();
  /** It came with an OPT record. */
  hasOpt = false;
  /** Where the data of its cookie is (RFC 7873), of client and server; 0 bytes: it has none. */
  cookieAt = 0;
  cookieLength = 0;

  /** Where the data of its client subnet is (RFC 7871); 0 bytes: it has none. */
  subnetAt = 0;
  subnetLength = 0;

  readonly #record = new RecordView();
  /** Scratch for names that are only checked. */
  readonly #owner = new Uint8Array(NAME_BYTES_MAX);
  /** The failure is one of validation, and asking elsewhere would only hide it. */
  get bogus(): boolean {
    return this.errors.has(EDE_BOGUS_MIN, EDE_BOGUS_MAX);
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
    overStream = false,
  ): Fit {
    if (length < questionEnd) return this.#readBare(packet, length, asked, overStream);
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
    this.isCut = (flags & TC_BIT) !== 0;
    if (this.isCut && !overStream) return Fit.Truncated;
    this.#begin(packet, length, flags);
    this.answersAt = questionEnd;
    // Cut to nothing, it is no denial but no answer at all.
    if (this.isCut && getU16(packet, 6) === 0) return Fit.Failure;
    return this.#readSections(packet, length, questionEnd);
  }

  /**
   * A server that knows no EDNS may answer FORMERR by a header alone. That is easily forged, so over
   * UDP it only gives reason to ask over TCP.
   */
  #readBare(
    packet: Uint8Array,
    length: number,
    asked: Uint8Array,
    overStream: boolean,
  ): Fit {
    if (length !== HEADER_BYTES || getU16(packet, 0) !== getU16(asked, 0)) return Fit.Mismatched;
    const flags = getU16(packet, 2);
    const isFormErr = (flags & (QR_BIT | OPCODE_MASK | RCODE_MASK)) === (QR_BIT | Rcode.FormErr);
    if (!isFormErr || getU16(packet, 4) !== 0) return Fit.Mismatched;
    if (!overStream) return Fit.Broken;
    this.#begin(packet, length, flags);
    this.answers = this.authorities = this.additionals = 0;
    return Fit.Failure;
  }

  #begin(packet: Uint8Array, length: number, flags: number): void {
    this.packet = packet;
    this.length = length;
    this.flags = flags;
    this.rcode = flags & RCODE_MASK;
    this.errors.clear();
    this.hasOpt = this.refers = false;
    this.cookieLength = this.subnetLength = 0;
  }

  /** Reads a response that is kept here, or was made here; says whether it holds an answer. */
  readKept(message: Uint8Array): boolean {
    const questionEnd = skipQuestion(message, HEADER_BYTES, message.length);
    if (questionEnd < 0) return false;
    return this.read(message, message.length, message, questionEnd, true) === Fit.Response;
  }

  /**
   * Owner names of all records are well formed, and so is the RDATA of those that may be kept; of
   * additional ones it lies within the message, and whoever uses one looks at it (`checkRdata`).
   */
  #readSections(packet: Uint8Array, length: number, questionEnd: number): Fit {
    this.answers = getU16(packet, 6);
    this.authorities = getU16(packet, 8);
    this.additionals = getU16(packet, 10);
    if (this.answers + this.authorities + this.additionals > RECORDS_MAX) return Fit.Broken;
    let at = questionEnd;
    for (let i = 0; i < this.answers && at >= 0; i++) at = this.#readWhole(packet, at, length);
    this.authoritiesAt = at;
    for (let i = 0; i < this.authorities && at >= 0; i++) {
      at = this.#readWhole(packet, at, length);
      this.refers ||= this.#record.type === Qtype.NS;
    }
    this.additionalsAt = at;
    let extended = 0;
    for (let i = 0; i < this.additionals && at >= 0; i++) {
      at = this.#readRecord(packet, at, length);
      if (at < 0 || this.#record.type !== Qtype.OPT) continue;
      if (this.hasOpt) return Fit.Broken; // One at most (RFC 6891 §6.1.1).
      this.hasOpt = true;
      extended = this.#record.ttl >>> 24;
      this.#readOptions(packet, this.#record.rdataOffset, at);
    }
    if (at < 0) return Fit.Broken;
    if (extended !== 0) {
      this.rcode |= extended << 4;
      return Fit.Failure;
    }
    if (this.rcode === Rcode.NoError || this.rcode === Rcode.NXDomain) return Fit.Response;
    // YXDOMAIN is a DNAME too long, an answer (RFC 6672 §2.2); the others are no answers.
    return this.rcode === Rcode.YXDomain ? Fit.Response : Fit.Failure;
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
      const code = getU16(packet, at);
      if (code === EdnsOption.Ede) this.errors.add(packet, at + 4, length);
      if (code === EdnsOption.Cookie && length >= COOKIE_BYTES_MIN && length <= COOKIE_BYTES_MAX) {
        [this.cookieAt, this.cookieLength] = [at + 4, length];
      }
      if (code === EdnsOption.ClientSubnet) [this.subnetAt, this.subnetLength] = [at + 4, length];
      at += 4 + length;
    }
  }
}
