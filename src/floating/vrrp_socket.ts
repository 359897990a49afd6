import { IP_PKTINFO, type Libc } from "./sockets.ts";

const AF_INET = 2;
const MSG_DONTWAIT = 0x40;
/** Longer than any announcement: IP header with all options, 8 bytes, 255 addresses. */
const PACKET_BYTES = 60 + 8 + 255 * 4;
const CONTROL_BYTES = 128;
/** A control message: its header, then `in_pktinfo`, the interface first. */
const CONTROL_HEADER_BYTES = 16;
const PKTINFO_BYTES = 12;
const PKTINFO_SPACE_BYTES = 32;
const NAME_BYTES = 16;
const MESSAGE_BYTES = 56;

export interface ReceivedPacket {
  /** With its IP header; overwritten by the next. */
  readonly packet: Uint8Array;
  /** The interface that it came in by. */
  readonly index: number;
}

function addressOf(buffer: Uint8Array<ArrayBuffer>): bigint {
  return BigInt(Deno.UnsafePointer.value(Deno.UnsafePointer.of(buffer)));
}

/** A message header (`msghdr`) with the memory that it refers to. */
class MessageMemory {
  readonly data = new Uint8Array(PACKET_BYTES);
  readonly name = new Uint8Array(NAME_BYTES);
  readonly control = new Uint8Array(CONTROL_BYTES);
  readonly controlView = new DataView(this.control.buffer);
  readonly header = new Uint8Array(MESSAGE_BYTES);
  readonly #view = new DataView(this.header.buffer);
  readonly #iovec = new BigUint64Array(2);

  /** To be called before each use: the kernel writes what it used of it. */
  prepare(lengthBytes: number, controlBytes: number): void {
    this.#iovec[0] = addressOf(this.data);
    this.#iovec[1] = BigInt(lengthBytes);
    this.#view.setBigUint64(0, addressOf(this.name), true);
    this.#view.setUint32(8, NAME_BYTES, true);
    this.#view.setBigUint64(16, addressOf(new Uint8Array(this.#iovec.buffer)), true);
    this.#view.setBigUint64(24, 1n, true);
    this.#view.setBigUint64(32, addressOf(this.control), true);
    this.#view.setBigUint64(40, BigInt(controlBytes), true);
    this.#view.setInt32(48, 0, true);
  }

  get controlBytes(): number {
    return Number(this.#view.getBigUint64(40, true));
  }
}

/** The socket of announcements: each goes out by the interface, and from the address, it is told. */
export class VrrpSocket {
  readonly #libc: Libc;
  readonly #fd: number;
  readonly #in = new MessageMemory();
  readonly #out = new MessageMemory();

  constructor(libc: Libc, fd: number) {
    this.#libc = libc;
    this.#fd = fd;
  }

  /** Sends a message; false, when the system does not take it. */
  send(message: Uint8Array, own: Uint8Array, index: number, destination: Uint8Array): boolean {
    const { name, data, control, controlView, header } = this.#out;
    name.fill(0);
    new DataView(name.buffer).setUint16(0, AF_INET, true);
    name.set(destination, 4);
    data.set(message);
    control.fill(0);
    controlView.setBigUint64(0, BigInt(CONTROL_HEADER_BYTES + PKTINFO_BYTES), true);
    controlView.setInt32(12, IP_PKTINFO, true);
    controlView.setInt32(CONTROL_HEADER_BYTES, index, true);
    control.set(own, CONTROL_HEADER_BYTES + 4);
    this.#out.prepare(message.length, PKTINFO_SPACE_BYTES);
    const { packets } = this.#libc;
    return Number(packets.sendmsg(this.#fd, header, MSG_DONTWAIT)) === message.length;
  }

  /** The next packet that has arrived, or `null`. */
  receive(): ReceivedPacket | null {
    const memory = this.#in;
    memory.prepare(PACKET_BYTES, CONTROL_BYTES);
    const length = Number(this.#libc.packets.recvmsg(this.#fd, memory.header, MSG_DONTWAIT));
    if (length < 0) return null;
    return { packet: memory.data.subarray(0, length), index: this.#index(memory) };
  }

  #index({ controlView, controlBytes }: MessageMemory): number {
    for (let at = 0; at + CONTROL_HEADER_BYTES + PKTINFO_BYTES <= controlBytes;) {
      const length = Number(controlView.getBigUint64(at, true));
      const type = controlView.getInt32(at + 12, true);
      if (type === IP_PKTINFO) return controlView.getInt32(at + CONTROL_HEADER_BYTES, true);
      if (length < CONTROL_HEADER_BYTES) break;
      at += (length + 7) & ~7;
    }
    return 0;
  }
}
