import { formatIp, type HostPort } from "../../addr/mod.ts";

/** Handles a datagram from `client`, an address as text; `reply` sends one back to it. */
export type DatagramHandler = (
  packet: Uint8Array,
  client: string,
  reply: (response: Uint8Array) => void,
) => void;

/**
 * A UDP socket by Deno's own calls, where the C library can't be had. Several isolates do not share
 * its port, and an answer from a wildcard address leaves from the address the system picks.
 */
export class PortableUdpListener {
  readonly #socket: Deno.DatagramConn;
  readonly #handler: DatagramHandler;

  constructor(address: HostPort, handler: DatagramHandler) {
    this.#socket = Deno.listenDatagram({
      transport: "udp",
      hostname: formatIp(address.ip),
      port: address.port,
    });
    this.#handler = handler;
  }

  get port(): number {
    return (this.#socket.addr as Deno.NetAddr).port;
  }

  /** Receives until `close`. */
  async run(): Promise<void> {
    for await (const [packet, from] of this.#socket) {
      this.#handler(packet, (from as Deno.NetAddr).hostname, (response) => {
        // A client that is gone is no error of ours; UDP promises nothing.
        this.#socket.send(response, from).catch(() => {});
      });
    }
  }

  close(): void {
    this.#socket.close();
  }
}
