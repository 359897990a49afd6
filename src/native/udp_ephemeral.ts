import type { HostPort } from "../addr/mod.ts";
import { fileLimit } from "./file_limit.ts";
import { lackedDescriptor, type Native, wouldBlock } from "./libc.ts";
import {
  AF_INET,
  AF_INET6,
  SOCK_CLOEXEC,
  SOCK_DGRAM,
  SOCK_NONBLOCK,
  SOCKADDR_BYTES,
  writeSockaddr,
} from "./sockets.ts";

/** Ports below are left to services. */
const PORT_MIN = 1024;
/** Draws of a port that turned out to be in use before the query fails. */
const PORT_TRIES_MAX = 8;
const MSG_DONTWAIT = 0x40;
/** Share of the process's descriptors that questions leave to everything else, and at least. */
const RESERVED_PART = 0.25;
const RESERVED_MIN = 128;

/** What `open` returns besides a descriptor. */
export const Opened = { Unreachable: -1, NoSocket: -2 } as const;

/** What `receive` returns besides a length. */
export const Received = { Nothing: -1, Refused: -2 } as const;

/**
 * UDP sockets for one question each, bound to a random port of the whole range and connected, so
 * that the kernel drops what any other address sends (RFC 5452 §9.2).
 */
export class UdpEphemeral {
  readonly #native: Native;
  readonly #local = new Uint8Array(SOCKADDR_BYTES);
  readonly #random = new Uint16Array(256);
  #randomLeft = 0;
  /** Descriptors from this number on are left alone. The system gives the lowest that is free. */
  readonly #fdEnd: number;

  constructor(native: Native) {
    this.#native = native;
    const limit = fileLimit(native)?.soft ?? Number.MAX_SAFE_INTEGER;
    this.#fdEnd = limit - Math.max(RESERVED_MIN, limit * RESERVED_PART);
  }

  /** The `sockaddr` of a remote address, made once and handed to `open`. */
  static remote(address: HostPort): Uint8Array<ArrayBuffer> {
    const sockaddr = new Uint8Array(SOCKADDR_BYTES);
    return sockaddr.subarray(0, writeSockaddr(sockaddr, address));
  }

  #randomPort(): number {
    for (;;) {
      if (this.#randomLeft === 0) {
        crypto.getRandomValues(this.#random);
        this.#randomLeft = this.#random.length;
      }
      const port = this.#random[--this.#randomLeft];
      if (port >= PORT_MIN) return port;
    }
  }

  /** Opens a socket to `remote`, or returns a member of `Opened`. */
  open(remote: Uint8Array<ArrayBuffer>): number {
    const native = this.#native;
    const v4 = remote.length === 16;
    const type = SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
    const fd = native.socket(v4 ? AF_INET : AF_INET6, type, 0);
    if (fd < 0) return lackedDescriptor(native) ? Opened.NoSocket : Opened.Unreachable;
    if (fd >= this.#fdEnd) {
      // A listener without a descriptor for the next connection would stop for good.
      native.close(fd);
      return Opened.NoSocket;
    }
    const local = this.#local;
    local[0] = remote[0];
    let bound = false;
    for (let i = 0; i < PORT_TRIES_MAX && !bound; i++) {
      const port = this.#randomPort();
      local[2] = port >> 8;
      local[3] = port;
      bound = native.bind(fd, local, remote.length) === 0;
    }
    if (bound && native.connect(fd, remote, remote.length) === 0) return fd;
    native.close(fd);
    return bound ? Opened.Unreachable : Opened.NoSocket;
  }

  /** Sends the first `lengthBytes` of `packet`; false when the system refuses. */
  send(fd: number, packet: Uint8Array<ArrayBuffer>, lengthBytes: number): boolean {
    return Number(this.#native.send(fd, packet, BigInt(lengthBytes), MSG_DONTWAIT)) === lengthBytes;
  }

  /**
   * Reads a packet into `target`; returns its length, `Received.Nothing` when there is none (one
   * with a bad checksum wakes, and is gone), or `Received.Refused` when nobody is there.
   */
  receive(fd: number, target: Uint8Array<ArrayBuffer>): number {
    const length = Number(this.#native.recv(fd, target, BigInt(target.length), MSG_DONTWAIT));
    if (length >= 0) return length;
    return wouldBlock(this.#native) ? Received.Nothing : Received.Refused;
  }

  close(fd: number): void {
    this.#native.close(fd);
  }
}
