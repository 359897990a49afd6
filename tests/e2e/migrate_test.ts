// Goal: who comes from another product is moved by one command, may run it again, and loses nothing of
// what is here. Method: the built command against a running service and servers on loopback that
// answer as both products do, or as nobody should; the configuration is compared whole.
import assert from "node:assert/strict";
import { tokenSha256 } from "../../src/auth/mod.ts";
import { FakePihole, PASSWORD, USER } from "../../src/migrate/fakes.ts";
import { OwnDirectory, PERMISSIONS, runProgram, Service, svcCommand } from "./harness.ts";
import { serveAdguard, servePihole, serveSpoiled, SPOILED } from "./migrate_sources.ts";

const TOKEN = `svc_${"5e".repeat(32)}`;
const COLLECTIONS = ["schedules", "lists", "records", "groups", "clients", "rules"];

// deno-lint-ignore no-explicit-any -- answers of every shape
type Json = any;

Deno.test("svc migrate moves a household in one change, twice and whole", {
  permissions: PERMISSIONS,
}, async (t) => {
  await using directory = await OwnDirectory.make();
  const at = (name: string) => `${directory.path}/${name}`;
  await Deno.writeTextFile(at("token"), `${TOKEN}\n`);
  await Deno.writeTextFile(at("password"), `${PASSWORD}\n`);
  await Deno.writeTextFile(at("wrong"), "another password\n");
  await using service = await Service.start({
    config: { api: { listen: ["127.0.0.1:0"], token_sha256: tokenSha256(TOKEN) } },
  });
  const { listen } = await service.logged("serving the API");
  const origin = `http://${(listen as string[])[0]}`;

  const done = async (method: string, path: string, body?: unknown): Promise<Json> => {
    const response = await fetch(`${origin}/api/v1/${path}`, {
      method,
      headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const json = await response.json();
    assert.ok(response.ok, `${method} ${path}: ${JSON.stringify(json)}`);
    return json;
  };
  const all = async (): Promise<Json> => {
    const found: Record<string, unknown> = { settings: await done("GET", "settings") };
    for (const name of COLLECTIONS) {
      const { items } = await done("GET", name);
      found[name] = items.map(({ status: _, ...envelope }: Json) => envelope);
    }
    return found;
  };
  const svc = async (product: string, url: string, ...more: string[]) => {
    const credentials = product === "adguard" ? ["--user", USER] : [];
    const [command, ...rest] = svcCommand([
      ...["migrate", product, "--from", url, "--to", origin, "--token-file", at("token")],
      ...credentials,
      ...(more.includes("--password-file") ? [] : ["--password-file", at("password")]),
      ...more,
    ]);
    return await runProgram(command, ...rest);
  };
  const tableOf = (stdout: string) => stdout.split("\n\n", 1)[0].split("\n");
  const rowsOf = (stdout: string) =>
    tableOf(stdout).filter((line) => /^(added|there already|adapted|not possible) {2}/.test(line));
  /** Of what the store keeps, and not the file. */
  const storedRows = (stdout: string) =>
    rowsOf(stdout).filter((line) => !/^[a-z ]+ {2,}(file|access) {2}/.test(line));
  const specs = (items: readonly Json[]) => items.map(({ spec }) => spec);

  await using adguard = serveAdguard();
  await using pihole = servePihole();
  const own = await done("POST", "rules", { rule: "||own.example^" });

  await t.step("what breaks off or is no AdGuard Home changes nothing, and is named", async () => {
    const before = await all();
    for (const [name, path, spoil, message] of SPOILED) {
      await using source = serveSpoiled(path, spoil);
      const { code, stdout, stderr } = await svc("adguard", source.url);
      assert.equal(code, 1, name);
      assert.match(stderr, message, name);
      assert.equal(stderr.trim().split("\n").length, 1, name);
      assert.equal(stdout, "", name);
    }
    assert.deepEqual(await all(), before);
  });

  await t.step("a wrong password and a wrong address change nothing", async () => {
    const before = await all();
    const wrong = ["--password-file", at("wrong")];
    for (const [product, { url }] of [["adguard", adguard], ["pihole", pihole]] as const) {
      const { code, stderr } = await svc(product, url, ...wrong);
      assert.equal(code, 1);
      assert.match(stderr, /password: .* it takes no such/);
      assert.ok(!stderr.includes("another password"));
    }
    const gone = await svc("adguard", "http://127.0.0.1:1");
    assert.equal(gone.code, 1);
    assert.match(gone.stderr, /AdGuard Home at 127\.0\.0\.1:1: /);
    await using asOther = serveAdguard();
    const other = await svc("pihole", asOther.url);
    assert.equal(other.code, 1);
    assert.match(other.stderr, /api\/auth: it redirects to \/login\.html, which is not followed/);
    assert.deepEqual(await all(), before);
  });

  await t.step("wrong usage is told, and no password is taken as an argument", async () => {
    const rows: readonly (readonly [string[], RegExp])[] = [
      [["migrate", "blocky", "--from", "http://x"], /"blocky" is no product/],
      [["migrate", "adguard"], /--from URL says where it is/],
      [["migrate", "adguard", "--from", "http://x", "--password", "x"], /Unknown option/],
      [["migrate", "pihole", "--from", "http://x", "--user", "x"], /--user is for adguard/],
      [["migrate", "adguard", "--from", "http://x", "--to", "ftp://x"], /--to: ftp:\/\/x is no/],
    ];
    for (const [args, message] of rows) {
      const [command, ...rest] = svcCommand(args);
      const { code, stderr } = await runProgram(command, ...rest);
      assert.equal(code, 2, args.join(" "));
      assert.match(stderr, message);
    }
  });

  let planned: string[] = [];
  await t.step("--dry-run prints the table, and changes nothing", async () => {
    const before = await all();
    const { code, stdout, stderr } = await svc("adguard", adguard.url, "--dry-run");
    assert.equal(code, 1, stderr);
    planned = rowsOf(stdout);
    assert.ok(planned.length > 40, stdout);
    assert.match(stdout, /^nothing was changed$/m);
    assert.match(stdout, /^not possible {2}rule .*narrow\.example.* only the modifiers/m);
    assert.deepEqual(await all(), before);
    assert.ok(adguard.asked.every((line) => /^GET \/control\//.test(line)), "it is read alone");
  });

  await t.step("the same is then done, in one change", async () => {
    const fragment = at("part.toml");
    const { code, stdout, stderr } = await svc("adguard", adguard.url, "--output", fragment);
    assert.equal(code, 1, stderr);
    assert.deepEqual(rowsOf(stdout), planned, "the table is the same");
    const found = await all();
    assert.deepEqual(found.rules[0].spec, own.spec, "what was here stays");
    const tablet = found.clients.find(({ spec }: Json) => spec.name === "Tablet").spec;
    const group = found.groups.find(({ id }: Json) => id === tablet.group).spec;
    assert.deepEqual([tablet.addresses, group.safe_search], [
      ["aa:bb:cc:dd:ee:01", "192.168.1.21"],
      true,
    ]);
    assert.deepEqual(group.blocked_services.map(({ service }: Json) => service).slice(0, 2), [
      "tiktok",
      "roblox",
    ]);
    const names = specs(found.records).map(({ name, type }) => `${name} ${type}`);
    assert.ok(names.includes("*.dev.example A"));
    assert.equal(found.settings.block_response, "custom_ip");
    const { items } = await done("GET", "audit?type=config");
    assert.deepEqual(items.map(({ action }: Json) => action).slice(0, 2), [
      "migrate",
      "migrate_read",
    ]);
    assert.equal(items[0].after.from, `AdGuard Home v0.107.79 at ${new URL(adguard.url).host}`);
    const [command, ...rest] = svcCommand(["check-config", "--config", fragment]);
    const checked = await runProgram(command, ...rest);
    assert.equal(checked.code, 0, checked.stderr);
  });

  await t.step("once more, all of it is there already", async () => {
    const before = await all();
    const { stdout } = await svc("adguard", adguard.url);
    for (const line of storedRows(stdout)) assert.match(line, /^(there already|not possible) {2}/);
    assert.match(stdout, / 0 added, /);
    assert.deepEqual(await all(), before);
  });

  await t.step("Pi-hole is moved beside it, and its session is ended", async () => {
    const hole = new FakePihole();
    await using source = servePihole(hole);
    const { code, stdout, stderr } = await svc("pihole", `${source.url}/admin/`);
    assert.equal(code, 1, stderr);
    assert.match(stdout, /^there already {2}list .*lists\.example\/ads\.txt/m);
    assert.equal(hole.open.size, 0);
    assert.equal(source.asked.at(-1), "DELETE /api/auth");
    const before = await all();
    assert.ok(specs(before.groups).some(({ name }) => name === "Kids + School"));
    const again = await svc("pihole", source.url);
    for (const line of storedRows(again.stdout)) {
      assert.match(line, /^(there already|not possible) {2}/);
    }
    assert.deepEqual(await all(), before);
  });

  await t.step("no password is in a log, an audit entry or an answer", async () => {
    const { items } = await done("GET", "audit?limit=100");
    const texts = [
      JSON.stringify(items),
      JSON.stringify([service.logs, service.rest]),
      JSON.stringify(await all()),
    ];
    for (const text of texts) {
      for (const secret of [PASSWORD, "another password", btoa(`${USER}:${PASSWORD}`)]) {
        assert.ok(!text.includes(secret));
      }
    }
  });
});
