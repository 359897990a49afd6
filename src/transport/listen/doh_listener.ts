import { type DohHandler, DohServer } from "./doh.ts";
import { HTTPS_PROTOCOLS, type HttpsLimits, HttpsServer } from "./https.ts";
import { SharedBounds } from "./shared_bounds.ts";
import { TlsStreamListener } from "./stream_listener.ts";
import {
  type TlsConnection,
  type TlsHandler,
  type TlsIdentity,
  type TlsLimits,
  TlsListener,
} from "./tls.ts";

export interface DohLimits extends TlsLimits, HttpsLimits {}

export interface DohListenerHandler extends TlsHandler, DohHandler {
  /** A connection's handshake is done. */
  onOpen(): void;
}

/** DNS over HTTPS (RFC 8484) and, where the handler is a target, Oblivious DoH (RFC 9230). */
export class DohListener extends TlsStreamListener {
  /** See `TlsListener`. */
  constructor(
    identity: TlsIdentity | null,
    handler: DohListenerHandler,
    limits: DohLimits,
    bounds: SharedBounds = new SharedBounds(),
  ) {
    const https = new HttpsServer(new DohServer(handler), limits, bounds);
    const take = (connection: TlsConnection) => {
      handler.onOpen();
      https.take(connection);
    };
    const server = new TlsListener(identity, HTTPS_PROTOCOLS, handler, limits, bounds, take);
    super(server, https);
  }
}
