import { addressOf, type Native } from "./libc.ts";
import {
  AF_INET,
  AF_INET6,
  SOCKADDR_BYTES,
  SOCKADDR_IPV4_OFFSET,
  SOCKADDR_IPV6_OFFSET,
} from "./sockets.ts";

/** Packets taken or sent by one system call. */
const BATCH = 64;
/**
 * Room for one received query; a longer one is cut and says so. Not a power of two, so that the
 * packets of a batch do not all fall into the same cache sets.
 */
const RECEIVE_BYTES = 2048 + 256;
/** Room for one response: what we send over UDP at most, rounded to whole cache lines. */
const SEND_BYTES = 1280;
const NAME_BYTES = 32;
const IPV4_BYTES = 4;
const IPV6_BYTES = 16;
/** CMSG_SPACE of the larger packet info, `in6_pktinfo`. */
const CONTROL_BYTES = 40;
const CONTROL4_BYTES = 32;
const MMSGHDR_BYTES = 64;
const IOVEC_BYTES = 16;
const MSG_DONTWAIT = 0x40;
const MSG_TRUNC = 0x20;

// Word offsets in an `mmsghdr` (64-bit Linux: the same on x86-64 and ARM64).
const W_NAME = 0;
const W_NAMELEN = 2;
const W_IOV = 4;
const W_IOVLEN = 6;
const W_CONTROL = 8;
const W_CONTROLLEN = 10;
const W_FLAGS = 12;
const W_LENGTH = 14;
const MMSGHDR_WORDS = MMSGHDR_BYTES / 4;

/** Bytes that `saveSender` writes: socket address, packet info, and their lengths. */
const SENDER_BYTES = NAME_BYTES + CONTROL_BYTES + 8;

/**
 * Memory of one size for batches of UDP packets, laid out for `recvmmsg` and `sendmmsg` once. All
 * addresses inside it share their upper 32 bits, so a pointer is written with two word stores.
 */
class Arena {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly words: Uint32Array;
  readonly low: number;
  readonly high: number;

  constructor(lengthBytes: number) {
    for (;;) {
      const bytes = new Uint8Array(lengthBytes);
      const address = addressOf(bytes);
      const low = address % 2 ** 32;
      if (low + lengthBytes > 2 ** 32) continue; // Straddles 4 GiB: rare, take another.
      this.bytes = bytes;
      this.words = new Uint32Array(bytes.buffer);
      this.low = low;
      this.high = Math.floor(address / 2 ** 32);
      return;
    }
  }

  pointer(offset: number): Deno.PointerValue {
    return Deno.UnsafePointer.create(BigInt(this.high) * 2n ** 32n + BigInt(this.low + offset));
  }

  /** Writes the address of `offset` at word `at`. */
  writeAddress(at: number, offset: number): void {
    this.words[at] = this.low + offset;
    this.words[at + 1] = this.high;
  }
}

/**
 * The packets of one UDP listening socket: takes a batch, lets each be answered in place, and sends
 * the answers together, each from the address that was asked. Leaves no garbage.
 */
export class UdpBatch {
  static readonly BATCH = BATCH;
  /** Responses that can be queued. */
  readonly capacity = BATCH;
  static readonly SENDER_BYTES = SENDER_BYTES;
  static readonly SEND_BYTES = SEND_BYTES;

  /** Holds received packets and responses, at the offsets the methods name. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** The same memory in words; response offsets are multiples of 4. */
  readonly words: Uint32Array;
  /** Responses queued and not yet sent. */
  queued = 0;

  readonly #native: Native;
  readonly #fd: number;
  readonly #arena: Arena;
  readonly #rx: { header: number; name: number; control: number; data: number };
  readonly #tx: { header: number; data: number; name: number; control: number };
  readonly #rxPointer: Deno.PointerValue;
  readonly #txPointers: Deno.PointerValue[];
  readonly #rxHeaderWord: number;
  readonly #txHeaderWord: number;
  #received = 0;
  /** Responses that the system did not take. */
  unsent = 0;

