import { HEADER_BYTES, NAME_BYTES_MAX, Qtype } from "../dns/mod.ts";
import { CHAIN_MAX } from "../snapshot/mod.ts";
import { writeRecord } from "./own_answers.ts";
import type { Query } from "./query.ts";

/** Type and class behind QNAME. */
const QUESTION_TAIL_BYTES = 4;
const RECORD_HEAD_BYTES = 12;
/** The records that are followed, and one that safe search adds. */
const BYTES_MAX = NAME_BYTES_MAX + QUESTION_TAIL_BYTES +
  (CHAIN_MAX + 1) * (RECORD_HEAD_BYTES + NAME_BYTES_MAX);

/**
 * What a response starts with where CNAME records of ours lead on: the client's question, and these
 * records. The query is about the last one's target from then on.
 */
export class OwnChain {
  /** Question, then records, as they stand behind the header. */
  readonly bytes: Uint8Array;
  lengthBytes = 0;
  questionBytes = 0;
  /** Records. */
  count = 0;
  /** Where the last target's name stands, from the start of a response. */
  targetOffset = HEADER_BYTES;

  constructor(bytes: Uint8Array = new Uint8Array(BYTES_MAX)) {
    this.bytes = bytes;
  }

  /** Begins with the client's question. */
  start({ packet, qname, qnameLength }: Query): void {
    this.questionBytes = this.lengthBytes = qnameLength + QUESTION_TAIL_BYTES;
    for (let i = 0; i < this.questionBytes; i++) this.bytes[i] = packet[qname + i];
    this.count = 0;
    this.targetOffset = HEADER_BYTES;
  }

  /**
   * Adds a CNAME record whose target, of `length` bytes, stands at `from`, and makes the question at
   * the start of `packet` one about that.
   */
  add(ttl: number, target: Uint8Array, from: number, length: number, packet: Uint8Array): void {
    const owner = this.targetOffset;
    const { bytes, lengthBytes: at } = this;
    this.lengthBytes = writeRecord(bytes, at, owner, Qtype.CNAME, ttl, target, from, length);
    this.targetOffset = HEADER_BYTES + this.lengthBytes - length;
    this.count++;
    for (let i = 0; i < length; i++) packet[HEADER_BYTES + i] = target[from + i];
    const tail = this.questionBytes - QUESTION_TAIL_BYTES;
    for (let i = 0; i < QUESTION_TAIL_BYTES; i++) {
      packet[HEADER_BYTES + length + i] = this.bytes[tail + i];
    }
  }

  /** A chain of its own, for a query that waits. */
  copy(): OwnChain {
    const copy = new OwnChain(this.bytes.slice(0, this.lengthBytes));
    copy.lengthBytes = this.lengthBytes;
    copy.questionBytes = this.questionBytes;
    copy.count = this.count;
    copy.targetOffset = this.targetOffset;
    return copy;
  }
}
