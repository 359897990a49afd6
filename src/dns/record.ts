/** Reads questions and records in place: numbers only, no copy, no exception. */
import { getU16, getU32 } from "../bytes/mod.ts";
import { skipName } from "./name.ts";
import { HEADER_BYTES } from "./numbers.ts";

/** Bytes of a record between its owner name and its RDATA (RFC 1035 §4.1.3). */
export const RECORD_FIXED_BYTES = 10;
/** Bytes of a question behind its name. */
const QUESTION_FIXED_BYTES = 4;

/** A record of a packet; made once, and filled again for one record after the other. */
export class RecordView {
  /** Where the owner name starts; it may be compressed. */
  ownerOffset = 0;
  type = 0;
  /** The class; what `class` would be called if it could. */
  cls = 0;
  /** All 32 bits: from 2^31 on it means zero (RFC 2181 §8), and of an OPT it is no time. */
  ttl = 0;
  rdataOffset = 0;
  rdataLength = 0;
  /** Behind the RDATA. */
  end = 0;
}

/**
 * Reads the record at `offset` into `view`. Returns where the next one starts, or -1 when this one
 * is cut off at `end`. Neither a compressed owner nor RDATA is looked into.
 */
export function readRecord(
  packet: Uint8Array,
  offset: number,
  end: number,
  view: RecordView,
): number {
  const fixed = skipName(packet, offset, end);
  if (fixed < 0) return -1;
  const rdataOffset = fixed + RECORD_FIXED_BYTES;
  if (rdataOffset > end) return -1;
  const rdataLength = getU16(packet, fixed + 8);
  const next = rdataOffset + rdataLength;
  if (next > end) return -1;
  view.ownerOffset = offset;
  view.type = getU16(packet, fixed);
  view.cls = getU16(packet, fixed + 2);
  view.ttl = getU32(packet, fixed + 4);
  view.rdataOffset = rdataOffset;
  view.rdataLength = rdataLength;
  view.end = next;
  return next;
}

/** Returns the offset behind the question at `offset`, or -1 when it is cut off at `end`. */
export function skipQuestion(packet: Uint8Array, offset: number, end: number): number {
  const nameEnd = skipName(packet, offset, end);
  if (nameEnd < 0 || nameEnd + QUESTION_FIXED_BYTES > end) return -1;
  return nameEnd + QUESTION_FIXED_BYTES;
}

export const Section = { Answer: 0, Authority: 1, Additional: 2 } as const;
export type Section = typeof Section[keyof typeof Section];

/** What a step of a walk came to. */
export const Walk = { Record: 0, End: 1, Malformed: 2 } as const;
export type Walk = typeof Walk[keyof typeof Walk];

/**
 * A walk over the records of a message, made once and started for each:
 *
 *     if (!walk.start(packet, length)) return Fit.Mismatched;
 *     while ((step = walk.next(record)) === Walk.Record) …
 *
 * A count that promises more records than there are ends it at the first that is missing, so its
 * work is bounded by the packet and not by the counts.
 */
export class SectionWalk {
  /** Of the record read last. */
  section: Section = Section.Answer;
  /** Where the next record starts; after `Walk.End`, the end of the message. */
  offset = 0;
  #packet: Uint8Array = new Uint8Array(0);
  #end = 0;
  #left = 0;

  /** Goes behind the questions of the message in the first `end` bytes; `false` if they are cut. */
  start(packet: Uint8Array, end: number): boolean {
    this.#packet = packet;
    this.#end = end;
    this.#left = 0;
    this.section = Section.Answer;
    this.offset = HEADER_BYTES;
    if (end < HEADER_BYTES) return false;
    for (let questions = getU16(packet, 4); questions > 0; questions--) {
      const next = skipQuestion(packet, this.offset, end);
      if (next < 0) return false;
      this.offset = next;
    }
    this.#left = getU16(packet, 6);
    return true;
  }

  /** Reads the next record into `view`, whose section is `section` then. */
  next(view: RecordView): Walk {
    while (this.#left === 0) {
      if (this.section === Section.Additional) return Walk.End;
      this.section = this.section === Section.Answer ? Section.Authority : Section.Additional;
      this.#left = getU16(this.#packet, 6 + 2 * this.section);
    }
    const next = readRecord(this.#packet, this.offset, this.#end, view);
    if (next < 0) return Walk.Malformed;
    this.offset = next;
    this.#left--;
    return Walk.Record;
  }
}
