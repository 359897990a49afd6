import { equalBytes, getU16, setU16 } from "../bytes/mod.ts";

type Ip = Uint8Array<ArrayBuffer>;

/** VRRP among the protocols of IP. */
export const VRRP_PROTOCOL = 112;
/** Where advertisements go unless they go to the peer alone (RFC 9568 §5.1.1.2). */
export const VRRP_GROUP: Ip = new Uint8Array([224, 0, 0, 18]);
/** No router lets a packet of this TTL through: its sender is on the same segment. */
export const VRRP_TTL = 255;

/** Version 3, type 1: the one type that there is. */
const VERSION = 3;
const TYPE_ADVERTISEMENT = 1;
/** The fields before the addresses. */
const HEADER_BYTES = 8;
const ADDRESS_BYTES = 4;
const IP_HEADER_BYTES_MIN = 20;
/** The interval counts in centiseconds, in 12 bits. */
const INTERVAL_UNIT_MS = 10;
const INTERVAL_BITS = 0xfff;

/** What an advertisement says; the address and the router's ID are known. */
export interface Advertisement {
  /** 0: the sender gives the address up. */
  readonly priority: number;
  /** How often the sender announces itself. */
  readonly intervalMs: number;
}

/** Whose advertisements count, and for what. */
export interface Expected {
  readonly peer: Ip;
  readonly routerId: number;
  readonly address: Ip;
}

/** Why a packet is ignored, in the order of the checks. */
export const DROP_REASONS = [
  "interface", // It came in by another one; the reader of the socket says so.
  "truncated",
  "ttl",
  "version",
  "type",
  "length",
  "checksum",
  "router_id",
  "peer",
  "address",
  "interval",
] as const;
export type DropReason = typeof DROP_REASONS[number];

export type Reading =
  | { readonly kind: "advertisement"; readonly advertisement: Advertisement }
  | { readonly kind: "dropped"; readonly reason: DropReason };

/** The Internet checksum over the pseudo-header and the message; 0 over one that is right. */
function checksum(source: Uint8Array, destination: Uint8Array, message: Uint8Array): number {
  let sum = VRRP_PROTOCOL + message.length;
  for (const part of [source, destination, message]) {
    for (let i = 0; i + 1 < part.length; i += 2) sum += getU16(part, i);
    if (part.length % 2 === 1) sum += part[part.length - 1] << 8;
  }
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}

/** Writes the message of an advertisement, for the payload of an IP packet between these two. */
export function writeAdvertisement(
  { priority, intervalMs }: Advertisement,
  { routerId, address }: Pick<Expected, "routerId" | "address">,
  source: Uint8Array,
  destination: Uint8Array,
): Ip {
  const message = new Uint8Array(HEADER_BYTES + ADDRESS_BYTES);
  message[0] = (VERSION << 4) | TYPE_ADVERTISEMENT;
  message[1] = routerId;
  message[2] = priority;
  message[3] = 1; // One address.
  setU16(message, 4, (intervalMs / INTERVAL_UNIT_MS) & INTERVAL_BITS);
  message.set(address, HEADER_BYTES);
  setU16(message, 6, checksum(source, destination, message));
  return message;
}

/** Reads an IP packet with its header, as a raw socket has it (RFC 9568 §7.1). */
export function readAdvertisement(packet: Uint8Array, expected: Expected): Reading {
  const dropped = (reason: DropReason): Reading => ({ kind: "dropped", reason });
  if (packet.length < IP_HEADER_BYTES_MIN) return dropped("truncated");
  const headerBytes = (packet[0] & 0xf) * 4;
  if (headerBytes < IP_HEADER_BYTES_MIN) return dropped("truncated");
  const message = packet.subarray(headerBytes);
  if (message.length < HEADER_BYTES) return dropped("truncated");
  if (packet[8] !== VRRP_TTL) return dropped("ttl");
  if (message[0] >> 4 !== VERSION) return dropped("version");
  if ((message[0] & 0xf) !== TYPE_ADVERTISEMENT) return dropped("type");
  const lengthBytes = HEADER_BYTES + message[3] * ADDRESS_BYTES;
  if (message.length !== lengthBytes) {
    return dropped(message.length < lengthBytes ? "truncated" : "length");
  }
  const source = packet.subarray(12, 16);
  if (checksum(source, packet.subarray(16, 20), message) !== 0) return dropped("checksum");
  // Other routers of the segment have other IDs, and nothing is wrong with them.
  if (message[1] !== expected.routerId) return dropped("router_id");
  if (!equalBytes(source, expected.peer)) return dropped("peer");
  if (message[3] !== 1 || !equalBytes(message.subarray(HEADER_BYTES), expected.address)) {
    return dropped("address");
  }
  const intervalMs = (getU16(message, 4) & INTERVAL_BITS) * INTERVAL_UNIT_MS;
  // Whoever announces without a pause could be waited for without a pause.
  if (intervalMs === 0) return dropped("interval");
  return { kind: "advertisement", advertisement: { priority: message[2], intervalMs } };
}
