/**
 * What the hosts of URLs are by their form alone, for who does without the schemas of `mod.ts`.
 * Scope: none. @module
 */
import { isLoopback, parseIp } from "../addr/mod.ts";

/**
 * Says why a list can't be downloaded from `text`, or returns `null`: `https:`, or `http:` where
 * the text never leaves this machine.
 */
export function findListUrlProblem(text: string): string | null {
  const url = URL.parse(text);
  if (url === null) return "it cannot be read as a URL";
  // The URL is shown to viewers and logged: it is no place for a secret.
  if (url.username !== "" || url.password !== "") return "it has a user name or password";
  if (url.protocol === "https:") return null;
  if (url.protocol === "http:" && isLoopbackHost(url.hostname)) return null;
  return "it is no https URL (http is for loopback only)";
}

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
