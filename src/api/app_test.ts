import assert from "node:assert/strict";
import { tokenSha256 } from "../auth/mod.ts";
import { SvcError } from "../errors.ts";
import { createApi } from "./app.ts";
import { ENDPOINTS } from "./endpoints.ts";
import { fakeDeps, type Fakes, LOOPBACK, NODE, RETRY_SECONDS } from "./fakes.ts";
import type { ApiDeps } from "./ports.ts";

const none = { permissions: "none" } as const;
const TOKEN = `svc_${"ab".repeat(32)}`;
const GROUP = "/api/v1/groups/gr_0000000000000000";

interface Sent {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly from?: string;
}

/** Sends `GET /path` or another line to an API and returns the response. */
async function send(deps: ApiDeps, line: string, { body, headers, from }: Sent = {}) {
  const [method, path] = line.split(" ");
  const all = new Headers({ host: "localhost:8053", ...headers });
  const text = typeof body === "string" || body === undefined ? body ?? null : JSON.stringify(body);
  if (text !== null) {
    if (!all.has("content-type")) all.set("content-type", "application/json");
    all.set("content-length", String(new TextEncoder().encode(text).length));
  }
  const request = new Request(`http://api.invalid${path}`, { method, headers: all, body: text });
  return await createApi(deps)(request, from ?? LOOPBACK);
}

/** What a response comes to: its status and, of an error, its code. */
async function outcomeOf(response: Response): Promise<string> {
  const text = await response.text();
  if (text === "") return String(response.status);
  const { error } = JSON.parse(text);
  return error === undefined ? String(response.status) : `${response.status} ${error.code}`;
}

const RULE = { rule: "||ads.example^" };
const TWICE = '{"rule":"||a.example^","r\\u0075le":"||b.example^"}';
const TOO_LARGE = JSON.stringify({ rule: "x".repeat(1024 * 1024) });
const LIST = "li_00000000000000aa";

/** Fills a store with a rule, and a client of a group of its own. */
async function fill({ deps }: Fakes): Promise<void> {
  await send(deps, "POST /api/v1/rules", { body: RULE });
  await send(deps, "POST /api/v1/groups", { body: { name: "children" } });
  await send(deps, "POST /api/v1/clients", {
    body: { name: "tv", addresses: ["192.0.2.7"], group: "gr_0000000000000002" },
  });
}
const RULE_PATH = "/api/v1/rules/ru_0000000000000001";

