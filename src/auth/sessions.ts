import type { Session, StoredUser } from "../model/mod.ts";
import { newSecret, sha256Hex } from "./secrets.ts";

export const SESSION_COOKIE = "svc_session";
export const SESSION_LIFETIME_MS = 12 * 3_600_000;
/** The clock may be set back by this much, and nothing ends by it. */
const CLOCK_SLACK_MS = 60_000;
/** Longest `Cookie` header that is looked through; browsers send no longer ones for one host. */
const COOKIE_HEADER_LENGTH_MAX = 16 * 1024;

/** Values that are looked at. */
const SESSION_COOKIES_MAX = 8;

/** A session that was just made: what is kept, and the cookie's value, which is not. */
export interface NewSession {
  readonly session: Session;
  readonly value: string;
}

/** Makes a session of a user; it ends with the epoch of the user as given. */
export function sessionFor(user: StoredUser, nowMs: number, address?: string): NewSession {
  const value = newSecret();
  const session = {
    sha256: sha256Hex(value),
    userId: user.id,
    epoch: user.session_epoch,
    expiresAtMs: nowMs + SESSION_LIFETIME_MS,
    ...(address !== undefined && { address }),
  };
  return { session, value };
}

/** By what a session is named to its user: neither its cookie nor what that is known by. */
export function sessionId({ sha256 }: Session): string {
  return `se_${sha256Hex(`session ${sha256}`).slice(0, 16)}`;
}

/** Says whether a session still holds; `user` is `null` where its user was removed. */
export function isSessionValid(session: Session, user: StoredUser | null, nowMs: number): boolean {
  return user !== null && user.id === session.userId && !user.disabled &&
    user.session_epoch === session.epoch &&
    isWithin(nowMs, session.expiresAtMs, SESSION_LIFETIME_MS);
}

/**
 * Says whether something is not over that lives so long. What would last longer than one made now was
 * made while the clock was ahead, and would outlive everybody.
 */
export function isWithin(nowMs: number, expiresAtMs: number, lifetimeMs: number): boolean {
  return nowMs < expiresAtMs && expiresAtMs - nowMs <= lifetimeMs + CLOCK_SLACK_MS;
}

/** The value of `Set-Cookie` that begins a session. `isSecure`: the API speaks TLS. */
export function sessionCookie(value: string, isSecure: boolean): string {
  return cookie(value, SESSION_LIFETIME_MS / 1_000, isSecure);
}

/** The value of `Set-Cookie` that takes the session's cookie away. */
export function endedSessionCookie(isSecure: boolean): string {
  return cookie("", 0, isSecure);
}

function cookie(value: string, maxAgeSeconds: number, isSecure: boolean): string {
  return `${SESSION_COOKIE}=${value}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict` +
    (isSecure ? "; Secure" : "");
}

/**
 * Reads the values from a `Cookie` header (RFC 6265 §4.2) that may be a session's: whoever may set a
 * cookie beside ours can add junk, but takes nobody's session away by it.
 */
export function readSessionCookies(header: string | null): string[] {
  if (header === null || header.length > COOKIE_HEADER_LENGTH_MAX) return [];
  const values = new Set<string>();
  for (const part of header.split(";")) {
    const [name, value = ""] = part.trim().split("=", 2);
    if (name === SESSION_COOKIE && /^[\w-]{43}$/.test(value)) values.add(value);
    if (values.size === SESSION_COOKIES_MAX) break;
  }
  return [...values];
}
