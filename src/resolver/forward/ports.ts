/** An upstream as the forwarder knows it; how it is reached is the exchange's. */
export interface UpstreamSpec {
  /** As configured, for logs and the status. */
  readonly address: string;
  /** Longest wait for one response. */
  readonly timeoutMs: number;
  /** Names at or below which it serves, uncompressed and in lower case; empty: every name. */
  readonly domains: readonly Uint8Array[];
}

/** Why an attempt ended without a response. */
export type AttemptFailure = "unreachable" | "closed";

/** Sends queries to upstreams; what comes back goes to `Forwarder.onPacket` with the token. */
export interface Exchange {
  /** Sends over UDP from a new random port. False: the system refused at once. */
  sendUdp(upstream: number, packet: Uint8Array, lengthBytes: number, token: number): boolean;
  /** Sends over TCP. */
  sendTcp(upstream: number, packet: Uint8Array, lengthBytes: number, token: number): boolean;
  /** Nothing more is wanted for this token. */
  cancel(token: number): void;
}
