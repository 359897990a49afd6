import { formatPrefix, type IpPrefix, prefixHolds } from "./prefix.ts";

const IPV4_BYTES = 4;
const IPV6_BYTES = 16;
/** Bits 64 to 71, which hold no part of the IPv4 address and are zero (RFC 6052 §2.2). */
const RESERVED_BYTE = 8;
/** Lengths of prefixes that addresses are embedded behind (RFC 6052 §2.2). */
export const EMBEDDING_LENGTHS: readonly number[] = [32, 40, 48, 56, 64, 96];
/** May not stand before addresses that are private (RFC 6052 §3.1). */
const WELL_KNOWN = "64:ff9b::/96";

/** An IPv6 prefix behind which a translator puts IPv4 addresses (RFC 6052). */
export class EmbeddingPrefix {
  readonly #prefix: IpPrefix;
  /** Where each byte of the IPv4 address goes. */
  readonly #places: readonly number[];
  /** It is the one for everybody. */
  readonly isWellKnown: boolean;

  /** `prefix` has one of `EMBEDDING_LENGTHS`, and zeros in its reserved byte. */
  constructor(prefix: IpPrefix) {
    this.#prefix = prefix;
    this.isWellKnown = formatPrefix(prefix) === WELL_KNOWN;
    const places: number[] = [];
    for (let at = prefix.lengthBits / 8; places.length < IPV4_BYTES; at++) {
      if (at !== RESERVED_BYTE) places.push(at);
    }
    this.#places = places;
  }

  /** Writes the IPv6 form of the IPv4 address at `from`, 16 bytes at `to`. */
  embed(ipv4: Uint8Array, from: number, target: Uint8Array, to: number): void {
    for (let i = 0; i < IPV6_BYTES; i++) target[to + i] = this.#prefix.ip[i];
    for (let i = 0; i < IPV4_BYTES; i++) target[to + this.#places[i]] = ipv4[from + i];
  }

  /** The IPv4 address in the IPv6 address at `offset`, or `null` of one behind no such prefix. */
  extract(bytes: Uint8Array, offset: number): Uint8Array | null {
    if (!prefixHolds(this.#prefix, bytes.subarray(offset, offset + IPV6_BYTES))) return null;
    return Uint8Array.from(this.#places, (at) => bytes[offset + at]);
  }
}
