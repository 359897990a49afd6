/**
 * IP addresses and prefixes: text to bytes and back, and which prefix holds an address; MAC addresses.
 * An address is 4 or 16 bytes. Scope: none. RFC 791, 4291, 4632, 5952, 6052. @module
 */
export { formatIp, isLoopback, isMappedAt, isUnspecified, parseIp, unmapIpv4 } from "./ip.ts";
export { formatMac, parseMac } from "./mac.ts";
export { EMBEDDING_LENGTHS, EmbeddingPrefix } from "./embedding.ts";
export { formatNetwork, networkHigh, networkLow } from "./network.ts";
export { formatHostPort, type HostPort, parseHostPort, serverAddresses } from "./host_port.ts";
export {
  compilePrefixes,
  NO_VALUE,
  type PrefixEntry,
  PrefixSet,
  PrefixTable,
  type PrefixTableData,
} from "./prefix_table.ts";
export { isPrivateAt, TOLD_IPV4_BITS, TOLD_IPV6_BITS } from "./private.ts";
export { formatPrefix, type IpPrefix, parsePrefix, prefixHolds } from "./prefix.ts";
export { reverseName } from "./reverse.ts";
export { bareHost, isLocalhostName, isLoopbackHost } from "./url_host.ts";
