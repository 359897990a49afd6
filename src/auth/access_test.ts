// Goal: every sentence of the specification's rules 1, 2 and 10 on authentication holds. Method: each
// is a row, named after it, over the pure decision.
import assert from "node:assert/strict";
import { SvcError } from "../errors.ts";
import type { StoredUser } from "../model/mod.ts";
import {
  type AccessFacts,
  type AccessRequest,
  authenticate,
  decideAccess,
  type Need,
  userOf,
} from "./access.ts";
import { fakeAuth } from "./fakes.ts";
import { newToken, tokenSha256 } from "./secrets.ts";
import { sessionFor } from "./sessions.ts";

const none = { permissions: "none" } as const;
const NOW_MS = Date.parse("2026-01-02T03:04:05Z");
const TOKEN = newToken();
const SHA256 = tokenSha256(TOKEN);
const BEARER = `Bearer ${TOKEN}`;

const ann: StoredUser = {
  id: "us_0000000000000001",
  revision: 1,
  created_at: "2026-01-01T00:00:00.000Z",
  updated_at: "2026-01-01T00:00:00.000Z",
  name: "ann",
  role: "admin",
  disabled: false,
  password_hash: "",
  otp: null,
  reset: null,
  session_epoch: 0,
};
const vic: StoredUser = { ...ann, id: "us_0000000000000002", name: "vic", role: "viewer" };

const LOCAL: AccessRequest = {
  authorization: null,
  cookie: null,
  host: "127.0.0.1:8053",
  origin: null,
  remoteAddress: "127.0.0.1",
};
const REMOTE: AccessRequest = { ...LOCAL, host: "dns.example", remoteAddress: "192.0.2.1" };

const FRESH: AccessFacts = {
  tokenSha256: null,
  isSecure: false,
  hasUsers: false,
  session: null,
  user: null,
  token: null,
  nowMs: NOW_MS,
};
const WITH_USERS: AccessFacts = { ...FRESH, hasUsers: true };
const WITH_TOKEN: AccessFacts = { ...FRESH, tokenSha256: SHA256 };
const WITH_BOTH: AccessFacts = { ...WITH_USERS, tokenSha256: SHA256 };

const ENDS_MS = NOW_MS + 60_000;
/** What a request with a named token of a viewer's is decided by. */
const NAMED: AccessFacts = {
  ...FRESH,
  hasUsers: true,
  tokenSha256: "0".repeat(64),
  token: {
    ...{ id: "to_0000000000000001", revision: 1 },
    ...{ created_at: new Date(NOW_MS).toISOString(), updated_at: new Date(NOW_MS).toISOString() },
    spec: { name: "phone", role: "viewer", expires_at: new Date(ENDS_MS).toISOString() },
    secret: { sha256: SHA256 },
  },
};

function signedIn(user: StoredUser, facts: AccessFacts): AccessFacts {
  return { ...facts, user, session: sessionFor(user, NOW_MS).session };
}

/** The decision in words: the actor's kind and role, or the error's code. */
function decide(request: AccessRequest, need: Need, facts: AccessFacts): string {
  try {
    const { actor, role } = decideAccess(request, need, facts);
    assert.equal(actor.address, request.remoteAddress);
    return `${actor.kind} ${role ?? "-"}`;
  } catch (error) {
    assert.ok(error instanceof SvcError, String(error));
    return error.code;
  }
}

type Row = readonly [string, AccessRequest, Need, AccessFacts, string];

