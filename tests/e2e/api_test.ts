/**
 * The API as a client meets it: real store, accounts, policy and HTTP in this process; only the dns
 * isolates are stood for.
 */
import assert from "node:assert/strict";
import { newToken, otpCode, tokenSha256 } from "../../src/auth/mod.ts";
import { Policy } from "../../src/node/policy.ts";
import { type RunningApi, serveApi } from "../../src/node/serve_api.ts";
import { type Config, defaultConfig } from "../../src/config/mod.ts";
import { SvcError } from "../../src/errors.ts";
import { compileRules } from "../../src/isolate/mod.ts";
import { openNodeStore } from "../../src/store/mod.ts";

const NODE = "node-1";
const SEED = 7;
/** Argon2's add-on reads its own settings from the environment, and is a library. */
const permissions = { permissions: { net: true, read: true, write: true, ffi: true, env: true } };
const PASSWORD = "correct horse battery";

interface Answered {
  readonly status: number;
  readonly headers: Headers;
  // deno-lint-ignore no-explicit-any -- answers of every shape
  readonly json: any;
  readonly text: string;
}

/** A node of its own: its store in a directory, its API on a free port of loopback. */
class Node implements AsyncDisposable {
  /** Sent with every request, until it is changed. */
  headers: Record<string, string> = {};
  /** Everything that was answered, to look for secrets in. */
  readonly answered: string[] = [];
  published = 0;

  private constructor(
    readonly directory: string,
    readonly store: Awaited<ReturnType<typeof openNodeStore>>,
  ) {}
  #api!: RunningApi;

