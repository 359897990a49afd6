// Goal: each endpoint answers what its schema says and shows no secret. Method: every row of the
// table is called over HTTP with a body that it takes; the answer, parsed by its schema, is itself.
import assert from "node:assert/strict";
import type { z } from "zod";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { createApi } from "./app.ts";
import type { Answer, Endpoint } from "./endpoint.ts";
import { ENDPOINTS } from "./endpoints.ts";
import { fakeDeps, type Fakes, SECRET } from "./fakes.ts";
import { Backup } from "./schemas/backup.ts";
import { ErrorAnswer, exampleOf } from "./schemas/common.ts";
import { ApiServer } from "./server.ts";

const local = { permissions: { net: ["127.0.0.1"] } };

/** Every `METHOD /path` of the specification and the decisions beside it, `directory/{id}`, and the log's streams. */
const SPECIFIED = `
POST GET /api/v1/lists | GET PUT DELETE /api/v1/lists/{id}
POST GET /api/v1/rules | GET PUT DELETE /api/v1/rules/{id}
POST /api/v1/rules/batch
POST GET /api/v1/records | GET PUT DELETE /api/v1/records/{id}
POST GET /api/v1/groups | GET PUT DELETE /api/v1/groups/{id}
POST GET /api/v1/clients | GET PUT DELETE /api/v1/clients/{id}
POST GET /api/v1/schedules | GET PUT DELETE /api/v1/schedules/{id}
POST GET /api/v1/users | GET PUT DELETE /api/v1/users/{id}
POST GET /api/v1/webhooks | GET PUT DELETE /api/v1/webhooks/{id}
POST /api/v1/webhooks/{id}/test | GET /api/v1/webhooks/{id}/deliveries
POST GET /api/v1/tokens | GET PUT DELETE /api/v1/tokens/{id}
GET /api/v1/health | GET /api/v1/status | GET /api/v1/openapi.json | POST /api/v1/auth/login
POST /api/v1/users/{id}/reset | POST /api/v1/users/{id}/otp/disable
POST /api/v1/lists/refresh | GET /api/v1/lists/recommended | GET /api/v1/lists/recommended/sizes
GET /api/v1/lists/directory | GET /api/v1/lists/directory/{id} | GET /api/v1/services
GET PUT /api/v1/settings | GET /api/v1/backup | POST /api/v1/restore
PUT DELETE /api/v1/pause | POST /api/v1/cache/flush | POST /api/v1/update/check
POST GET /api/v1/leak-tests | GET /api/v1/leak-tests/{id}
GET /api/v1/querylog | GET /api/v1/querylog/export | GET /api/v1/querylog/stream
GET /api/v1/stats | GET /api/v1/stats/export | GET /api/v1/audit | GET /api/v1/explain
POST /api/v1/lists/preset
GET DELETE /api/v1/auth/sessions | DELETE /api/v1/auth/sessions/{id}
GET /api/v1/events | POST /api/v1/profiles | GET /api/v1/profiles/{id}
POST /api/v1/migrate | GET /api/v1/clients/seen | GET /api/v1/clients/series | POST /api/v1/explain | GET /api/v1/auth/state
GET /api/v1/cluster | POST /api/v1/cluster/promote | POST /api/v1/cluster/demote
DELETE /api/v1/cluster/members/{node} | GET /metrics
POST /api/v1/auth/recovery | POST /api/v1/auth/logout | GET /api/v1/auth/me
PUT /api/v1/auth/password | POST /api/v1/auth/otp | POST /api/v1/auth/otp/confirm
POST /api/v1/auth/otp/remove | POST /api/v1/auth/reset`;

Deno.test("ENDPOINTS are those of the specification", { permissions: "none" }, () => {
  const specified = SPECIFIED.trim().split(/ \| |\n/).flatMap((row) => {
    const words = row.split(" ");
    return words.slice(0, -1).map((method) => `${method} ${words.at(-1)}`);
  });
  const built = ENDPOINTS.map(({ method, path }) => `${method} ${path}`);
  assert.deepEqual(built.toSorted(), specified.toSorted());
});

