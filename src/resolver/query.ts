import { isMappedAt } from "../addr/mod.ts";
import { getU16, getU32, setU16 } from "../bytes/mod.ts";
import {
  CD_BIT,
  DO_BIT,
  EdnsOption,
  finishHash,
  HashedName,
  HEADER_BYTES,
  Opcode,
  OPCODE_MASK,
  QR_BIT,
  Qtype,
  skipName,
  UDP_PAYLOAD_CLASSIC,
  UDP_PAYLOAD_MAX,
} from "../dns/mod.ts";
import { DEFAULT_GROUP, NO_CLIENT } from "../snapshot/mod.ts";
import { CLIENT_COOKIE_BYTES, type Cookies } from "./cookies.ts";
import { Outcome } from "./outcome.ts";
import type { OwnChain } from "./own_chain.ts";
import type { Subnet } from "./subnets.ts";

/** Bits of the cache key beside name and type. */
export const KEY_DO = 1;
export const KEY_CD = 2;
/** Asked for a part of the Internet (RFC 7871); of the hash of the key, which part that is. */
export const KEY_SUBNET = 4;
/** From this bit on: the number of the upstreams that a group has in place of others; 0: none. */
const KEY_ROUTE_SHIFT = 3;
/** The largest such number: of the bits of a key that the cache has, these are left. */
export const ROUTES_MAX = 127;
/** What follows from the question alone, and so means the same in every process. */
const KEY_COMMON = KEY_DO | KEY_CD;

/** Most records a query may carry behind its question: OPT, TSIG, and some grace. */
const RECORDS_MAX = 4;
/** Bytes of header and question at most: what a waiting query keeps of its packet. */
export const QUESTION_BYTES_MAX = HEADER_BYTES + 255 + 4;

/** The way a query came in; also its place in counters and logs. */
export const Transport = { Udp: 0, Tcp: 1, Dot: 2, Doh: 3, Doq: 4, Odoh: 5 } as const;
export type Transport = typeof Transport[keyof typeof Transport];

/** What validation said of an answer (RFC 4035 §4.3); also its place in logs. */
export const DnssecState = { None: 0, Secure: 1, Insecure: 2, Bogus: 3 } as const;
export type DnssecState = typeof DnssecState[keyof typeof DnssecState];

/** What reading a query came to; each but `Ok` names the treatment it gets. */
export const Read = { Ok: 0, Drop: 1, FormErr: 2, NotImp: 3, BadVers: 4, Cookie: 5 } as const;
export type Read = typeof Read[keyof typeof Read];

const IPV4_BYTES = 4;
const IPV6_BYTES = 16;
/** Bytes of an IPv6 address that stand for one household. */
const IPV6_NETWORK_BYTES = 8;

/** Who a client says it is: where its address stands. Reused for one packet after the other. */
export class ClientAddress {
  bytes: Uint8Array = new Uint8Array(0);
  offset = 0;
  /** 4 or 16; 0 where nobody said. */
  lengthBytes = 0;
  /** The client ID that came with the query, in lower case; nobody changes its bytes. */
  id: Uint8Array | null = null;
  #own: Uint8Array | null = null;

  /** Aims at an address of 4 or 16 bytes; an IPv4-mapped one is the IPv4 address it stands for. */
  aim(bytes: Uint8Array, offset: number, lengthBytes: number): void {
    const isMapped = lengthBytes === IPV6_BYTES && isMappedAt(bytes, offset);
    this.bytes = bytes;
    this.offset = isMapped ? offset + IPV6_BYTES - IPV4_BYTES : offset;
    this.lengthBytes = isMapped ? IPV4_BYTES : lengthBytes;
  }

  /** Takes a copy: the buffer of the other one has the next packet in it soon. */
  keep({ bytes, offset, lengthBytes, id }: ClientAddress): void {
    this.#own ??= new Uint8Array(IPV6_BYTES);
    for (let i = 0; i < lengthBytes; i++) this.#own[i] = bytes[offset + i];
    this.bytes = this.#own;
    this.offset = 0;
    this.lengthBytes = lengthBytes;
    this.id = id;
  }
}