/** The error table of the specification, a row each. */
const ERRORS: readonly (readonly [string, string, Sent, string])[] = [
  ["bad JSON", "POST /api/v1/rules", { body: "{" }, "400 bad_request"],
  ["no body", "POST /api/v1/rules", {}, "400 bad_request"],
  ["bad query string", "GET /api/v1/stats?hours=721", {}, "400 bad_request"],
  ["bad query string", "GET /api/v1/stats?hours=0", {}, "400 bad_request"],
  ["bad query string", "GET /api/v1/querylog?limit=many", {}, "400 bad_request"],
  ["bad query string", "GET /api/v1/querylog?outcome=eaten", {}, "400 bad_request"],
  ["bad query string", "GET /api/v1/querylog?since=yesterday", {}, "400 bad_request"],
  ["unknown parameter", "GET /api/v1/audit?limits=1", {}, "400 bad_request"],
  ["parameter given twice", "GET /api/v1/audit?limit=1&limit=2", {}, "400 bad_request"],
  ["missing parameter", "GET /api/v1/explain", {}, "400 bad_request"],
  ["parameter of what takes none", "GET /metrics?x=1", {}, "400 bad_request"],
  ["parameter of what takes none", "GET /api/docs?x", {}, "400 bad_request"],
  ["key given twice", "POST /api/v1/rules", { body: TWICE }, "400 bad_request"],
  [
    "bad If-Match",
    `PUT ${RULE_PATH}`,
    { body: RULE, headers: { "if-match": "three" } },
    "400 bad_request",
  ],
  [
    "wrong password",
    "POST /api/v1/auth/login",
    { body: { name: "ann", password: "wrong" } },
    "401 unauthorized",
  ],
  [
    "expired reset link",
    "POST /api/v1/auth/reset",
    { body: { token: "old", password: "long enough" } },
    "401 unauthorized",
  ],
  ["foreign host", "GET /api/v1/rules", { headers: { host: "evil.example" } }, "403 forbidden"],
  [
    "foreign origin",
    "GET /api/v1/rules",
    { headers: { origin: "http://evil.example" } },
    "403 forbidden",
  ],
  ["no such resource", "GET /api/v1/rules/ru_00000000000000ff", {}, "404 not_found"],
  ["no such resource", "PUT /api/v1/rules/ru_00000000000000ff", { body: RULE }, "404 not_found"],
  ["no such resource", "DELETE /api/v1/rules/nonsense", {}, "404 not_found"],
  ["no such endpoint", "GET /api/v1/nothing", {}, "404 not_found"],
  ["no such endpoint", "GET /", {}, "404 not_found"],
  ["no such endpoint", "POST /api/v2/rules", { body: RULE }, "404 not_found"],
  ["wrong method", "PATCH /api/v1/rules", {}, "405"],
  ["wrong method", "POST /api/v1/health", {}, "405"],
  ["wrong method", "DELETE /api/v1/lists/recommended", {}, "405"],
  [
    "refers to something missing",
    `PUT ${GROUP}`,
    { body: { name: "Default", lists: [{ list: LIST }] } },
    "409 conflict",
  ],
  ["still referred to", "DELETE /api/v1/groups/gr_0000000000000002", {}, "409 conflict"],
  [
    "changed since",
    `PUT ${RULE_PATH}`,
    { body: RULE, headers: { "if-match": "7" } },
    "412 revision_mismatch",
  ],
  [
    "changed since",
    `DELETE ${RULE_PATH}`,
    { headers: { "if-match": '"7"' } },
    "412 revision_mismatch",
  ],
  ["larger than 1 MiB", "POST /api/v1/rules", { body: TOO_LARGE }, "413 bad_request"],
  [
    "wrong content type",
    "POST /api/v1/rules",
    { body: RULE, headers: { "content-type": "text/plain" } },
    "415 bad_request",
  ],
  ["invalid value", "POST /api/v1/rules", { body: { rule: "" } }, "422 invalid"],
  ["unknown field", "POST /api/v1/rules", { body: { ...RULE, extra: 1 } }, "422 invalid"],
  ["no object", "POST /api/v1/rules", { body: "[]" }, "422 invalid"],
  [
    "too many failed sign-ins",
    "POST /api/v1/auth/login",
    { body: { name: "locked", password: "x" } },
    "429 too_many_requests",
  ],
];

Deno.test("createApi() answers errors as the specification's table says", none, async (t) => {
  const fakes = fakeDeps();
  await fill(fakes);
  for (const [name, line, sent, want] of ERRORS) {
    await t.step(`${name}: ${line}`, async () => {
      const response = await send(fakes.deps, line, sent);
      assert.equal(await outcomeOf(response.clone()), want);
      if (want === "405") {
        assert.match(response.headers.get("allow") ?? "", /^[A-Z]+(, [A-Z]+)*$/);
        return;
      }
      const { error } = await response.json();
      const details = error.code === "invalid" ? ["details"] : [];
      assert.deepEqual(Object.keys(error), ["code", "message", ...details]);
      assert.match(error.message, /^[^\n]{8,200}$/);
    });
  }
});

Deno.test("createApi() says which field is bad", none, async (t) => {
  const { deps } = fakeDeps();
  const rows = [
    ["POST /api/v1/rules", {}, "rule"],
    ["POST /api/v1/rules", { rule: "||a.example^", enabled: "yes" }, "enabled"],
    ["POST /api/v1/groups", { name: "a", lists: [{ list: LIST }, { list: 3 }] }, "lists[1].list"],
    ["POST /api/v1/groups", { name: "a", lists: [{ lists: LIST }] }, "lists[0]"],
    ["PUT /api/v1/settings", { access: { allowed: ["10.0.0.1/8"] } }, "access.allowed[0]"],
    ["PUT /api/v1/pause", { seconds: 604_801 }, "seconds"],
    ["PUT /api/v1/pause", { seconds: 1.5 }, "seconds"],
    ["PUT /api/v1/pause", { second: 1 }, "second"],
    ["PUT /api/v1/pause", [], "body"],
    ["POST /api/v1/users", { name: "ann", role: "admin" }, "password"],
    ["POST /api/v1/users", { name: "ann", role: "root", password: "long enough" }, "role"],
    ["POST /api/v1/cluster/promote", { force: "yes" }, "force"],
  ] as const;
  for (const [line, body, place] of rows) {
    await t.step(`${line} ${JSON.stringify(body)}`, async () => {
      const response = await send(deps, line, { body });
      assert.equal(response.status, 422);
      const { error } = await response.json();
      assert.equal(error.message.startsWith(place), true, error.message);
    });
  }
});

