import { formatIp, isLoopback, isUnspecified, parseIp, unmapIpv4 } from "../addr/mod.ts";

/** What is known of who has an address. */
export interface Device {
  /** In its one form. */
  readonly address: string;
  readonly hostname: string | null;
  /** Lower-case, with colons. */
  readonly mac: string | null;
}

/** Letters, digits, dots, hyphens and underscores of any script, as people name devices. */
const HOSTNAME = /^[\p{L}\p{M}\p{N}._-]{1,253}$/u;

/** The name of a device, or `null`: it has none that could be shown. */
export function hostnameOf(text: string): string | null {
  const name = text.replace(/\.$/, "");
  return HOSTNAME.test(name) ? name : null;
}

/** An address of somebody on a network in its one form, or `null`. */
export function addressOf(text: string): string | null {
  const parsed = parseIp(text);
  if (parsed === null) return null;
  const ip = unmapIpv4(parsed);
  return isLoopback(ip) || isUnspecified(ip) ? null : formatIp(ip);
}