  constructor(native: Native, fd: number) {
    this.#native = native;
    this.#fd = fd;
    let at = 0;
    const take = (stride: number) => {
      const start = at;
      at += BATCH * stride;
      return start;
    };
    const rxData = take(RECEIVE_BYTES);
    const txData = take(SEND_BYTES);
    const [rxHeader, txHeader] = [take(MMSGHDR_BYTES), take(MMSGHDR_BYTES)];
    const [rxIov, txIov] = [take(IOVEC_BYTES), take(IOVEC_BYTES)];
    const [rxName, txName] = [take(NAME_BYTES), take(NAME_BYTES)];
    const [rxControl, txControl] = [take(CONTROL_BYTES), take(CONTROL_BYTES)];
    const arena = new Arena(at);
    for (let i = 0; i < BATCH; i++) {
      for (
        const [header, iov, data, length] of [
          [rxHeader, rxIov, rxData + i * RECEIVE_BYTES, RECEIVE_BYTES],
          [txHeader, txIov, txData + i * SEND_BYTES, 0],
        ]
      ) {
        const h = (header + i * MMSGHDR_BYTES) / 4;
        const v = iov + i * IOVEC_BYTES;
        arena.writeAddress(h + W_IOV, v);
        arena.words[h + W_IOVLEN] = 1;
        arena.writeAddress(v / 4, data);
        arena.words[v / 4 + 2] = length;
      }
      const h = (rxHeader + i * MMSGHDR_BYTES) / 4;
      arena.writeAddress(h + W_NAME, rxName + i * NAME_BYTES);
      arena.writeAddress(h + W_CONTROL, rxControl + i * CONTROL_BYTES);
    }
    this.#arena = arena;
    this.bytes = arena.bytes;
    this.words = arena.words;
    this.#rx = { header: rxHeader, name: rxName, control: rxControl, data: rxData };
    this.#tx = { header: txHeader, data: txData, name: txName, control: txControl };
    this.#rxPointer = arena.pointer(rxHeader);
    this.#txPointers = Array.from(
      { length: BATCH },
      (_, i) => arena.pointer(txHeader + i * MMSGHDR_BYTES),
    );
    this.#rxHeaderWord = rxHeader / 4;
    this.#txHeaderWord = txHeader / 4;
    this.#txIovWord = txIov / 4;
    this.#resetReceived(BATCH);
  }

  readonly #txIovWord: number;

  /** The kernel overwrites these with what it found. */
  #resetReceived(count: number): void {
    const words = this.words;
    for (let i = 0; i < count; i++) {
      const h = this.#rxHeaderWord + i * MMSGHDR_WORDS;
      words[h + W_NAMELEN] = SOCKADDR_BYTES;
      words[h + W_CONTROLLEN] = CONTROL_BYTES;
      words[h + W_FLAGS] = 0;
    }
  }

  /** Takes up to `most` packets without waiting, `BATCH` at most; returns their number, 0 when there is none. */
  receive(most: number = BATCH): number {
    this.#resetReceived(this.#received);
    const n = this.#native.recvmmsg(this.#fd, this.#rxPointer, most, MSG_DONTWAIT, null);
    this.#received = n > 0 ? n : 0;
    return this.#received;
  }

  /** Where received packet `i` starts in `bytes`. */
  packetOffset(i: number): number {
    return this.#rx.data + i * RECEIVE_BYTES;
  }

  /** Bytes of received packet `i`. */
  packetLength(i: number): number {
    return this.words[this.#rxHeaderWord + i * MMSGHDR_WORDS + W_LENGTH];
  }

  /** Says whether packet `i` was longer than the room for it. */
  packetCut(i: number): boolean {
    return (this.words[this.#rxHeaderWord + i * MMSGHDR_WORDS + W_FLAGS] & MSG_TRUNC) !== 0;
  }

  /** Where the address of the sender of packet `i` starts in `bytes`. */
  senderOffset(i: number): number {
    const name = this.#rx.name + i * NAME_BYTES;
    return name + (this.#isIpv4(name) ? SOCKADDR_IPV4_OFFSET : SOCKADDR_IPV6_OFFSET);
  }

  /** Bytes of that address. */
  senderLength(i: number): number {
    return this.#isIpv4(this.#rx.name + i * NAME_BYTES) ? IPV4_BYTES : IPV6_BYTES;
  }

  /** Says whether the socket address at `name`, its family in the machine's order, is of IPv4. */
  #isIpv4(name: number): boolean {
    return (this.words[name >> 2] & 0xffff) === AF_INET;
  }

  /** Where the next response is to be written; `flush` first when `queued` is `BATCH`. */
  responseOffset(): number {
    return this.#tx.data + this.queued * SEND_BYTES;
  }

  /** Queues the response at `responseOffset()` for the sender of packet `i` of this batch. */
  queueReply(i: number, lengthBytes: number): void {
    this.#clearInterface(this.#rx.control + i * CONTROL_BYTES, this.#rx.name + i * NAME_BYTES);
    const r = this.#rxHeaderWord + i * MMSGHDR_WORDS;
    this.#queue(
      this.#rx.name + i * NAME_BYTES,
      this.words[r + W_NAMELEN],
      this.#rx.control + i * CONTROL_BYTES,
      this.words[r + W_CONTROLLEN],
      lengthBytes,
    );
  }

  /** Queues the response at `responseOffset()` for a sender that `saveSender` wrote down. */
  queueTo(sender: Uint8Array, lengthBytes: number): void {
    const name = this.#tx.name + this.queued * NAME_BYTES;
    const control = this.#tx.control + this.queued * CONTROL_BYTES;
    const bytes = this.bytes;
    for (let i = 0; i < NAME_BYTES; i++) bytes[name + i] = sender[i];
    for (let i = 0; i < CONTROL_BYTES; i++) bytes[control + i] = sender[NAME_BYTES + i];
    const lengths = NAME_BYTES + CONTROL_BYTES;
    this.#queue(name, sender[lengths], control, sender[lengths + 1], lengthBytes);
  }

  /** Writes down who sent packet `i` and which address was asked: `SENDER_BYTES` bytes. */
  saveSender(i: number, target: Uint8Array): void {
    const [name, control] = [this.#rx.name + i * NAME_BYTES, this.#rx.control + i * CONTROL_BYTES];
    this.#clearInterface(control, name);
    const bytes = this.bytes;
    for (let k = 0; k < NAME_BYTES; k++) target[k] = bytes[name + k];
    for (let k = 0; k < CONTROL_BYTES; k++) target[NAME_BYTES + k] = bytes[control + k];
    const r = this.#rxHeaderWord + i * MMSGHDR_WORDS;
    target[NAME_BYTES + CONTROL_BYTES] = this.words[r + W_NAMELEN];
    target[NAME_BYTES + CONTROL_BYTES + 1] = this.words[r + W_CONTROLLEN];
  }

  /**
   * Packet info goes back as it came, except for the interface: an answer may have to leave by
   * another one than the query came in by. A link-local address means nothing without it.
   */
  #clearInterface(control: number, name: number): void {
    const words = this.words;
    const c = control >> 2;
    if (this.bytes[name] === AF_INET6) {
      // cmsghdr 16, in6_pktinfo: address 16, interface 4.
      const linkLocal = this.bytes[control + 16] === 0xfe &&
        (this.bytes[control + 17] & 0xc0) === 0x80;
      if (!linkLocal) words[c + 8] = 0;
    } else {
      // cmsghdr 16, in_pktinfo: interface 4, the local address 4, the header's destination 4.
      words[c + 4] = 0;
    }
  }

  #queue(name: number, nameLength: number, control: number, controlLength: number, length: number) {
    const words = this.words;
    const arena = this.#arena;
    const h = this.#txHeaderWord + this.queued * MMSGHDR_WORDS;
    words[h + W_NAME] = arena.low + name;
    words[h + W_NAME + 1] = arena.high;
    words[h + W_NAMELEN] = nameLength;
    words[h + W_CONTROL] = arena.low + control;
    words[h + W_CONTROL + 1] = arena.high;
    // Only packet info of a size we asked for goes back; anything else is left out.
    words[h + W_CONTROLLEN] = controlLength === CONTROL4_BYTES || controlLength === CONTROL_BYTES
      ? controlLength
      : 0;
    words[this.#txIovWord + this.queued * 4 + 2] = length;
    this.queued++;
  }

  /**
   * Sends what is queued. A packet that the system refuses (no route, full buffer) is left out and
   * counted, and the ones behind it are sent all the same.
   */
  flush(): void {
    let at = 0;
    while (at < this.queued) {
      const sent = this.#native.sendmmsg(
        this.#fd,
        this.#txPointers[at],
        this.queued - at,
        MSG_DONTWAIT,
      );
      if (sent > 0) {
        at += sent;
      } else {
        at++;
        this.unsent++;
      }
    }
    this.queued = 0;
  }
}