Deno.test("createApi() refuses in the order of its checks", none, async (t) => {
  const fakes = fakeDeps({ access: { tokenSha256: tokenSha256(TOKEN), isSecure: false } });
  const viewer = { cookie: await fakes.store.signIn("vic", "viewer") };
  const token = { authorization: `Bearer ${TOKEN}` };
  const evil = { origin: "http://evil.example" };
  const wrongType = { "content-type": "text/plain" };
  const large = `{"x":"${"y".repeat(1024 * 1024)}`; // Too large and no JSON.
  const rows: readonly (readonly [string, string, Sent, string])[] = [
    ["origin before route", "GET /nothing", { headers: evil }, "403 forbidden"],
    ["origin before method", "PUT /api/v1/health", { headers: evil }, "403 forbidden"],
    ["route before sign-in", "GET /nothing", {}, "404 not_found"],
    ["method before sign-in", "PATCH /api/v1/rules", {}, "405"],
    [
      "sign-in before type",
      "POST /api/v1/rules",
      { headers: wrongType, body: "x" },
      "401 unauthorized",
    ],
    [
      "role before type",
      "POST /api/v1/rules",
      { headers: { ...viewer, ...wrongType }, body: "x" },
      "403 forbidden",
    ],
    [
      "type before size",
      "POST /api/v1/rules",
      { headers: { ...token, ...wrongType }, body: large },
      "415 bad_request",
    ],
    ["size before JSON", "POST /api/v1/rules", { headers: token, body: large }, "413 bad_request"],
    ["JSON before schema", "POST /api/v1/rules", { headers: token, body: "{" }, "400 bad_request"],
    [
      "schema before handler",
      "PUT /api/v1/rules/ru_1",
      { headers: token, body: {} },
      "422 invalid",
    ],
    ["handler", "PUT /api/v1/rules/ru_1", { headers: token, body: RULE }, "404 not_found"],
  ];
  for (const [name, line, sent, want] of rows) {
    await t.step(name, async () => {
      assert.equal(await outcomeOf(await send(fakes.deps, line, sent)), want);
    });
  }
});

Deno.test("createApi() lets in whom it should", none, async (t) => {
  const rows: readonly (readonly [string, "open" | "token" | "users", string, string, string])[] = [
    // What is configured, who asks (nobody, token, wrong, admin, viewer), what, and what it is.
    ["open: anyone on this machine may all", "open", "nobody", "DELETE /api/v1/pause", "200"],
    [
      "a token is needed from everywhere",
      "token",
      "nobody",
      "GET /api/v1/rules",
      "401 unauthorized",
    ],
    ["a wrong token is none", "token", "wrong", "GET /api/v1/rules", "401 unauthorized"],
    ["the token may all", "token", "token", "DELETE /api/v1/pause", "200"],
    ["metrics need the token", "token", "nobody", "GET /metrics", "401 unauthorized"],
    ["health never needs it", "token", "nobody", "GET /api/v1/health", "200"],
    ["a user makes sign-in needed", "users", "nobody", "GET /api/v1/rules", "401 unauthorized"],
    ["health never needs it, users or not", "users", "nobody", "GET /api/v1/health", "200"],
    ["an admin may all", "users", "admin", "DELETE /api/v1/pause", "200"],
    ["a viewer reads", "users", "viewer", "GET /api/v1/rules", "200"],
    ["a viewer changes nothing", "users", "viewer", "DELETE /api/v1/pause", "403 forbidden"],
    ["a viewer may start a leak test", "users", "viewer", "POST /api/v1/leak-tests", "201"],
    [
      "the document is for the authenticated",
      "users",
      "nobody",
      "GET /api/v1/openapi.json",
      "401 unauthorized",
    ],
    ["and for every one of them", "users", "viewer", "GET /api/v1/openapi.json", "200"],
  ];
  for (const [name, configured, who, line, want] of rows) {
    await t.step(name, async () => {
      const sha256 = configured === "token" ? tokenSha256(TOKEN) : null;
      const { deps, store } = fakeDeps({ access: { tokenSha256: sha256, isSecure: false } });
      if (configured === "users") await store.signIn("root", "admin");
      const headers: Record<string, string> = {};
      if (who === "token") headers.authorization = `Bearer ${TOKEN}`;
      if (who === "wrong") headers.authorization = `Bearer ${TOKEN.replace(/b$/, "c")}`;
      if (who === "admin" || who === "viewer") headers.cookie = await store.signIn(who, who);
      const response = await send(deps, line, { headers });
      if (line === "GET /metrics" && response.status === 200) return;
      assert.equal(await outcomeOf(response), want);
    });
  }
});

