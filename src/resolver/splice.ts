import { getU16, setU16 } from "../bytes/mod.ts";
import {
  copyRdata,
  equalNames,
  expandName,
  HEADER_BYTES,
  NAME_BYTES_MAX,
  readRecord,
  RECORD_FIXED_BYTES,
  RecordView,
} from "../dns/mod.ts";
import type { OwnChain } from "./own_chain.ts";
import type { Query } from "./query.ts";
import {
  finish,
  optBytes,
  type Reply,
  streamReply,
  writeAnswerHead,
  writeTruncated,
} from "./reply.ts";

const MESSAGE_BYTES_MAX = 0xffff;
/** A record of the largest RDATA, whose names take their full length once they are uncompressed. */
const RECORD_BYTES_MAX = RECORD_FIXED_BYTES + MESSAGE_BYTES_MAX + 3 * NAME_BYTES_MAX;
/** Compression pointers reach so far. */
const POINTER_OFFSET_MAX = 0x3fff;
const POINTER_BITS = 0xc000;

/** Puts the answer to a CNAME's target behind the CNAME. One per pipeline; made when first needed. */
export class Splicer {
  /** The answer as it is kept in the cache. */
  readonly kept: Reply = streamReply();
  /** Its records as they go out: their offsets are those of the response. */
  readonly #out = new Uint8Array(MESSAGE_BYTES_MAX + RECORD_BYTES_MAX);
  readonly #name = new Uint8Array(NAME_BYTES_MAX);
  readonly #record = new RecordView();

  /**
   * Writes the records of `kept` behind the query's chain, with the response code and the extended
   * errors they came with, as `finish` has them. Cut when it does not fit the client.
   */
  write(
    query: Query,
    chain: OwnChain,
    reply: Reply,
    rcode: number,
    ede: number,
    errors: Uint8Array,
  ): void {
    const start = writeAnswerHead(query, reply, rcode);
    const { bytes: kept } = this.kept;
    const answers = getU16(kept, 6);
    const authorities = getU16(kept, 8);
    const from = HEADER_BYTES + query.qnameLength + 4;
    const room = query.limitBytes - optBytes(query);
    const begin = start - reply.offset;
    const end = this.#copyRecords(chain, from, answers + authorities, begin, room);
    if (end < 0) {
      writeTruncated(query, reply, rcode, ede, errors);
      return;
    }
    const { bytes, offset } = reply;
    for (let i = begin; i < end; i++) bytes[offset + i] = this.#out[i];
    setU16(bytes, offset + 6, chain.count + answers);
    setU16(bytes, offset + 8, authorities);
    finish(query, reply, offset + end, rcode, ede, errors);
  }

  /** Returns where the records end in the response, or -1 when they need more than `room`. */
  #copyRecords(
    chain: OwnChain,
    from: number,
    count: number,
    begin: number,
    room: number,
  ): number {
    const { bytes: kept, length } = this.kept;
    const out = this.#out;
    const record = this.#record;
    // The target's name, which most records are owned by: pointers lead to the chain's copy of it.
    for (let i = HEADER_BYTES; i < begin; i++) out[i] = chain.bytes[i - HEADER_BYTES];
    let owner = chain.targetOffset;
    let at = from;
    let to = begin;
    for (let i = 0; i < count; i++) {
      const ownerAt = at;
      at = readRecord(kept, at, length, record);
      if (at < 0 || expandName(kept, ownerAt, this.#name, 0, at) < 0) return -1;
      if (equalNames(out, chain.targetOffset, this.#name, 0)) owner = chain.targetOffset;
      if (owner <= POINTER_OFFSET_MAX && equalNames(out, owner, this.#name, 0)) {
        setU16(out, to, POINTER_BITS | owner);
        to += 2;
      } else {
        owner = to;
        to += expandName(kept, ownerAt, out, to, at);
      }
      const { type, rdataOffset, rdataLength } = record;
      // Type, class and TTL as they are.
      for (let k = 0; k < 8; k++) out[to + k] = kept[rdataOffset - 10 + k];
      const rdataTo = to + 10;
      to = copyRdata(kept, type, rdataOffset, rdataLength, out, rdataTo);
      if (to < 0 || to > room) return -1;
      setU16(out, rdataTo - 2, to - rdataTo);
    }
    return to;
  }
}
