import type { HostPort } from "../../addr/mod.ts";
import { type DohHandler, DohServer } from "./doh.ts";
import { HTTPS_PROTOCOLS, type HttpsLimits, HttpsServer } from "./https.ts";
import type { StreamGate } from "./stream_server.ts";
import { type TlsIdentity, type TlsLimits, TlsListener } from "./tls.ts";

export interface DohLimits extends TlsLimits, HttpsLimits {}

export interface DohListenerHandler extends StreamGate, DohHandler {
  /** A connection's handshake is done. */
  onOpen(): void;
  /** A handshake failed, took too long, or was the oldest of too many. */
  onHandshakeFailure(): void;
}

/** DNS over HTTPS (RFC 8484) and, where the handler is a target, Oblivious DoH (RFC 9230). */
export class DohListener {
  readonly #tls: TlsListener;
  readonly #https: HttpsServer;

  /** See `TlsListener`. */
  constructor(identity: TlsIdentity | null, handler: DohListenerHandler, limits: DohLimits) {
    const https = this.#https = new HttpsServer(new DohServer(handler), limits);
    this.#tls = new TlsListener(identity, HTTPS_PROTOCOLS, {
      admits: (client) => handler.admits(client),
      onRefused: () => handler.onRefused(),
      onHandshakeFailure: () => handler.onHandshakeFailure(),
      onSecure: (connection) => {
        handler.onOpen();
        https.take(connection);
      },
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

  /** See `TlsListener.renew`. */
  renew(identity: TlsIdentity): void {
    this.#tls.renew(identity);
  }

  /** Takes no more connections and requests; those that wait are answered. */
  drain(): void {
    this.#tls.close();
    this.#https.drain();
  }

  /** Closes every connection, once the last answers have left. */
  async close(): Promise<void> {
    this.drain();
    await this.#https.close();
  }
}
