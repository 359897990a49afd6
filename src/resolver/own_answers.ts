import { setU16, setU32 } from "../bytes/mod.ts";
import { parseName, Qtype, Rcode } from "../dns/mod.ts";
import { invariant } from "../errors.ts";
import type { Query } from "./query.ts";
import { finish, type Reply, writeHead } from "./reply.ts";

/** A compression pointer to QNAME, which stands behind the header of every response. */
const QNAME_POINTER = 0xc00c;
const CLASS_IN = 1;

function wireName(text: string): Uint8Array {
  const name = parseName(text);
  invariant(name !== null, `${text} is a name`);
  return name;
}

/** RDATA of the SOA in our own negative answers, its MINIMUM last (RFC 2308 §3). */
const SOA_RDATA = (() => {
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

/** Writes a record owned by QNAME; returns where the next goes. */
function writeRecord(
  bytes: Uint8Array,
  at: number,
  type: number,
  ttl: number,
  rdata: Uint8Array,
): number {
  setU16(bytes, at, QNAME_POINTER);
  setU16(bytes, at + 2, type);
  setU16(bytes, at + 4, CLASS_IN);
  setU32(bytes, at + 6, ttl);
  setU16(bytes, at + 10, rdata.length);
  for (let i = 0; i < rdata.length; i++) bytes[at + 12 + i] = rdata[i];
  return at + 12 + rdata.length;
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
  let at = writeHead(query, reply, rcode);
  at = writeRecord(reply.bytes, at, Qtype.SOA, ttl, SOA_RDATA);
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
  let at = writeHead(query, reply, Rcode.NoError);
  at = writeRecord(reply.bytes, at, type, ttl, rdata);
  setU16(reply.bytes, reply.offset + 6, 1);
  finish(query, reply, at, Rcode.NoError, ede, text);
}

/** Answers QTYPE ANY with as little as there can be (RFC 8482 §4.2). */
export function writeAnyAnswer(query: Query, reply: Reply): void {
  writeAnswer(query, reply, Qtype.HINFO, HINFO_TTL, HINFO_RDATA);
}
