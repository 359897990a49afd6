import { createSocket, type Socket } from "node:dgram";
import { Buffer } from "node:buffer";
import { formatIp } from "../../addr/mod.ts";
import type { PlainRemote } from "./remote.ts";
import { type ExchangeEvents, lacksSocket, REFUSED, type Sending } from "./udp.ts";

/** The same as `NativeUdpExchange` without the C library: a `node:dgram` socket a query. */
export class PortableUdpExchange {
  readonly #sockets = new Map<number, Socket>();

  constructor(private readonly events: ExchangeEvents) {}

  send(remote: PlainRemote, packet: Uint8Array, lengthBytes: number, token: number): Sending {
    const { ip, port } = remote.address;
    const socket = createSocket(ip.length === 4 ? "udp4" : "udp6");
    this.#sockets.set(token, socket);
    const host = formatIp(ip);
    const own = Buffer.from(packet.subarray(0, lengthBytes)); // The caller's bytes change.
    const failed = (error: Error) => {
      if (this.#sockets.get(token) !== socket) return;
      this.events.onFailure(token, REFUSED, lacksSocket(error));
    };
    socket.on("message", (message: Uint8Array, from) => {
      if (this.#sockets.get(token) !== socket) return;
      if (from.port !== port || from.address !== host) return;
      this.events.onPacket(token, message, message.length);
    });
    socket.on("error", failed);
    socket.send(own, port, host, (error) => {
      if (error) failed(error);
    });
    return "sent";
  }

  cancel(token: number): void {
    const socket = this.#sockets.get(token);
    if (socket === undefined) return;
    this.#sockets.delete(token);
    socket.close();
  }
}
