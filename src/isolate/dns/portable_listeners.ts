import type { HostPort } from "../../addr/mod.ts";
import { type PortableUdpListener, TcpListener } from "../../transport/mod.ts";

/** Ports that are drawn until one is free over UDP and TCP. */
const PORT_TRIES_MAX = 16;

/** What listens at one address. */
export interface Portable {
  readonly udp: PortableUdpListener;
  readonly tcp: TcpListener;
}

/** Listens at an address over UDP and TCP through the runtime alone, at the same port. */
export async function listenPortable(
  address: HostPort,
  newUdp: () => PortableUdpListener,
  newTcp: () => TcpListener,
): Promise<Portable> {
  for (let attempt = 1;; attempt++) {
    const udp = newUdp();
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