/** A body that each endpoint takes. */
const BODIES: Readonly<Record<string, unknown>> = {
  "/api/v1/lists": { name: "mine", url: "https://lists.example/a.txt", managed_by: "terraform" },
  "/api/v1/rules": { rule: "||ads.example^" },
  "/api/v1/rules/batch": { add: [{ rule: "||a.example^" }, { rule: "||b.example^" }] },
  "/api/v1/records": { name: "*.lan.example", type: "AAAA", value: "2001:DB8:0::1" },
  "/api/v1/groups": { name: "children", blocked_services: [{ service: "chat" }] },
  "/api/v1/clients": { name: "tv", addresses: ["192.0.2.0/24"], ids: ["tv"] },
  "/api/v1/schedules": {
    name: "night",
    time_zone: "Europe/Berlin",
    windows: [{ days: ["sat"], start: "22:00", end: "06:00" }],
  },
  "/api/v1/users": { name: "eve", role: "viewer", password: "long enough" },
  "/api/v1/webhooks": { name: "home", url: "https://hook.example/", events: ["list_failed"] },
  "/api/v1/tokens": { name: "phone", role: "viewer" },
  "/api/v1/settings": { block_response: "nxdomain" },
  "/api/v1/restore": exampleOf(Backup),
  "/api/v1/migrate": { product: "adguard", url: "http://192.0.2.1" },
  "/api/v1/explain": { name: "ads.example", draft: ["@@||ads.example^"], without: ["li_1"] },
  "/api/v1/profiles": { client_id: "tablet", protocol: "dot" },
  "/api/v1/lists/preset": { preset: "balanced" },
  "/api/v1/pause": { seconds: 60 },
  "/api/v1/auth/login": { name: "ann", password: "password", code: "000000" },
  "/api/v1/auth/recovery": { name: "ann", password: "password", recovery_code: "code-1" },
  "/api/v1/auth/password": { current: "password", password: "long enough" },
  "/api/v1/auth/otp": { password: "password" },
  "/api/v1/auth/otp/confirm": { code: "000000" },
  "/api/v1/auth/otp/remove": { password: "password", code: "000000" },
  "/api/v1/auth/reset": { token: "token", password: "long enough" },
  "/api/v1/cluster/promote": { force: true },
  "/api/v1/cluster/demote": { force: true },
};

/** Endpoints of which the fakes have only a refusal. */
const REFUSED: Readonly<Record<string, number>> = {
  "DELETE /api/v1/cluster/members/{node}": 404,
};

function bodyFor({ path }: Endpoint): unknown {
  return BODIES[path] ?? BODIES[path.replace(/\/\{id\}$/, "")];
}

/** Says that an answer is what its schema says, no field more, and holds nothing secret. */
function checkAnswer({ method, path, content, hasEtag }: Endpoint, answer: Answer): void {
  const where = `${method} ${path}`;
  assert.equal(answer.revision !== undefined, hasEtag, `${where}: ETag`);
  if (content.kind === "none") return assert.equal(answer.body, undefined, where);
  if (content.kind === "text") return assert.equal(typeof answer.body, "string", where);
  if (content.kind === "stream") {
    return assert.ok(content.types.includes(answer.stream?.type ?? ""), where);
  }
  const sent = JSON.parse(JSON.stringify(answer.body));
  const parsed: unknown = (content.schema as z.ZodType).parse(sent);
  assert.deepEqual(JSON.parse(JSON.stringify(parsed)), sent, where);
}

/** Serves an API of fakes while `work` runs; `seen` collects every text that is answered. */
async function served(
  work: (base: string, fakes: Fakes, cookie: string) => Promise<void>,
): Promise<void> {
  const fakes = fakeDeps();
  const cookie = await fakes.store.signIn("ann", "admin");
  const server = new ApiServer({
    listen: [{ ip: new Uint8Array([127, 0, 0, 1]), port: 0 }],
    tls: null,
    hasToken: false,
    handler: createApi(fakes.deps, { onAnswer: checkAnswer }),
  });
  const [{ port }] = await server.start();
  try {
    await work(`http://127.0.0.1:${port}`, fakes, cookie);
  } finally {
    await server.stop(0);
  }
}

/** In an order in which things are there before they are asked for, changed and removed. */
function inOrder(): Endpoint[] {
  const order = ["POST", "GET", "PUT", "DELETE"];
  // What takes everything away comes late, and the session that asks is given up last.
  const last = ["/api/v1/migrate", "/api/v1/restore", "/api/v1/auth/logout"];
  return ENDPOINTS.toSorted((a, b) =>
    last.indexOf(a.path) - last.indexOf(b.path) || order.indexOf(a.method) - order.indexOf(b.method)
  );
}