Deno.test("ETag and If-Match follow the revision", none, async () => {
  const fakes = fakeDeps();
  const { deps } = fakes;
  const made = await send(deps, "POST /api/v1/rules", { body: RULE });
  assert.equal(made.status, 201);
  assert.equal(made.headers.get("etag"), '"1"');
  assert.equal(made.headers.get("location"), RULE_PATH);
  const replaced = async (ifMatch: string) => {
    const headers = { "if-match": ifMatch };
    const response = await send(deps, `PUT ${RULE_PATH}`, { body: RULE, headers });
    return `${response.status} ${response.headers.get("etag")}`;
  };
  assert.equal(await replaced('"1"'), '200 "2"');
  assert.equal(await replaced("2"), '200 "3"');
  assert.equal(await replaced("*"), '200 "4"');
  assert.equal(await replaced("3"), "412 null");
  assert.equal(await replaced('W/"4"'), "412 null");
  assert.equal(await replaced('"4x", "1"'), "412 null");
  assert.equal(await replaced('"1", W/"9", "4"'), '200 "5"');
  assert.equal(await replaced('"5'), "400 null");
  const missing = { body: RULE, headers: { "if-match": "*" } };
  assert.equal((await send(deps, `PUT ${RULE_PATH.replace(/1$/, "f")}`, missing)).status, 404);
  const settings = await send(deps, "GET /api/v1/settings");
  const headers = { "if-match": settings.headers.get("etag") ?? "" };
  const body = await settings.json();
  assert.equal((await send(deps, "PUT /api/v1/settings", { body, headers })).status, 200);
  assert.equal((await send(deps, "PUT /api/v1/settings", { body, headers })).status, 412);
});

Deno.test("no endpoint takes a parameter that it does not know", none, async () => {
  const { deps } = fakeDeps();
  for (const { method, path } of ENDPOINTS) {
    const response = await send(deps, `${method} ${path.replace(/\{\w+\}/, "x")}?nonsense=1`);
    assert.equal(await outcomeOf(response), "400 bad_request", `${method} ${path}`);
  }
});

Deno.test("junk among the cookies takes nobody's session away", none, async () => {
  const { deps, store } = fakeDeps();
  const good = await store.signIn("ann", "admin");
  const rows = [
    [`a=%ZZ; ${good}`, "200"],
    [`svc_session=junk; ${good}`, "200"],
    [`svc_session=${"A".repeat(43)}; ${good}`, "200"],
    [`${good}; svc_session=${"A".repeat(43)}; svc_session`, "200"],
    ["svc_session=junk", "401 unauthorized"],
    [`svc_session=${"A".repeat(43)}`, "401 unauthorized"],
  ];
  for (const [cookie, want] of rows) {
    const response = await send(deps, "GET /api/v1/settings", { headers: { cookie } });
    assert.equal(await outcomeOf(response), want, cookie);
  }
});

Deno.test("all who read a collection share its bytes until it changes", none, async () => {
  const { deps } = fakeDeps();
  const add = (i: number) =>
    send(deps, "POST /api/v1/rules", {
      body: { rule: `||a${i}.example^`, comment: "c".repeat(120) },
    });
  for (let i = 0; i < 400; i++) await add(i);
  const api = createApi(deps);
  const request = () => new Request("http://x/api/v1/rules", { headers: { host: "localhost" } });
  const read = async () => {
    const response = await api(request(), LOOPBACK);
    const reader = response.body!.getReader();
    const { value } = await reader.read();
    await reader.cancel();
    return { memory: value!.buffer, length: response.headers.get("content-length") };
  };
  const [one, two] = [await read(), await read()];
  assert.equal(one.memory, two.memory);
  assert.equal(Number(one.length), one.memory.byteLength);
  await add(400);
  assert.notEqual((await read()).memory, one.memory);
});

