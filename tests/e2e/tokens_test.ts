// Goal: a named token lets in what its role says, until it ends or is revoked, and nobody learns it but
// who made it. Method: curl and the project's commands against one running service, over a restart, and
// what lies in its store and its log.
import assert from "node:assert/strict";
import { newToken, tokenSha256 } from "../../src/auth/mod.ts";
import {
  hasProgram,
  OwnDirectory,
  PERMISSIONS,
  runProgram,
  Service,
  svcCommand,
  until,
} from "./harness.ts";

const TOKEN = /^svc_[0-9a-f]{64}$/;

/** A service whose file has a token, in a directory that outlives it. */
class Site implements AsyncDisposable {
  readonly fileToken = newToken();
  service!: Service;
  origin = "";

  private constructor(readonly own: OwnDirectory) {}

  static async start(): Promise<Site> {
    const site = new Site(await OwnDirectory.make());
    await site.begin();
    return site;
  }

  async begin(): Promise<void> {
    this.service = await Service.start({
      directory: this.own.path,
      config: { api: { listen: ["127.0.0.1:0"], token_sha256: tokenSha256(this.fileToken) } },
    });
    const { listen } = await this.service.logged("serving the API");
    this.origin = `http://${(listen as string[])[0]}`;
  }

  /** The status and the body of a request with a token, by curl. */
  async curl(token: string | null, method: string, path: string, body?: unknown) {
    const data = body === undefined
      ? []
      : ["-H", "content-type: application/json", "-d", JSON.stringify(body)];
    const auth = token === null ? [] : ["-H", `Authorization: Bearer ${token}`];
    const { stdout, stderr } = await runProgram(
      "curl",
      ...["-sS", "-w", "\n%{http_code}", "-X", method, ...auth, ...data, this.origin + path],
    );
    assert.equal(stderr, "");
    const end = stdout.lastIndexOf("\n");
    const text = stdout.slice(0, end);
    const status = Number(stdout.slice(end + 1));
    // deno-lint-ignore no-explicit-any -- answers of every shape
    return { status, text, json: (text.startsWith("{") ? JSON.parse(text) : null) as any };
  }

  /** A command of the project against the service; `secret` is in a file, as people have it. */
  async svc(secret: string, command: string, ...args: string[]) {
    await Deno.writeTextFile(`${this.own.path}/token`, `${secret}\n`);
    const access = ["--api", this.origin, "--token-file", `${this.own.path}/token`];
    const [program, ...rest] = svcCommand([command, ...args, ...access]);
    return await runProgram(program, ...rest);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service[Symbol.asyncDispose]();
    await this.own[Symbol.asyncDispose]();
  }
}

