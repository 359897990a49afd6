import { createHash } from "node:crypto";
import { isLoopback, parseIp } from "../addr/mod.ts";

/** Most bytes of one list, as downloaded, unpacked or read from a path. */
export const LIST_BYTES_MAX = 256 * 1024 * 1024;

/** Bytes of a name's SHA-256 that make the ID of a list of the config file. */
const CONFIG_ID_BYTES = 8;

/** A list to keep: its ID, and exactly one of `url` and `path`. */
export interface ListSource {
  /** Names the file on disk: lower-case letters, digits and `_`. */
  readonly id: string;
  readonly name: string;
  /** `https:`, or `http:` on a loopback host. */
  readonly url?: string;
  /** Inside the directory of local lists; a relative path starts there. */
  readonly path?: string;
}

export type ListState = "ok" | "pending" | "failed" | "skipped";

/** What this node has of a list, as the API shows it. */
export interface ListStatus {
  readonly state: ListState;
  /** What is wrong and, where someone can mend it, how. */
  readonly message: string | null;
  /** 0 until the compiler has counted. */
  readonly rules: number;
  /** Lines left out as no rule of ours. */
  readonly unsupported: number;
  /** When the text was last fetched, confirmed or read. */
  readonly refreshed_at: string | null;
}

/** The ID of a list of the config file: the same on every start and member, from its name alone. */
export function configListId(name: string): string {
  const hash = createHash("sha256").update(name, "utf8").digest("hex");
  return `li_cfg_${hash.slice(0, 2 * CONFIG_ID_BYTES)}`;
}

/** A URL that may be fetched, or why it may not. */
export type CheckedUrl =
  | { readonly kind: "url"; readonly url: URL }
  | { readonly kind: "problem"; readonly message: string };

/** Reads the URL of a list: `https:`, or `http:` where the text never leaves this machine. */
export function checkListUrl(text: string): CheckedUrl {
  const url = URL.parse(text);
  if (url === null) return { kind: "problem", message: "the URL cannot be read" };
  if (url.username !== "" || url.password !== "") {
    // The URL is shown to viewers and logged: it is no place for a secret.
    return { kind: "problem", message: "a URL with a user name or password is not fetched" };
  }
  if (url.protocol === "https:" || (url.protocol === "http:" && isLoopbackHost(url))) {
    return { kind: "url", url };
  }
  return {
    kind: "problem",
    message: "only https URLs are fetched (http on loopback only): change the URL to https",
  };
}

/** Says whether the URL's host is this machine by its form alone, whatever DNS says. */
export function isLoopbackHost(url: URL): boolean {
  if (isLocalhostName(url.hostname)) return true;
  const ip = parseIp(bareHost(url));
  return ip !== null && isLoopback(ip);
}

/** `localhost` and below, which are never looked up (RFC 6761 §6.3). */
export function isLocalhostName(name: string): boolean {
  return /^(.+\.)?localhost\.?$/i.test(name);
}

/** The host without the brackets of an IPv6 address. */
export function bareHost(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, "");
}
