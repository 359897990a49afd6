/**
 * How packets come in and go out: listeners for clients, exchanges with upstreams. Each adds only
 * its framing and its bounds; what a packet means is the resolver's. Scope: net, ffi.
 * RFC 768, 1035 §4.2, 5452, 7301, 7541, 7766, 7858, 8310, 8446, 8484, 9000, 9112, 9113, 9180, 9230,
 * 9250. @module
 */
export { type UdpHandler, UdpListener } from "./listen/udp.ts";
export { PortableUdpListener } from "./listen/udp_portable.ts";
export type { DnsStream, DnsStreamHandler, DnsStreamLimits } from "./listen/dns_streams.ts";
export { type DoqLimits, DoqListener } from "./listen/doq.ts";
export {
  type DoqClient,
  DoqError,
  type DoqExchange,
  type DoqHandler,
} from "./listen/doq_connection.ts";
export { type DotHandler, type DotLimits, DotListener } from "./listen/dot.ts";
export { answerQuery, type ObliviousHandler, refuseQuery } from "./listen/doh.ts";
export { type DohLimits, DohListener, type DohListenerHandler } from "./listen/doh_listener.ts";
export type { HttpPeer, HttpRequest } from "./listen/http.ts";
export { ODOH_SEED_BYTES } from "./listen/odoh.ts";
export { type ObliviousAsker, ObliviousTarget } from "./listen/odoh_target.ts";
export type { StreamGate, StreamLimits } from "./listen/stream_server.ts";
export {
  type TlsConnection,
  type TlsHandler,
  type TlsIdentity,
  type TlsLimits,
  TlsListener,
} from "./listen/tls.ts";
export { type TcpConnection, type TcpHandler, type TcpLimits, TcpListener } from "./listen/tcp.ts";
export { type ExchangeEvents, NativeUdpExchange } from "./exchange/udp.ts";
export { PortableUdpExchange } from "./exchange/udp_portable.ts";
export { TcpExchange } from "./exchange/tcp.ts";
export { EncryptedExchange, type EncryptedUpstream } from "./exchange/encrypted.ts";
export { FrameReader } from "./frames.ts";