/** A query: numbers, and where its question stands. Reused for one packet after the other. */
export class Query {
  /** Holds header and question; the packet itself, or `keep`'s copy of its start. */
  packet: Uint8Array = new Uint8Array(0);
  /** Where the header starts in `packet`. */
  start = 0;
  id = 0;
  /** Second word of the header. */
  flags = 0;
  qtype = 0;
  qclass = 0;
  /** Bytes of QNAME with its root. */
  qnameLength = 0;
  transport: Transport = Transport.Udp;
  /** Most bytes the response may have. */
  limitBytes = UDP_PAYLOAD_CLASSIC;
  /** The client sent an OPT record, and so gets one (RFC 6891 §6.1.1). */
  edns = false;
  dnssecOk = false;
  /** The client padded its query and gets a padded response (RFC 7830); of encrypted ones only. */
  isPadded = false;
  /** Answers DNS cookies; `null`: they are left aside. */
  cookies: Cookies | null = null;
  /** The client sent a cookie, in these halves, and gets it back with one of ours (RFC 7873). */
  hasCookie = false;
  cookieHigh = 0;
  cookieLow = 0;
  /** DO and CD, as the cache tells answers apart. */
  keyBits = 0;
  /** Hash of its cache key; see `keyHashOf`. Holds once the cache has been asked. */
  keyHash = 0;
  /** The part of the Internet that it is asked for; `null`: none, as ever where none is told. */
  subnet: Subnet | null = null;
  /** Hash of the key of an answer that holds for every such part; of queries with one. */
  openHash = 0;
  /** What became of it; holds once its response is written. */
  outcome: Outcome = Outcome.Forwarded;
  /** Where the records of its answer come from: `Forwarded`, `Recursed` or `Cached`. */
  source: Outcome = Outcome.Forwarded;
  /** The rule that decided, an exception among them, as its snapshot refers to it; -1 for none. */
  rule = -1;
  /** An exception decided about the name, which keeps its answer from further rules. */
  isAllowed = false;
  /** Safe search leads it to another name. */
  isSafeSearch = false;
  readonly address: ClientAddress = new ClientAddress();
  /** The snapshot that `client`, `group` and `rule` are numbers of. */
  generation = 0;
  client: number = NO_CLIENT;
  group: number = DEFAULT_GROUP;
  /** Asked by the service itself: no client's, so nobody counts it, and no filter holds for it. */
  isOwn = false;
  /** Goes into the query log once it is answered. */
  isLogged = true;
  /** When it came in, in milliseconds of the monotonic clock. */
  receivedAtMs = 0;
  /** The upstream that answered, by its place in the configuration; -1 for none. */
  upstream = -1;
  /** What validation said of its answer. */
  dnssec: DnssecState = DnssecState.None;
  /** Why that is not secure, where it was validated for this query; else "". */
  dnssecReason = "";
  /** Records of ours led from the client's question to this one; they go before its answer. */
  chain: OwnChain | null = null;

  /** The client ID that came with the query, of whichever client it may be. */
  get clientId(): Uint8Array | null {
    return this.address.id;
  }

  /** Where QNAME starts in `packet`. */
  get qname(): number {
    return this.start + HEADER_BYTES;
  }

  /** Where the question of a kept query ends. */
  get questionEnd(): number {
    return HEADER_BYTES + this.qnameLength + 4;
  }

  /** Makes a kept query one about another name, uncompressed; `keyHash` is still that of the former. */
  rename(name: Uint8Array, offset = 0): void {
    const { packet, qtype, qclass } = this;
    const length = skipName(name, offset, name.length) - offset;
    for (let i = 0; i < length; i++) packet[HEADER_BYTES + i] = name[offset + i];
    setU16(packet, HEADER_BYTES + length, qtype);
    setU16(packet, HEADER_BYTES + length + 2, qclass);
    this.qnameLength = length;
  }

  /** Copies what a waiting query needs into this one, which owns its `packet`. */
  keep(other: Query): void {
    const length = HEADER_BYTES + other.qnameLength + 4;
    for (let i = 0; i < length; i++) this.packet[i] = other.packet[other.start + i];
    this.start = 0;
    this.id = other.id;
    this.flags = other.flags;
    this.qtype = other.qtype;
    this.qclass = other.qclass;
    this.qnameLength = other.qnameLength;
    this.transport = other.transport;
    this.limitBytes = other.limitBytes;
    this.edns = other.edns;
    this.dnssecOk = other.dnssecOk;
    this.isPadded = other.isPadded;
    this.cookies = other.cookies;
    this.hasCookie = other.hasCookie;
    this.cookieHigh = other.cookieHigh;
    this.cookieLow = other.cookieLow;
    this.keyBits = other.keyBits;
    this.keyHash = other.keyHash;
    this.subnet = other.subnet;
    this.openHash = other.openHash;
    this.outcome = other.outcome;
    this.source = other.source;
    this.rule = other.rule;
    this.isAllowed = other.isAllowed;
    this.isSafeSearch = other.isSafeSearch;
    this.isOwn = other.isOwn;
    this.isLogged = other.isLogged;
    this.receivedAtMs = other.receivedAtMs;
    this.upstream = other.upstream;
    this.dnssec = other.dnssec;
    this.dnssecReason = other.dnssecReason;
    this.generation = other.generation;
    this.address.keep(other.address);
    this.client = other.client;
    this.group = other.group;
    this.chain = other.chain === null ? null : other.chain.copy();
  }
}

