// Goal: a node that is lost is back from one file. Method: the built commands against running services
// whose configurations are compared whole; curl and dig as clients.
import assert from "node:assert/strict";
import { tokenSha256 } from "../../src/auth/mod.ts";
import {
  hasProgram,
  OwnDirectory,
  PERMISSIONS,
  runProgram,
  Service,
  svcCommand,
  until,
} from "./harness.ts"; // deno-fmt-ignore
import { Members } from "./members.ts";

const TOKEN = `svc_${"5e".repeat(32)}`;
const PASSPHRASE = "köstliche %20 Passphrase";
const PASSWORD = "ann's password";
const COLLECTIONS = ["schedules", "lists", "records", "groups", "clients", "rules", "users"];
/** More than other bodies may have. */
const RULES = 5_000;

// deno-lint-ignore no-explicit-any -- answers of every shape
type Json = any;

/** A service, asked with the token. */
class Site {
  private constructor(readonly service: Service, readonly origin: string) {}

  static async start(): Promise<Site> {
    const service = await Service.start({
      config: { api: { listen: ["127.0.0.1:0"], token_sha256: tokenSha256(TOKEN) } },
    });
    const { listen } = await service.logged("serving the API");
    return new Site(service, `http://${(listen as string[])[0]}`);
  }

  async ask(method: string, path: string, body?: unknown, headers: HeadersInit = {}) {
    const response = await fetch(`${this.origin}/api/v1/${path}`, {
      method,
      headers: {
        authorization: `Bearer ${TOKEN}`,
        ...(body !== undefined && { "content-type": "application/json" }),
        ...headers,
      },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await response.text();
    const json: Json = text === "" ? null : JSON.parse(text);
    return { status: response.status, json, headers: response.headers };
  }

  async done(method: string, path: string, body?: unknown): Promise<Json> {
    const { status, json } = await this.ask(method, path, body);
    assert.ok(status < 300, `${method} ${path}: ${JSON.stringify(json)}`);
    return json;
  }

  /** All that people change, but for what a node makes of it itself. */
  async all(): Promise<Json> {
    const found: Record<string, unknown> = { settings: await this.done("GET", "settings") };
    for (const name of COLLECTIONS) {
      const { items } = await this.done("GET", name);
      found[name] = items.map(({ status: _, ...envelope }: Json) => envelope);
    }
    return found;
  }

  async signIn(password: string): Promise<{ status: number; cookie: string }> {
    const body = { name: "ann", password };
    const { status, headers } = await this.ask("POST", "auth/login", body, { authorization: "" });
    return { status, cookie: (headers.get("set-cookie") ?? "").split(";")[0] };
  }

  async isSignedIn(cookie: string): Promise<boolean> {
    return (await this.ask("GET", "auth/me", undefined, { authorization: "", cookie })).status ===
      200;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service[Symbol.asyncDispose]();
  }
}

async function fill(site: Site): Promise<void> {
  const make = async (collection: string, spec: unknown): Promise<string> =>
    (await site.done("POST", collection, spec)).id;
  const windows = [{ days: ["mon"], start: "08:00", end: "13:00" }];
  const schedule = await make("schedules", { name: "School", time_zone: "Europe/Berlin", windows });
  const list = await make("lists", { name: "ads", url: "https://127.0.0.1:1/ads", enabled: false });
  const group = await make("groups", { name: "Kids", lists: [{ list, schedule }] });
  const client = await make("clients", { name: "tv", addresses: ["192.0.2.7"], group });
  await make("records", { name: "nas.home.example", type: "A", value: "192.0.2.55" });
  await make("rules", { rule: "||tv.example^", clients: [client] });
  const add = Array.from({ length: RULES }, (_, n) => ({ rule: `||name-${n}.blocked.example^` }));
  await site.done("POST", "rules/batch", { add });
  await site.done("PUT", "settings", { block_response: "nxdomain" });
  await make("users", { name: "ann", role: "admin", password: PASSWORD });
  await make("users", { name: "bob", role: "viewer", password: "bob's password" });
}

Deno.test(
  "a backup makes an empty service the one it was made of",
  { permissions: PERMISSIONS },
  async (t) => { // deno-fmt-ignore
    await using directory = await OwnDirectory.make();
    const at = (name: string) => `${directory.path}/${name}`;
    await Deno.writeTextFile(at("token"), `${TOKEN}\n`);
    await Deno.writeTextFile(at("passphrase"), `${PASSPHRASE}\n`);
    await Deno.writeTextFile(at("wrong"), "another passphrase\n");
    await using old = await Site.start();
    await using fresh = await Site.start();
    const svc = async (site: Site, ...args: string[]) => {
      const [command, ...rest] = svcCommand([
        ...args,
        "--api",
        site.origin,
        "--token-file",
        at("token"),
      ]); // deno-fmt-ignore
      return await runProgram(command, ...rest);
    };
    const sealed = ["--passphrase-file", at("passphrase")];
    const file = at("svc.json");
    await fill(old);

    await t.step(
      "svc backup writes one file, for its owner, without a readable secret",
      async () => {
        const { code, stderr } = await svc(old, "backup", "--to", file, ...sealed);
        assert.equal(code, 0, stderr);
        assert.equal((await Deno.stat(file)).mode! & 0o777, 0o600);
        const text = await Deno.readTextFile(file);
        assert.ok(text.length > 1024 * 1024);
        assert.ok(!/argon2id\$|password_hash/.test(text));
        const { code: plain, stdout } = await svc(old, "backup");
        assert.equal(plain, 0);
        assert.equal(JSON.parse(stdout).secrets, null);
      },
    );

    await t.step("svc restore refuses what is no backup, and nothing is changed", async () => {
      const before = await fresh.all();
      const text = await Deno.readTextFile(file);
      const json = JSON.parse(text);
      const spoiled: readonly (readonly [string, string, RegExp])[] = [
        ["cut short", text.slice(0, -500), /it is no whole JSON text/],
        ["newer", JSON.stringify({ ...json, version: 3 }), /version: .* update svc first/],
        ["unknown", JSON.stringify({ ...json, toys: [] }), /toys: there is no such field/],
        ["changed", JSON.stringify({ ...json, rules: [] }), /secrets: .*the file was changed/],
        [
          "costly",
          JSON.stringify({ ...json, secrets: { ...json.secrets, memory_kib: 1 << 30 } }),
          /secrets\.memory_kib: it is more than/,
        ], // deno-fmt-ignore
      ];
      for (const [name, content, message] of spoiled) {
        await Deno.writeTextFile(at("spoiled"), content);
        const { code, stderr } = await svc(fresh, "restore", at("spoiled"), ...sealed);
        assert.equal(code, 1, name);
        assert.match(stderr, message, name);
      }
      const wrong = await svc(fresh, "restore", file, "--passphrase-file", at("wrong"));
      assert.match(wrong.stderr, /secrets: the passphrase is another/);
      assert.deepEqual(await fresh.all(), before);
    });

    await t.step("svc restore --dry-run tells what differs, and changes nothing", async () => {
      const before = await fresh.all();
      const { code, stdout, stderr } = await svc(fresh, "restore", file, "--dry-run", ...sealed);
      assert.equal(code, 0, stderr);
      assert.match(stdout, new RegExp(`^rules: ${RULES + 1} added, 0 changed, 0 removed`, "m"));
      assert.match(stdout, /^users: 2 added/m);
      assert.match(stdout, /^ {2}added record re_\w+ nas\.home\.example A$/m);
      assert.match(stdout, /nothing was changed$/m);
      assert.deepEqual(await fresh.all(), before);
    });

    await t.step("svc restore brings everything back", async () => {
      const { code, stdout, stderr } = await svc(fresh, "restore", file, ...sealed);
      assert.equal(code, 0, stderr);
      assert.match(stdout, /^restored$/m);
      const [was, is] = [await old.all(), await fresh.all()];
      // The default group was there as it is in the file, and stays what it was.
      assert.deepEqual(is.groups[0].spec, was.groups[0].spec);
      is.groups[0] = was.groups[0];
      for (const name of ["settings", ...COLLECTIONS]) assert.deepEqual(is[name], was[name], name);
      assert.equal((await fresh.signIn(PASSWORD)).status, 200);
      if (hasProgram("dig")) {
        const { port } = fresh.service.address;
        const dig = await runProgram(
          "dig",
          "@127.0.0.1",
          "-p",
          `${port}`,
          "+short",
          "nas.home.example",
        );
        assert.equal(dig.stdout.trim(), "192.0.2.55");
      }
      const [entry] = (await fresh.done("GET", "audit?type=config")).items;
      assert.deepEqual([entry.action, entry.actor.kind], ["restore", "token"]);
      assert.equal(entry.after.rules.added, RULES + 1);
      assert.ok(!JSON.stringify(entry).includes("argon2id"));
    });

    await t.step("once more, it changes nothing, and ends nobody's session", async () => {
      const { cookie } = await fresh.signIn(PASSWORD);
      const before = await fresh.all();
      const { stdout } = await svc(fresh, "restore", file, ...sealed);
      for (const line of stdout.trim().split("\n").slice(0, -1)) {
        assert.match(line, /^\w+: 0 added, 0 changed, 0 removed, \d+ kept$/);
      }
      assert.deepEqual(await fresh.all(), before);
      assert.ok(await fresh.isSignedIn(cookie));
    });

    await t.step("who gets another password by it is signed out", async () => {
      const { users: [{ id, spec }] } = await fresh.all();
      const { name, role } = spec;
      await fresh.done("PUT", `users/${id}`, { name, role, password: "another one" });
      const { cookie } = await fresh.signIn("another one");
      assert.ok(await fresh.isSignedIn(cookie));
      assert.equal((await svc(fresh, "restore", file, ...sealed)).code, 0);
      assert.ok(!await fresh.isSignedIn(cookie));
      assert.equal((await fresh.signIn(PASSWORD)).status, 200);
    });

    await t.step(
      "the API takes a file as large as a backup may be, from who may alone",
      async () => {
        const headers = { "content-type": "application/json" };
        const post = async (path: string, mib: number, token: string) => {
          const body = new Uint8Array(mib << 20).fill(0x20);
          const authorization = `Bearer ${token}`;
          const url = `${fresh.origin}/api/v1/${path}`;
          const response = await fetch(url, {
            method: "POST",
            headers: { ...headers, authorization },
            body,
          });
          await response.body?.cancel();
          return response.status;
        };
        assert.equal(await post("restore", 2, TOKEN), 400, "it is read");
        // One that is refused unread may break off before it is sent whole.
        const refused = async (path: string, mib: number, token: string) =>
          await post(path, mib, token).catch(() => 0);
        assert.ok([0, 413].includes(await refused("restore", 33, TOKEN)));
        assert.ok([0, 413].includes(await refused("rules/batch", 2, TOKEN)));
        assert.ok([0, 401].includes(await refused("restore", 2, "svc_")));
      },
    );

    await t.step("a bad passphrase is refused without being repeated", async () => {
      for (const passphrase of ["%ff-secret", "short"]) {
        const { status, json } = await fresh.ask("GET", "backup", undefined, {
          "svc-passphrase": passphrase,
        });
        assert.equal(status, 400);
        assert.match(json.error.message, /^Svc-Passphrase: /);
        assert.ok(!json.error.message.includes(passphrase));
      }
    });

    await t.step("the copy of the day beside the store can be restored", async () => {
      const folder = `${fresh.service.directory}/store/backups`;
      const copies = () => [...Deno.readDirSync(folder)].map(({ name }) => name);
      await until("a copy of the day", () => copies().some((name) => name.endsWith(".json")));
      assert.equal(copies().length, 1);
      const { code, stdout, stderr } = await svc(fresh, "restore", `${folder}/${copies()[0]}`);
      assert.equal(code, 0, stderr);
      assert.match(stdout, new RegExp(`^rules: 0 added, 0 changed, ${RULES + 1} removed`, "m"));
      assert.equal((await fresh.done("GET", "rules")).items.length, 0);
      assert.equal((await fresh.signIn(PASSWORD)).status, 200, "without secrets users stay");
    });
  },
);

Deno.test("a backup is restored through any member, and holds on each", {
  permissions: PERMISSIONS,
}, async () => { // deno-fmt-ignore
  await using members = await Members.make("a", "b", "c");
  await Promise.all(members.names.map((name) => members.start(name)));
  const leader = await members.whole();
  const [one, other] = members.names.filter((name) => name !== leader);
  const add = Array.from({ length: 2_000 }, (_, n) => ({ rule: `||name-${n}.blocked.example^` }));
  await members.api(one).call("POST", "rules/batch", { add });
  await members.api(one).create("records", { name: "nas.example", type: "A", value: "192.0.2.5" });
  const all = async (name: string) => {
    const [rules, records] = await Promise.all(
      ["rules", "records"].map((path) => members.api(name).call("GET", path)),
    );
    return { rules: rules.items, records: records.items };
  };
  const [file, before] = [await members.api(one).call("GET", "backup"), await all(one)];
  const remove = before.rules.map(({ id }: { id: string }) => id);
  await members.api(one).call("POST", "rules/batch", { remove });
  await members.api(one).create("records", { name: "new.example", type: "A", value: "192.0.2.6" });
  const restored = await members.api(other).call("POST", "restore", file);
  assert.deepEqual(
    [restored.done, restored.counts?.rules.added],
    [true, 2_000],
    JSON.stringify(restored).slice(0, 500),
  ); // deno-fmt-ignore
  assert.equal(restored.counts.records.removed, 1);
  assert.deepEqual(await all(other), before, "at once where it was asked");
  await members.whole();
  for (const name of members.names) {
    assert.deepEqual(await all(name), before, name);
    const [entry] = (await members.api(name).call("GET", "audit?type=config")).items;
    assert.deepEqual([entry.action, entry.node], ["restore", other]);
  }
});
