import { isLoopback, parseIp } from "./ip.ts";

/** Says whether a URL's host is this machine by its form alone, whatever DNS says. */
export function isLoopbackHost(host: string): boolean {
  if (isLocalhostName(host)) return true;
  const ip = parseIp(bareHost(host));
  return ip !== null && isLoopback(ip);
}

/** `localhost` and below, which are never looked up (RFC 6761 §6.3). */
export function isLocalhostName(host: string): boolean {
  return /^(.+\.)?localhost\.?$/i.test(host);
}

/** A URL's host without the brackets of an IPv6 address. */
export function bareHost(host: string): string {
  return host.replace(/^\[|\]$/g, "");
}
