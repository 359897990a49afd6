// Goal: a backup comes back as what it was made of, and no other file comes back as anything.
import assert from "node:assert/strict";
import { hashPassword } from "../auth/mod.ts";
import { SvcError } from "../errors.ts";
import {
  clientSpec,
  groupSpec,
  ids,
  listSpec,
  newTokenChange,
  newUser,
  newWebhookChange,
  recordSpec,
  ruleSpec,
  scheduleSpec,
  stateAfter,
} from "../model/fakes.ts";
import { type Change, type LiveState, PROBLEMS_MAX } from "../model/mod.ts";
import { BACKUP_VERSION, type BackupFile, encodeBackup, makeBackup, readBackup } from "./mod.ts";

const none = { permissions: "none" } as const;
/** For the add-on. */
const argon2 = { permissions: { ffi: true, read: true, env: true } } as const;
const BY = { madeAtMs: Date.UTC(2026, 0, 2), program: "0.7.0" };
const PASSPHRASE = "correct horse";
const OTP = { secret: "JBSWY3DPEHPK3PXP", active: true, last_step: 5, recovery: ["ab".repeat(32)] };

const create = (collection: string, id: string, spec: unknown) =>
  ({ type: "create", collection, id, spec }) as Change;

function fullState(passwordHash = "$argon2id$SECRET"): LiveState {
  return stateAfter(
    create("schedules", ids.schedule(1), scheduleSpec("School")),
    create("lists", ids.list(1), listSpec("ads")),
    create("records", ids.record(1), recordSpec("nas.example", "A", "192.0.2.1")),
    create("groups", ids.group(1), groupSpec("Kids", [{ list: ids.list(1) }])),
    create("clients", ids.client(1), clientSpec("tv", ["192.0.2.7"], ["tv"], ids.group(1))),
    create("rules", ids.rule(1), ruleSpec("||a.example^")),
    {
      type: "user_create",
      user: newUser(1, "ann", { password_hash: passwordHash, otp: OTP }),
    },
    {
      type: "user_create",
      user: newUser(2, "bob", { password_hash: passwordHash, otp: { ...OTP, active: false } }),
    },
    newTokenChange(1, "phone"),
    newWebhookChange(1, "home"),
  );
}

/** As it comes from a disk. */
// deno-lint-ignore no-explicit-any -- to be spoiled
function parsed(file: BackupFile): any {
  return JSON.parse(new TextDecoder().decode(encodeBackup(file)));
}

async function problemOf(json: unknown, passphrase: string | null = null): Promise<string> {
  try {
    const read = await readBackup(json, passphrase);
    assert.ok(!read.ok, "it is refused");
    assert.ok(read.problems.length <= PROBLEMS_MAX);
    return read.problems.map(({ path, message }) => `${path}: ${message}`).join("\n");
  } catch (error) {
    assert.ok(error instanceof SvcError, String(error));
    return error.message;
  }
}

Deno.test("readBackup() reads what makeBackup() made, without secrets", none, async () => {
  const state = fullState();
  const file = await makeBackup(state, BY, null);
  assert.ok(!JSON.stringify(file).includes("SECRET"));
  assert.ok(!JSON.stringify(file).includes(OTP.secret));
  const read = await readBackup(parsed(file), null);
  assert.ok(read.ok, JSON.stringify(read));
  const { resources, settings, users, credentials, hasSecrets } = read.spec;
  assert.equal(hasSecrets, false);
  for (const kind of ["tokens", "webhooks"] as const) {
    const there = Array.from<object, object>(state.credentials[kind].values(), (one) => {
      return { ...one, secret: null };
    });
    assert.deepEqual<unknown>(credentials?.[kind], there, kind);
  }
  assert.deepEqual(settings, state.settings.spec);
  for (const [name, envelopes] of Object.entries(resources)) {
    const there = state.collections[name as keyof typeof resources];
    assert.deepEqual(envelopes, JSON.parse(JSON.stringify([...there.values()])), name);
  }
  assert.deepEqual(users.map(({ name, secrets }) => [name, secrets]), [["ann", null], [
    "bob",
    null,
  ]]);
});

