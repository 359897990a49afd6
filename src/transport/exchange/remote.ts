import type { HostPort } from "../../addr/mod.ts";
import { UdpEphemeral } from "../../native/mod.ts";
import type { Connection } from "./tcp.ts";

/**
 * A server that is asked in the clear. It is no more than its address until it is asked, so that there
 * may be thousands; whoever holds it may let it go at any time.
 */
export class PlainRemote {
  readonly transport = "udp";
  /** The address as the system takes it. */
  readonly sockaddr: Uint8Array<ArrayBuffer>;
  /** Its TCP connections that are open; `TcpExchange` closes what is idle. */
  readonly connections: Connection[] = [];

  constructor(readonly address: HostPort) {
    this.sockaddr = UdpEphemeral.remote(address);
  }
}
