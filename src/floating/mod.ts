/**
 * `svc vrrp` beside the state machine of `vrrp`: announcements by a raw socket, the address and the
 * interface by rtnetlink, gratuitous ARP by a packet socket, checks of this node's own DNS, and the
 * status, which is told to whoever asks. A backup that finds the address on its interface removes
 * it, a holder that misses it adds it: whatever a crash, or a hand, has changed. Scope: ffi.
 * RFC 9568, 5227; rtnetlink(7), packet(7). @module
 */
export { askHealth } from "./ask_health.ts";
export { type Ending, FloatingAddress } from "./floating_address.ts";
export { healthQuery, healthTarget, isHealthy } from "./health_query.ts";
export { KernelTables } from "./kernel_tables.ts";
export { adoptRawSockets, type Libc, openRawSockets, type RawSockets } from "./sockets.ts";
export { askStatus } from "./status.ts";
export type { Role } from "../vrrp/mod.ts";
