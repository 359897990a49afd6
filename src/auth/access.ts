import { isLoopback, parseIp } from "../addr/mod.ts";
import { SvcError } from "../errors.ts";
import type { Actor, Credential, Role, Session, StoredUser } from "../model/mod.ts";
import type { Auth } from "./ports.ts";
import { isSameSha256, sha256Hex, tokenSha256 } from "./secrets.ts";
import { isSessionValid, readSessionCookies } from "./sessions.ts";
import { findToken, hasEnded } from "./tokens.ts";

/** What a request says about where it comes from and who sends it. */
export interface AccessRequest {
  /** The values of the headers; `null` where there is none. */
  readonly authorization: string | null;
  readonly cookie: string | null;
  readonly host: string | null;
  readonly origin: string | null;
  /** The client's address, as text. */
  readonly remoteAddress: string;
}

/** What the API is configured with, as far as access hangs on it. */
export interface AccessConfig {
  readonly tokenSha256: string | null;
  /** The API speaks TLS itself. */
  readonly isSecure: boolean;
}

/**
 * What an endpoint needs: nothing (health, sign-in, redeeming a reset link), any authenticated
 * caller (reads, and the caller's own account), or the admin role or token.
 */
export type Need = "nothing" | "viewer" | "admin";

/** Who a request is from. */
export interface Identity {
  readonly actor: Actor;
  /** `null`: without credentials, on an endpoint that needs none. */
  readonly role: Role | null;
  /** `null` unless it came with a user's session. */
  readonly user: StoredUser | null;
  readonly session: Session | null;
  /** `null` unless it came with a named token. */
  readonly token: Credential<"tokens"> | null;
}

/** What a decision hangs on beside the request. */
export interface AccessFacts extends AccessConfig {
  readonly hasUsers: boolean;
  /** The session that the cookie names and its user, where there are such. */
  readonly session: Session | null;
  readonly user: StoredUser | null;
  /** The named token that came with it, be it over. */
  readonly token: Credential<"tokens"> | null;
  readonly nowMs: number;
}

/**
 * Says who sends a request, once it may be answered at all.
 *
 * @throws {SvcError} `forbidden` or `unauthorized`.
 */
export async function authenticate(
  auth: Pick<Auth, "users" | "sessions" | "clock">,
  config: AccessConfig,
  request: AccessRequest,
  need: Need,
): Promise<Identity> {
  const values = readSessionCookies(request.cookie);
  const found = await Promise.all(values.map((value) => auth.sessions.session(sha256Hex(value))));
  // Read after the wait: whoever was removed meanwhile is gone.
  const { users, credentials } = auth.users.state;
  const ownerOf = (session: Session) => users.get(session.userId) ?? null;
  const hasUsers = users.size > 0;
  const nowMs = auth.clock.nowMs();
  const session = found.find((one) => one !== null && isSessionValid(one, ownerOf(one), nowMs)) ??
    null;
  const user = session === null ? null : ownerOf(session);
  const sent = bearerOf(request.authorization);
  const token = sent === null ? null : findToken(credentials.tokens, tokenSha256(sent));
  return decideAccess(request, need, { ...config, hasUsers, session, user, token, nowMs });
}

/**
 * The rules of access as a pure function: the browser protections, then who it is, then whether
 * that is enough.
 *
 * @throws {SvcError} `forbidden` or `unauthorized`.
 */
export function decideAccess(request: AccessRequest, need: Need, facts: AccessFacts): Identity {
  checkHost(request, facts);
  checkOrigin(request, facts);
  const identity = identify(request, facts);
  if (need === "nothing") return identity;
  if (identity.token === null && facts.token !== null && hasEnded(facts.token, facts.nowMs)) {
    // Nobody else learns of it: who is told has sent it.
    throw new SvcError(
      "unauthorized",
      `this token ended at ${facts.token.spec.expires_at}: ask for a new one`,
    );
  }
  if (identity.role === null) {
    throw new SvcError("unauthorized", "no session and no valid token: sign in, or send the token");
  }
  if (need === "admin" && identity.role !== "admin") {
    throw new SvcError("forbidden", "a viewer may read only");
  }
  return identity;
}

