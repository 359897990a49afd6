import type { HostPort } from "../../addr/mod.ts";
import { PortableUdpListener, type TcpListener } from "../../transport/mod.ts";

/** Ports that are drawn until one is free over UDP and TCP. */
const PORT_TRIES_MAX = 16;

/** Listens where the C library can't be had: an address of its own over UDP and over TCP. */
export async function listenPortable(
  address: HostPort,
  onPacket: ConstructorParameters<typeof PortableUdpListener>[1],
  newTcp: () => TcpListener,
): Promise<{ readonly udp: PortableUdpListener; readonly tcp: TcpListener }> {
  for (let attempt = 1;; attempt++) {
    const udp = new PortableUdpListener(address, onPacket);
    const tcp = newTcp();
    try {
      await tcp.listenAt({ ip: address.ip, port: udp.port });
      return { udp, tcp };
    } catch (error) {
      udp.close();
      // The system gave a port that is free over UDP; over TCP it may be somebody's.
      if (address.port !== 0 || attempt === PORT_TRIES_MAX) throw error;
    }
  }
}