Deno.test("every endpoint answers over HTTP as its schema says", local, async (t) => {
  await served(async (base, { store }, cookie) => {
    for (const endpoint of inOrder()) {
      const { method, path, body, status, content } = endpoint;
      await t.step(`${method} ${path}`, async () => {
        const { collections, users, credentials } = store.state;
        const ids: Readonly<Record<string, string | undefined>> = {
          ...Object.fromEntries(
            Object.entries<ReadonlyMap<string, unknown>>({ ...collections, ...credentials }).map((
              [name, map],
            ) => [name, [...map.keys()].at(-1)]),
          ),
          users: [...users.keys()].at(-1),
          "leak-tests": "lt_1",
        };
        const [, , , collection] = path.split("/");
        const query = `${method} ${path}` === "GET /api/v1/explain" ? "?name=ads.example" : "";
        const target = path.replace(/\{\w+\}/, ids[collection] ?? "x") + query;
        const response = await fetch(base + target, {
          method,
          headers: { cookie, ...(body !== null && { "content-type": "application/json" }) },
          body: body === null ? null : JSON.stringify(bodyFor(endpoint)),
        });
        const text = await response.text();
        assert.equal(response.status, REFUSED[`${method} ${path}`] ?? status, text);
        if (response.ok) {
          if (content.kind === "none") assert.equal(text, "");
          assert.equal(response.headers.has("etag"), endpoint.hasEtag);
          assert.equal(response.headers.has("location"), status === 201);
          assert.equal(response.headers.has("set-cookie"), endpoint.hasCookie);
        } else ErrorAnswer.parse(JSON.parse(text));
        const secrets = [SECRET, SECRET.replace(/[^a-z]/g, "").toUpperCase(), "long enough"];
        for (const secret of secrets) assert.ok(!text.includes(secret), `${target}: ${secret}`);
      });
    }
  });
});

/** JSON of any shape, with keys and values that code likes to trip over. */
function randomJson(prng: Prng, keys: readonly string[], depth = 0): unknown {
  const leaves = [
    null,
    true,
    0,
    -1,
    1e308,
    1.5,
    2 ** 53,
    "",
    "\u0000",
    "\ud800",
    "x".repeat(3_000),
    "::",
    "gr_0000000000000000",
    "li_00000000000000aa",
    "2026-01-01T00:00:00Z",
    "||a^$important,badfilter",
    "*.",
    "||[::1]^",
  ];
  if (depth > 3 || prng.chance(0.5)) return prng.pick(leaves);
  if (prng.chance(0.3)) {
    return Array.from({ length: prng.int(4) }, () => randomJson(prng, keys, depth + 1));
  }
  const entries = Array.from({ length: prng.int(5) }, () => [
    prng.chance(0.9) ? prng.pick(keys) : prng.pick(["__proto__", "constructor", "toString", ""]),
    randomJson(prng, keys, depth + 1),
  ]);
  // As a parser makes it: `__proto__` is a key like any other.
  return JSON.parse(`{${entries.map(([k, v]) => `${JSON.stringify(k)}:${JSON.stringify(v)}`)}}`);
}

/** A taken body with some of its values replaced: what gets past the first checks. */
function mutated(prng: Prng, body: unknown, keys: readonly string[]): unknown {
  if (prng.chance(0.25)) return randomJson(prng, keys);
  if (typeof body !== "object" || body === null) return body;
  if (Array.isArray(body)) return body.map((item) => mutated(prng, item, keys));
  return Object.fromEntries(
    Object.entries(body).map(([key, value]) => [key, mutated(prng, value, keys)]),
  );
}

Deno.test("no body and no path makes an endpoint fail", { permissions: "none" }, async () => {
  const prng = new Prng(seedFromEnv());
  const { deps, store } = fakeDeps();
  const cookie = await store.signIn("ann", "admin");
  const handler = createApi(deps, { onAnswer: checkAnswer });
  const keys = [...new Set(Object.values(BODIES).flatMap((body) => Object.keys(body as object)))];
  const ids = ["%00", "%2e%2e", "%ff", "__proto__", "constructor", "gr_0000000000000000", "x"];
  const queries = ["", "?name=%ff&type=A", "?limit=1e3", "?since=", "?name=a&client=::&type=%00"];
  const statuses = new Set<number>();
  for (let round = 0; round < 40; round++) {
    for (const endpoint of ENDPOINTS) {
      const { method, path, body } = endpoint;
      if (path.endsWith("/logout")) continue;
      const target = path.replace(/\{\w+\}/, prng.pick(ids)) + prng.pick(queries);
      const json = body === null ? null : mutated(prng, bodyFor(endpoint), keys);
      const text = json === null ? null : JSON.stringify(json);
      const headers: Record<string, string> = { host: "localhost", cookie };
      if (text !== null) headers["content-type"] = "application/json";
      if (prng.chance(0.2)) headers["if-match"] = prng.pick(["*", "1", '"2"', "W/1", "-1", "9e9"]);
      const request = new Request(`http://api.invalid${target}`, { method, headers, body: text });
      const response = await handler(request, "127.0.0.1");
      const answered = await response.text();
      statuses.add(response.status);
      assert.ok(response.status < 500, `${method} ${target} ${text}: ${answered}`);
      assert.ok(!answered.includes(SECRET), `${method} ${target} ${text}`);
    }
  }
  for (const status of [200, 201, 204, 400, 404, 422]) assert.ok(statuses.has(status), `${status}`);
});
