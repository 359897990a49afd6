import assert from "node:assert/strict";
import { SvcError } from "../errors.ts";
import {
  ACTOR,
  clientSpec,
  FIRST_SEED,
  groupSpec,
  hex,
  ids,
  listSpec,
  newTokenChange,
  newUser,
  recordSpec,
  scheduleSpec,
  UNLIMITED,
} from "../model/fakes.ts";
import { type Change, decodeSpec, DEFAULT_GROUP_ID } from "../model/mod.ts";
import { auditEntry, FakeClock, FaultyKv, nothing } from "./fakes.ts";
import { auditKey, sessionKey } from "./keys.ts";
import { Applier } from "./applier.ts";
import { LocalReplicator } from "./local_replicator.ts";
import { SCHEMA_VERSION } from "./load.ts";
import { Sessions, SESSIONS_MAX } from "./sessions.ts";
import type { Store } from "./store.ts";
import { openStoreFile } from "./store_file.ts";

const none = { permissions: "none" } as const;
const options = { clock: new FakeClock(), program: "0.7.0", node: "node-1" };

const CHANGES: readonly Change[] = [
  { type: "create", collection: "lists", id: ids.list(1), spec: listSpec("ads") },
  { type: "create", collection: "schedules", id: ids.schedule(1), spec: scheduleSpec("work") },
  {
    type: "create",
    collection: "groups",
    id: ids.group(1),
    spec: groupSpec("kids", [{ list: ids.list(1), schedule: ids.schedule(1) }]),
  },
  {
    type: "create",
    collection: "clients",
    id: ids.client(1),
    spec: clientSpec("tv", ["192.0.2.7"], ["tv"], ids.group(1)),
  },
  {
    type: "create",
    collection: "records",
    id: ids.record(1),
    spec: recordSpec("a.example", "CNAME", "b.example"),
  },
  { type: "user_create", user: newUser(1, "ann") },
  newTokenChange(1, "phone"),
];

/** A seeded store with one of each. */
async function filled(kv: FaultyKv): Promise<Store> {
  const store = await kv.store();
  const replicator = new LocalReplicator(new Applier(store), {
    clock: options.clock,
    node: "node-1",
  });
  for (const change of [FIRST_SEED, ...CHANGES]) {
    const settled = await replicator.propose(change, ACTOR);
    assert.equal(settled.kind, "done", JSON.stringify(settled));
  }
  return store;
}

Deno.test("openStoreFile() makes a store for its owner alone and finds it again", {
  permissions: { read: true, write: true },
}, async () => {
  const above = await Deno.makeTempDir();
  const directory = `${above}/state`;
  try {
    const store = await openStoreFile({ ...options, directory });
    const replicator = new LocalReplicator(new Applier(store), {
      clock: options.clock,
      node: "node-1",
    });
    await replicator.propose(FIRST_SEED, ACTOR);
    await replicator.propose(CHANGES[0], ACTOR);
    const modeOf = (path: string) => (Deno.statSync(path).mode ?? 0) & 0o777;
    assert.equal(modeOf(directory), 0o700);
    for (const { name } of Deno.readDirSync(directory)) {
      assert.equal(modeOf(`${directory}/${name}`), 0o600, name);
    }
    store.close();
    Deno.chmodSync(`${directory}/store.kv`, 0o644);
    const again = await openStoreFile({ ...options, directory });
    assert.deepEqual([...again.state.collections.lists.keys()], [ids.list(1)]);
    assert.equal(modeOf(`${directory}/store.kv`), 0o600);
    again.close();
  } finally {
    await Deno.remove(above, { recursive: true });
  }
});