Deno.test("what fails inside is told to the log alone", none, async () => {
  const { deps } = fakeDeps();
  const flushCache = () => Promise.reject(new Error("the secret of the house"));
  const broken = { ...deps, node: Object.assign(Object.create(deps.node), { flushCache }) };
  const response = await send(broken, "POST /api/v1/cache/flush");
  assert.equal(response.status, 500);
  assert.deepEqual(await response.json(), {
    error: { code: "internal", message: "the service failed" },
  });
});

Deno.test("a store that can't be written is unavailable, and reads go on", none, async () => {
  const { deps, store } = fakeDeps();
  store.failure = new SvcError("unavailable", "store: no leader answers");
  const refused = await send(deps, "POST /api/v1/rules", { body: RULE });
  assert.equal(refused.headers.get("retry-after"), "5");
  assert.equal(await outcomeOf(refused), "503 unavailable");
  assert.equal(await outcomeOf(await send(deps, "GET /api/v1/rules")), "200");
  // Nothing is done that the audit log could not tell of.
  assert.equal(
    await outcomeOf(await send(deps, "PUT /api/v1/pause", { body: { seconds: 5 } })),
    "503 unavailable",
  );
  assert.equal(deps.node.pausedUntilMs(), null);
  // A copy is needed most then: the log tells of it.
  assert.equal(await outcomeOf(await send(deps, "GET /api/v1/backup")), "200");
});

Deno.test("what acts on this node alone needs no leader, and is audited", none, async () => {
  const { deps, store } = fakeDeps();
  const propose = () => Promise.reject(new SvcError("unavailable", "cluster: no leader answers"));
  const alone = {
    ...deps,
    replicator: {
      state: store.state,
      subscribe: () => () => undefined,
      propose,
    },
  };
  assert.equal(
    await outcomeOf(await send(alone, "POST /api/v1/rules", { body: RULE })),
    "503 unavailable",
  );
  const index = store.state.appliedIndex;
  const CALLS = [
    ["PUT /api/v1/pause", { seconds: 5 }, "pause"],
    ["DELETE /api/v1/pause", undefined, "resume"],
    ["POST /api/v1/cache/flush", undefined, "flush"],
    ["POST /api/v1/lists/refresh", undefined, "refresh"],
  ] as const;
  for (const [line, body, action] of CALLS) {
    const response = await send(alone, line, { body });
    assert.ok(response.ok, `${line}: ${response.status} ${await response.text()}`);
    assert.equal(store.entries[0].action, action);
  }
  assert.ok((await send(alone, "POST /api/v1/leak-tests")).ok);
  assert.equal(store.state.appliedIndex, index);
});

Deno.test("a request that takes too long is unavailable", none, async () => {
  const { deps } = fakeDeps();
  const { promise, resolve } = Promise.withResolvers<void>();
  const slow = {
    ...deps,
    node: Object.assign(Object.create(deps.node), { flushCache: () => promise }),
  };
  const request = new Request("http://api.invalid/api/v1/cache/flush", {
    method: "POST",
    headers: { host: "localhost" },
  });
  const response = await createApi(slow, { requestMsMax: 20 })(request, LOOPBACK);
  assert.equal(await outcomeOf(response), "503 unavailable");
  resolve();
  await promise;
});

Deno.test("a change is answered once it holds for the next query", none, async () => {
  const steps: string[] = [];
  const { deps, store } = fakeDeps({
    inForce: async () => {
      steps.push(`waiting with ${store.state.collections.rules.size}`);
      await Promise.resolve();
      steps.push("in force");
    },
  });
  await send(deps, "POST /api/v1/rules", { body: RULE });
  assert.deepEqual(steps, ["waiting with 1", "in force"]);
});

Deno.test("pause, resume and refresh are in the audit log with who did them", none, async () => {
  const { deps, store, node } = fakeDeps();
  const cookie = await store.signIn("ann", "admin");
  const headers = { cookie };
  const paused = await (await send(deps, "PUT /api/v1/pause", { headers, body: { seconds: 60 } }))
    .json();
  assert.deepEqual(paused, { paused: true, until: "2026-01-02T03:05:05.678Z" });
  assert.equal(new Date(node.pausedMs ?? 0).toISOString(), paused.until);
  assert.deepEqual(await (await send(deps, "DELETE /api/v1/pause", { headers })).json(), {
    paused: false,
    until: null,
  });
  await (await send(deps, "POST /api/v1/lists/refresh", { headers })).body?.cancel();
  const { items } = await (await send(deps, "GET /api/v1/audit?limit=3", { headers })).json();
  assert.deepEqual(
    items.map((entry: { action: string; resource: unknown; actor: unknown }) => [
      entry.action,
      entry.resource,
      entry.actor,
    ]),
    [
      ["refresh", { type: "lists", id: null }],
      ["resume", { type: "node", id: NODE }],
      ["pause", { type: "node", id: NODE }],
    ].map((row) => [...row, { kind: "user", name: "ann", address: LOOPBACK }]),
  );
});

