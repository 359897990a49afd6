import { type DnsStreamHandler, type DnsStreamLimits, DnsStreams } from "./dns_streams.ts";
import { SharedBounds } from "./shared_bounds.ts";
import { TlsStreamListener } from "./stream_listener.ts";
import { type TlsHandler, type TlsIdentity, type TlsLimits, TlsListener } from "./tls.ts";

export interface DotLimits extends TlsLimits, DnsStreamLimits {}

export interface DotHandler extends TlsHandler, DnsStreamHandler {}

/** The protocol's name in a handshake (RFC 7858 §7.1 by way of IANA's registry of ALPN). */
const ALPN = "dot";

/** DNS over TLS (RFC 7858, RFC 8310). */
export class DotListener extends TlsStreamListener {
  /** See `TlsListener`. */
  constructor(
    identity: TlsIdentity | null,
    handler: DotHandler,
    limits: DotLimits,
    bounds: SharedBounds = new SharedBounds(),
  ) {
    const streams = new DnsStreams(handler, limits, "records", bounds);
    const server = new TlsListener(
      identity,
      [ALPN],
      handler,
      limits,
      bounds,
      ({ socket, flow, sender, serverName }) => streams.add(socket, flow, sender, serverName),
    );
    super(server, streams);
  }
}
