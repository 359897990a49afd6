import assert from "node:assert/strict";
import { LockedError } from "../auth/mod.ts";
import { type ErrorCode, SvcError } from "../errors.ts";
import { createApi } from "./app.ts";
import { errorResponse, ProblemsError } from "./errors.ts";
import { fakeDeps, LOOPBACK, RETRY_SECONDS } from "./fakes.ts";
import type { ApiDeps } from "./ports.ts";

const none = { permissions: "none" } as const;

async function send(deps: ApiDeps, line: string, json?: unknown, host = "localhost") {
  const [method, path] = line.split(" ");
  const body = json === undefined ? null : JSON.stringify(json);
  const headers: Record<string, string> = { host, "content-type": "application/json" };
  if (body !== null) headers["content-length"] = String(body.length);
  const request = new Request(`http://api.invalid${path}`, { method, headers, body });
  const response = await createApi(deps)(request, LOOPBACK);
  const text = await response.text();
  return { status: response.status, headers: response.headers, json: JSON.parse(text || "null") };
}

Deno.test("errorResponse() says when to come again, wherever that may help", none, () => {
  const rows: readonly (readonly [SvcError, string | undefined])[] = [
    [new LockedError(17), "17"],
    [new SvcError("too_many_requests", "x"), "300"],
    [new SvcError("unavailable", "x"), "5"],
    [new SvcError("conflict", "x"), undefined],
  ];
  for (const [error, want] of rows) {
    assert.equal(errorResponse(error, "/").headers["Retry-After"], want);
  }
});

Deno.test("a sign-in that is locked out is told when to come again", none, async () => {
  const { status, headers } = await send(fakeDeps().deps, "POST /api/v1/auth/login", {
    name: "locked",
    password: "password",
  });
  assert.equal(status, 429);
  assert.equal(headers.get("retry-after"), String(RETRY_SECONDS));
});

Deno.test("errorResponse() has the details of what is invalid, and of nothing else", none, () => {
  const problems = [{ path: "a", message: "it is missing" }, { path: "", message: "x" }] as const;
  const detailsOf = (error: SvcError) => errorResponse(error, "/").body.error.details;
  assert.deepEqual(detailsOf(new ProblemsError("invalid", problems, "body")), problems);
  assert.equal(detailsOf(new ProblemsError("bad_request", problems, "query")), undefined);
  assert.deepEqual(detailsOf(new SvcError("invalid", "lists[0].list: it is bad")), [
    { path: "lists[0].list", message: "it is bad" },
  ]);
  assert.deepEqual(detailsOf(new SvcError("invalid", "nothing fits")), [
    { path: "", message: "nothing fits" },
  ]);
  for (const code of ["conflict", "not_found", "forbidden"] satisfies ErrorCode[]) {
    assert.equal(detailsOf(new SvcError(code, "a: b")), undefined);
  }
});

Deno.test("createApi() answers with all that is wrong", none, async () => {
  const { deps } = fakeDeps();
  const { status, json } = await send(deps, "POST /api/v1/users", { role: "root", x: 1 });
  assert.equal(status, 422);
  assert.deepEqual(json.error, {
    code: "invalid",
    message: "name: it is missing (and 3 more)",
    details: [
      { path: "name", message: "it is missing" },
      { path: "role", message: "it is none of admin, viewer" },
      { path: "password", message: "it is missing" },
      { path: "x", message: "there is no such field" },
    ],
  });
});

/** What nobody should be able to do harm with. */
const HOSTILE = [
  "\u0000",
  "\u001b[31m",
  "a\u202eb",
  "\u200b",
  "\ud800",
  "<script>",
  "x".repeat(9_999),
];

const FIELDS: readonly (readonly [string, Readonly<Record<string, unknown>>, readonly string[]])[] =
  [
    ["lists", { name: "a", url: "https://lists.example/" }, [
      "name",
      "url",
      "comment",
      "managed_by",
    ]],
    ["lists", { name: "a", path: "a.txt" }, ["path"]],
    ["rules", { rule: "||a.example^" }, ["rule", "comment", "managed_by"]],
    ["records", { name: "a.example", type: "A", value: "192.0.2.1" }, ["name", "type", "value"]],
    ["groups", { name: "a" }, ["name"]],
    ["clients", { name: "a", ids: ["tv"] }, ["name", "group"]],
    ["schedules", { name: "a", time_zone: "UTC", windows: [] }, ["name", "time_zone"]],
    ["users", { name: "a", role: "admin", password: "long enough" }, ["role"]],
  ];

