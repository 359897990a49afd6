import type { HostPort } from "../../addr/mod.ts";
import { type DnsStreamHandler, type DnsStreamLimits, DnsStreams } from "./dns_streams.ts";
import type { StreamGate } from "./stream_server.ts";
import { type TlsIdentity, type TlsLimits, TlsListener } from "./tls.ts";

export interface DotLimits extends TlsLimits, DnsStreamLimits {}

export interface DotHandler extends StreamGate, DnsStreamHandler {
  /** A handshake failed, took too long, or was the oldest of too many. */
  onHandshakeFailure(): void;
}

/** The protocol's name in a handshake (RFC 7858 §7.1 by way of IANA's registry of ALPN). */
const ALPN = "dot";

/** DNS over TLS (RFC 7858, RFC 8310). */
export class DotListener {
  readonly #tls: TlsListener;
  readonly #streams: DnsStreams;

  /** See `TlsListener`. */
  constructor(identity: TlsIdentity | null, handler: DotHandler, limits: DotLimits) {
    const streams = this.#streams = new DnsStreams(handler, limits, "records");
    this.#tls = new TlsListener(identity, [ALPN], {
      admits: (client) => handler.admits(client),
      onRefused: () => handler.onRefused(),
      onHandshakeFailure: () => handler.onHandshakeFailure(),
      onSecure: ({ socket, client, serverName }) => streams.add(socket, client, serverName),
    }, limits);
  }

  /** See `StreamServer.listenOn`. */
  listenOn(open: () => number): Promise<void> {
    return this.#tls.listenOn(open);
  }

  /** See `StreamServer.listenAt`. */
  listenAt(address: HostPort): Promise<void> {
    return this.#tls.listenAt(address);
  }

  /** The port listened on. */
  get port(): number {
    return this.#tls.port;
  }

  /** Connections at this moment, those in a handshake among them. */
  get connections(): number {
    return this.#tls.connections;
  }

  /** Handshakes under way. */
  get handshakes(): number {
    return this.#tls.handshakes;
  }

  /** See `TlsListener.renew`. */
  renew(identity: TlsIdentity): void {
    this.#tls.renew(identity);
  }

  /** Takes no more connections and queries; those that wait are answered. */
  drain(): void {
    this.#tls.close();
    this.#streams.drain();
  }

  close(): void {
    this.drain();
    this.#streams.close();
  }
}
