import { setU16 } from "../../bytes/mod.ts";
import { Cache, CacheHit, TTLS_MAX } from "../../cache/mod.ts";
import {
  equalNames,
  FOLD,
  type HashedName,
  HEADER_BYTES,
  Qtype,
  readRecord,
  RecordView,
  skipName,
} from "../../dns/mod.ts";
import { Delegation } from "./delegation.ts";
import type { Hint } from "./hints.ts";
import {
  ADDRESSES_PER_SERVER_MAX,
  DELEGATION_TTL_MAX,
  INNER_TTL_MAX,
  KEPT_BYTES_MAX,
  NAME_SERVERS_MAX,
  READ_DELEGATIONS,
} from "./limits.ts";

const IPV4_BYTES = 4;
const IPV6_BYTES = 16;
/** Kinds of entries that are no record's: beyond all types that are in use. */
const INNER = 0xff01;
const DENIED = 0xff02;
const OWN = 0xff03;
const NO_TTLS = new Uint16Array(0);

/**
 * What recursion learns of zones: where they are delegated to, by the word of the zone above and by
 * nobody else's (the highest rank that is needed, RFC 2181 §5.4.1), what that says of their DS, which
 * names are no zone cuts, and which do not exist (RFC 8020). No answer that was forwarded and no
 * answer for a client comes in here. A name's entries end with those of the zone above it, so that
 * what is taken from its parent is gone within that one's time, however long its own servers would
 * keep it (ghost domains). Bounded in bytes, and what nobody asks for goes first.
 */
