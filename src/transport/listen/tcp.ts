import {
  type DnsStream,
  type DnsStreamHandler,
  type DnsStreamLimits,
  DnsStreams,
} from "./dns_streams.ts";
import { StreamListener } from "./stream_listener.ts";
import { type StreamGate, type StreamLimits, StreamServer } from "./stream_server.ts";

export interface TcpLimits extends StreamLimits, DnsStreamLimits {}
export type TcpConnection = DnsStream;
export interface TcpHandler extends StreamGate, DnsStreamHandler {}

/** DNS over TCP (RFC 7766). */
export class TcpListener extends StreamListener {
  constructor(handler: TcpHandler, limits: TcpLimits) {
    const streams = new DnsStreams(handler, limits, "bytes");
    const server = new StreamServer(
      handler,
      limits,
      (socket, client) => streams.add(socket, client, null),
    );
    super(server, streams);
  }
}
