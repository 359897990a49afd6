import { getU16, setU16, setU32 } from "../bytes/mod.ts";
import { HEADER_BYTES, parseName, Qtype, Rcode } from "../dns/mod.ts";
import { invariant } from "../errors.ts";
import type { Decision, LocalRecords } from "../snapshot/mod.ts";
import type { Query } from "./query.ts";
import { finish, optBytes, type Reply, writeAnswerHead, writeTruncated } from "./reply.ts";

/** The bits that make an offset a compression pointer. */
const POINTER_BITS = 0xc000;
/** Bytes of a record but for its RDATA, its owner a pointer. */
const RECORD_HEAD_BYTES = 12;
const CLASS_IN = 1;
const IPV4_BYTES = 4;
const IPV6_BYTES = 16;

function wireName(text: string): Uint8Array {
  const name = parseName(text);
  invariant(name !== null, `${text} is a name`);
  return name;
}

/** RDATA of the SOA in our own negative answers, its MINIMUM last (RFC 2308 §3). */
export const SOA_RDATA: Uint8Array = (() => {
  const [mname, rname] = [wireName("svc.test"), wireName("hostmaster.svc.test")];
  const rdata = new Uint8Array(mname.length + rname.length + 20);
  rdata.set(mname);
  rdata.set(rname, mname.length);
  const timers = mname.length + rname.length;
  // Serial, refresh, retry, expire: nobody transfers this zone.
  [1, 3600, 600, 86_400, 0].forEach((value, i) => setU32(rdata, timers + 4 * i, value));
  return rdata;
})();

/** CPU and OS of the HINFO that answers a question for everything (RFC 8482 §4.2). */
const HINFO_RDATA = Uint8Array.of(7, 0x52, 0x46, 0x43, 0x38, 0x34, 0x38, 0x32, 0);
/** Seconds that such an answer may be kept. */
const HINFO_TTL = 3_600;

/** Writes a record but for its RDATA; returns where that goes. */
function writeRecordHead(
  bytes: Uint8Array,
  at: number,
  owner: number,
  type: number,
  ttl: number,
  rdataLength: number,
): number {
  setU16(bytes, at, POINTER_BITS | owner);
  setU16(bytes, at + 2, type);
  setU16(bytes, at + 4, CLASS_IN);
  setU32(bytes, at + 6, ttl);
  setU16(bytes, at + 10, rdataLength);
  return at + RECORD_HEAD_BYTES;
}

/**
 * Writes a record owned by the name whose offset from the start of the message is `owner`; returns
 * where the next goes.
 */
export function writeRecord(
  bytes: Uint8Array,
  at: number,
  owner: number,
  type: number,
  ttl: number,
  rdata: Uint8Array,
  rdataOffset = 0,
  rdataLength: number = rdata.length,
): number {
  const to = writeRecordHead(bytes, at, owner, type, ttl, rdataLength);
  for (let i = 0; i < rdataLength; i++) bytes[to + i] = rdata[rdataOffset + i];
  return to + rdataLength;
}

/** Where the name that is answered for stands in a response: the question's, or a CNAME's target. */
function ownerOffset({ chain }: Query): number {
  return chain === null ? HEADER_BYTES : chain.targetOffset;
}

/**
 * Writes a negative answer of ours: NXDOMAIN, or NODATA with `Rcode.NoError`, kept by clients for
 * `ttl` seconds, which is the SOA's own TTL and its MINIMUM (RFC 2308 §5).
 */
export function writeNegative(
  query: Query,
  reply: Reply,
  rcode: number,
  ttl: number,
  ede = -1,
  text?: Uint8Array,
): void {
  let at = writeAnswerHead(query, reply, rcode);
  at = writeRecord(reply.bytes, at, ownerOffset(query), Qtype.SOA, ttl, SOA_RDATA);
  setU32(reply.bytes, at - 4, ttl);
  setU16(reply.bytes, reply.offset + 8, 1);
  finish(query, reply, at, rcode, ede, text);
}

/** Writes one record as the answer: an address, say. */
export function writeAnswer(
  query: Query,
  reply: Reply,
  type: number,
  ttl: number,
  rdata: Uint8Array,
  ede = -1,
  text?: Uint8Array,
): void {
  let at = writeAnswerHead(query, reply, Rcode.NoError);
  at = writeRecord(reply.bytes, at, ownerOffset(query), type, ttl, rdata);
  countAnswers(reply, 1);
  finish(query, reply, at, Rcode.NoError, ede, text);
}

