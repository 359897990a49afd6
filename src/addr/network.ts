import { formatPrefix } from "./prefix.ts";

/**
 * What counts as one client wherever clients are limited: an IPv4 address, or the /64 of an IPv6
 * one, as two words.
 *
 * The first word of an IPv4 address is this mark; that of an IPv6 one is the first of its /64, and
 * nobody asks from `ffff:ffff::/32` (RFC 4291 §2.7: it is multicast).
 */
const IPV4_MARK = -1;
const IPV4_BYTES = 4;
const NETWORK_BITS = 64;

/** The first word of the client at `offset`, an address of 4 or 16 bytes. */
export function networkHigh(bytes: Uint8Array, offset: number, lengthBytes: number): number {
  return lengthBytes === IPV4_BYTES ? IPV4_MARK : wordAt(bytes, offset);
}

/** Its second word. */
export function networkLow(bytes: Uint8Array, offset: number, lengthBytes: number): number {
  return wordAt(bytes, lengthBytes === IPV4_BYTES ? offset : offset + 4);
}

/** The client of an address as text: `192.0.2.1`, `2001:db8::/64`. */
export function formatNetwork(bytes: Uint8Array): string {
  const high = networkHigh(bytes, 0, bytes.length);
  const low = networkLow(bytes, 0, bytes.length);
  const ip = new Uint8Array(high === IPV4_MARK ? IPV4_BYTES : 16);
  const view = new DataView(ip.buffer);
  if (ip.length > IPV4_BYTES) view.setInt32(0, high);
  view.setInt32(ip.length > IPV4_BYTES ? 4 : 0, low);
  return formatPrefix({ ip, lengthBits: ip.length > IPV4_BYTES ? NETWORK_BITS : 32 });
}

function wordAt(bytes: Uint8Array, at: number): number {
  return (bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3];
}
