import type { HostPort } from "../../addr/mod.ts";
import {
  type DnsStream,
  type DnsStreamHandler,
  type DnsStreamLimits,
  DnsStreams,
} from "./dns_streams.ts";
import { type StreamGate, type StreamLimits, StreamServer } from "./stream_server.ts";

export interface TcpLimits extends StreamLimits, DnsStreamLimits {}
export type TcpConnection = DnsStream;
export interface TcpHandler extends StreamGate, DnsStreamHandler {}

/** DNS over TCP (RFC 7766). */
export class TcpListener {
  readonly #server: StreamServer;
  readonly #streams: DnsStreams;

  constructor(handler: TcpHandler, limits: TcpLimits) {
    this.#streams = new DnsStreams(handler, limits, "bytes");
    this.#server = new StreamServer(
      handler,
      limits,
      (socket, client) => this.#streams.add(socket, client, null),
    );
  }

  /** See `StreamServer.listenOn`. */
  listenOn(open: () => number): Promise<void> {
    return this.#server.listenOn(open);
  }

  /** See `StreamServer.listenAt`. */
  listenAt(address: HostPort): Promise<void> {
    return this.#server.listenAt(address);
  }

  /** The port listened on. */
  get port(): number {
    return this.#server.port;
  }

  /** Connections at this moment. */
  get connections(): number {
    return this.#server.connections;
  }

  /** Takes no more connections and queries; those that wait are answered. */
  drain(): void {
    this.#server.close();
    this.#streams.drain();
  }

  close(): void {
    this.drain();
    this.#streams.close();
  }
}