Deno.test("openStoreFile() says which file it can't open", {
  permissions: { read: true, write: true },
}, async () => {
  const directory = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${directory}/store.kv`, "no database ".repeat(1_000));
    await assert.rejects(openStoreFile({ ...options, directory }), (error) => {
      assert.ok(error instanceof SvcError && error.code === "unavailable");
      assert.match(error.message, /^store: .*not a database/);
      return true;
    });
    await Deno.mkdir(`${directory}/other/store.kv`, { recursive: true });
    await assert.rejects(
      openStoreFile({ ...options, directory: `${directory}/other` }),
      /other\/store\.kv: cannot be opened/,
    );
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});

Deno.test("Store.over() reads back what was stored, in the order of creation", none, async () => {
  using kv = await FaultyKv.open();
  const store = await filled(kv);
  const replicator = new LocalReplicator(new Applier(store), {
    clock: options.clock,
    node: "node-1",
  });
  // IDs fall while places grow; the last is deleted, so that its place is free.
  for (const n of [9, 8, 7, 6]) {
    const spec = listSpec(`l${n}`);
    await replicator.propose({ type: "create", collection: "lists", id: ids.list(n), spec }, ACTOR);
  }
  const gone = { type: "delete", collection: "lists", id: ids.list(6), ifMatch: 1 } as const;
  await replicator.propose(gone, ACTOR);
  const again = await kv.store();
  assert.deepEqual([...again.state.collections.lists.keys()], [1, 9, 8, 7].map(ids.list));
  assert.deepEqual(plain(again), plain(store));
  assert.equal(again.state.appliedIndex, CHANGES.length + 6);
});

/** All of a state as plain data. */
function plain({ state }: Store) {
  const collections = Object.entries(state.collections).map(([name, map]) => [name, [...map]]);
  const { settings, users, clientKeys, nameKeys, appliedIndex } = state;
  const keys = [...clientKeys, ...[...nameKeys].toSorted()];
  return { collections, settings, users: [...users], keys, appliedIndex };
}

const encode = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));

const DAMAGES: readonly (readonly [string, (kv: Deno.Kv) => unknown, message: RegExp])[] = [
  ["a value that is no JSON", (kv) => {
    return kv.set(["resource", "lists", ids.list(1)], new Uint8Array([0x7b, 0xff]));
  }, /resource\/lists\/li_0+1 is damaged: is no JSON/],
  [
    "a value of another kind",
    (kv) => kv.set(["settings"], "text"),
    /settings is damaged: is no JSON/,
  ],
  ["a value of another form", (kv) => {
    return kv.set(["resource", "lists", ids.list(1)], encode({ place: 0, value: {} }));
  }, /resource\/lists\/li_0+1 is damaged: value\.id/],
  [
    "a lost resource",
    (kv) => kv.delete(["resource", "clients", ids.client(1)]),
    /applied is damaged: clients should be 1, but 0 are there/,
  ],
  ["a lost token", (kv) => {
    return kv.delete(["credential", "tokens", ids.token(1)]);
  }, /tokens should be 1, but 0/],
  ["a lost user", (kv) => kv.delete(["user", ids.user(1)]), /users should be 1, but 0/],
  ["one resource in place of another", async (kv) => {
    const key = ["resource", "schedules", ids.schedule(1)];
    const { value } = await kv.get<Uint8Array>(key);
    await kv.delete(key);
    const text = new TextDecoder().decode(value!).replace(ids.schedule(1), ids.schedule(2));
    await kv.set(["resource", "schedules", ids.schedule(2)], new TextEncoder().encode(text));
  }, /groups\/gr_0+1 is damaged: lists\[0\]\.schedule: no schedule has the ID sc_0+1/],
  ["a value under another's key", async (kv) => {
    const { value } = await kv.get(["user", ids.user(1)]);
    await kv.delete(["user", ids.user(1)]);
    await kv.set(["user", ids.user(2)], value);
  }, /user\/us_0+2 is damaged: holds us_0+1/],
  ["no settings", (kv) => kv.delete(["settings"]), /settings is damaged: is missing/],
  [
    "no number of the last change",
    (kv) => kv.delete(["applied"]),
    /applied is damaged: is missing/,
  ],
  ["no schema", (kv) => kv.delete(["schema"]), /schema is damaged: is missing, but there is/],
  ["a lost audit entry", (kv) => kv.delete(auditKey(7)), /audit_range is damaged: the log ends/],
  [
    "a foreign key",
    (kv) => kv.set(["resource", "lists", "a", "b"], encode(1)),
    /is no key of ours/,
  ],
  [
    "a session of another form",
    (kv) => kv.set(sessionKey("aa"), encode({})),
    /session\/aa is damaged/,
  ],
  ["two resources in one place", async (kv) => {
    const key = ["resource", "groups", ids.group(1)];
    const { value } = await kv.get<Uint8Array>(key);
    const json = JSON.parse(new TextDecoder().decode(value!));
    await kv.set(key, encode({ ...json, place: 0 }));
  }, /has the place 0 of another/],
];

Deno.test("Store.over() names the key of what is damaged and changes nothing", none, async (t) => {
  for (const [name, damage, message] of DAMAGES) {
    await t.step(name, async () => {
      using kv = await FaultyKv.open();
      await filled(kv);
      await damage(kv.inner);
      const before = await kv.dump().catch(() => null);
      await assert.rejects(kv.store(), (error) => {
        assert.ok(error instanceof SvcError && error.code === "unavailable", String(error));
        assert.match(error.message, message);
        assert.doesNotMatch(error.message, /SECRET/);
        return true;
      });
      assert.deepEqual(await kv.dump().catch(() => null), before);
    });
  }
});

Deno.test("Store.over() refuses a newer schema and says which svc is needed", none, async () => {
  using kv = await FaultyKv.open();
  await filled(kv);
  await kv.inner.set(["schema"], encode({ version: SCHEMA_VERSION + 1, svc: "0.9.1" }));
  await assert.rejects(kv.store(), /has schema 5, and this svc 0\.7\.0 knows 4: run svc 0\.9\.1/);
});

Deno.test("Store.over() brings an older store to this schema", none, async (t) => {
  for (const version of [1, 2, 3]) {
    await t.step(`schema ${version}`, async () => {
      using kv = await FaultyKv.open();
      const store = await filled(kv);
      const { tokens: _, webhooks: __, ...counts } = JSON.parse(
        new Map(await kv.dump()).get("applied")!,
      ).counts;
      await kv.inner.delete(["credential", "tokens", ids.token(1)]);
      if (version < 3) { // As it would have been before there were users.
        await kv.inner.delete(["user", ids.user(1)]);
        delete counts.users;
      }
      await kv.inner.set(["applied"], encode({ index: store.state.appliedIndex, counts }));
      await kv.inner.set(["schema"], encode({ version, svc: "0.5.0" }));
      const again = await kv.store({ program: "0.7.1" });
      assert.equal(again.state.collections.lists.size, 1);
      assert.equal(again.state.users.size, version < 3 ? 0 : 1);
      assert.equal(again.state.credentials.tokens.size, 0);
      assert.equal(new Map(await kv.dump()).get("schema"), '{"version":4,"svc":"0.7.1"}');
    });
  }
  await t.step("one that never was", async () => {
    using kv = await FaultyKv.open();
    await filled(kv);
    await kv.inner.set(["schema"], encode({ version: 0, svc: "0.1.0" }));
    await assert.rejects(kv.store(), /schema 0 is none that svc ever had/);
  });
  await t.step("a step that fails leaves the older store", async () => {
    using kv = await FaultyKv.open();
    await filled(kv);
    await kv.inner.set(["schema"], encode({ version: 2, svc: "0.5.0" }));
    const before = await kv.dump();
    kv.faultOf = () => "before";
    await assert.rejects(kv.store(), /cannot be read: no space left on device/);
    assert.deepEqual(await kv.dump(), before);
  });
});

/** Specs that are as large as they may be. */
function largest(): Change[] {
  const services = Array.from({ length: 180 }, (_, n) => ({
    service: "s".repeat(48) + hex(n),
    schedule: ids.schedule(1),
  }));
  const rule = "||" + "a.".repeat(1_800) + "example^";
  const settings = {
    protection: true,
    block_response: "null_ip",
    blocking_ipv4: null,
    blocking_ipv6: null,
    block_ttl: 10,
    list_update_interval: 86_400,
    access: {
      allowed: Array.from({ length: 512 }, (_, n) => `2001:db8:${n.toString(16)}::/48`),
      disallowed: Array.from({ length: 512 }, (_, n) => `2001:db9:${n.toString(16)}::/48`),
    },
  } as const;
  return [
    {
      type: "replace",
      collection: "groups",
      id: ids.group(1),
      spec: groupSpec("\u0000".repeat(128), [], services),
      ifMatch: null,
    },
    {
      type: "create",
      collection: "rules",
      id: ids.rule(2),
      spec: {
        rule,
        enabled: true,
        comment: "\u0001".repeat(1_024),
        managed_by: "语".repeat(128),
        ...UNLIMITED,
      },
    },
    { type: "settings", spec: settings, ifMatch: null },
  ];
}

Deno.test("Store.commit() keeps the largest values with their audit entries", none, async () => {
  using kv = await FaultyKv.open();
  const store = await filled(kv);
  const replicator = new LocalReplicator(new Applier(store), {
    clock: options.clock,
    node: "n".repeat(63),
  });
  const actor = { ...ACTOR, name: "\u0000".repeat(1_000), address: "\u0000".repeat(1_000) };
  // Twice: from the second time on, `before` is as large as `after`.
  for (const change of [...largest(), ...largest()]) {
    const settled = await replicator.propose(change, actor);
    const isAgain = settled.kind === "refused" && settled.code === "conflict";
    assert.ok(settled.kind === "done" || isAgain, JSON.stringify(settled).slice(0, 200));
  }
  await store.note(
    { action: "pause", resource: { type: "node", id: null }, after: "\u0001".repeat(4_000) },
    actor,
  );
  const sizes = (await kv.dump()).map(([, text]) => new TextEncoder().encode(text).length);
  assert.ok(Math.max(...sizes) > 40 * 1024, `the largest value has ${Math.max(...sizes)} bytes`);
  assert.ok(Math.max(...sizes) < 58 * 1024, `the largest value has ${Math.max(...sizes)} bytes`);
  assert.deepEqual(plain(await kv.store()), plain(store));
  assert.ok(!decodeSpec("groups", groupSpec("")).ok);
});

Deno.test("Store.over() takes names that read alike, and lets them be mended", none, async () => {
  using kv = await FaultyKv.open();
  const first = await filled(kv);
  const replicator = new LocalReplicator(new Applier(first), {
    clock: options.clock,
    node: "node-1",
  });
  const group = (n: number, name: string) =>
    ({ collection: "groups", id: ids.group(n), spec: groupSpec(name), ifMatch: null }) as const;
  for (const n of [7, 8]) {
    const made = await replicator.propose({ type: "create", ...group(n, `g${n}`) }, ACTOR);
    assert.equal(made.kind, "done");
  }
  const key = ["resource", "groups", ids.group(8)];
  const { value } = await kv.inner.get<Uint8Array>(key);
  await kv.inner.set(key, encode(JSON.parse(new TextDecoder().decode(value!).replace("g8", "G7"))));
  const again = new LocalReplicator(new Applier(await kv.store()), {
    clock: options.clock,
    node: "node-1",
  });
  const kindOf = async (change: Change) => (await again.propose(change, ACTOR)).kind;
  const unfiltered = { ...group(8, "G7"), spec: { ...groupSpec("G7"), filtering: false } };
  assert.equal(await kindOf({ type: "replace", ...unfiltered }), "done");
  assert.equal(await kindOf({ type: "create", ...group(9, "g7") }), "refused");
  assert.equal(await kindOf({ type: "replace", ...group(7, "other") }), "done");
  assert.equal(await kindOf({ type: "create", ...group(9, "g7") }), "refused", "G7 has it still");
  assert.equal(await kindOf({ type: "replace", ...group(8, "another") }), "done");
  assert.equal(await kindOf({ type: "create", ...group(9, "g7") }), "done");
});

Deno.test("Store.commit() keeps the newest audit entries", none, async () => {
  using kv = await FaultyKv.open();
  const auditEntriesMax = 10;
  const store = await kv.store({ auditEntriesMax });
  let count = 0;
  for (const batch of [1, 3, 8, 1, 10, 1, 1]) {
    const audit = Array.from({ length: batch }, () => auditEntry(`n${count++}`));
    await store.commit({ ...nothing(store), audit });
    const { entries } = await store.audit({ limit: 100 });
    const actions = entries.map(({ action }) => action);
    const newest = Array.from(
      { length: Math.min(count, auditEntriesMax) },
      (_, n) => count - 1 - n,
    );
    assert.deepEqual(actions, newest.map((n) => `n${n}`));
  }
  const { entries: [newest] } = await store.audit({ limit: 1 });
  assert.equal(newest.id, hex(count - 1));
  const { entries } = await (await kv.store({ auditEntriesMax })).audit({ limit: 5 });
  assert.equal(entries.length, 5);
});

const session = (n: number, expiresAtMs: number) => ({
  sha256: hex(n).repeat(4),
  userId: ids.user(1),
  epoch: 0,
  expiresAtMs,
});

Deno.test("sessions outlive the process and end when they should", none, async () => {
  using kv = await FaultyKv.open();
  const clock = new FakeClock(1_000_000);
  const store = await kv.store({ clock });
  const [short, long] = [session(1, 1_010_000), session(2, 9_000_000)];
  await store.putSession(short);
  await store.putSession(long);
  const again = await kv.store({ clock });
  assert.deepEqual(await again.session(short.sha256), short);
  clock.timeMs = short.expiresAtMs;
  assert.equal(await again.session(short.sha256), null);
  assert.deepEqual(await again.session(long.sha256), long);
  clock.timeMs += 120_000;
  await again.putSession(session(3, 9_000_000)); // Sweeps the one that is over.
  const there = (await kv.dump()).filter(([key]) => key.startsWith("session/"));
  assert.equal(there.length, 2);
  await again.deleteSession(long.sha256);
  assert.equal(await again.session(long.sha256), null);
  assert.equal(await (await kv.store({ clock })).session(long.sha256), null);
});

Deno.test(
  "a session begins where the disk can't be written, and lasts as the process",
  none,
  async () => {
    using kv = await FaultyKv.open();
    const store = await kv.store();
    const [one, two] = [session(1, 9e12), session(2, 9e12)];
    kv.faultOf = () => "before";
    await store.putSession(one);
    assert.deepEqual(await store.session(one.sha256), one);
    kv.faultOf = () => null;
    await store.putSession(two);
    const again = await kv.store();
    assert.equal(await again.session(one.sha256), null);
    assert.deepEqual(await again.session(two.sha256), two);
  },
);

Deno.test("Sessions takes no more than its bound", none, async () => {
  using kv = await FaultyKv.open();
  const many = Array.from({ length: SESSIONS_MAX }, (_, n) => session(n, 10_000 + n));
  const sessions = new Sessions(kv.inner, new FakeClock(0), many);
  const one = session(SESSIONS_MAX, 99_999);
  await sessions.put(one);
  assert.equal(sessions.get(many[0].sha256), null, "the one that would end first");
  assert.deepEqual(sessions.get(many[1].sha256), many[1]);
  assert.deepEqual(sessions.get(one.sha256), one);
});

Deno.test("a store that another process has written to is not written again", none, async () => {
  using kv = await FaultyKv.open();
  const [one, two] = [await filled(kv), await kv.store()];
  await two.commit(nothing(two));
  await assert.rejects(one.commit(nothing(one)), /another process has written to it/);
  await assert.rejects(one.commit(nothing(one)), /start svc again/);
  assert.equal((await kv.store()).state.appliedIndex, two.state.appliedIndex);
  assert.ok(two.state.collections.groups.has(DEFAULT_GROUP_ID));
});
