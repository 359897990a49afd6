import type { HostPort } from "../../addr/mod.ts";

/** How a server is asked: in the clear, over TLS (RFC 7858), HTTPS (RFC 8484), QUIC (RFC 9250). */
export type ServerTransport = "udp" | "tls" | "https" | "quic";

/** Where a server is. What else there is to say is between whoever says it and the exchange. */
export interface ServerAddress {
  readonly transport: ServerTransport;
}

/** A server that is asked in the clear: over UDP, and over TCP where that is not enough. */
export interface PlainAddress extends ServerAddress {
  readonly transport: "udp";
  readonly endpoint: HostPort;
}

/** A server as the exchange knows it; lasts as long as somebody holds it. */
export interface Remote {
  readonly transport: ServerTransport;
}

/** Why a query has no response, behind the server's name: "refused the connection". */
export type AskFailure = string;

/**
 * What sending came to. `full`: too many queries to this server are on their way by now.
 * `noSocket`: the process has none left, which is no fault of the server's.
 */
export type Sending = "sent" | "unreachable" | "full" | "noSocket";

/** Sends queries to servers; what comes back goes to `Asker.onPacket` with the token. */
export interface Exchange {
  /** What queries to a server are sent to. Nothing is opened before there is one. */
  remote(address: ServerAddress): Remote;
  /**
   * Sends the way the server is to be asked: over its encrypted connection, or over UDP from a new
   * random port.
   */
  send(remote: Remote, packet: Uint8Array, lengthBytes: number, token: number): Sending;
  /** Sends to a `udp` server over TCP. */
  sendTcp(remote: Remote, packet: Uint8Array, lengthBytes: number, token: number): Sending;
  /** Nothing more is wanted for this token. */
  cancel(token: number): void;
}
