/**
 * How packets come in and go out: listeners for clients, exchanges with upstreams. Each adds only
 * its framing and its bounds; what a packet means is the resolver's. Scope: net, ffi.
 * RFC 768, 1035 §4.2, 5452, 7766. @module
 */
export { type UdpHandler, UdpListener } from "./listen/udp.ts";
export { PortableUdpListener } from "./listen/udp_portable.ts";
export { type TcpConnection, type TcpHandler, type TcpLimits, TcpListener } from "./listen/tcp.ts";
export { type ExchangeEvents, NativeUdpExchange } from "./exchange/udp.ts";
export { PortableUdpExchange } from "./exchange/udp_portable.ts";
export { TcpExchange } from "./exchange/tcp.ts";
export { FrameReader } from "./frames.ts";
