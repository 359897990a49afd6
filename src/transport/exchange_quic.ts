/** Connections over QUIC, for `EncryptedExchange`. Scope: net. RFC 9250, 9000. @module */
export { QuicDialer } from "./exchange/quic_dial.ts";