/**
 * The user of a session, for endpoints of one's own account.
 *
 * @throws {SvcError} `forbidden`, when the caller is no user.
 */
export function userOf(identity: Identity): StoredUser {
  if (identity.user !== null) return identity.user;
  throw new SvcError("forbidden", "this is for users: sign in as one");
}

function identify(request: AccessRequest, facts: AccessFacts): Identity {
  const address = request.remoteAddress;
  const nobody = { user: null, session: null, token: null };
  if (holdsToken(request.authorization, facts.tokenSha256)) {
    return { ...nobody, actor: { kind: "token", name: null, address }, role: "admin" };
  }
  const { session, user, token } = facts;
  if (token !== null && !hasEnded(token, facts.nowMs)) {
    const { name, role } = token.spec;
    return { ...nobody, actor: { kind: "token", name, address }, role, token };
  }
  if (session !== null && user !== null && isSessionValid(session, user, facts.nowMs)) {
    const actor = { kind: "user", name: user.name, address } as const;
    return { ...nobody, actor, role: user.role, user, session };
  }
  // The API listens on loopback alone while nothing is configured; this holds if it ever did not.
  const ip = parseIp(address);
  const isOpen = facts.tokenSha256 === null && !facts.hasUsers && ip !== null && isLoopback(ip);
  const actor = { kind: "unauthenticated", name: null, address } as const;
  return { ...nobody, actor, role: isOpen ? "admin" : null };
}

function holdsToken(authorization: string | null, sha256: string | null): boolean {
  const token = bearerOf(authorization);
  return token !== null && sha256 !== null && isSameSha256(tokenSha256(token), sha256);
}

function bearerOf(authorization: string | null): string | null {
  // The scheme's name is of either case (RFC 9110 §11.1).
  return authorization === null ? null : /^Bearer +([^ ]+) *$/i.exec(authorization)?.[1] ?? null;
}

/**
 * Without a token the API is for this machine alone, so the name it is asked by is one of this
 * machine's: a page whose name leads here by DNS rebinding has another.
 */
function checkHost({ host }: AccessRequest, { tokenSha256 }: AccessFacts): void {
  if (tokenSha256 !== null) return;
  const name = host === null ? null : parseAuthority("http:", host)?.hostname ?? null;
  if (name === null || !isLocalName(name)) {
    throw new SvcError(
      "forbidden",
      "Host: without a token it is 127.0.0.1, [::1] or localhost, with any port",
    );
  }
}

function isLocalName(hostname: string): boolean {
  const name = hostname.replace(/\.$/, "");
  if (name === "localhost" || name.endsWith(".localhost")) return true; // RFC 6761 §6.3.
  const ip = parseIp(name.replace(/^\[(.*)\]$/, "$1"));
  return ip !== null && isLoopback(ip);
}

/** A page of another origin may not use the session or the openness of this one. */
function checkOrigin({ origin, host }: AccessRequest, { isSecure }: AccessFacts): void {
  if (origin === null) return;
  const [, scheme, authority] = /^(https?:)\/\/([^/]+)$/.exec(origin) ?? [];
  const from = scheme === undefined ? null : parseAuthority(scheme, authority);
  const to = scheme === undefined || host === null ? null : parseAuthority(scheme, host);
  // Behind a proxy that speaks TLS for it, the API itself does not.
  const isScheme = scheme === "https:" || !isSecure;
  if (from === null || to === null || from.host !== to.host || !isScheme) {
    throw new SvcError("forbidden", "Origin: it is not the API's own address");
  }
}

/** Reads a host with an optional port; a scheme's own port is left out of `host`. */
function parseAuthority(scheme: string, text: string): URL | null {
  // Whatever else a URL may hold would make the parser read another host.
  if (!/^(\[[\da-f:.]+\]|[\w.-]+)(:\d{1,5})?$/i.test(text)) return null;
  return URL.parse(`${scheme}//${text}`);
}