const CREDENTIALS: readonly Row[] = [
  // 1. With no user account and no token configured, the API answers without credentials.
  ["a fresh node answers on loopback", LOCAL, "admin", FRESH, "unauthenticated admin"],
  [
    "a fresh node answers on IPv6 loopback",
    { ...LOCAL, host: "[::1]:8053", remoteAddress: "::1" },
    "admin",
    FRESH,
    "unauthenticated admin",
  ],
  [
    "a fresh node answers nobody else",
    { ...LOCAL, remoteAddress: "192.0.2.1" },
    "viewer",
    FRESH,
    "unauthorized",
  ],
  [
    "a token that no configuration asks for changes nothing",
    { ...LOCAL, authorization: BEARER },
    "admin",
    FRESH,
    "unauthenticated admin",
  ],
  // 1. Health, sign-in and redemption never need credentials.
  ["what is open needs nothing: fresh", LOCAL, "nothing", FRESH, "unauthenticated admin"],
  ["what is open needs nothing: users", LOCAL, "nothing", WITH_USERS, "unauthenticated -"],
  ["what is open needs nothing: token", REMOTE, "nothing", WITH_TOKEN, "unauthenticated -"],
  [
    "what is open asks for no right token either",
    { ...REMOTE, authorization: "Bearer wrong" },
    "nothing",
    WITH_BOTH,
    "unauthenticated -",
  ],
  // 1. Once a user account exists, every other endpoint needs a token or a session, on loopback too.
  ["users: loopback needs credentials to read", LOCAL, "viewer", WITH_USERS, "unauthorized"],
  ["users: loopback needs credentials to change", LOCAL, "admin", WITH_USERS, "unauthorized"],
  ["users: an admin's session does", LOCAL, "admin", signedIn(ann, WITH_USERS), "user admin"],
  ["users: a viewer's session reads", LOCAL, "viewer", signedIn(vic, WITH_USERS), "user viewer"],
  ["users: a viewer changes nothing", LOCAL, "admin", signedIn(vic, WITH_USERS), "forbidden"],
  [
    "users: a session that has ended does not",
    LOCAL,
    "viewer",
    { ...signedIn(ann, WITH_USERS), nowMs: NOW_MS + 12 * 3_600_000 },
    "unauthorized",
  ],
  [
    "users: a disabled user's session does not",
    LOCAL,
    "viewer",
    { ...signedIn(ann, WITH_USERS), user: { ...ann, disabled: true } },
    "unauthorized",
  ],
  // A named token has its own role, until it ends, and is told apart by who holds it alone.
  ["named: it does", { ...REMOTE, authorization: BEARER }, "viewer", NAMED, "token viewer"],
  [
    "named: a viewer changes nothing",
    { ...REMOTE, authorization: BEARER },
    "admin",
    NAMED,
    "forbidden",
  ],
  [
    "named: it goes before a session",
    { ...REMOTE, authorization: BEARER },
    "viewer",
    signedIn(ann, NAMED),
    "token viewer",
  ],
  [
    "named: it ends",
    { ...REMOTE, authorization: BEARER },
    "viewer",
    { ...NAMED, nowMs: ENDS_MS },
    "unauthorized",
  ],
  [
    "named: the open API stays closed to one that ended",
    { ...LOCAL, authorization: BEARER },
    "viewer",
    { ...FRESH, token: NAMED.token, nowMs: ENDS_MS },
    "unauthorized",
  ],
  // 2. Once a token is configured, every request from anywhere needs it, or a session.
  ["token: loopback needs it", LOCAL, "viewer", WITH_TOKEN, "unauthorized"],
  ["token: others need it", REMOTE, "viewer", WITH_TOKEN, "unauthorized"],
  ["token: it does", { ...REMOTE, authorization: BEARER }, "admin", WITH_TOKEN, "token admin"],
  ["token: a session does", REMOTE, "admin", signedIn(ann, WITH_BOTH), "user admin"],
  [
    "token: it goes before a session",
    { ...REMOTE, authorization: BEARER },
    "admin",
    signedIn(vic, WITH_BOTH),
    "token admin",
  ],
  [
    "token: a session does beside a wrong one",
    { ...REMOTE, authorization: "Bearer wrong" },
    "viewer",
    signedIn(vic, WITH_BOTH),
    "user viewer",
  ],
  // 2. It is sent as "Authorization: Bearer".
  ...[
    [`bearer ${TOKEN}`, "token admin"],
    [`Bearer  ${TOKEN} `, "token admin"],
    [`Bearer ${newToken()}`, "unauthorized"],
    [`Bearer ${SHA256}`, "unauthorized"],
    [`Bearer ${TOKEN}x`, "unauthorized"],
    [`Bearer ${TOKEN} x`, "unauthorized"],
    ["Bearer", "unauthorized"],
    ["Bearer ", "unauthorized"],
    [TOKEN, "unauthorized"],
    [`Basic ${TOKEN}`, "unauthorized"],
    ["", "unauthorized"],
  ].map(([authorization, want]): Row => [
    `token: sent as ${authorization.slice(0, 24)}`,
    { ...REMOTE, authorization },
    "admin",
    WITH_TOKEN,
    want,
  ]),
];

