import {
  type DnsStream,
  type DnsStreamHandler,
  type DnsStreamLimits,
  DnsStreams,
} from "./dns_streams.ts";
import { Flow } from "./flow.ts";
import { SharedBounds } from "./shared_bounds.ts";
import { StreamListener } from "./stream_listener.ts";
import { type StreamGate, type StreamLimits, StreamServer } from "./stream_server.ts";

export interface TcpLimits extends StreamLimits, DnsStreamLimits {}
export type TcpConnection = DnsStream;
export interface TcpHandler extends StreamGate, DnsStreamHandler {}

/** DNS over TCP (RFC 7766). */
export class TcpListener extends StreamListener {
  constructor(handler: TcpHandler, limits: TcpLimits, bounds: SharedBounds = new SharedBounds()) {
    const streams = new DnsStreams(handler, limits, "bytes", bounds);
    const server = new StreamServer(
      handler,
      limits,
      bounds,
      (socket, sender) => streams.add(socket, new Flow(socket), sender, null),
    );
    super(server, streams);
  }
}
