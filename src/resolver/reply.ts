import { setU16 } from "../bytes/mod.ts";
import {
  CD_BIT,
  DO_BIT,
  EdnsOption,
  HEADER_BYTES,
  OPCODE_MASK,
  OPT_BYTES,
  QR_BIT,
  Qtype,
  RA_BIT,
  RD_BIT,
  TC_BIT,
  UDP_PAYLOAD_MAX,
} from "../dns/mod.ts";
import { COOKIE_OPTION_BYTES } from "./cookies.ts";
import { RELAYED, writeErrors } from "./extended_errors.ts";
import { paddedLength, PADDING_HEAD_BYTES } from "./padding.ts";
import type { Query } from "./query.ts";

/** Bytes of an extended error option without text (RFC 8914 §2). */
const EDE_BYTES = 6;

/** Bytes of the OPT record of a query's response, extended errors and padding left out. */
export function optBytes({ edns, hasCookie }: Query): number {
  return edns ? (hasCookie ? OPT_BYTES + COOKIE_OPTION_BYTES : OPT_BYTES) : 0;
}

/** Where a response is written: a buffer of the transport, and what the writers made of it. */
export class Reply {
  bytes: Uint8Array = new Uint8Array(0);
  /** The same memory in words; `offset` is a multiple of 4. */
  words: Uint32Array = new Uint32Array(0);
  offset = 0;
  /** Bytes of the finished response. */
  length = 0;
  /** It was cut to fit the client. */
  truncated = false;
}

/** A buffer of its own for responses of any size, for transports with a stream below. */
export function streamReply(): Reply {
  const reply = new Reply();
  // Behind the largest message: the words that copying may write past its end.
  const memory = new ArrayBuffer(0xffff + 9);
  reply.bytes = new Uint8Array(memory);
  reply.words = new Uint32Array(memory, 0, memory.byteLength >> 2);
  return reply;
}

/**
 * Writes header and question of a response; the counts behind the question are zero. Returns where
 * the first record goes. `extra` are flags beside those that every response has.
 */
export function writeHead(query: Query, reply: Reply, rcode: number, extra = 0): number {
  const { bytes, offset } = reply;
  const { chain } = query;
  const source = chain === null ? query.packet : chain.bytes;
  const from = chain === null ? query.start + HEADER_BYTES : 0;
  const length = chain === null
    ? (query.qnameLength === 0 ? 0 : query.qnameLength + 4)
    : chain.questionBytes;
  const to = offset + HEADER_BYTES;
  for (let i = 0; i < length; i++) bytes[to + i] = source[from + i];
  setU16(bytes, offset, query.id);
  const flags = QR_BIT | RA_BIT | (query.flags & (OPCODE_MASK | RD_BIT | CD_BIT)) | extra;
  setU16(bytes, offset + 2, flags | (rcode & 15));
  setU16(bytes, offset + 4, length === 0 ? 0 : 1);
  for (let i = 6; i < HEADER_BYTES; i++) bytes[offset + i] = 0;
  reply.truncated = false;
  return to + length;
}

/** As `writeHead`, and behind it the records of ours that led to the question that is answered. */
export function writeAnswerHead(query: Query, reply: Reply, rcode: number): number {
  const at = writeHead(query, reply, rcode);
  const { chain } = query;
  if (chain === null) return at;
  const { bytes, offset } = reply;
  const length = chain.lengthBytes - chain.questionBytes;
  for (let i = 0; i < length; i++) bytes[at + i] = chain.bytes[chain.questionBytes + i];
  setU16(bytes, offset + 6, chain.count);
  return at + length;
}

/**
 * Ends a response whose records end at `at`: adds OPT for a client that sent one, with the
 * extended error `ede` (-1: none) and its text where that fits, padded where the query was. Of
 * `RELAYED` ones, `text` is all options.
 */
export function finish(
  query: Query,
  reply: Reply,
  at: number,
  rcode: number,
  ede: number,
  text: Uint8Array = NO_TEXT,
): void {
  const { bytes, offset } = reply;
  if (query.edns) {
    const room = query.limitBytes - (at - offset) - optBytes(query);
    bytes[at] = 0;
    setU16(bytes, at + 1, Qtype.OPT);
    setU16(bytes, at + 3, UDP_PAYLOAD_MAX);
    bytes[at + 5] = rcode >> 4;
    bytes[at + 6] = 0;
    setU16(bytes, at + 7, query.dnssecOk ? DO_BIT : 0);
    const lengthAt = at + 9;
    at += OPT_BYTES;
    if (query.hasCookie && query.cookies !== null) at = query.cookies.write(query, bytes, at);
    if (ede === RELAYED) at = writeErrors(text, bytes, at, room);
    else if (ede >= 0 && room >= EDE_BYTES) at = writeOwnError(bytes, at, room, ede, text);
    if (query.isPadded) at = writePadding(query, reply, at);
    setU16(bytes, lengthAt, at - lengthAt - 2);
    setU16(bytes, offset + 10, (bytes[offset + 10] << 8) + bytes[offset + 11] + 1);
  }
  reply.length = at - offset;
}

function writeOwnError(
  bytes: Uint8Array,
  at: number,
  room: number,
  ede: number,
  text: Uint8Array,
): number {
  const textLength = text.length <= room - EDE_BYTES ? text.length : 0;
  setU16(bytes, at, EdnsOption.Ede);
  setU16(bytes, at + 2, 2 + textLength);
  setU16(bytes, at + 4, ede);
  for (let i = 0; i < textLength; i++) bytes[at + EDE_BYTES + i] = text[i];
  return at + EDE_BYTES + textLength;
}

/** Writes a Padding option at `at`, if there is room for one; returns where it ends. */
function writePadding(query: Query, { bytes, offset }: Reply, at: number): number {
  const lengthBytes = at - offset + PADDING_HEAD_BYTES;
  if (lengthBytes > query.limitBytes) return at;
  const end = offset + paddedLength(lengthBytes, query.limitBytes);
  setU16(bytes, at, EdnsOption.Padding);
  setU16(bytes, at + 2, end - at - PADDING_HEAD_BYTES);
  bytes.fill(0, at + PADDING_HEAD_BYTES, end);
  return end;
}

const NO_TEXT = new Uint8Array(0);

/** A response without records. */
export function writeEmpty(
  query: Query,
  reply: Reply,
  rcode: number,
  ede = -1,
  text?: Uint8Array,
): void {
  finish(query, reply, writeHead(query, reply, rcode), rcode, ede, text);
}

/** Header and question alone: the client is to ask again over TCP (RFC 2181 §9). */
export function writeTruncated(
  query: Query,
  reply: Reply,
  rcode: number,
  ede: number,
  text?: Uint8Array,
): void {
  finish(query, reply, writeHead(query, reply, rcode, TC_BIT), rcode, ede, text);
  reply.truncated = true;
}
