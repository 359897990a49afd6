/**
 * How packets come in and go out: listeners for clients, exchanges with servers that are asked. Each adds only
 * its framing and its bounds; what a packet means is the resolver's. Every isolate holds what it
 * imports for itself, so this is what all of them need, and the types; `listen_encrypted.ts`,
 * `oblivious.ts` and `exchange_encrypted.ts` are loaded where the configuration asks for them.
 * Scope: net, ffi. RFC 768, 1035 §4.2, 5452, 7766. @module
 */
export { type UdpHandler, UdpListener } from "./listen/udp.ts";
export { PortableUdpListener } from "./listen/udp_portable.ts";
export { type TcpConnection, type TcpHandler, type TcpLimits, TcpListener } from "./listen/tcp.ts";
export type { DnsStream, DnsStreamHandler, DnsStreamLimits } from "./listen/dns_streams.ts";
export { SharedBounds } from "./listen/shared_bounds.ts";
export type { Occupancy } from "./listen/connection_table.ts";
export type { StreamGate, StreamLimits } from "./listen/stream_server.ts";
export type { DoqLimits } from "./listen/doq.ts";
export type { DoqClient, DoqExchange, DoqHandler } from "./listen/doq_connection.ts";
export type { DotHandler, DotLimits } from "./listen/dot.ts";
export type { ObliviousHandler } from "./listen/doh.ts";
export type { DohLimits, DohListenerHandler } from "./listen/doh_listener.ts";
export type { HttpClient, HttpRequest } from "./listen/http.ts";
export { ODOH_SEED_BYTES } from "./listen/odoh_seed.ts";
export type { ObliviousAsker } from "./listen/odoh_target.ts";
export type { TlsConnection, TlsHandler, TlsIdentity, TlsLimits } from "./listen/tls.ts";
export { type ExchangeEvents, NativeUdpExchange } from "./exchange/udp.ts";
export { PortableUdpExchange } from "./exchange/udp_portable.ts";
export { PlainRemote } from "./exchange/remote.ts";
export { TcpExchange } from "./exchange/tcp.ts";
export type { EncryptedRemote, EncryptedUpstream } from "./exchange/encrypted.ts";
export { FrameReader } from "./frames.ts";
