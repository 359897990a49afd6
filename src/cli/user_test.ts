import assert from "node:assert/strict";
import { addOn, fakeAuth } from "../auth/fakes.ts";
import { userByName, verifyPassword } from "../auth/mod.ts";
import { main } from "./mod.ts";
import { token } from "./token.ts";
import { user, type UsersOpener } from "./user.ts";

const none = { permissions: "none" } as const;
/** Passwords, and the folder of each test below the system's own for temporary files. */
const store: Pick<Deno.TestDefinition, "permissions"> = {
  permissions: { ...addOn.permissions as Deno.PermissionOptionsObject, write: true },
};

interface Printed {
  readonly code: number;
  readonly out: string[];
  readonly err: string[];
}

async function printed(run: () => Promise<number>): Promise<Printed> {
  const [out, err]: [string[], string[]] = [[], []];
  const { log, error } = console;
  console.log = (line: string) => void out.push(line);
  console.error = (line: string) => void err.push(line);
  try {
    return { code: await run(), out, err };
  } finally {
    Object.assign(console, { log, error });
  }
}

/** A node's folder with its configuration; `svc` runs there. */
async function inFolder(
  work: (svc: (...args: string[]) => Promise<Printed>, dir: string) => Promise<void>,
  config = "",
): Promise<void> {
  const dir = await Deno.realPath(await Deno.makeTempDir());
  try {
    await Deno.writeTextFile(`${dir}/svc.toml`, `[store]\npath = "store"\n${config}`);
    const svc = (...args: string[]) =>
      printed(() => main(["user", ...args, "--config", `${dir}/svc.toml`]));
    await work(svc, dir);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

Deno.test("token() prints a token and the line for it", none, async () => {
  const { code, out } = await printed(() => token([]));
  assert.equal(code, 0);
  assert.equal(out.length, 2);
  assert.match(out[0], /^svc_[0-9a-f]{64}$/);
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(out[0]));
  const hex = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0"));
  assert.equal(out[1], `token_sha256 = "${hex.join("")}"`);
  const again = await printed(() => token([]));
  assert.notEqual(again.out[0], out[0]);
  assert.equal((await printed(() => token(["more"]))).code, 2);
  for (const period of ["0s", "1y", "36526d", "999999999d"]) {
    const { code, err } = await printed(() => token(["add", "x", "--expires", period]));
    assert.equal(code, 2);
    assert.match(err.join("\n"), /^svc token: --expires: \S+ is no period up to 36525d: .*$/);
  }
  assert.match((await printed(() => token(["--help"]))).out[0], /^svc token \[add/);
});

Deno.test("user() says what is wrong with its arguments", none, async (t) => {
  const refuses: UsersOpener = () => Promise.reject(new Error("opened"));
  const rows: [string[], RegExp][] = [
    [[], /say what to do/],
    [["mend"], /"mend" is nothing it does/],
    [["toString"], /"toString" is nothing it does/],
    [["add"], /add takes a NAME/],
    [["add", ""], /add takes a NAME/],
    [["add", "ann", "bob"], /"bob" is one argument too many/],
    [["list", "ann"], /"ann" is one argument too many/],
    [["add", "ann", "--role", "owner"], /--role owner: take admin or viewer/],
    [["list", "--role", "admin"], /--role is not for list/],
    [["remove", "ann", "--password-file", "x"], /--password-file is not for remove/],
    [["add", "ann", "--password", "x"], /Unknown option '--password'/],
  ];
  for (const [args, want] of rows) {
    await t.step(args.join(" "), async () => {
      const { code, err } = await printed(() => user(args, refuses));
      assert.equal(code, 2);
      assert.equal(err.length, 1);
      assert.match(err[0], want);
      assert.match(err[0], /^svc user: .* \(svc user --help tells more\)$/);
    });
  }
  const { code, out } = await printed(() => user(["add", "--help"], refuses));
  assert.equal(code, 0);
  assert.match(out[0], /^svc user add\|list\|passwd\|reset\|remove\|disable\|enable/);
});

Deno.test("svc user keeps users in the store of a stopped node", store, async () => {
  await inFolder(async (svc, dir) => {
    assert.deepEqual(await svc("list"), { code: 0, out: ["no users"], err: [] });
    const added = await svc("add", "ann");
    assert.equal(added.code, 0, added.err.join());
    assert.equal(added.out[0], "user ann was added (admin)");
    assert.match(added.out[1], /^password: [0-9a-z]{5}(-[0-9a-z]{5}){3}$/);

    await Deno.writeTextFile(`${dir}/secret`, "correct horse\r\nbattery\n");
    const file = ["--password-file", `${dir}/secret`];
    assert.deepEqual(await svc("add", "bob", "--role", "viewer", ...file), {
      code: 0,
      out: ["user bob was added (viewer)"],
      err: [],
    });
    assert.deepEqual((await svc("disable", "bob")).out, ["user bob is disabled"]);
    assert.deepEqual((await svc("list")).out, [
      "ann  admin   enabled   password only",
      "bob  viewer  disabled  password only",
    ]);
    assert.deepEqual((await svc("enable", "bob")).out, ["user bob is enabled"]);
    const passwd = await svc("passwd", "bob");
    assert.equal(passwd.out[0], "user bob has a new password");
    assert.match(passwd.out[1], /^password: /);
    assert.deepEqual((await svc("passwd", "bob", ...file)).out, ["user bob has a new password"]);

    const reset = await svc("reset", "bob");
    assert.equal(reset.out.length, 1);
    assert.match(reset.out[0], /^\/reset\?token=[\w-]{43}$/);
    assert.match(reset.err[0], /^good once, until \d{4}-/);

    assert.deepEqual((await svc("remove", "bob")).out, ["user bob was removed"]);
    assert.deepEqual((await svc("list")).out, ["ann  admin  enabled  password only"]);
    const mode = (await Deno.stat(`${dir}/store`)).mode! & 0o777;
    assert.equal(mode, 0o700);
  });
});

Deno.test("svc user says what it can't do in one line", store, async (t) => {
  await inFolder(async (svc, dir) => {
    await Deno.writeTextFile(`${dir}/empty`, "\nsecond line\n");
    await Deno.writeTextFile(`${dir}/short`, "short\n");
    await svc("add", "ann");
    const rows: [string[], RegExp][] = [
      [["add", "Ann"], /ann/],
      [["add", " "], /name: it has 1 to 128 characters/],
      [["remove", "bob"], /no user is called "bob"/],
      [["passwd", "bob"], /no user is called "bob"/],
      [["add", "bob", "--password-file", `${dir}/none`], /none: is not there/],
      [["add", "bob", "--password-file", `${dir}/empty`], /empty: its first line is empty/],
      [["add", "bob", "--password-file", `${dir}/short`], /password: it has 8 to 256 characters/],
    ];
    for (const [args, want] of rows) {
      await t.step(args.slice(0, 3).join(" "), async () => {
        const { code, out, err } = await svc(...args);
        assert.equal(code, 1);
        assert.deepEqual(out, []);
        assert.equal(err.length, 1);
        assert.match(err[0], want);
        assert.ok(err[0].startsWith("svc user: "));
      });
    }
  });
  await t.step("a link without an API", () =>
    inFolder(async (svc) => {
      await svc("add", "ann");
      const { code, err } = await svc("reset", "ann");
      assert.equal(code, 1);
      assert.match(err[0], /api\.listen: names no address/);
    }, "[api]\nlisten = []\n"));
  await t.step(
    "a whole link where the configuration says from where",
    () =>
      inFolder(async (svc) => {
        await svc("add", "ann");
        const { out } = await svc("reset", "ann");
        assert.match(out[0], /^https:\/\/dns\.example\/reset\?token=[\w-]{43}$/);
      }, '[api]\npublic_url = "https://dns.example/"\n'),
  );
  await t.step("a configuration with a problem", () =>
    inFolder(async (svc) => {
      const { code, err } = await svc("list");
      assert.equal(code, 2);
      assert.match(err[0], /svc\.toml:3/);
    }, "[sever]\n"));
});

Deno.test("svc user leaves a node alone that runs", store, async () => {
  await inFolder(async (svc, dir) => {
    await svc("add", "ann");
    const { openStore } = await import("../store/mod.ts");
    const clock = { nowMs: () => Date.now() };
    const held = await openStore({ directory: `${dir}/store`, clock, program: "0", node: "local" });
    const { code, err } = await svc("list");
    assert.equal(code, 1);
    assert.match(err[0], /store\.path: .*store is in use: stop svc, or change it through the API/);
    await held.close();
    assert.equal((await svc("list")).code, 0);
  });
});

Deno.test("user() proposes what it is told, as the operator", store, async () => {
  await inFolder(async (_, dir) => {
    const auth = fakeAuth();
    let closed = 0;
    const open: UsersOpener = () =>
      Promise.resolve({ users: auth.users, close: () => Promise.resolve(void closed++) });
    const run = (...args: string[]) =>
      printed(() => user([...args, "--config", `${dir}/svc.toml`], open));
    const { out } = await run("add", "ann");
    const password = out[1].replace("password: ", "");
    const ann = userByName(auth.users, "ann");
    assert.ok(ann !== null);
    assert.equal((await verifyPassword(ann.password_hash, password)).isRight, true);
    await run("passwd", "ann");
    const changed = userByName(auth.users, "ann");
    assert.ok(changed !== null && changed.session_epoch > ann.session_epoch);
    assert.equal((await verifyPassword(changed.password_hash, password)).isRight, false);
    await run("reset", "ann");
    assert.equal(closed, 3);
    assert.deepEqual(auth.users.audit.map(({ actor, action }) => [actor.kind, action]), [
      ["cli", "create"],
      ["cli", "update"],
      ["cli", "reset"],
    ]);
    assert.ok(!JSON.stringify(auth.users.audit).includes("argon2"));
  });
});