Deno.test("makeBackup() seals secrets, which one passphrase opens", argon2, async (t) => {
  const hash = await hashPassword("long enough");
  const file = parsed(await makeBackup(fullState(hash), BY, PASSPHRASE));
  const text = JSON.stringify(file);
  await t.step("nothing secret is to be read", () => {
    const { sha256 } = newTokenChange(1, "").secret;
    for (const secret of [hash, sha256, OTP.secret, OTP.recovery[0], PASSPHRASE, "SECRET"]) {
      assert.ok(!text.includes(secret));
    }
  });
  await t.step("with the passphrase", async () => {
    const read = await readBackup(file, PASSPHRASE);
    assert.ok(read.ok);
    assert.deepEqual(read.spec.users.map(({ secrets }) => secrets), [
      { password_hash: hash, otp: OTP },
      { password_hash: hash, otp: null },
    ]);
    const { tokens, webhooks } = read.spec.credentials!;
    assert.deepEqual(tokens.map(({ secret }) => secret), [newTokenChange(1, "").secret]);
    assert.deepEqual(webhooks.map(({ secret }) => secret), [newWebhookChange(1, "").secret]);
  });
  await t.step("without it", async () => {
    const read = await readBackup(file, null);
    assert.ok(read.ok);
    assert.deepEqual(read.spec.users.map(({ secrets }) => secrets), [null, null]);
  });
  const spoiled = (data: string) =>
    data.slice(0, 40) + (data[40] === "A" ? "B" : "A") + data.slice(41);
  const { secrets } = file;
  const rows: readonly (readonly [string, unknown, string, RegExp])[] = [
    ["another passphrase", file, "correct hors", /^secrets: the passphrase is another/],
    [
      "a changed role",
      {
        ...file,
        users: [file.users[0], {
          ...file.users[1],
          spec: { ...file.users[1].spec, role: "viewer" },
        }],
      }, // deno-fmt-ignore
      PASSPHRASE,
      /^secrets: .* or the file was changed/,
    ],
    ["a rule less", { ...file, rules: [] }, PASSPHRASE, /the file was changed/],
    [
      "other secrets",
      { ...file, secrets: { ...secrets, data: spoiled(secrets.data) } },
      PASSPHRASE,
      /the file was changed/,
    ],
    [
      "cut secrets",
      { ...file, secrets: { ...secrets, data: secrets.data.slice(0, 8) } },
      PASSPHRASE,
      /the file was changed/,
    ],
  ];
  for (const [name, json, passphrase, message] of rows) {
    await t.step(name, async () => assert.match(await problemOf(json, passphrase), message));
  }
});

Deno.test("readBackup() restores no hash that costs too much to check", argon2, async () => {
  const costly = `$argon2id$v=19$m=4194304,t=90,p=1$${"A".repeat(22)}$${"A".repeat(43)}`;
  const file = parsed(await makeBackup(fullState(costly), BY, PASSPHRASE));
  const message = await problemOf(file, PASSPHRASE);
  assert.equal(message, "secrets: users[0].password_hash is not as svc makes it");
});

Deno.test("readBackup() refuses what is no backup, with its place", none, async (t) => {
  const file = parsed(await makeBackup(fullState(), BY, null));
  const sealed = {
    ...{ kdf: "argon2id", memory_kib: 65_536, passes: 3, lanes: 1, salt: "A".repeat(22) },
    ...{ cipher: "aes-256-gcm", nonce: "A".repeat(16), data: "AAAA" },
  };
  const rule = file.rules[0];
  const many = Array.from({ length: 5_000 }, () => 7);
  const rows: readonly (readonly [string, unknown, RegExp])[] = [
    ["null", null, /^format: it is no backup of svc$/],
    ["a text", "svc backup", /^format/],
    ["an array", [], /^format/],
    ["another's file", { format: "adguard" }, /^format/],
    ["no version", { ...file, version: undefined }, /^version: it is no version/],
    ["version 0", { ...file, version: 0 }, /^version: it is no version/],
    ["half a version", { ...file, version: 1.5 }, /^version: it is no version/],
    [
      "a newer version",
      { format: "svc backup", version: BACKUP_VERSION + 1 },
      /^version: the file is of version 3, and this program reads up to 2: update svc first$/,
    ],
    ["an unknown collection", { ...file, toys: [] }, /^toys: there is no such field$/],
    ["a missing collection", { ...file, rules: undefined }, /^rules: it is missing$/],
    ["a collection of another kind", { ...file, rules: {} }, /^rules: it is not an array$/],
    ["items of another kind", { ...file, rules: many }, /^rules\[0\]: it is not an object/],
    [
      "a bad spec",
      { ...file, rules: [rule, { ...rule, spec: { rule: "||" } }] },
      /^rules\[1\]\.spec\.rule: /,
    ],
    [
      "an unknown field",
      { ...file, rules: [{ ...rule, status: "ok" }] },
      /^rules\[0\]\.status: there is no such field$/,
    ],
    ["a bad revision", { ...file, rules: [{ ...rule, revision: 0 }] }, /^rules\[0\]\.revision/],
    [
      "bad settings",
      { ...file, settings: { ...file.settings, block_ttl: "x" } },
      /^settings\.block_ttl/,
    ],
    [
      "a user whose name is not seen",
      { ...file, users: [{ ...file.users[0], spec: { ...file.users[0].spec, name: "a\u200b" } }] },
      /^users\[0\]\.spec\.name: it has 1 to/,
    ],
    [
      "a user with a password in the open",
      { ...file, users: [{ ...file.users[0], password_hash: "x" }] },
      /^users\[0\]\.password_hash: there is no such field$/,
    ],
    [
      "a key that takes all memory",
      { ...file, secrets: { ...sealed, memory_kib: 4_194_304 } },
      /^secrets\.memory_kib: it is more than 262144$/,
    ],
    [
      "a key that takes all day",
      { ...file, secrets: { ...sealed, passes: 1e6 } },
      /^secrets\.passes: it is more than 16$/,
    ],
    ["too many lanes", { ...file, secrets: { ...sealed, lanes: 99 } }, /^secrets\.lanes/],
    ["another cipher", { ...file, secrets: { ...sealed, cipher: "rot13" } }, /^secrets\.cipher/],
    ["a short nonce", { ...file, secrets: { ...sealed, nonce: "AAAA" } }, /^secrets\.nonce/],
  ];
  for (const [name, json, message] of rows) {
    // Also with a passphrase: none of them costs a key.
    await t.step(name, async () => {
      assert.match(await problemOf(json), message);
      assert.match(await problemOf(json, PASSPHRASE), message);
    });
  }
  await t.step("a passphrase for nothing", async () => {
    assert.match(await problemOf(file, PASSPHRASE), /^secrets: .* give none$/);
  });
});

