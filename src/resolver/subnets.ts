import { isPrivateAt, TOLD_IPV4_BITS, TOLD_IPV6_BITS } from "../addr/mod.ts";
import { getU16, setU16 } from "../bytes/mod.ts";
import { EdnsOption, HEADER_BYTES, Qtype, skipName } from "../dns/mod.ts";
import { type Query, Transport } from "./query.ts";

/** Subnets that are told apart at a time; those that were asked for longest ago go. */
export const SUBNETS_MAX = 1_024;
/** So many in the life of a process: the number of one is never another's. */
const IDS_MAX = 2 ** 31 - 1;

/** Families of addresses, as the option numbers them (RFC 7871 §6). */
const FAMILY_IPV4 = 1;
const FAMILY_IPV6 = 2;
/** Family, and both lengths of prefixes. */
const OPTION_FIXED_BYTES = 4;
/** Where the data of the option says how much of the address an answer is for. */
export const SCOPE_AT = 3;
const IPV4_BYTES = 4;
const IPV6_BYTES = 16;
/** Type, class, TTL and length of a record. */
const RECORD_FIXED_BYTES = 10;
const NOT_SAID = -1;
const HIDDEN = -2;

/** A part of the Internet that a query is asked for. */
export interface Subnet {
  /** Of the process, 1 and more. */
  readonly id: number;
  /** Data of the option that tells it. */
  readonly option: Uint8Array;
}

/** The data of a client subnet option for an address, its length cut to the bounds (RFC 7871 §6). */
export function subnetOption(ip: Uint8Array, lengthBits: number): Uint8Array {
  const isIpv4 = ip.length === IPV4_BYTES;
  const bits = Math.min(lengthBits, isIpv4 ? TOLD_IPV4_BITS : TOLD_IPV6_BITS);
  const bytes = Math.ceil(bits / 8);
  const data = new Uint8Array(OPTION_FIXED_BYTES + bytes);
  setU16(data, 0, isIpv4 ? FAMILY_IPV4 : FAMILY_IPV6);
  data[2] = bits;
  data.set(ip.subarray(0, bytes), OPTION_FIXED_BYTES);
  if ((bits & 7) !== 0) data[data.length - 1] &= 0xff00 >> (bits & 7);
  return data;
}

/** Says whether the option of a response is about the subnet that was sent, whatever its scope. */
export function isAboutSubnet(sent: Uint8Array, packet: Uint8Array, at: number): boolean {
  for (let i = 0; i < sent.length; i++) {
    if (i !== SCOPE_AT && packet[at + i] !== sent[i]) return false;
  }
  return true;
}

/** Knows the subnets of clients, and gives each a number. One per dns isolate. */
export class Subnets {
  /** By the bytes of their options; whoever was asked for last stands last. */
  readonly #known = new Map<string, Subnet>();
  #lastId = 0;
  readonly #ip = new Uint8Array(IPV6_BYTES);

  /** Those that are told apart at the moment. */
  get count(): number {
    return this.#known.size;
  }

  /**
   * The subnet that a query is asked for, or `null`, where none is told: that of the option in it, by
   * which a forwarder tells its client's, or else that of its sender. `query.packet` is the packet as
   * it came in.
   */
  of(query: Query): Subnet | null {
    const { address } = query;
    const ip = this.#ip;
    const said = query.edns ? this.#readOption(query) : NOT_SAID;
    if (said === HIDDEN) return null; // Whoever tells no part of it wants none told (RFC 7871 §7.1.2).
    if (said !== NOT_SAID) return this.#intern(ip, said >> 8, said & 0xff);
    // Who asks by way of a proxy is hidden on purpose (RFC 9230).
    if (query.transport === Transport.Odoh || address.lengthBytes === 0) return null;
    for (let i = 0; i < address.lengthBytes; i++) ip[i] = address.bytes[address.offset + i];
    return this.#intern(ip, address.lengthBytes, 8 * address.lengthBytes);
  }

  /** The subnet of an address of `length` bytes; those that are nobody else's business have none. */
  #intern(ip: Uint8Array, length: number, bits: number): Subnet | null {
    const address = ip.subarray(0, length);
    if (length === IPV6_BYTES ? !isGlobal(address) : isPrivateAt(address, 0, length)) return null;
    const option = subnetOption(address, bits);
    const known = this.#known;
    const key = String.fromCharCode(...option);
    const former = known.get(key);
    if (former !== undefined) {
      known.delete(key);
      known.set(key, former);
      return former;
    }
    if (this.#lastId >= IDS_MAX) return null;
    if (known.size >= SUBNETS_MAX) {
      const [oldest] = known.keys();
      known.delete(oldest);
    }
    const subnet = { id: ++this.#lastId, option };
    known.set(key, subnet);
    return subnet;
  }

  /**
   * Reads the first client subnet option of a query that `readQuery` has found well formed, its
   * address into `#ip`; returns how long that is, in bytes above eight bits of its prefix length.
   */
  #readOption({ packet, start, qnameLength }: Query): number {
    let at = start + HEADER_BYTES + qnameLength + 4;
    for (let left = getU16(packet, start + 10); left > 0; left--) {
      const fixed = skipName(packet, at, packet.length);
      if (fixed < 0) return HIDDEN;
      const from = fixed + RECORD_FIXED_BYTES;
      at = from + getU16(packet, fixed + 8);
      if (getU16(packet, fixed) !== Qtype.OPT) continue;
      for (let option = from; option + 4 <= at; option += 4 + getU16(packet, option + 2)) {
        if (getU16(packet, option) !== EdnsOption.ClientSubnet) continue;
        return this.#readSubnet(packet, option + 4, getU16(packet, option + 2));
      }
    }
    return NOT_SAID;
  }

  /** What is malformed tells nothing, and nothing is told in its place. */
  #readSubnet(packet: Uint8Array, at: number, length: number): number {
    if (length < OPTION_FIXED_BYTES) return HIDDEN;
    const family = getU16(packet, at);
    const bits = packet[at + 2];
    if (family !== FAMILY_IPV4 && family !== FAMILY_IPV6) return HIDDEN;
    const ipBytes = family === FAMILY_IPV4 ? IPV4_BYTES : IPV6_BYTES;
    const bytes = Math.ceil(bits / 8);
    if (bits === 0 || bytes > ipBytes || length !== OPTION_FIXED_BYTES + bytes) return HIDDEN;
    for (let i = 0; i < ipBytes; i++) {
      this.#ip[i] = i < bytes ? packet[at + OPTION_FIXED_BYTES + i] : 0;
    }
    return (ipBytes << 8) | bits;
  }
}

/** Says whether an IPv6 address is of the Internet, and holds no IPv4 address (RFC 3056, RFC 4380). */
function isGlobal(ip: Uint8Array): boolean {
  if ((ip[0] & 0xe0) !== 0x20) return false;
  const first = getU16(ip, 0);
  return first !== 0x2002 && !(first === 0x2001 && getU16(ip, 2) === 0);
}
