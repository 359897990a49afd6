/**
 * Sends one forged VRRP packet of each kind from an address of this machine:
 * `forge_child.ts INTERFACE SOURCE STRANGER`. SOURCE is the peer's, STRANGER is not. Run as root.
 */
import { parseIp } from "../../src/addr/mod.ts";
import { KernelTables } from "../../src/floating/kernel_tables.ts";
import { openRawSockets, setOption } from "../../src/floating/sockets.ts";
import { VrrpSocket } from "../../src/floating/vrrp_socket.ts";
import { openNative } from "../../src/native/mod.ts";
import { openPackets } from "../../src/native/system.ts";
import { VRRP_GROUP, writeAdvertisement } from "../../src/vrrp/mod.ts";
import { FLOATING } from "./segment.ts";

const IP_MULTICAST_TTL = 33;

if (import.meta.main) {
  const libc = { native: openNative()!, packets: openPackets()! };
  const ip = (text: string) => parseIp(text) as Uint8Array<ArrayBuffer>;
  const [device, source, stranger] = Deno.args;
  const { index } = new KernelTables(libc).link(device)!;
  const { vrrp } = openRawSockets(libc);
  const socket = new VrrpSocket(libc, vrrp);
  const made = (
    from: string,
    { routerId = 51, address = FLOATING, intervalMs = 250 } = {},
    change: (message: Uint8Array<ArrayBuffer>) => void = () => {},
  ) => {
    const fields = { routerId, address: ip(address) };
    const advertisement = { priority: 255, intervalMs };
    const message = writeAdvertisement(advertisement, fields, ip(from), VRRP_GROUP);
    change(message);
    return message;
  };
  const send = (message: Uint8Array, from = source) => {
    if (!socket.send(message, ip(from), index, VRRP_GROUP)) throw new Error("not sent");
  };
  send(made(stranger), stranger);
  send(made(source, { routerId: 52 }));
  send(made(source, { address: "192.168.77.101" }));
  send(made(source, { intervalMs: 0 }));
  send(made(source, {}, (message) => message[7] ^= 1));
  send(made(source, {}, (message) => message[0] = 0x21));
  send(made(source, {}, (message) => message[0] = 0x33));
  send(made(source).subarray(0, 6));
  setOption(libc, vrrp, IP_MULTICAST_TTL, 254);
  send(made(source));
}
