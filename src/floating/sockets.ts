import { SvcError } from "../errors.ts";
import type { Native } from "../native/mod.ts";
import type { Packets } from "../native/system.ts";
import { VRRP_GROUP, VRRP_PROTOCOL, VRRP_TTL } from "../vrrp/mod.ts";

/** The C library, as far as this module uses it. */
export interface Libc {
  readonly native: Native;
  readonly packets: Packets;
}

/** What takes CAP_NET_RAW to open, and nothing more to use. */
export interface RawSockets {
  /** Announcements come and go here. */
  readonly vrrp: number;
  /** Frames go out here; none come in. */
  readonly arp: number;
}

const AF_INET = 2;
const AF_PACKET = 17;
const SOCK_RAW = 3;
const SOCK_CLOEXEC_NONBLOCK = 0o2004000;
const SOL_SOCKET = 1;
const SO_TYPE = 3;
const SO_PROTOCOL = 38;
const SO_DOMAIN = 39;
const IPPROTO_IP = 0;
const IP_TOS = 1;
const IP_TTL = 2;
export const IP_PKTINFO = 8;
const IP_MULTICAST_TTL = 33;
const IP_MULTICAST_LOOP = 34;
const IP_ADD_MEMBERSHIP = 35;
const IP_DROP_MEMBERSHIP = 36;
const IP_MULTICAST_ALL = 49;
/** Network control (CS6): switches that tell traffic apart let it pass first. */
const TOS_NETWORK_CONTROL = 0xc0;

const KINDS = [
  ["vrrp", AF_INET, VRRP_PROTOCOL],
  ["arp", AF_PACKET, 0],
] as const;

export function setOption(libc: Libc, fd: number, option: number, value: number): boolean {
  const bytes = new Uint8Array(new Int32Array([value]).buffer);
  return libc.native.setsockopt(fd, IPPROTO_IP, option, bytes, 4) === 0;
}

function intOption({ packets }: Libc, fd: number, option: number): number {
  const value = new Int32Array([-1]);
  const length = new Uint8Array(new Uint32Array([4]).buffer);
  packets.getsockopt(fd, SOL_SOCKET, option, new Uint8Array(value.buffer), length);
  return value[0];
}

/**
 * Opens them. They are bound to no interface, so that one which comes late, or again, can be used
 * without the capability.
 *
 * @throws {SvcError} `unavailable`, when the system refuses.
 */
export function openRawSockets(libc: Libc): RawSockets {
  const open = (domain: number, protocol: number, what: string) => {
    const fd = libc.native.socket(domain, SOCK_RAW | SOCK_CLOEXEC_NONBLOCK, protocol);
    if (fd < 0) throw new SvcError("unavailable", `the system refuses a raw socket for ${what}`);
    return fd;
  };
  const vrrp = open(AF_INET, VRRP_PROTOCOL, "VRRP");
  const options = [
    [IP_TTL, VRRP_TTL],
    [IP_MULTICAST_TTL, VRRP_TTL],
    [IP_MULTICAST_LOOP, 0],
    // Groups that another program has joined elsewhere are none of ours.
    [IP_MULTICAST_ALL, 0],
    [IP_TOS, TOS_NETWORK_CONTROL],
    [IP_PKTINFO, 1],
  ] as const;
  for (const [option, value] of options) {
    if (setOption(libc, vrrp, option, value)) continue;
    throw new SvcError("unavailable", `the system refuses option ${option} of a raw socket`);
  }
  return { vrrp, arp: open(AF_PACKET, 0, "ARP") };
}

/**
 * The sockets again, of which stage 1 has handed on the numbers.
 *
 * @throws {SvcError} `unavailable`, when they are others.
 */
export function adoptRawSockets(libc: Libc, numbers: readonly number[]): RawSockets {
  const isRight = numbers.length === KINDS.length &&
    KINDS.every(([, domain, protocol], i) =>
      intOption(libc, numbers[i], SO_DOMAIN) === domain &&
      intOption(libc, numbers[i], SO_TYPE) === SOCK_RAW &&
      intOption(libc, numbers[i], SO_PROTOCOL) === protocol
    );
  if (!isRight) throw new SvcError("unavailable", "the inherited sockets are not those for VRRP");
  return { vrrp: numbers[0], arp: numbers[1] };
}

/** Joins the group on an interface; it may have been another one of that number before. */
export function joinGroup({ native }: Libc, fd: number, own: Uint8Array, index: number): boolean {
  const membership = new Uint8Array(12);
  membership.set(VRRP_GROUP);
  membership.set(own, 4);
  new DataView(membership.buffer).setInt32(8, index, true);
  native.setsockopt(fd, IPPROTO_IP, IP_DROP_MEMBERSHIP, membership, membership.length);
  return native.setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, membership, membership.length) === 0;
}