export class Delegations {
  readonly #cache: Cache;
  readonly #nowSeconds: () => number;
  readonly #bytes: Uint8Array<ArrayBuffer>;
  readonly #words: Uint32Array<ArrayBuffer>;
  /** Entries are written here. */
  readonly #made = new Uint8Array(0xffff);
  readonly #ttlOffsets = new Uint16Array(TTLS_MAX);
  readonly #record = new RecordView();
  /** Those read last, by the hash of their zone: most questions go to the same few. */
  readonly #read: ({ readonly hash: number; readonly delegation: Delegation } | null)[] = new Array(
    READ_DELEGATIONS,
  ).fill(null);

  constructor(sizeBytes: number, nowSeconds: () => number) {
    this.#cache = new Cache({ sizeBytes, serveStale: 0 });
    this.#nowSeconds = nowSeconds;
    const memory = new ArrayBuffer(0x10000);
    this.#bytes = new Uint8Array(memory);
    this.#words = new Uint32Array(memory);
  }

  /** Entries of all kinds. */
  get count(): number {
    return this.#cache.entries;
  }

  get usedBytes(): number {
    return this.#cache.usedBytes;
  }

  flush(): void {
    this.#cache.flush();
    this.#read.fill(null);
  }

  /**
   * The label at which the closest delegated zone begins, of those that begin at label `from` or
   * further right; -1: not even the root is kept.
   */
  closest(name: HashedName, bytes: Uint8Array, from: number): number {
    for (let k = from; k <= name.count; k++) {
      if (this.#find(Qtype.NS, name, bytes, k) >= 0) return k;
    }
    return -1;
  }

  /** Where the zone that begins at a label is delegated to, or `null`. */
  delegation(name: HashedName, bytes: Uint8Array, label: number): Delegation | null {
    const entry = this.#find(Qtype.NS, name, bytes, label);
    if (entry < 0) return null;
    const hash = name.hashes[label];
    const read = this.#read[placeOf(hash)];
    if (
      read !== null && read.hash === hash &&
      equalNames(read.delegation.zone, 0, bytes, name.offsets[label])
    ) return read.delegation;
    const delegation = this.#readEntry(entry);
    this.#read[placeOf(hash)] = { hash, delegation };
    return delegation;
  }

  #readEntry(entry: number): Delegation {
    this.#cache.copyTo(entry, this.#bytes, this.#words, 0, this.#nowSeconds(), 0);
    const end = this.#cache.messageLength(entry);
    const servers: Hint[] = [];
    let at = skipName(this.#bytes, HEADER_BYTES, end);
    const zone = this.#bytes.slice(HEADER_BYTES, at);
    while (at < end) {
      const nameEnd = skipName(this.#bytes, at, end);
      const server = { name: this.#bytes.slice(at, nameEnd), addresses: [] as Uint8Array[] };
      let left = this.#bytes[nameEnd];
      at = nameEnd + 1;
      for (; left > 0; left--) {
        const length = this.#bytes[at++];
        server.addresses.push(this.#bytes.slice(at, at + length));
        at += length;
      }
      servers.push(server);
    }
    const nowS = this.#nowSeconds();
    return new Delegation(zone, servers, nowS + this.#cache.secondsLeft(entry, nowS));
  }

  /** Keeps where a zone is delegated to; `delegation.expiresAtS` is the bound of its time. */
  keep(name: HashedName, bytes: Uint8Array, label: number, delegation: Delegation): void {
    const { servers, expiresAtS } = delegation;
    this.#keepServers(Qtype.NS, name, bytes, label, servers, expiresAtS);
  }

  /** Keeps the name servers that a zone has by its own word alone, until a second. */
  keepOwn(
    name: HashedName,
    bytes: Uint8Array,
    label: number,
    servers: readonly Hint[],
    expiresAtS: number,
  ): void {
    this.#keepServers(OWN, name, bytes, label, servers, expiresAtS);
  }

  /** What `keepOwn` has kept. */
  own(name: HashedName, bytes: Uint8Array, label: number): readonly Hint[] {
    const entry = this.#find(OWN, name, bytes, label);
    return entry < 0 ? [] : this.#readEntry(entry).servers;
  }

  #keepServers(
    kind: number,
    name: HashedName,
    bytes: Uint8Array,
    label: number,
    servers: readonly Hint[],
    expiresAtS: number,
  ): void {
    let at = this.#start(name, bytes, label);
    for (const { name, addresses } of servers.slice(0, NAME_SERVERS_MAX)) {
      this.#made.set(name, at);
      at += name.length;
      const kept = addresses.slice(0, ADDRESSES_PER_SERVER_MAX);
      this.#made[at++] = kept.length;
      for (const address of kept) {
        this.#made[at++] = address.length;
        this.#made.set(address, at);
        at += address.length;
      }
    }
    const ttl = Math.min(expiresAtS - this.#nowSeconds(), DELEGATION_TTL_MAX);
    this.#store(kind, name, label, at, ttl);
  }

  /** Forgets where a zone is delegated to: none of its servers is of any use. */
  forget(name: HashedName, bytes: Uint8Array, label: number): void {
    this.#forget(Qtype.NS, name, bytes, label);
  }

  #forget(kind: number, name: HashedName, bytes: Uint8Array, label: number): void {
    if (this.#find(kind, name, bytes, label) < 0) return;
    this.#store(kind, name, label, this.#start(name, bytes, label), -1);
  }

  /** Says whether a name is known to be inside of the zone above it, and no zone of its own. */
  isInner(name: HashedName, bytes: Uint8Array, label: number): boolean {
    return this.#find(INNER, name, bytes, label) >= 0;
  }

  keepInner(name: HashedName, bytes: Uint8Array, label: number, ttl: number): void {
    const end = this.#start(name, bytes, label);
    this.#store(INNER, name, label, end, Math.min(ttl, INNER_TTL_MAX));
  }

  /**
   * The response that denied a name, at the label `from` or further right, with its TTLs aged; `null`:
   * none is known. It is good until the next call.
   */
  denial(name: HashedName, bytes: Uint8Array, from: number): Uint8Array | null {
    for (let k = from; k < name.count; k++) {
      const entry = this.#find(DENIED, name, bytes, k);
      if (entry >= 0) return this.#copy(entry);
    }
    return null;
  }

  /** Keeps a response that denies the name of its own question, which begins at a label. */
  keepDenial(name: HashedName, label: number, response: Uint8Array, ttl: number): void {
    this.#keepMessage(DENIED, name, label, response, Math.min(ttl, DELEGATION_TTL_MAX));
  }

  /** Forgets what denies a name: it is not believed. */
  forgetDenials(name: HashedName, bytes: Uint8Array): void {
    for (let k = 0; k < name.count; k++) this.#forget(DENIED, name, bytes, k);
  }

  /**
   * What the zone above says of a zone's DS, as the response to a question for that: the set with its
   * signatures, or the proof that there is none. `null`: it is not known. A copy.
   */
  ds(name: HashedName, bytes: Uint8Array, label: number): Uint8Array | null {
    const entry = this.#find(Qtype.DS, name, bytes, label);
    return entry < 0 ? null : this.#copy(entry).slice();
  }

  keepDs(name: HashedName, label: number, response: Uint8Array, ttl: number): void {
    this.#keepMessage(Qtype.DS, name, label, response, ttl);
  }

  #keepMessage(
    kind: number,
    name: HashedName,
    label: number,
    response: Uint8Array,
    ttl: number,
  ): void {
    if (response.length > KEPT_BYTES_MAX || ttl <= 0) return;
    this.#made.set(response);
    const ttlCount = this.#findTtls(response);
    this.#store(kind, name, label, response.length, ttl, ttlCount);
  }

  /** Notes where the TTLs of a message stand, those of OPT left out; returns how many there are. */
  #findTtls(message: Uint8Array): number {
    let count = 0;
    let at = skipName(message, HEADER_BYTES, message.length) + 4;
    while (at < message.length && count < TTLS_MAX) {
      const next = readRecord(message, at, message.length, this.#record);
      if (next < 0) break;
      if (this.#record.type !== Qtype.OPT) {
        this.#ttlOffsets[count++] = this.#record.rdataOffset - 6;
      }
      at = next;
    }
    return count;
  }

  /** Begins an entry about the name at a label; returns where its name ends. */
  #start(name: HashedName, bytes: Uint8Array, label: number): number {
    this.#made.fill(0, 0, HEADER_BYTES);
    setU16(this.#made, 4, 1);
    const from = name.offsets[label];
    const length = name.offsets[name.count] + 1 - from;
    for (let i = 0; i < length; i++) this.#made[HEADER_BYTES + i] = FOLD[bytes[from + i]];
    return HEADER_BYTES + length;
  }

  #store(
    kind: number,
    name: HashedName,
    label: number,
    length: number,
    ttl: number,
    ttlCount = 0,
  ): void {
    const hash = name.hashes[label];
    if (kind === Qtype.NS) this.#read[placeOf(hash)] = null;
    const options = {
      hash,
      qtype: kind,
      keyBits: 0,
      qnameLength: name.offsets[name.count] + 1 - name.offsets[label],
      ttl,
      nowSeconds: this.#nowSeconds(),
    };
    const ttls = ttlCount === 0 ? NO_TTLS : this.#ttlOffsets;
    this.#cache.store(options, this.#made, 0, length, ttls, ttlCount);
  }

  #find(kind: number, name: HashedName, bytes: Uint8Array, label: number): number {
    const from = name.offsets[label];
    const length = name.offsets[name.count] + 1 - from;
    const cache = this.#cache;
    const entry = cache.find(name.hashes[label], kind, 0, bytes, from, length);
    if (entry < 0) return -1;
    return cache.freshness(entry, this.#nowSeconds()) === CacheHit.Fresh ? entry : -1;
  }

  #copy(entry: number): Uint8Array {
    this.#cache.copyTo(entry, this.#bytes, this.#words, 0, this.#nowSeconds(), 0);
    return this.#bytes.subarray(0, this.#cache.messageLength(entry));
  }
}

function placeOf(hash: number): number {
  return (hash >>> 0) % READ_DELEGATIONS;
}

/** Says whether an address may be a name server's: none of this host, of a link or of a group. */
export function isAskable(address: Uint8Array): boolean {
  if (address.length === IPV4_BYTES) {
    const [first, second] = address;
    return first !== 0 && first !== 127 && first < 224 && !(first === 169 && second === 254);
  }
  if (address.length !== IPV6_BYTES || address[0] === 0xff) return false;
  if (address[0] === 0xfe && (address[1] & 0xc0) === 0x80) return false;
  // Unspecified, loopback, and the IPv4 address in one of IPv6, which is asked as such or not at all.
  return address.some((byte, i) => i < 10 && byte !== 0);
}
