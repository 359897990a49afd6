import { isLoopback, parseIp } from "../addr/mod.ts";

/**
 * Says why a list can't be downloaded from `text`, or returns `null`: `https:`, or `http:` where
 * the text never leaves this machine.
 */
export function findListUrlProblem(text: string): string | null {
  const url = URL.parse(text);
  if (url === null) return "cannot be read as a URL";
  // The URL is shown to viewers and logged: it is no place for a secret.
  if (url.username !== "" || url.password !== "") return "has a user name or password";
  if (url.protocol === "https:") return null;
  if (url.protocol === "http:" && isLoopbackHost(url.hostname)) return null;
  return "is no https URL (http is for loopback only)";
}

function isLoopbackHost(host: string): boolean {
  if (/^(.+\.)?localhost\.?$/i.test(host)) return true; // Never looked up (RFC 6761 §6.3).
  const ip = parseIp(host.replace(/^\[|\]$/g, ""));
  return ip !== null && isLoopback(ip);
}
