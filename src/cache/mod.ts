/**
 * Responses in wire format in a fixed amount of memory: found by question, aged by the second,
 * evicted oldest first with a second chance for those asked again. No allocation after start.
 * Scope: none. RFC 1035 §7.3, 2308, 8767, 9520. @module
 */
export { Cache, CacheHit, type CacheLimits, type StoreOptions, TTLS_MAX } from "./cache.ts";
