/**
 * Exchanges with servers over TLS and over HTTPS with HTTP/2; over QUIC with
 * what `exchange_quic.ts` has. Scope: net.
 * RFC 7858, 8310, 8446, 8484, 9113. @module
 */
export { EncryptedExchange } from "./exchange/encrypted.ts";