/** `keyBits` of a query that goes to the upstreams of a number. */
export function withRoute(keyBits: number, route: number): number {
  return keyBits | (route << KEY_ROUTE_SHIFT);
}

/** The number of the upstreams that a query goes to in place of those for everybody; 0: none. */
export function routeOf({ keyBits }: Query): number {
  return keyBits >> KEY_ROUTE_SHIFT;
}

/**
 * Hash of the cache key of a question; `nameHash` is that of the whole name. Of one name, type and
 * `keyBits` no two subnets have the same: each step can be undone.
 */
export function keyHashOf(
  nameHash: number,
  qtype: number,
  keyBits: number,
  subnet: Subnet | null = null,
): number {
  const question = nameHash ^ Math.imul(qtype | (keyBits << 16), 0x9e3779b1);
  return finishHash(subnet === null ? question : question ^ Math.imul(subnet.id, 0x85ebca6b));
}

/**
 * As a query has its `keyHash`, for keys that come without one; see `Cache.load`. `null`: the key means
 * something else in each process.
 */
export function keyHasher(
  seed: number,
): (bytes: Uint8Array, qname: number, qtype: number, keyBits: number) => number | null {
  const name = new HashedName();
  return (bytes, qname, qtype, keyBits) => {
    if ((keyBits & ~KEY_COMMON) !== 0) return null;
    const end = name.read(bytes, qname, bytes.length, seed);
    return end < 0 ? 0 : keyHashOf(name.hashes[0], qtype, keyBits);
  };
}

/** Sets the hashes of a query's key; `nameHash` is that of its whole name. */
export function setKeyHashes(query: Query, nameHash: number): void {
  const { qtype, keyBits, subnet } = query;
  query.keyHash = keyHashOf(nameHash, qtype, keyBits, subnet);
  if (subnet !== null) query.openHash = keyHashOf(nameHash, qtype, keyBits);
}

/** The same for a query of our own; `name` is scratch, `seed` that of every hash of a name. */
export function hashQuestion(query: Query, name: HashedName, seed: number): void {
  name.read(query.packet, query.qname, query.packet.length, seed);
  setKeyHashes(query, name.hashes[0]);
}

/** A query of its own, which `keep` fills. */
export function keptQuery(): Query {
  const query = new Query();
  query.packet = new Uint8Array(QUESTION_BYTES_MAX);
  return query;
}

/**
 * Reads header, question and OPT of the packet at `start` to `end` into `query`, and the hashes of
 * QNAME into `name`. No copy, no exception. `query.transport` is set by the caller.
 */
export function readQuery(
  packet: Uint8Array,
  start: number,
  end: number,
  seed: number,
  query: Query,
  name: HashedName,
): Read {
  query.qnameLength = 0;
  query.chain = null;
  if (end - start < HEADER_BYTES) return Read.Drop;
  const flags = getU16(packet, start + 2);
  if ((flags & QR_BIT) !== 0) return Read.Drop; // Answering a response loops.
  query.packet = packet;
  query.start = start;
  query.id = getU16(packet, start);
  query.flags = flags;
  query.source = Outcome.Forwarded;
  query.rule = -1;
  query.isAllowed = false;
  query.isSafeSearch = false;
  query.isOwn = false;
  query.isLogged = true;
  query.upstream = -1;
  query.dnssec = DnssecState.None;
  query.dnssecReason = "";
  query.edns = false;
  query.dnssecOk = false;
  query.isPadded = query.hasCookie = false;
  query.limitBytes = query.transport === Transport.Udp ? UDP_PAYLOAD_CLASSIC : 0xffff;
  query.keyBits = (flags & CD_BIT) !== 0 ? KEY_CD : 0;
  if ((flags & OPCODE_MASK) !== Opcode.Query << 11) {
    readOther(packet, start, end, seed, query, name);
    return Read.NotImp;
  }
  if (getU16(packet, start + 4) !== 1) return readWithoutQuestion(packet, start, end, query);
  const qnameEnd = name.read(packet, start + HEADER_BYTES, end, seed);
  if (qnameEnd < 0 || qnameEnd + 4 > end) return Read.FormErr;
  query.qnameLength = qnameEnd - start - HEADER_BYTES;
  query.qtype = getU16(packet, qnameEnd);
  query.qclass = getU16(packet, qnameEnd + 2);
  const authority = getU16(packet, start + 8);
  // Who asks for a part of a zone says which one it has (RFC 1995 §3).
  const isAllowed = authority === 0 || query.qtype === Qtype.IXFR;
  if (getU16(packet, start + 6) !== 0 || !isAllowed) return Read.FormErr;
  const records = authority + getU16(packet, start + 10);
  if (records === 0) return qnameEnd + 4 === end ? Read.Ok : Read.FormErr;
  return readRecords(packet, qnameEnd + 4, end, records, query);
}

