import type { EmbeddingPrefix } from "./embedding.ts";

/** No more of a client's address is told to others than this (RFC 7871 §11.1). */
export const TOLD_IPV4_BITS = 24;
export const TOLD_IPV6_BITS = 56;

const IPV6_BYTES = 16;

/**
 * Says whether the address of 4 or 16 bytes at `offset` leads into the network at hand, and not into
 * the Internet: unspecified ("this host"), loopback, private (RFC 1918, RFC 4193), link-local, of a
 * carrier's NAT (RFC 6598), or an IPv6 form of such an IPv4 address: IPv4-mapped and
 * IPv4-compatible (RFC 4291 §2.5.5), of NAT64 (RFC 6052). The local NAT64 prefix is private
 * altogether (RFC 8215). `embedding` is a further prefix of NAT64, if there is one.
 */
export function isPrivateAt(
  bytes: Uint8Array,
  offset: number,
  lengthBytes: number,
  embedding: EmbeddingPrefix | null = null,
): boolean {
  if (lengthBytes !== IPV6_BYTES) return isPrivateIpv4(bytes[offset], bytes[offset + 1]);
  if (isPrivateIpv6(bytes, offset)) return true;
  const ipv4 = embedding === null ? null : embedding.extract(bytes, offset);
  return ipv4 !== null && isPrivateIpv4(ipv4[0], ipv4[1]);
}

function isPrivateIpv4(first: number, second: number): boolean {
  switch (first) {
    case 0:
    case 10:
    case 127:
      return true;
    case 100:
      return (second & 0xc0) === 64;
    case 169:
      return second === 254;
    case 172:
      return (second & 0xf0) === 16;
    case 192:
      return second === 168;
    default:
      return false;
  }
}

function isPrivateIpv6(bytes: Uint8Array, at: number): boolean {
  const word = (i: number) => (bytes[at + 2 * i] << 8) | bytes[at + 2 * i + 1];
  const first = word(0);
  if ((first & 0xfe00) === 0xfc00 || (first & 0xffc0) === 0xfe80) return true;
  if (first === 0) {
    // ::/96, with :: and ::1 in it, and ::ffff:0:0/96.
    const isEmbedded = word(1) === 0 && word(2) === 0 && word(3) === 0 && word(4) === 0 &&
      (word(5) === 0 || word(5) === 0xffff);
    return isEmbedded && isPrivateIpv4(bytes[at + 12], bytes[at + 13]);
  }
  if (first !== 0x64 || word(1) !== 0xff9b) return false;
  if (word(2) === 1) return true; // 64:ff9b:1::/48
  const isWellKnown = word(2) === 0 && word(3) === 0 && word(4) === 0 && word(5) === 0;
  return isWellKnown && isPrivateIpv4(bytes[at + 12], bytes[at + 13]);
}