// 10 (a). Without a token the host is a loopback address or a localhost name, with any port.
const HOSTS: readonly Row[] = [
  ...[
    "127.0.0.1",
    "127.0.0.1:8053",
    "127.0.0.1:1",
    "127.1.2.3:8053",
    "[::1]",
    "[::1]:8053",
    "[::ffff:127.0.0.1]:8053",
    "localhost",
    "LocalHost:8053",
    "localhost.:8053",
    "svc.localhost:8053",
  ].map((host): Row => [
    `host ${host}`,
    { ...LOCAL, host },
    "admin",
    FRESH,
    "unauthenticated admin",
  ]),
  ...[
    null,
    "",
    "rebound.example",
    "rebound.example:8053",
    "192.0.2.1:8053",
    "[2001:db8::1]:8053",
    "0.0.0.0:8053",
    "localhost.example",
    "notlocalhost",
    "127.0.0.1.example",
    "127.0.0.1@rebound.example",
    "rebound.example#127.0.0.1",
    "localhost/",
    "localhost:99999",
    "localhost:",
    "::1",
  ].map((host): Row => [`host ${host}`, { ...LOCAL, host }, "admin", FRESH, "forbidden"]),
  [
    "the host counts for what is open",
    { ...LOCAL, host: "rebound.example" },
    "nothing",
    FRESH,
    "forbidden",
  ],
  [
    "the host counts for a session",
    { ...LOCAL, host: "rebound.example" },
    "viewer",
    signedIn(ann, WITH_USERS),
    "forbidden",
  ],
  // 10 (a). With a token any name works.
  [
    "with a token any host does",
    { ...REMOTE, host: "any.example", authorization: BEARER },
    "admin",
    WITH_TOKEN,
    "token admin",
  ],
  [
    "with a token no host does too",
    { ...REMOTE, host: null },
    "nothing",
    WITH_TOKEN,
    "unauthenticated -",
  ],
];

// 10 (b). A request with an Origin header comes from the API's own address.
const ORIGINS: readonly Row[] = [
  ...([
    ["http://127.0.0.1:8053", "127.0.0.1:8053", false, "token admin"],
    ["http://dns.example", "dns.example", false, "token admin"],
    ["http://dns.example", "DNS.example:80", false, "token admin"],
    ["http://dns.example:80", "dns.example", false, "token admin"],
    ["https://dns.example", "dns.example:443", true, "token admin"],
    ["https://[2001:db8::1]:8053", "[2001:db8:0::1]:8053", true, "token admin"],
    ["https://dns.example", "dns.example", false, "token admin"], // A proxy speaks TLS for it.
    ["http://dns.example", "dns.example", true, "forbidden"],
    ["https://dns.example:8053", "dns.example", true, "forbidden"],
    ["https://dns.example:8054", "dns.example:8053", true, "forbidden"],
    ["http://localhost:8053", "127.0.0.1:8053", false, "forbidden"],
    ["https://evil.example", "dns.example", true, "forbidden"],
    ["https://dns.example.evil.example", "dns.example", true, "forbidden"],
    ["https://dns.example@evil.example", "dns.example", true, "forbidden"],
    ["https://dns.example/", "dns.example", true, "forbidden"],
    ["ftp://dns.example", "dns.example", false, "forbidden"],
    ["null", "dns.example", true, "forbidden"],
    ["", "dns.example", true, "forbidden"],
    ["https://dns.example", null, true, "forbidden"],
  ] as const).map(([origin, host, isSecure, want]): Row => [
    `origin ${origin}, host ${host}, ${isSecure ? "TLS" : "plain"}`,
    { ...REMOTE, origin, host, authorization: BEARER },
    "admin",
    { ...WITH_TOKEN, isSecure },
    want,
  ]),
  [
    "the origin counts for what is open",
    { ...LOCAL, origin: "https://evil.example" },
    "nothing",
    FRESH,
    "forbidden",
  ],
];

Deno.test("decideAccess() follows every sentence of the chapter", none, async (t) => {
  for (const [name, request, need, facts, want] of [...CREDENTIALS, ...HOSTS, ...ORIGINS]) {
    await t.step(name, () => assert.equal(decide(request, need, facts), want));
  }
});

Deno.test("authenticate() finds the session and its user", none, async () => {
  const auth = fakeAuth();
  const actor = { kind: "cli", name: null, address: null } as const;
  const { id, name, role, disabled, password_hash, otp, reset, session_epoch } = ann;
  const user = { id, name, role, disabled, password_hash, otp, reset, session_epoch };
  await auth.users.propose({ type: "user_create", user }, actor);
  const { session, value } = sessionFor(ann, auth.clock.nowMs());
  await auth.sessions.putSession(session);
  const config = { tokenSha256: null, isSecure: false };
  const ask = (cookie: string | null) => authenticate(auth, config, { ...LOCAL, cookie }, "admin");

  const identity = await ask(`svc_session=${value}`);
  assert.deepEqual(identity.actor, { kind: "user", name: "ann", address: "127.0.0.1" });
  assert.deepEqual(identity.session, session);
  assert.equal(userOf(identity).id, ann.id);

  await assert.rejects(() => ask(null), { code: "unauthorized" });
  await assert.rejects(() => ask(`svc_session=${session.sha256.slice(0, 43)}`), {
    code: "unauthorized",
  });
  auth.clock.ms += 12 * 3_600_000;
  await assert.rejects(() => ask(`svc_session=${value}`), { code: "unauthorized" });
});

Deno.test("userOf() refuses callers who are no users", none, () => {
  const identity = decideAccess({ ...REMOTE, authorization: BEARER }, "admin", WITH_TOKEN);
  assert.throws(() => userOf(identity), { code: "forbidden" });
});