/**
 * Reads a query that has not one question (RFC 9619): one with none may ask for a cookie of the
 * server's (RFC 7873 §5.4).
 */
function readWithoutQuestion(packet: Uint8Array, start: number, end: number, query: Query): Read {
  for (let at = start + 4; at < start + 10; at += 2) {
    if (getU16(packet, at) !== 0) return Read.FormErr;
  }
  const count = getU16(packet, start + 10);
  const read = readRecords(packet, start + HEADER_BYTES, end, count, query);
  if (read !== Read.Ok) return read;
  return query.hasCookie ? Read.Cookie : Read.FormErr;
}

/** Reads question and OPT of another operation, as its refusal has them too; it may have neither. */
function readOther(
  packet: Uint8Array,
  start: number,
  end: number,
  seed: number,
  query: Query,
  name: HashedName,
): void {
  const questions = getU16(packet, start + 4);
  if (questions > 1) return;
  let at = start + HEADER_BYTES;
  if (questions === 1) {
    const qnameEnd = name.read(packet, at, end, seed);
    if (qnameEnd < 0 || qnameEnd + 4 > end) return;
    query.qnameLength = qnameEnd - at;
    at = qnameEnd + 4;
  }
  const counts = start + 6;
  const records = getU16(packet, counts) + getU16(packet, counts + 2) + getU16(packet, counts + 4);
  readRecords(packet, at, end, records, query);
}

/** Reads the records behind the question, of which only OPT is of interest. */
function readRecords(
  packet: Uint8Array,
  from: number,
  end: number,
  count: number,
  query: Query,
): Read {
  if (count > RECORDS_MAX) return Read.FormErr;
  let version = 0;
  let at = from;
  for (let i = 0; i < count; i++) {
    const owner = at;
    const fixed = skipName(packet, at, end);
    if (fixed < 0 || fixed + 10 > end) return Read.FormErr;
    const type = getU16(packet, fixed);
    const next = fixed + 10 + getU16(packet, fixed + 8);
    if (next > end) return Read.FormErr;
    if (type === Qtype.OPT) {
      // One OPT at most, owned by the root (RFC 6891 §6.1.1, §6.1.2), its options whole.
      if (query.edns || packet[owner] !== 0) return Read.FormErr;
      if (!readOptions(packet, fixed + 10, next, query)) return Read.FormErr;
      query.edns = true;
      version = packet[fixed + 5];
      query.dnssecOk = (getU16(packet, fixed + 6) & DO_BIT) !== 0;
      if (query.dnssecOk) query.keyBits |= KEY_DO;
      if (query.transport === Transport.Udp) {
        const payload = getU16(packet, fixed + 2);
        query.limitBytes = Math.min(Math.max(payload, UDP_PAYLOAD_CLASSIC), UDP_PAYLOAD_MAX);
      }
    }
    at = next;
  }
  if (at !== end) return Read.FormErr;
  return version === 0 ? Read.Ok : Read.BadVers;
}

/** Notes the first cookie of a client whose address is known. */
function readCookie(packet: Uint8Array, at: number, query: Query): void {
  if (query.cookies === null || query.hasCookie || query.address.lengthBytes === 0) return;
  query.hasCookie = true;
  query.cookieHigh = getU32(packet, at);
  query.cookieLow = getU32(packet, at + 4);
}

/** Notes Padding and Cookie options; says whether the options fill the RDATA exactly and are well formed. */
function readOptions(packet: Uint8Array, from: number, end: number, query: Query): boolean {
  let at = from;
  while (at + 4 <= end) {
    const code = getU16(packet, at);
    const length = getU16(packet, at + 2);
    if (code === EdnsOption.Cookie) {
      // A client cookie alone, or with a server cookie of 8 to 32 bytes (RFC 7873 §5.2.2).
      if (length !== CLIENT_COOKIE_BYTES && (length < 16 || length > 40)) return false;
      if (at + 4 + length <= end) readCookie(packet, at + 4, query);
    }
    if (code === EdnsOption.Padding) query.isPadded = isPaddable(query.transport);
    at += 4 + length;
  }
  return at === end;
}

/** Says whether responses of a transport are padded: in clear text there is nothing to hide. */
function isPaddable(transport: Transport): boolean {
  // Oblivious ones have padding of their own (RFC 9230 §6.1).
  return transport === Transport.Dot || transport === Transport.Doh || transport === Transport.Doq;
}

/** A number that tells clients apart: by IPv4 address, and by IPv6 network. */
export function clientOf({ address: { bytes, offset, lengthBytes } }: Query): number {
  const length = lengthBytes === IPV6_BYTES ? IPV6_NETWORK_BYTES : lengthBytes;
  let hash = length;
  for (let i = 0; i < length; i++) hash = Math.imul(hash ^ bytes[offset + i], 0x01000193);
  return finishHash(hash);
}