/** As the first release wrote it, which each later one reads. */
// deno-fmt-ignore
const VERSION_1 = [
  '{"format":"svc backup","version":1,"made_at":"2026-01-02T00:00:00.000Z","program":"0.7.0',
  '","settings":{"protection":true,"block_response":"null_ip","blocking_ipv4":null,"blockin',
  'g_ipv6":null,"block_ttl":10,"list_update_interval":86400,"access":{"allowed":["127.0.0.0',
  '/8","::1","10.0.0.0/8","172.16.0.0/12","192.168.0.0/16","169.254.0.0/16","100.64.0.0/10"',
  ',"fc00::/7","fe80::/10"],"disallowed":[]}},"schedules":[],"lists":[{"id":"li_00000000000',
  '00001","revision":1,"created_at":"2026-01-02T03:04:05.678Z","updated_at":"2026-01-02T03:',
  '04:05.678Z","spec":{"name":"ads","url":"https://lists.example/ads","enabled":true,"comme',
  'nt":"","managed_by":"api"}}],"records":[],"groups":[{"id":"gr_0000000000000000","revisio',
  'n":1,"created_at":"2026-01-02T03:04:05.678Z","updated_at":"2026-01-02T03:04:05.678Z","sp',
  'ec":{"name":"Default","filtering":true,"safe_search":false,"lists":[],"blocked_services"',
  ':[],"paused_until":null}}],"clients":[],"rules":[],"users":[{"id":"us_0000000000000001",',
  '"revision":1,"created_at":"2026-01-02T03:04:05.678Z","updated_at":"2026-01-02T03:04:05.6',
  '78Z","spec":{"name":"ann","role":"admin","disabled":false}}],"secrets":{"kdf":"argon2id"',
  ',"memory_kib":65536,"passes":3,"lanes":1,"salt":"xAWzZIc6lich4vHC1wfWUA==","cipher":"aes',
  '-256-gcm","nonce":"hdIpWxzzj9KBLd1t","data":"OwXLf9FVeVSZuvSpe6JNj0U0Fx43EeKdJbqdSuY6v4M',
  '+2YybN6cZUMIr6qC40cfaBanYL372mY4u3PVGsQtnHSgLUEMBXF4uGk6chBdozeVEaxR2Z9UlQyl8DSF2M50aY0h',
  'YwA4kl9s4QU/d8nUp8D6zBpzvf0xF/PLrnzmPZ1agJAVIKjQHE++aK+wpOrS2YJ87x27cp3qs5HRuVNFj45arjBS',
  '14m2im7fdQHg="}}'
].join("");

Deno.test("readBackup() reads a file of version 1", argon2, async () => {
  const read = await readBackup(JSON.parse(VERSION_1), PASSPHRASE);
  assert.ok(read.ok, JSON.stringify(read));
  const { resources: { lists, groups }, users: [ann] } = read.spec;
  assert.deepEqual([lists[0].spec.name, groups[0].spec.name, ann.name], ["ads", "Default", "ann"]);
  assert.equal(read.spec.credentials, null, "it says nothing of tokens");
  assert.match(ann.secrets?.password_hash ?? "", /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
});