Deno.test({
  name: "named tokens let in what their roles say, until they end or are revoked",
  ignore: !hasProgram("curl"),
  permissions: PERMISSIONS,
  fn: async (t) => {
    await using site = await Site.start();
    const { fileToken } = site;
    const made: Record<string, { readonly id: string; readonly token: string }> = {};
    const make = async (name: string, role: string, expires_at: string | null = null) => {
      const answer = await site.curl(fileToken, "POST", "/api/v1/tokens", {
        ...{ name, role, expires_at },
      });
      assert.equal(answer.status, 201, answer.text);
      assert.match(answer.json.token, TOKEN);
      return made[name] = answer.json;
    };
    const statusOf = async (token: string | null, method: string, path: string, body?: unknown) =>
      (await site.curl(token, method, path, body)).status;
    const rule = { rule: "||ads.example^" };

    await t.step("a viewer's reads, an admin's changes, and both are named", async () => {
      const [viewer, admin] = [await make("phone", "viewer"), await make("script", "admin")];
      const { json: me } = await site.curl(viewer.token, "GET", "/api/v1/auth/me");
      assert.deepEqual([me.kind, me.name, me.role], ["token", "phone", "viewer"]);
      assert.equal(await statusOf(viewer.token, "POST", "/api/v1/rules", rule), 403);
      assert.equal(await statusOf(admin.token, "POST", "/api/v1/rules", rule), 201);
      assert.equal(await statusOf(null, "GET", "/api/v1/status"), 401);
      const { json: audit } = await site.curl(fileToken, "GET", "/api/v1/audit?type=rule");
      const { kind, name, address } = audit.items[0].actor;
      assert.deepEqual([kind, name, address], ["token", "script", "127.0.0.1"]);
    });

    await t.step("metrics, the terminal UI and its kin take them", async () => {
      const { token } = made.phone;
      const metrics = await site.curl(token, "GET", "/metrics");
      assert.match(metrics.text, /^# HELP svc_/m);
      assert.equal(await statusOf(null, "GET", "/metrics"), 401);
      const { code, stdout } = await site.svc(token, "tui", "--once");
      assert.equal(code, 0, stdout);
      assert.match(stdout, /^state: ok$/m);
    });

    await t.step("the last use is told, and what it is sent as no more", async () => {
      const { json, text } = await site.curl(fileToken, "GET", "/api/v1/tokens");
      assert.doesNotMatch(text, /svc_[0-9a-f]|sha256/);
      // deno-lint-ignore no-explicit-any -- an answer of the API
      const [phone] = json.items.filter(({ spec }: any) => spec.name === "phone");
      assert.match(phone.last_used_at, /:00\.000Z$/);
    });

    await t.step("nobody makes one with more rights than their own", async () => {
      const path = "/api/v1/tokens";
      const body = { name: "more", role: "admin" };
      assert.equal(await statusOf(made.phone.token, "POST", path, body), 403);
      const soon = await make("soon", "admin", new Date(Date.now() + 3_600_000).toISOString());
      assert.equal(await statusOf(soon.token, "POST", path, body), 403, "it would outlive it");
      const same = { ...body, name: "Phone" };
      assert.equal(await statusOf(fileToken, "POST", path, same), 409, "a name that reads alike");
      const over = { ...body, expires_at: "2020-01-01T00:00:00Z" };
      assert.equal(await statusOf(fileToken, "POST", path, over), 422);
    });

    await t.step("one that has ended is told so, and to nobody else", async () => {
      const { id, token } = await make(
        "brief",
        "viewer",
        new Date(Date.now() + 2_000).toISOString(),
      );
      let answer = await site.curl(token, "GET", "/api/v1/status");
      await until("its end", async () => {
        answer = await site.curl(token, "GET", "/api/v1/status");
        return answer.status === 401;
      });
      assert.match(answer.json.error.message, /^this token ended at 20/);
      const other = await site.curl(newToken(), "GET", "/api/v1/status");
      assert.doesNotMatch(other.json.error.message, /ended/);
      const { spec } = (await site.curl(fileToken, "GET", `/api/v1/tokens/${id}`)).json;
      const longer = { ...spec, expires_at: null };
      assert.equal(await statusOf(fileToken, "PUT", `/api/v1/tokens/${id}`, longer), 200);
      assert.equal(await statusOf(token, "GET", "/api/v1/status"), 200, "it was given more time");
    });

    await t.step("a stream ends with the token that opened it", async () => {
      const { id, token } = await make("reader", "viewer");
      const stream = new Deno.Command("curl", {
        args: ["-sSN", "-H", `Authorization: Bearer ${token}`, `${site.origin}/api/v1/events`],
        stdin: "null",
        stdout: "piped",
        stderr: "null",
      }).spawn();
      const reader = stream.stdout.pipeThrough(new TextDecoderStream()).getReader();
      let seen = "";
      while (!seen.includes("event: status")) seen += (await reader.read()).value ?? "";
      assert.equal(await statusOf(fileToken, "DELETE", `/api/v1/tokens/${id}`), 204);
      while (!(await reader.read()).done);
      assert.equal((await stream.status).code, 0);
      assert.equal(await statusOf(token, "GET", "/api/v1/status"), 401);
    });

    await t.step("svc token adds, lists and removes them", async () => {
      const added = await site.svc(fileToken, "token", "add", "car", "--expires", "90d");
      assert.equal(added.code, 0, added.stderr);
      const token = added.stdout.trim();
      assert.match(token, TOKEN);
      assert.match(added.stderr, /^token car was added \(viewer until 20/);
      assert.equal(await statusOf(token, "GET", "/api/v1/status"), 200);
      const { stdout } = await site.svc(fileToken, "token", "list");
      assert.match(stdout, /^car +viewer +until 20\S+Z +used 20\S+Z +to_[0-9a-f]{16}$/m);
      assert.equal((await site.svc(fileToken, "token", "remove", "car")).code, 0);
      assert.equal(await statusOf(token, "GET", "/api/v1/status"), 401);
      assert.equal((await site.svc(fileToken, "token", "remove", "car")).code, 1);
      assert.equal((await site.svc(fileToken, "token", "add", "x", "--role", "root")).code, 2);
      const refused = await site.svc(made.phone.token, "token", "add", "x");
      assert.deepEqual([refused.code, refused.stdout], [1, ""]);
    });

    await t.step("they outlive a restart, and nothing on disk gives one away", async () => {
      await site.service.stop();
      const texts = [site.service.transcript()];
      for await (const { name, isFile } of Deno.readDir(`${site.own.path}/store`)) {
        const path = `${site.own.path}/store/${name}`;
        if (isFile) texts.push(new TextDecoder("latin1").decode(await Deno.readFile(path)));
      }
      for (const { token } of Object.values(made)) {
        assert.ok(texts.every((text) => !text.includes(token)));
      }
      assert.ok(texts.some((text) => text.includes(tokenSha256(made.phone.token))));
      await site.begin();
      const { json } = await site.curl(fileToken, "GET", `/api/v1/tokens/${made.phone.id}`);
      assert.notEqual(json.last_used_at, null, "when it was used is known");
      assert.equal(await statusOf(made.phone.token, "GET", "/api/v1/status"), 200);
    });
    site.service.assertCalm();
  },
});
