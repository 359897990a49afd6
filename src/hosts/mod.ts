/**
 * What files of a host say of the devices of its network: `/etc/hosts`, and the leases that dnsmasq,
 * Kea and ISC dhcpd write. Scope: none. hosts(5), dnsmasq(8), dhcpd.leases(5). @module
 */
export type { Device } from "./device.ts";
export { readHosts } from "./hosts_file.ts";
export { readLeases } from "./leases.ts";
