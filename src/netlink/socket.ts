import { SvcError } from "../errors.ts";
import type { Native } from "../native/mod.ts";

const AF_NETLINK = 16;
const SOCK_RAW = 3;
const SOCK_CLOEXEC_NONBLOCK = 0o2004000;
const NETLINK_ROUTE = 0;

/** What the kernel tells of by itself. */
export const News = { None: 0, Interfaces: 0x1, Neighbours: 0x4, Ipv4Addresses: 0x10 } as const;

/**
 * Opens a socket to the kernel's tables: to ask it, and to hear of what changes (bits of `News`).
 *
 * @throws {SvcError} `unavailable`, when the system refuses.
 */
export function openNetlink(native: Native, news: number): number {
  const fd = native.socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC_NONBLOCK, NETLINK_ROUTE);
  const sockaddr = new Uint8Array(12);
  const view = new DataView(sockaddr.buffer);
  view.setUint16(0, AF_NETLINK, true);
  view.setUint32(8, news, true);
  if (fd < 0 || native.bind(fd, sockaddr, sockaddr.length) !== 0) {
    if (fd >= 0) native.close(fd);
    throw new SvcError("unavailable", "the system refuses a socket to its tables (rtnetlink)");
  }
  return fd;
}