function countAnswers({ bytes, offset }: Reply, more: number): void {
  setU16(bytes, offset + 6, getU16(bytes, offset + 6) + more);
}

/**
 * Answers with the records of ours that are of QTYPE, all of them; without one that is NODATA, and
 * NXDOMAIN for a name that is not in a zone of ours, kept for `negativeTtl` seconds. Cut when it does
 * not fit the client.
 */
export function writeLocal(
  query: Query,
  reply: Reply,
  records: LocalRecords,
  set: number,
  negativeTtl: number,
): void {
  const first = records.first(set);
  const end = first + records.count(set);
  let lengthBytes = 0;
  for (let record = first; record < end; record++) {
    if (records.type(record) !== query.qtype) continue;
    lengthBytes += RECORD_HEAD_BYTES + records.rdataLength(record);
  }
  if (lengthBytes === 0) {
    const rcode = records.isAbsent(set) ? Rcode.NXDomain : Rcode.NoError;
    writeNegative(query, reply, rcode, negativeTtl);
    return;
  }
  let at = writeAnswerHead(query, reply, Rcode.NoError);
  if (!fits(query, at - reply.offset + lengthBytes)) {
    writeTruncated(query, reply, Rcode.NoError, -1);
    return;
  }
  const owner = ownerOffset(query);
  for (let record = first; record < end; record++) {
    const type = records.type(record);
    if (type !== query.qtype) continue;
    const ttl = records.ttl(record);
    const offset = records.rdataOffset(record);
    const length = records.rdataLength(record);
    at = writeRecord(reply.bytes, at, owner, type, ttl, records.bytes, offset, length);
    countAnswers(reply, 1);
  }
  finish(query, reply, at, Rcode.NoError, -1);
}

/**
 * Answers with all addresses that rules have for QTYPE; without one that is NODATA. Cut when it does
 * not fit the client.
 */
export function writeAddresses(query: Query, reply: Reply, decision: Decision, ttl: number): void {
  const { qtype } = query;
  const count = decision.count(qtype);
  if (count === 0) {
    writeNegative(query, reply, Rcode.NoError, ttl);
    return;
  }
  const rdataLength = qtype === Qtype.A ? IPV4_BYTES : IPV6_BYTES;
  let at = writeAnswerHead(query, reply, Rcode.NoError);
  if (!fits(query, at - reply.offset + count * (RECORD_HEAD_BYTES + rdataLength))) {
    writeTruncated(query, reply, Rcode.NoError, -1);
    return;
  }
  const owner = ownerOffset(query);
  for (let i = 0; i < count; i++) {
    const to = writeRecordHead(reply.bytes, at, owner, qtype, ttl, rdataLength);
    decision.copyAddress(qtype, i, reply.bytes, to);
    at = to + rdataLength;
  }
  countAnswers(reply, count);
  finish(query, reply, at, Rcode.NoError, -1);
}

/** Answers with all of an RRset, whose records are of one length. Cut when it does not fit the client. */
export function writeAll(
  query: Query,
  reply: Reply,
  type: number,
  ttl: number,
  rdatas: readonly Uint8Array[],
): void {
  let at = writeAnswerHead(query, reply, Rcode.NoError);
  const lengthBytes = rdatas.length * (RECORD_HEAD_BYTES + rdatas[0].length);
  if (!fits(query, at - reply.offset + lengthBytes)) {
    writeTruncated(query, reply, Rcode.NoError, -1);
    return;
  }
  const owner = ownerOffset(query);
  for (const rdata of rdatas) at = writeRecord(reply.bytes, at, owner, type, ttl, rdata);
  countAnswers(reply, rdatas.length);
  finish(query, reply, at, Rcode.NoError, -1);
}

/** Says whether so many bytes and what `finish` adds at least are within the client's limit. */
function fits(query: Query, lengthBytes: number): boolean {
  return lengthBytes + optBytes(query) <= query.limitBytes;
}

/** Answers QTYPE ANY with as little as there can be (RFC 8482 §4.2). */
export function writeAnyAnswer(query: Query, reply: Reply): void {
  writeAnswer(query, reply, Qtype.HINFO, HINFO_TTL, HINFO_RDATA);
}