Deno.test("hostile text in a field is refused, or kept as it is", none, async (t) => {
  for (const [collection, spec, fields] of FIELDS) {
    for (const field of fields) {
      await t.step(`${collection} ${field}`, async () => {
        for (const text of HOSTILE) {
          const { deps } = fakeDeps();
          const sent = { ...spec, [field]: text };
          const { status, json } = await send(deps, `POST /api/v1/${collection}`, sent);
          if (status === 201) {
            assert.equal(json.spec[field], text);
            continue;
          }
          assert.equal(status, 422);
          const { message, details } = json.error;
          assert.ok(details.length > 0 && message.length < 300, message);
          assert.doesNotMatch(message, /[\p{Cc}\p{Cf}\p{Cs}]/u);
        }
      });
    }
  }
  await t.step("an ID that nobody has", async () => {
    const { deps } = fakeDeps();
    const id = encodeURIComponent("\u202e\u0007" + "x".repeat(4_000));
    for (const collection of ["rules", "users", "leak-tests"]) {
      const { status, json } = await send(deps, `GET /api/v1/${collection}/${id}`);
      assert.equal(status, 404);
      assert.ok(json.error.message.length < 200);
      assert.doesNotMatch(json.error.message, /[\p{Cc}\p{Cf}]/u);
    }
  });
});

Deno.test(
  "a reset link leads where the configuration says, whatever the request's host",
  none,
  async () => {
    const hosts = ["localhost:8053", "127.0.0.1", "evil.localhost"];
    for (const [publicUrl, want] of [[null, ""], ["https://dns.example", "https://dns.example"]]) {
      for (const host of hosts) {
        const { deps } = fakeDeps({ publicUrl });
        // Made before any user is there, so that nobody has to sign in.
        deps.accounts.issueReset = () => Promise.resolve({ token: "token", expiresAt: "2026" });
        const path = "POST /api/v1/users/us_0000000000000001/reset";
        const { json } = await send(deps, path, undefined, host);
        assert.equal(json.url, `${want}/reset?token=token`);
      }
    }
  },
);

Deno.test("a flush of the cache is in the audit log", none, async () => {
  const { deps, node } = fakeDeps();
  assert.equal((await send(deps, "POST /api/v1/cache/flush")).status, 204);
  assert.equal(node.flushes, 1);
  const { json } = await send(deps, "GET /api/v1/audit?limit=1");
  const [{ action, resource, actor }] = json.items;
  assert.deepEqual([action, resource], ["flush", { type: "cache", id: null }]);
  assert.equal(actor.kind, "unauthenticated");
});

Deno.test(
  "GET /audit hands on what is asked for, and refuses what is no such thing",
  none,
  async () => {
    const { deps } = fakeDeps();
    const asked: unknown[] = [];
    const audit: ApiDeps["local"]["audit"] = (query) => {
      asked.push(query);
      return Promise.resolve({ entries: [], next: "00000000000000ff" });
    };
    const over = { ...deps, local: { ...deps.local, audit } };
    const query = "limit=7&next=00000000000000aa&since=2026-01-02T00:00:00Z" +
      "&until=2026-01-03T00:00:00%2B01:00&type=rule&actor=ann";
    const { json } = await send(over, `GET /api/v1/audit?${query}`);
    assert.deepEqual(json, { items: [], next: "00000000000000ff" });
    assert.deepEqual(asked, [{
      limit: 7,
      next: "00000000000000aa",
      since: "2026-01-02T00:00:00Z",
      until: "2026-01-03T00:00:00+01:00",
      type: "rule",
      actor: "ann",
    }]);
    const bad = [
      "next=1",
      "next=audit",
      "since=now",
      "until=1",
      "type=",
      "actor=",
      "limit=0",
      "who=a",
    ];
    for (const parameter of bad) {
      assert.equal((await send(over, `GET /api/v1/audit?${parameter}`)).status, 400, parameter);
    }
  },
);