  static async start(directory: string, token: string | null = null): Promise<Node> {
    const clock = { nowMs: () => Date.now() };
    const store = await openNodeStore({ lists: [], rules: [] }, {
      directory,
      clock,
      program: "0.7.0",
      node: NODE,
      onFailure: "closed",
    });
    const node = new Node(directory, store);
    const policy = new Policy({
      seed: SEED,
      state: store.replicator.state,
      base: { rules: null, sources: [], badfilters: [] },
      compile: compileRules,
      publish: () => {
        node.published++;
        return Promise.resolve();
      },
    });
    let inForce = Promise.resolve();
    store.replicator.subscribe(({ state }) => void (inForce = policy.update(state)));
    const defaults = defaultConfig(directory);
    const config: Config = {
      ...defaults,
      api: {
        ...defaults.api,
        listen: [{ ip: new Uint8Array([127, 0, 0, 1]), port: 0 }],
        tokenSha256: token === null ? null : tokenSha256(token),
      },
    };
    node.#api = await serveApi({
      config,
      node: NODE,
      cluster: null,
      clock: { nowMs: Date.now },
      sockets: null,
      startedAtMs: () => 0,
      leakTests: [],
      sandbox: { user: null, capabilities: [], landlock: false, seccomp: false },
      store,
      problems: () =>
        store.problems.map((message) => ({ code: "store", message, resource: null, sinceMs: 0 })),
      policy,
      devices: { hostnameOf: () => null, macOf: () => null, locate: (state) => state },
      dns: {
        ask: () => Promise.reject(new Error("nobody is asked")),
        counters: [],
        crashes: 0,
        flushCaches: async () => {},
        lookup: () => Promise.reject(new Error("nobody is asked")),
        listeners: [],
        onLeakLookup: () => {},
        reports: [],
        running: { now: 1, wanted: 1 },
      },
      certificate: null,
      acme: null,
      ownAddresses: { of: () => [] },
      upstreams: {
        asked: [{
          transport: "udp",
          address: "192.0.2.1:53",
          endpoint: { ip: Uint8Array.of(192, 0, 2, 1), port: 53 },
          timeoutMs: 2_000,
          domains: [],
        }],
        lostDomains: [],
      },
      logExports: { figures: [] },
      lists: {
        status: () => ({
          state: "pending",
          message: null,
          rules: 0,
          unsupported: 0,
          refreshed_at: null,
          downloading: null,
        }),
        refresh: () => ({ started: [], loading: [], done: Promise.resolve() }),
        recommended: () => ({ items: [], presets: [] }),
        sizes: () => Promise.resolve({ items: [] }),
        directory: () => Promise.resolve({ fetched_at: null, items: [] }),
        directoryList: () => Promise.reject(new SvcError("not_found", "there is none")),
        services: () => ({ items: [], status: null }),
      },
      get: () => Promise.reject(new Error("no release service is asked")),
      querylog: null,
      builtAtMs: () => null,
      buildMs: () => null,
      exportFailures: () => 0,
      uncaughtErrors: () => 0,
      apiOccupancy: () => null,
      eventReadersDropped: () => 0,
      webhooks: {
        clientsSeen: null,
        webhooks: {
          ...{
            deliveries: () => [],
            tell: () => {},
            test: () => Promise.reject(new Error("none")),
          },
          figures: { delivered: 0, failed: 0, dropped: 0, waiting: 0 },
        },
      },
      inForce: () => inForce,
    });
    return node;
  }

  get base(): string {
    return `http://127.0.0.1:${this.#api.listening[0].port}`;
  }

  /** Sends `GET /path` or another line below `/api/v1`. */
  async send(
    line: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answered> {
    const [method, path] = line.split(" ");
    const response = await fetch(`${this.base}/api/v1${path}`, {
      method,
      headers: {
        ...this.headers,
        ...(body !== undefined && { "content-type": "application/json" }),
        ...headers,
      },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await response.text();
    this.answered.push(text);
    const json = text.startsWith("{") ? JSON.parse(text) : null;
    return { status: response.status, headers: response.headers, json, text };
  }

  /** Signs in; from here on requests carry the session. */
  async signIn(
    name: string,
    extra: Record<string, string> = {},
    path = "login",
  ): Promise<Answered> {
    const body = { name, password: PASSWORD, ...extra };
    const answered = await this.send(`POST /auth/${path}`, body, { cookie: "" });
    const cookie = answered.headers.get("set-cookie")?.split(";")[0];
    if (cookie !== undefined) this.headers = { cookie };
    return answered;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#api.stop(0);
    await this.store.close();
  }
}

async function inDirectory(work: (directory: string) => Promise<void>): Promise<void> {
  const directory = await Deno.makeTempDir({ prefix: "svc-api-" });
  try {
    await work(directory);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

Deno.test("what the API answers as done is there after a restart", permissions, async () => {
  await inDirectory(async (directory) => {
    let rule, revision;
    {
      await using node = await Node.start(directory);
      const made = await node.send("POST /rules", { rule: "||ads.example^" });
      assert.equal(made.status, 201, made.text);
      const path = `/rules/${made.json.id}`;
      const changed = await node.send(`PUT ${path}`, { ...made.json.spec, comment: "mine" });
      assert.deepEqual([changed.status, changed.headers.get("etag")], [200, '"2"']);
      assert.equal((await node.send("PUT /settings", { block_response: "refused" })).status, 200);
      [rule, revision] = [changed.json, (await node.send("GET /settings")).headers.get("etag")];
    }
    await using node = await Node.start(directory);
    assert.deepEqual((await node.send(`GET /rules/${rule.id}`)).json, rule);
    const settings = await node.send("GET /settings");
    assert.equal(settings.json.block_response, "refused");
    assert.equal(settings.headers.get("etag"), revision);
    const { items } = (await node.send("GET /audit")).json;
    assert.deepEqual(items.slice(0, 3).map((entry: { action: string }) => entry.action), [
      "update",
      "update",
      "create",
    ]);
    assert.deepEqual([items[1].before.comment, items[1].after.comment], ["", "mine"]);
    assert.equal(items[0].node, NODE);
    assert.deepEqual(items[0].actor, { kind: "unauthenticated", name: null, address: "127.0.0.1" });
  });
});

Deno.test("a change holds for the next query once it is answered", permissions, async () => {
  await inDirectory(async (directory) => {
    await using node = await Node.start(directory);
    const outcome = async (name: string) => {
      const { json } = await node.send(`GET /explain?name=${name}`);
      return `${json.outcome} ${json.rule}`;
    };
    assert.equal(await outcome("ads.example"), "forwarded null");
    const { json } = await node.send("POST /rules", { rule: "||ads.example^" });
    assert.equal(await outcome("www.ads.example"), "blocked ||ads.example^");
    const before = node.published;
    await node.send("PUT /pause", { seconds: 60 });
    assert.equal(node.published, before + 1);
    assert.equal(await outcome("ads.example"), "forwarded null");
    assert.equal((await node.send("GET /status")).json.paused_until !== null, true);
    await node.send("DELETE /pause");
    assert.equal(await outcome("ads.example"), "blocked ||ads.example^");
    await node.send(`DELETE /rules/${json.id}`);
    assert.equal(await outcome("ads.example"), "forwarded null");
    await node.send("POST /records", { name: "nas.example", type: "A", value: "192.0.2.5" });
    assert.equal(await outcome("nas.example"), "local null");
    assert.equal((await node.send("GET /explain?name=..")).status, 400);
    assert.equal((await node.send("GET /explain?name=a&type=nonsense")).status, 400);
    const metrics = await fetch(`${node.base}/metrics`);
    assert.match(await metrics.text(), /^svc_degraded 0$/m);
  });
});

Deno.test("accounts work from the first user to the last session", permissions, async (t) => {
  await inDirectory(async (directory) => {
    await using node = await Node.start(directory);
    const spec = { name: "ann", role: "admin", password: PASSWORD };
    const made = await node.send("POST /users", spec);
    assert.equal(made.status, 201, made.text);
    assert.deepEqual(made.json.spec, { name: "ann", role: "admin", disabled: false, otp: false });
    const secrets = [PASSWORD, "$argon2id$"];

    await t.step("the first user closes the API", async () => {
      assert.equal((await node.send("GET /rules")).status, 401);
      assert.equal((await node.send("GET /health")).status, 200);
    });
    await t.step("sign-in opens it", async () => {
      assert.equal((await node.signIn("ann", { password: "wrong password" })).status, 401);
      assert.equal((await node.signIn("ann")).status, 200);
      secrets.push(node.headers.cookie.split("=")[1]);
      const { json } = await node.send("GET /auth/me");
      assert.deepEqual(json, { kind: "user", name: "ann", role: "admin", otp: false });
    });
    let recoveryCode = "";
    await t.step("a second factor is needed once it is confirmed", async () => {
      const { secret, uri } = (await node.send("POST /auth/otp", { password: PASSWORD })).json;
      assert.match(uri, /^otpauth:\/\/totp\//);
      node.answered.pop(); // The one answer that shows the secret.
      secrets.push(secret);
      const code = otpCode(secret, Date.now());
      const confirmed = await node.send("POST /auth/otp/confirm", { code });
      assert.equal(confirmed.status, 200, confirmed.text);
      assert.equal(confirmed.json.recovery_codes.length, 10);
      node.answered.pop(); // The one answer that shows the codes.
      secrets.push(...confirmed.json.recovery_codes);
      recoveryCode = confirmed.json.recovery_codes[0];
      assert.equal((await node.send("GET /auth/me")).status, 401, "the sessions have ended");
      const without = await node.signIn("ann");
      assert.deepEqual([without.status, without.json.error.code], [401, "otp_required"]);
    });
    await t.step("a recovery code signs in, once", async () => {
      const code = { recovery_code: recoveryCode };
      assert.equal((await node.signIn("ann", code, "recovery")).status, 200);
      const session = node.headers;
      assert.equal((await node.signIn("ann", code, "recovery")).status, 401);
      node.headers = session;
      assert.equal((await node.send("GET /auth/me")).json.otp, true);
    });
    await t.step("a viewer reads, and changes their own password", async () => {
      const bob = await node.send("POST /users", { ...spec, name: "bob", role: "viewer" });
      assert.equal(bob.status, 201, bob.text);
      const admin = node.headers;
      assert.equal((await node.signIn("bob")).status, 200);
      assert.equal((await node.send("GET /rules")).status, 200);
      assert.equal((await node.send("POST /rules", { rule: "||a.example^" })).status, 403);
      const change = { current: PASSWORD, password: `${PASSWORD}!` };
      assert.equal((await node.send("PUT /auth/password", change)).status, 204);
      assert.equal((await node.send("GET /rules")).status, 401);
      node.headers = admin;
      const link = await node.send(`POST /users/${bob.json.id}/reset`);
      assert.equal(link.status, 200, link.text);
      node.answered.pop(); // The one answer that shows the token.
      const { token, url } = link.json;
      assert.equal(url, `/reset?token=${token}`);
      secrets.push(token);
      const reset = { token, password: PASSWORD };
      assert.equal((await node.send("POST /auth/reset", reset)).status, 204);
      assert.equal((await node.send("POST /auth/reset", reset)).status, 401);
    });
    await t.step("the audit log names who did what, and nothing secret", async () => {
      const { items } = (await node.send("GET /audit?limit=1000")).json;
      const made = items.find((
        { resource, action }: { resource: { type: string }; action: string },
      ) => resource.type === "user" && action === "create");
      assert.equal(made.actor.name, "ann");
      const { json: signIns } = await node.send("GET /audit?actor=ann&type=user");
      const actions = new Set(signIns.items.map(({ action }: { action: string }) => action));
      for (const action of ["sign_in", "recovery", "create", "reset"]) {
        assert.ok(actions.has(action), action);
      }
      const { json: failed } = await node.send("GET /audit?actor=unauthenticated&limit=1");
      assert.equal(failed.items[0].action, "sign_in_failed");
      for (const path of ["users", "auth/me", "status", "audit", "openapi.json"]) {
        await node.send(`GET /${path}`);
      }
      for (const secret of secrets) {
        const leaking = node.answered.find((text) => text.includes(secret));
        assert.equal(leaking, undefined, `an answer holds ${secret}`);
      }
    });
    await t.step("who guesses has to wait", async () => {
      let answered = await node.signIn("bob", { password: "wrong password" });
      for (let i = 0; i < 10 && answered.status === 401; i++) {
        answered = await node.signIn("bob", { password: "wrong password" });
      }
      assert.equal(answered.status, 429, answered.text);
      assert.match(answered.headers.get("retry-after") ?? "", /^(300|29\d)$/);
    });
  });
});

Deno.test("a token is needed from everywhere once it is configured", permissions, async () => {
  await inDirectory(async (directory) => {
    const token = newToken();
    await using node = await Node.start(directory, token);
    assert.equal((await node.send("GET /rules")).status, 401);
    assert.equal(
      await fetch(`${node.base}/metrics`).then((r) => r.text().then(() => r.status)),
      401,
    );
    node.headers = { authorization: `Bearer ${token}` };
    assert.equal((await node.send("GET /rules")).status, 200);
    assert.equal((await node.send("POST /rules", { rule: "||a.example^" })).status, 201);
    const { items } = (await node.send("GET /audit?limit=1")).json;
    assert.equal(items[0].actor.kind, "token");
    assert.ok(
      !node.answered.some((text) => text.includes(token) || text.includes(tokenSha256(token))),
    );
  });
});
