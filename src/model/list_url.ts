import { isLoopbackHost } from "../addr/mod.ts";

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
