import assert from "node:assert/strict";
import { SvcError } from "../errors.ts";
import { ACTOR, ids, listSpec } from "../model/fakes.ts";
import { type Change, DEFAULT_GROUP_ID, DEFAULT_SETTINGS } from "../model/mod.ts";
import { FakeClock, FaultyKv } from "./fakes.ts";
import { Applier } from "./applier.ts";
import { LocalReplicator } from "./local_replicator.ts";
import { openNodeStore } from "./open_store.ts";
import { importSeed, seedChange, type SeedSource, seedStore } from "./seed.ts";

const none = { permissions: "none" } as const;
const clock = new FakeClock();
const ADS = "li_cfg_00000000000000aa";
const BAD = "li_cfg_00000000000000bb";

const SOURCE: SeedSource = {
  lists: [
    { id: ADS, kind: "url", name: "Ads", url: "https://lists.example/ads" },
    { id: BAD, kind: "path", name: "Bad", path: "bad.txt" },
  ],
  rules: ["||one.example^", "@@||two.example^"],
};

async function start(kv: FaultyKv) {
  const store = await kv.store();
  return { store, replicator: new LocalReplicator(new Applier(store), { clock, node: "node-1" }) };
}

Deno.test("seedChange() takes each once and says what can't be read", none, () => {
  const twice = SOURCE.lists.concat(SOURCE.lists);
  const rules = ["||one.example^", " ||one.example^ ", "! comment", "||x.example^$script"];
  const lists = [...twice, {
    id: "li_cfg_00000000000000cc",
    kind: "url" as const,
    name: "No",
    url: "ftp://a/",
  }];
  const { change, problems } = seedChange({ lists, rules }, true);
  assert.deepEqual(change.lists.map(({ id }) => id), [ADS, BAD]);
  assert.deepEqual(change.rules.map(({ spec }) => spec.rule), ["||one.example^"]);
  assert.match(change.rules[0].id, /^ru_[0-9a-f]{16}$/);
  assert.deepEqual(problems, [
    "filter.lists[4]: url: it is no https URL (http is for loopback only)",
    "filter.rules[2]: rule: it is no rule that is read, from column 1: it is a comment",
    "filter.rules[3]: rule: it is no rule that is read, from column 13: only the modifiers $important, " +
    "$badfilter and $dnsrewrite are supported",
  ]);
  const again = seedChange({ lists, rules }, true);
  assert.deepEqual(again, { change, problems }, "the same file makes the same change");
});

Deno.test("seedStore() seeds once, and later edits are ignored until an import", none, async () => {
  using kv = await FaultyKv.open();
  const { store, replicator } = await start(kv);
  assert.equal(await seedStore({ store, replicator }, SOURCE), "seeded");
  const { collections, settings } = replicator.state;
  assert.deepEqual([...collections.lists.keys()], [ADS, BAD]);
  assert.deepEqual(settings.spec, DEFAULT_SETTINGS);
  assert.deepEqual(
    collections.groups.get(DEFAULT_GROUP_ID)?.spec.lists,
    [{ list: ADS }, { list: BAD }],
  );
  assert.equal(await seedStore({ store, replicator }, SOURCE), "unchanged");

  const mine: Change = {
    type: "create",
    collection: "lists",
    id: ids.list(1),
    spec: listSpec("x"),
  };
  await replicator.propose(mine, ACTOR);
  const edited: SeedSource = { lists: [SOURCE.lists[1]], rules: ["||three.example^"] };
  const index = replicator.state.appliedIndex;
  assert.equal(await seedStore({ store, replicator }, edited), "ignored");
  assert.equal(
    await seedStore({ store, replicator }, edited),
    "ignored",
    "it says so at each start",
  );
  assert.equal(replicator.state.appliedIndex, index);

  assert.deepEqual(await importSeed({ store, replicator }, edited, ACTOR), {
    lists: { added: 0, replaced: 0, removed: 1 },
    rules: { added: 1, replaced: 0, removed: 2 },
  });
  assert.deepEqual([...replicator.state.collections.lists.keys()], [BAD, ids.list(1)]);
  assert.equal(await seedStore({ store, replicator }, edited), "unchanged");
  const { entries: [entry] } = await store.audit({ limit: 1 });
  assert.deepEqual([entry.action, entry.resource.type, entry.actor], ["import", "config", ACTOR]);
});

Deno.test("seedStore() seeds at the next start when the first one failed", none, async () => {
  using kv = await FaultyKv.open();
  const { store, replicator } = await start(kv);
  kv.faultOf = () => "before";
  await assert.rejects(seedStore({ store, replicator }, SOURCE), SvcError);
  kv.faultOf = () => null;
  const again = await start(kv);
  assert.equal(await seedStore(again, SOURCE), "seeded");
});

Deno.test("importSeed() seeds a store that never was", none, async () => {
  using kv = await FaultyKv.open();
  const { store, replicator } = await start(kv);
  await importSeed({ store, replicator }, SOURCE, ACTOR);
  assert.ok(replicator.state.collections.groups.has(DEFAULT_GROUP_ID));
  assert.deepEqual(replicator.state.settings.spec, DEFAULT_SETTINGS);
});

Deno.test("openNodeStore() fails open, or not, as it is told", {
  permissions: { read: true, write: true },
}, async () => {
  const directory = await Deno.makeTempDir();
  const options = { directory, clock, program: "0.7.0", node: "node-1" };
  try {
    const good = await openNodeStore(SOURCE, { ...options, onFailure: "open" });
    assert.deepEqual(good.problems, []);
    await good.close();
    await Deno.writeTextFile(`${directory}/store.kv`, "no database ".repeat(1_000));
    await assert.rejects(openNodeStore(SOURCE, { ...options, onFailure: "closed" }), SvcError);
    const { replicator, problems, close } = await openNodeStore(SOURCE, {
      ...options,
      onFailure: "open",
    });
    assert.equal(problems.length, 1);
    assert.match(problems[0], /^store: .*not a database.*changes are kept in memory only$/);
    assert.deepEqual([...replicator.state.collections.lists.keys()], [ADS, BAD]);
    const change: Change = {
      type: "create",
      collection: "lists",
      id: ids.list(1),
      spec: listSpec("x"),
    };
    assert.equal((await replicator.propose(change, ACTOR)).kind, "done");
    await close();
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});

Deno.test("seedStore() begins with the default lists where the file names none", none, async () => {
  const id = "li_00000000000000dd";
  const defaults = [{ id, name: "Default", url: "https://lists.example/d", comment: "a preset" }];
  const bare: SeedSource = { lists: [], rules: ["||one.example^"], defaults };
  using kv = await FaultyKv.open();
  const { store, replicator } = await start(kv);
  assert.equal(await seedStore({ store, replicator }, bare), "seeded");
  const list = replicator.state.collections.lists.get(id);
  assert.deepEqual([list?.spec.comment, list?.spec.managed_by], ["a preset", "api"]);
  const used = () => replicator.state.collections.groups.get(DEFAULT_GROUP_ID)?.spec.lists;
  assert.deepEqual(used(), [{ list: id }]);
  // Another release's defaults are no edit of the file.
  assert.equal(await seedStore({ store, replicator }, { ...bare, defaults: [] }), "unchanged");
  await importSeed({ store, replicator }, SOURCE, ACTOR);
  assert.deepEqual(used(), [{ list: id }, { list: ADS }, { list: BAD }], "an import removes none");

  using other = await FaultyKv.open();
  const named = await start(other);
  await seedStore(named, { ...SOURCE, defaults });
  assert.ok(!named.replicator.state.collections.lists.has(id), "the file names its own");
});
