import { type EmbeddingPrefix, isPrivateAt, reverseName } from "../addr/mod.ts";
import { equalNames, HashedName, parseName, Qtype, Rcode } from "../dns/mod.ts";
import { invariant } from "../errors.ts";
import type { LocalRecords } from "../snapshot/mod.ts";
import { writeAll, writeNegative } from "./own_answers.ts";
import type { Query } from "./query.ts";
import type { Reply } from "./reply.ts";

/** By which hosts find the prefix (RFC 7050 §3), and the addresses that it has (§2.2). */
const KNOWN_NAME = wire("ipv4only.arpa");
const KNOWN_ADDRESSES = [Uint8Array.of(192, 0, 0, 170), Uint8Array.of(192, 0, 0, 171)] as const;
/** Seconds; as the name itself has it. */
const KNOWN_TTL = 86_400;
const IPV4_BYTES = 4;
const IPV6_BYTES = 16;
/** Labels of the name of an IPv6 address: 32 digits, and `ip6.arpa` (RFC 3596 §2.5). */
const REVERSE_LABELS = 34;
const DIGITS = 32;
const REVERSE_ZONE = wire("ip6.arpa");

/** Answers for names that a translator's prefix has part in, at once (RFC 6147, 7050, 8880). */
export class Dns64Names {
  readonly #embedding: EmbeddingPrefix;
  readonly #knownHash: number;
  readonly #address = new Uint8Array(IPV6_BYTES);

  /** `seed` is that of every hash of a name. */
  constructor(embedding: EmbeddingPrefix, seed: number) {
    this.#embedding = embedding;
    const hashed = new HashedName();
    hashed.read(KNOWN_NAME, 0, KNOWN_NAME.length, seed);
    this.#knownHash = hashed.hashes[0];
  }

  /** Answers for `ipv4only.arpa`; false: it is another name. */
  writeKnown(query: Query, reply: Reply, name: HashedName): boolean {
    if (name.hashes[0] !== this.#knownHash) return false;
    if (!equalNames(query.packet, name.offsets[0], KNOWN_NAME, 0)) return false;
    const { qtype } = query;
    if (qtype === Qtype.A) writeAll(query, reply, qtype, KNOWN_TTL, KNOWN_ADDRESSES);
    else if (qtype === Qtype.AAAA) {
      const embedded = KNOWN_ADDRESSES.map((ipv4) => this.#embed(ipv4, 0).slice());
      writeAll(query, reply, qtype, KNOWN_TTL, embedded);
    } else writeNegative(query, reply, Rcode.NoError, KNOWN_TTL);
    return true;
  }

  /** Answers for AAAA with A records of ours; false: there is another answer. */
  writeLocal(query: Query, reply: Reply, records: LocalRecords, set: number): boolean {
    if (query.qtype !== Qtype.AAAA || records.firstOfType(set, Qtype.AAAA) >= 0) return false;
    const first = records.first(set);
    const found: Uint8Array[] = [];
    let ttl = Infinity;
    for (let record = first; record < first + records.count(set); record++) {
      if (records.type(record) !== Qtype.A) continue;
      const { bytes } = records;
      const at = records.rdataOffset(record);
      // The prefix for everybody leads to the Internet alone (RFC 6052 §3.1).
      if (this.#embedding.isWellKnown && isPrivateAt(bytes, at, IPV4_BYTES)) continue;
      found.push(this.#embed(bytes, at).slice());
      ttl = Math.min(ttl, records.ttl(record));
    }
    if (found.length > 0) writeAll(query, reply, Qtype.AAAA, ttl, found);
    return found.length > 0;
  }

  /** The name of the IPv4 address in the IPv6 address that a PTR query is about, or `null`. */
  reverse({ qtype, packet }: Query, { count, offsets }: HashedName): Uint8Array | null {
    if (qtype !== Qtype.PTR || count !== REVERSE_LABELS) return null;
    if (!equalNames(packet, offsets[DIGITS], REVERSE_ZONE, 0)) return null;
    const address = this.#address;
    for (let i = 0; i < DIGITS; i++) {
      const digit = packet[offsets[i]] === 1 ? digitOf(packet[offsets[i] + 1]) : -1;
      if (digit < 0) return null;
      // The last digit comes first.
      const at = (DIGITS - 1 - i) >> 1;
      address[at] = (i & 1) === 0 ? digit : address[at] | (digit << 4);
    }
    const ipv4 = this.#embedding.extract(address, 0);
    return ipv4 === null ? null : parseName(reverseName(ipv4));
  }

  /** The IPv6 form of an IPv4 address, good until the next call. */
  #embed(bytes: Uint8Array, at: number): Uint8Array {
    this.#embedding.embed(bytes, at, this.#address, 0);
    return this.#address;
  }
}

function digitOf(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x61 + 10 : -1;
}

function wire(text: string): Uint8Array {
  const name = parseName(text);
  invariant(name !== null, `${text} is a name`);
  return name;
}