Deno.test("sign-in answers with a cookie for this site alone", none, async () => {
  const { deps, store } = fakeDeps();
  await store.signIn("ann", "admin");
  const body = { name: "ann", password: "password" };
  const first = await send(deps, "POST /api/v1/auth/login", { body });
  assert.equal(await outcomeOf(first), "401 otp_required");
  const response = await send(deps, "POST /api/v1/auth/login", {
    body: { ...body, code: "000000" },
  });
  const cookie = response.headers.get("set-cookie") ?? "";
  assert.match(
    cookie,
    /^svc_session=[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/,
  );
  const { user } = await response.json();
  assert.deepEqual([user.name, user.role, user.otp], ["ann", "admin", true]);
  const headers = { cookie: cookie.split(";")[0] };
  const me = await (await send(deps, "GET /api/v1/auth/me", { headers })).json();
  assert.deepEqual(me, { kind: "user", name: "ann", role: "admin", otp: true });
  const out = await send(deps, "POST /api/v1/auth/logout", { headers });
  assert.match(out.headers.get("set-cookie") ?? "", /Max-Age=0/);
  assert.equal((await send(deps, "GET /api/v1/auth/me", { headers })).status, 401);
  const locked = await send(deps, "POST /api/v1/auth/login", { body: { ...body, name: "locked" } });
  assert.equal(locked.headers.get("retry-after"), String(RETRY_SECONDS));
});

Deno.test("a user that was read may be sent back", none, async () => {
  const { deps, store } = fakeDeps();
  const headers = { cookie: await store.signIn("ann", "admin") };
  await store.signIn("bob", "viewer");
  const [, bob] = (await (await send(deps, "GET /api/v1/users", { headers })).json()).items;
  assert.deepEqual(bob.spec, { name: "bob", role: "viewer", disabled: false, otp: true });
  const path = `/api/v1/users/${bob.id}`;
  const put = async (body: unknown) =>
    await outcomeOf(await send(deps, `PUT ${path}`, { headers, body }));
  assert.equal(await put(bob.spec), "200");
  assert.equal(await put({ ...bob.spec, otp: false }), "422 invalid");
  assert.equal(await outcomeOf(await send(deps, `POST ${path}/otp/disable`, { headers })), "204");
  assert.equal(await put({ ...bob.spec, otp: false }), "200");
});

Deno.test("the documentation page is for this machine, where it is asked for", none, async () => {
  const { deps } = fakeDeps();
  const page = await send(deps, "GET /api/docs");
  assert.match(page.headers.get("content-type") ?? "", /^text\/html/);
  const [html, policy] = [await page.text(), page.headers.get("content-security-policy") ?? ""];
  for (const [tag, directive] of [["script", "script-src"], ["style", "style-src"]]) {
    const inside = new RegExp(`<${tag}>([^]*?)</${tag}>`).exec(html)?.[1] ?? "";
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(inside));
    const sha256 = btoa(String.fromCharCode(...new Uint8Array(digest)));
    assert.ok(policy.includes(`${directive} 'sha256-${sha256}'`), tag);
  }
  assert.ok(!/\b(src|href)=|https?:|innerHTML|onclick/.test(html));
  assert.equal((await send(deps, "GET /api/docs", { from: "192.0.2.1" })).status, 403);
  const without = fakeDeps({ docs: false }).deps;
  assert.equal((await send(without, "GET /api/docs")).status, 404);
});

Deno.test("the status says what the API itself knows", none, async () => {
  const { deps } = fakeDeps();
  const status = await (await send(deps, "GET /api/v1/status")).json();
  assert.deepEqual([status.node, status.api_docs, status.protection], [NODE, true, true]);
  assert.equal(status.paused_until, null);
  assert.equal(status.cluster.state, "leader");
  assert.equal(status.cluster.members[0].membership, "voter");
  assert.equal(status.cluster.writable, true);
});
