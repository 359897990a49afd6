import { formatHostPort, type HostPort } from "../addr/mod.ts";
import { getU16 } from "../bytes/mod.ts";
import { SvcError } from "../errors.ts";
import { errnoHint, type Native } from "./libc.ts";

export const AF_INET = 2;
export const AF_INET6 = 10;
export const SOCK_DGRAM = 2;
const SOCK_STREAM = 1;
export const SOCK_CLOEXEC = 0o2000000;
export const SOCK_NONBLOCK = 0o4000;
const SOL_SOCKET = 1;
const SO_REUSEADDR = 2;
const SO_RCVBUF = 8;
const SO_REUSEPORT = 15;
const IPPROTO_IP = 0;
const IPPROTO_IPV6 = 41;
const IP_PKTINFO = 8;
const IP_MTU_DISCOVER = 10;
const IP_FREEBIND = 15;
const IPV6_MTU_DISCOVER = 23;
const IPV6_V6ONLY = 26;
const IPV6_RECVPKTINFO = 49;
const IPV6_FREEBIND = 78;
/** Ignores path-MTU news, which a forger can send, and never fragments by it. */
const PMTUDISC_OMIT = 5;
const F_SETFD = 2;
const FD_CLOEXEC = 1;

/** Where a `sockaddr` has its address, behind the family and the port. */
export const SOCKADDR_IPV4_OFFSET = 4;
export const SOCKADDR_IPV6_OFFSET = 8;
/** Bytes of the largest socket address (`sockaddr_in6`). */
export const SOCKADDR_BYTES = 28;
/** Bytes the kernel queues for a UDP listener while an isolate is busy or being replaced. */
const RECEIVE_BUFFER_BYTES = 4 * 1024 * 1024;
/** TCP connections the kernel completes ahead of `accept`. */
const BACKLOG = 512;

export type ListenKind = "udp" | "tcp";

/** Writes the `sockaddr` of an address; returns its length in bytes. */
export function writeSockaddr(target: Uint8Array, { ip, port }: HostPort): number {
  target.fill(0, 0, SOCKADDR_BYTES);
  const view = new DataView(target.buffer, target.byteOffset);
  const v4 = ip.length === 4;
  view.setUint16(0, v4 ? AF_INET : AF_INET6, true);
  view.setUint16(2, port);
  target.set(ip, v4 ? SOCKADDR_IPV4_OFFSET : SOCKADDR_IPV6_OFFSET);
  return v4 ? 16 : SOCKADDR_BYTES;
}

function option(native: Native, fd: number, level: number, name: number, value: number): boolean {
  return native.setsockopt(fd, level, name, new Uint8Array(new Int32Array([value]).buffer), 4) ===
    0;
}

/**
 * Opens a bound socket that several isolates can share a port with (SO_REUSEPORT), also on an
 * address this machine does not have yet (free bind); a TCP one listens already. IPv6 sockets take
 * IPv6 only, so that both families can be listed. Nobody else has a port that the system gives for
 * port 0, nor, with `isAlone`, the given one: of a port that may be shared from the start the system
 * also gives one that another process shares, and half of the packets go there.
 *
 * @throws {SvcError} `unavailable`, with the address and what is in the way.
 */
export function openListener(
  native: Native,
  kind: ListenKind,
  address: HostPort,
  isAlone: boolean = address.port === 0,
): number {
  const v4 = address.ip.length === 4;
  const { fd, fail } = newSocket(native, kind, address);
  const share = () => {
    option(native, fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (!option(native, fd, SOL_SOCKET, SO_REUSEPORT, 1)) fail("share the port");
  };
  if (!isAlone) share();
  option(native, fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_FREEBIND : IPV6_FREEBIND, 1);
  if (!v4) option(native, fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
  if (kind === "udp") {
    const told = v4
      ? option(native, fd, IPPROTO_IP, IP_PKTINFO, 1)
      : option(native, fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
    if (!told) fail("ask for packet info");
    const [level, name] = v4 ? [IPPROTO_IP, IP_MTU_DISCOVER] : [IPPROTO_IPV6, IPV6_MTU_DISCOVER];
    option(native, fd, level, name, PMTUDISC_OMIT);
    option(native, fd, SOL_SOCKET, SO_RCVBUF, RECEIVE_BUFFER_BYTES);
  }
  if (!bindTo(native, fd, address)) fail("listen");
  if (isAlone) share();
  if (kind === "tcp" && native.listen(fd, BACKLOG) !== 0) fail("listen");
  return fd;
}

/**
 * Opens a bound TCP socket that listens and that nobody shares the port of. On IPv6 it takes IPv4
 * too, where it is bound to no address in particular and the system has it so; not if `isIpv6Only`.
 *
 * @throws {SvcError} `unavailable`, with the address and what is in the way.
 */
export function openServer(native: Native, address: HostPort, isIpv6Only = false): number {
  const { fd, fail } = newSocket(native, "tcp", address);
  if (isIpv6Only) option(native, fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
  // Connections that have just ended are in nobody's way.
  option(native, fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (!bindTo(native, fd, address) || native.listen(fd, BACKLOG) !== 0) fail("listen");
  return fd;
}

/** A new socket, and what gives it up with a reason. */
function newSocket(native: Native, kind: ListenKind, address: HostPort) {
  const family = address.ip.length === 4 ? AF_INET : AF_INET6;
  const type = (kind === "udp" ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC | SOCK_NONBLOCK;
  const fd = native.socket(family, type, 0);
  const fail = (what: string): never => {
    const message = `${kind} ${formatHostPort(address)}: cannot ${what}: ${errnoHint(native)}`;
    if (fd >= 0) native.close(fd);
    throw new SvcError("unavailable", message);
  };
  if (fd < 0) fail("open a socket");
  return { fd, fail };
}

function bindTo(native: Native, fd: number, address: HostPort): boolean {
  const sockaddr = new Uint8Array(SOCKADDR_BYTES);
  return native.bind(fd, sockaddr, writeSockaddr(sockaddr, address)) === 0;
}

/** The port a socket is bound to, for those asked for with port 0. */
export function portOf(native: Native, fd: number): number {
  const sockaddr = new Uint8Array(SOCKADDR_BYTES);
  const length = new Uint8Array(new Uint32Array([SOCKADDR_BYTES]).buffer);
  return native.getsockname(fd, sockaddr, length) === 0 ? getU16(sockaddr, 2) : 0;
}

/** A second number for the same socket, for an owner that will close it; -1 when there is none. */
export function dupSocket(native: Native, fd: number): number {
  const copy = native.dup(fd);
  if (copy >= 0) native.fcntl(copy, F_SETFD, BigInt(FD_CLOEXEC));
  return copy;
}

export function closeSocket(native: Native, fd: number): void {
  native.close(fd);
}
