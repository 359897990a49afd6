/** Streams of the API with real accounts and a real store: each ends with the access of its reader. */
import assert from "node:assert/strict";
import { ApiServer, createApi, type LogWatcher, type QuerylogEntry } from "../../src/api/mod.ts";
import { fakeDeps, fakeEntry } from "../../src/api/fakes.ts";
import {
  type Auth,
  Lockout,
  newToken,
  otpCode,
  SESSION_LIFETIME_MS,
  SignInLog,
  tokenSha256,
  UserAccounts,
} from "../../src/auth/mod.ts";
import { openNodeStore } from "../../src/store/mod.ts";
import { inOwnDirectory, until } from "./harness.ts";

/** Argon2's add-on reads its own settings from the environment, and is a library. */
const permissions = { permissions: { net: true, read: true, write: true, ffi: true, env: true } };
const PASSWORD = "correct horse battery";

/** An API whose query log is the test's to tell. */
class Watched implements AsyncDisposable {
  readonly token = newToken();
  nowMs = Date.now();
  readonly watchers = new Set<LogWatcher>();
  /** Pages of exports that were asked for. */
  pages = 0;
  base = "";
  readonly #close: (() => Promise<void>)[] = [];

  static async start(directory: string): Promise<Watched> {
    const node = new Watched();
    const clock = { nowMs: () => node.nowMs };
    const { replicator, store, close } = await openNodeStore({ lists: [], rules: [] }, {
      directory,
      clock,
      program: "0.7.0",
      node: "node-1",
      onFailure: "closed",
    });
    const auth: Auth = {
      users: replicator,
      sessions: store,
      lockout: new Lockout(clock),
      signInLog: new SignInLog(store, clock),
      clock,
    };
    const { deps } = fakeDeps({
      replicator,
      local: store,
      auth,
      accounts: new UserAccounts(auth),
      access: { tokenSha256: tokenSha256(node.token), isSecure: false },
      clock,
    });
    const logs = {
      ...deps.logs,
      watch: (_: unknown, watcher: LogWatcher) => {
        node.watchers.add(watcher);
        return () => void node.watchers.delete(watcher);
      },
      // The page behind the first one is asked for ahead; later ones do not come.
      search: async () => {
        if (++node.pages > 2) await Promise.withResolvers<void>().promise;
        return { entries: [fakeEntry(1)] as QuerylogEntry[], next: "1" };
      },
    };
    const server = new ApiServer({
      listen: [{ ip: new Uint8Array([127, 0, 0, 1]), port: 0 }],
      tls: null,
      hasToken: true,
      handler: createApi({ ...deps, logs }),
    });
    const [{ port }] = await server.start();
    node.base = `http://127.0.0.1:${port}/api/v1`;
    node.#close.push(() => server.stop(0), close);
    return node;
  }

  /** As the token, unless a cookie says who else. */
  async send(line: string, body?: unknown, cookie?: string) {
    const [method, path] = line.split(" ");
    const response = await fetch(this.base + path, {
      method,
      headers: {
        ...(cookie === undefined ? { authorization: `Bearer ${this.token}` } : { cookie }),
        ...(body !== undefined && { "content-type": "application/json" }),
      },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await response.text();
    assert.ok(response.ok, `${line}: ${response.status} ${text}`);
    return { headers: response.headers, json: text === "" ? null : JSON.parse(text) };
  }

  /** Adds a user and signs them in. */
  async user(name: string): Promise<{ id: string; cookie: string }> {
    const spec = { name, role: "admin", password: PASSWORD };
    const { json: { id } } = await this.send("POST /users", spec);
    const { headers } = await this.send("POST /auth/login", { name, password: PASSWORD });
    return { id, cookie: /^[^;]+/.exec(headers.get("set-cookie") ?? "")?.[0] ?? "" };
  }

  async open(path: string, cookie: string): Promise<ReadableStreamDefaultReader<Uint8Array>> {
    const { status, body } = await fetch(`${this.base}/querylog/${path}`, { headers: { cookie } });
    assert.equal(status, 200);
    const reader = body!.getReader();
    assert.equal((await reader.read()).done, false);
    return reader;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const close of this.#close) await close();
  }
}

interface Who {
  readonly id: string;
  readonly cookie: string;
}

/** What ends a user's access; each is over with its answer. */
const CAUSES: Readonly<Record<string, (node: Watched, who: Who) => Promise<unknown>>> = {
  "sign-out": (node, { cookie }) => node.send("POST /auth/logout", undefined, cookie),
  "a new password": (node, { cookie }) =>
    node.send("PUT /auth/password", { current: PASSWORD, password: `${PASSWORD}!` }, cookie),
  "another role": (node, { id }) =>
    node.send(`PUT /users/${id}`, { name: "ann", role: "viewer", disabled: false }),
  "a second factor": async (node, { cookie }) => {
    const { json } = await node.send("POST /auth/otp", { password: PASSWORD }, cookie);
    const code = otpCode(json.secret, node.nowMs);
    await node.send("POST /auth/otp/confirm", { code }, cookie);
  },
  "disabling the user": (node, { id }) =>
    node.send(`PUT /users/${id}`, { name: "ann", role: "admin", disabled: true }),
  "removal of the user": (node, { id }) => node.send(`DELETE /users/${id}`),
};

Deno.test("a stream of the query log ends with its session", permissions, async (t) => {
  for (const [cause, end] of Object.entries(CAUSES)) {
    await t.step(cause, async () => {
      await inOwnDirectory(async (directory) => {
        await using node = await Watched.start(directory);
        const [ann, bob] = [await node.user("ann"), await node.user("bob")];
        const stream = await node.open("stream", ann.cookie);
        const others = await node.open("stream", bob.cookie);
        assert.equal(node.watchers.size, 2);
        await end(node, ann);
        assert.equal(node.watchers.size, 1, "it is over before the answer is read");
        assert.equal((await stream.read()).done, true);
        for (const watcher of node.watchers) watcher.tell([fakeEntry(1)], 0);
        assert.equal((await others.read()).done, false, "that of another goes on");
        await others.cancel();
      });
    });
  }
});

Deno.test("an export of the query log breaks off with its session", permissions, async () => {
  await inOwnDirectory(async (directory) => {
    await using node = await Watched.start(directory);
    const [ann] = [await node.user("ann"), await node.user("bob")];
    const file = await node.open("export", ann.cookie);
    await node.send(`DELETE /users/${ann.id}`);
    await assert.rejects(file.read(), "what is there must not look like the whole file");
  });
});

Deno.test("a stream ends when its session expires", permissions, async () => {
  await inOwnDirectory(async (directory) => {
    await using node = await Watched.start(directory);
    const stream = await node.open("stream", (await node.user("ann")).cookie);
    node.nowMs += SESSION_LIFETIME_MS - 1;
    await node.send("DELETE /pause"); // Every change looks at the streams.
    assert.equal(node.watchers.size, 1);
    node.nowMs += 1;
    await until("the end of it", () => node.watchers.size === 0);
    assert.equal((await stream.read()).done, true);
  });
});
