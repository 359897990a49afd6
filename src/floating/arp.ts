import { setU16 } from "../bytes/mod.ts";

const ETHERTYPE_ARP = 0x0806;
const ETHERTYPE_IPV4 = 0x0800;
const HARDWARE_ETHERNET = 1;
/** The two forms: as if it asked for its own address, and as if it had been asked. */
const REQUEST = 1;
const REPLY = 2;
export type ArpForm = typeof REQUEST | typeof REPLY;
export const ARP_FORMS: readonly ArpForm[] = [REQUEST, REPLY];

const AF_PACKET = 17;
const SOCKADDR_LL_BYTES = 20;

/** A gratuitous ARP packet as a broadcast frame: "`address` is at `mac`" (RFC 5227 §3). */
export function gratuitousArp(
  form: ArpForm,
  mac: Uint8Array,
  address: Uint8Array,
): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(42);
  frame.fill(0xff, 0, 6);
  frame.set(mac, 6);
  setU16(frame, 12, ETHERTYPE_ARP);
  setU16(frame, 14, HARDWARE_ETHERNET);
  setU16(frame, 16, ETHERTYPE_IPV4);
  frame[18] = 6;
  frame[19] = 4;
  setU16(frame, 20, form);
  frame.set(mac, 22);
  frame.set(address, 28);
  frame.fill(0xff, 32, 38);
  frame.set(address, 38);
  return frame;
}

/** `sockaddr_ll` of every station behind an interface. */
export function broadcastTo(index: number): Uint8Array<ArrayBuffer> {
  const sockaddr = new Uint8Array(SOCKADDR_LL_BYTES);
  const view = new DataView(sockaddr.buffer);
  view.setUint16(0, AF_PACKET, true);
  view.setUint16(2, ETHERTYPE_ARP);
  view.setInt32(4, index, true);
  sockaddr[11] = 6;
  sockaddr.fill(0xff, 12, 18);
  return sockaddr;
}
