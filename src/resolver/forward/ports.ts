/** How an upstream is asked: in the clear, over TLS (RFC 7858), over HTTPS (RFC 8484). */
export type UpstreamTransport = "udp" | "tls" | "https";

/** An upstream as the forwarder knows it; how it is reached is the exchange's. */
export interface UpstreamSpec {
  /** As configured, for logs and the status. */
  readonly address: string;
  readonly transport: UpstreamTransport;
  /** Longest wait for one response. */
  readonly timeoutMs: number;
  /** Names at or below which it serves, uncompressed and in lower case; empty: every name. */
  readonly domains: readonly Uint8Array[];
}

/** Why an attempt ended without a response, behind the upstream's name: "refused the connection". */
export type AttemptFailure = string;

/**
 * What sending came to. `full`: too many queries to this upstream are on their way by now.
 * `noSocket`: the process has none left, which is no fault of the upstream's.
 */
export type Sending = "sent" | "unreachable" | "full" | "noSocket";

/** Sends queries to upstreams; what comes back goes to `Forwarder.onPacket` with the token. */
export interface Exchange {
  /**
   * Sends the way the upstream is to be asked: over its encrypted connection, or over UDP from a new
   * random port.
   */
  send(upstream: number, packet: Uint8Array, lengthBytes: number, token: number): Sending;
  /** Sends to a `udp` upstream over TCP. */
  sendTcp(upstream: number, packet: Uint8Array, lengthBytes: number, token: number): Sending;
  /** Nothing more is wanted for this token. */
  cancel(token: number): void;
}
