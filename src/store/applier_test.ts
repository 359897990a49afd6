import assert from "node:assert/strict";
import { SvcError } from "../errors.ts";
import { ACTOR, commandOf, FIRST_SEED, ids, listSpec, newUser, ruleSpec } from "../model/fakes.ts";
import { type AuditAction, type Change, DEFAULT_SETTINGS, type LiveState } from "../model/mod.ts";
import { Applier, BATCH_LENGTH_MAX, type Decision, type Entry } from "./applier.ts";
import { FakeClock, FaultyKv } from "./fakes.ts";
import { LocalReplicator } from "./local_replicator.ts";
import type { Shown } from "./ports.ts";
import { PROPOSALS_MAX } from "./proposals.ts";
import { STATE_PART_BYTES_MAX } from "./replicated_state.ts";
import { NOTES_MAX, type Store } from "./store.ts";

const none = { permissions: "none" } as const;

const list = (n: number): Change => ({
  type: "create",
  collection: "lists",
  id: ids.list(n),
  spec: listSpec(`l${n}`),
});
const gone = (n: number): Change => ({
  type: "delete",
  collection: "lists",
  id: ids.list(n),
  ifMatch: null,
});
const rules = (count: number, comment: string): Change => ({
  type: "rules_batch",
  add: Array.from({ length: count }, (_, n) => ({
    id: ids.rule(n),
    spec: { ...ruleSpec(`||n${n}.example^`), comment },
  })),
  remove: [],
});
const broken = { type: "create", collection: "nothing" } as unknown as Change;

/** Applies changes, each with its ID if it has one; what they came to, in words. */
async function applyAll(
  applier: Applier,
  ...changes: readonly (Change | null | readonly [Change, string])[]
): Promise<string[]> {
  const first = applier.state.appliedIndex + 1;
  const entries = changes.map((one, i): Entry => {
    const [change, id] = one instanceof Array ? one : [one, null];
    return { index: first + i, command: change === null ? null : commandOf(change), id };
  });
  const decided: string[] = [];
  await applier.apply(entries, (entry, decision) => {
    assert.equal(entry.index, first + decided.length, "in the order of the log");
    decided.push(textOf(decision));
  });
  return decided;
}

function textOf(decision: Decision): string {
  if (decision.kind === "done") return "done";
  return decision.kind === "refused" ? decision.code : decision.kind;
}

async function start(kv: FaultyKv): Promise<{ store: Store; applier: Applier }> {
  const store = await kv.store();
  const applier = new Applier(store);
  assert.deepEqual(await applyAll(applier, FIRST_SEED), ["done"]);
  return { store, applier };
}

/** All of a state as plain data. */
function plain(state: LiveState) {
  const collections = Object.entries(state.collections).map(([name, map]) => [name, [...map]]);
  const keys = [[...state.clientKeys].sort(), [...state.nameKeys].sort()];
  return [collections, state.settings, [...state.users], keys, state.appliedIndex];
}

Deno.test("apply() moves the index with each entry, whatever it comes to", none, async () => {
  using kv = await FaultyKv.open();
  const { applier } = await start(kv);
  const seen: [string | undefined, number][] = [];
  applier.subscribe(({ change, state }) => seen.push([change?.type, state.appliedIndex]));
  const commits = kv.commits;
  const decided = await applyAll(applier, null, list(1), list(1), broken, gone(9), list(2), null);
  assert.deepEqual(decided, ["done", "done", "conflict", "failed", "not_found", "done", "done"]);
  assert.deepEqual(seen, [["create", 3], ["create", 7]], "what made nothing is not shown");
  assert.equal(applier.state.appliedIndex, 8);
  assert.equal(kv.commits - commits, 1);
  assert.deepEqual(plain((await kv.store()).state), plain(applier.state));
  await assert.rejects(
    applier.apply([{ index: 8, command: null, id: null }], () => {}),
    /an entry follows the one before/,
  );
});

Deno.test(
  "apply() takes one commit for a change, and one for as many as go together",
  none,
  async () => {
    using kv = await FaultyKv.open();
    const { applier } = await start(kv);
    const commitsOf = async (...changes: (Change | [Change, string])[]) => {
      const before = kv.commits;
      await applyAll(applier, ...changes);
      return kv.commits - before;
    };
    assert.equal(await commitsOf(list(1)), 1);
    assert.equal(await commitsOf([list(2), "with an ID"]), 1);
    assert.equal(await commitsOf(list(2)), 1, "a refusal");
    const many = Array.from({ length: 3 * BATCH_LENGTH_MAX }, (_, n) => list(10 + n));
    assert.equal(await commitsOf(...many), 3);
  },
);

Deno.test("apply() answers again, and does nothing, for an ID that was applied", none, async () => {
  using kv = await FaultyKv.open();
  const { applier } = await start(kv);
  const once: readonly (readonly [Change, string])[] = [
    [list(1), "a"],
    [gone(7), "b"],
    [rules(3, "x"), "c"],
    [{ type: "user_create", user: newUser(1, "ann") }, "d"],
    [{ type: "settings", spec: DEFAULT_SETTINGS, ifMatch: 1 }, "e"],
    [{
      type: "replace",
      collection: "lists",
      id: ids.list(1),
      spec: listSpec("other"),
      ifMatch: 1,
    }, "f"],
  ];
  const values: unknown[] = [];
  const apply = async (over: Applier) => {
    const first = over.state.appliedIndex + 1;
    const entries = once.map(([change, id], i): Entry => {
      return { index: first + i, command: commandOf(change), id };
    });
    const decisions: Decision[] = [];
    await over.apply(entries, (_, decision) => decisions.push(decision));
    return decisions;
  };
  const first = await apply(applier);
  const { revision } = applier.state.settings;
  const inOneBatch = await applyAll(applier, [list(5), "g"], [list(5), "g"]);
  assert.deepEqual(inOneBatch, ["done", "done"]);
  const { collections, users } = applier.state;
  let called = 0;
  applier.subscribe(() => called++);
  for (const open of [() => applier, async () => new Applier(await kv.store())]) {
    const over = await open();
    const again = await apply(over);
    // What was made first is by now what the last one made of it.
    assert.deepEqual(again.slice(1), first.slice(1));
    const [made] = again;
    assert.ok(made.kind === "done");
    assert.equal((made.value as { revision: number }).revision, 2);
    values.push(made.value);
    assert.deepEqual([...over.state.collections.lists], [...collections.lists]);
    assert.deepEqual([...over.state.users], [...users]);
    assert.equal(over.state.settings.revision, revision);
  }
  assert.equal(called, 0);
  assert.deepEqual(values[0], values[1]);
  const opened = new Applier(await kv.store());
  const gone1 = await applyAll(opened, gone(1), [list(1), "a"]);
  assert.deepEqual(gone1, ["done", "not_found"], "it was made, and is gone");
  assert.ok(!opened.state.collections.lists.has(ids.list(1)));
});

Deno.test(
  "apply() forgets an ID after so many entries, after a restart as well",
  none,
  async () => {
    using kv = await FaultyKv.open();
    const { applier } = await start(kv);
    assert.deepEqual(await applyAll(applier, [list(1), "old"], gone(1)), ["done", "done"]);
    await applyAll(applier, ...Array.from({ length: PROPOSALS_MAX - 3 }, () => null));
    assert.equal(applier.state.appliedIndex, PROPOSALS_MAX);
    const again = new Applier(await kv.store());
    const last = await applyAll(again, [list(1), "old"]);
    assert.deepEqual(last, ["not_found"], "it was made as entry 2, and is gone");
    const later = new Applier(await kv.store());
    // On disk the next one takes the place of entry 2.
    const decided = await applyAll(later, [list(2), "new"], [list(1), "old"], [list(2), "new"]);
    assert.deepEqual(decided, ["done", "done", "done"]);
    assert.ok(
      later.state.collections.lists.has(ids.list(1)),
      "it was forgotten, and so made again",
    );
    const kept = (await kv.dump()).filter(([key]) => key.startsWith("proposal/"));
    assert.equal(kept.length, 2);
  },
);

Deno.test("a proposal that met a failing disk may be made again", none, async (t) => {
  for (const fault of ["before", "after"] as const) {
    await t.step(`the commit fails, ${fault} it is made`, async () => {
      using kv = await FaultyKv.open();
      const options = { clock: new FakeClock(), node: "node-1" };
      const { applier } = await start(kv);
      const propose = (over: LocalReplicator) => over.propose(list(1), ACTOR, "mine");
      kv.faultOf = () => fault;
      await assert.rejects(propose(new LocalReplicator(applier, options)), SvcError);
      kv.faultOf = () => null;
      const again = new Applier(await kv.store());
      const over = new LocalReplicator(again, options);
      for (let i = 0; i < 3; i++) assert.equal((await propose(over)).kind, "done");
      const { entries } = await (await kv.store()).audit({ limit: 9 });
      assert.equal(entries.filter(({ action }) => action === "create").length, 1);
    });
  }
});

Deno.test("a store goes on by itself after a change that was called failed", none, async (t) => {
  const run = async (change: Change, faultAt: number, fault: "before" | "after") => {
    using kv = await FaultyKv.open();
    const retries: (() => void)[] = [];
    const store = await kv.store({
      reopen: () => Promise.resolve(kv.kv),
      later: (_, work) => {
        retries.push(work);
        return () => {};
      },
    });
    const applier = new Applier(store);
    await applyAll(applier, FIRST_SEED);
    const seen: Shown[] = [];
    applier.subscribe((shown) => seen.push(shown));
    const before = kv.commits;
    kv.faultOf = (commit) => commit - before >= faultAt ? fault : null;
    const isDone = await applyAll(applier, change).then(() => true, () => false);
    // It may be tried at once, and while the disk still fails.
    await assert.rejects(applyAll(applier, list(1)), SvcError);
    retries.at(-1)?.();
    await store.idle();
    assert.ok(store.problem !== null);
    kv.faultOf = () => null;
    retries.at(-1)?.();
    await store.idle();
    assert.equal(store.problem, null);
    const isThere = applier.state.appliedIndex === 2;
    if (isDone) assert.ok(isThere);
    const told = seen.map(({ change }) => change?.type ?? null);
    assert.deepEqual(told, !isThere ? [] : isDone ? [change.type] : [null]);
    assert.deepEqual(await applyAll(applier, list(9)), ["done"]);
    assert.deepEqual(plain((await kv.store()).state), plain(applier.state));
    return isThere;
  };
  const changes = [["a small", list(2), 1], ["a large", rules(1_000, "x"), 5]] as const;
  for (const [name, change, commits] of changes) {
    const found = new Set<boolean>();
    for (let faultAt = 1; faultAt <= commits; faultAt++) {
      for (const fault of ["before", "after"] as const) {
        await t.step(`${name} one: transaction ${faultAt} fails, ${fault} it is made`, async () => {
          found.add(await run(change, faultAt, fault));
        });
      }
    }
    assert.equal(found.size, 2, "some were made and some were not");
  }
});

Deno.test("note() is durable, moves no index, and goes with what is written", none, async () => {
  using kv = await FaultyKv.open();
  const { store, applier } = await start(kv);
  const note = (name: string) => {
    const action = name as AuditAction;
    return store.note({ action, resource: { type: "node", id: null }, after: { until: 1 } }, ACTOR);
  };
  const commits = kv.commits;
  await note("alone");
  assert.equal(kv.commits - commits, 1);
  await Promise.all([applyAll(applier, list(1)), note("a"), note("b"), note("c")]);
  assert.ok(kv.commits - commits <= 3, `${kv.commits - commits}`);
  assert.equal(applier.state.appliedIndex, 2);
  const opened = await kv.store();
  assert.equal(opened.state.appliedIndex, 2);
  const { entries } = await opened.audit({ limit: 9 });
  assert.deepEqual(entries.map(({ action }) => action).toSorted(), [
    "a",
    "alone",
    "b",
    "c",
    "create",
    "seed",
  ]);
  const alone = entries.find(({ action }) => action === "alone");
  assert.deepEqual([alone?.actor, alone?.after, alone?.node], [ACTOR, { until: 1 }, "node-1"]);

  kv.faultOf = () => "before";
  const lost = await Promise.allSettled([note("x"), note("y"), applyAll(applier, list(2))]);
  assert.ok(lost.every(({ status }) => status === "rejected"));
  kv.faultOf = () => null;
  const taken = Array.from({ length: NOTES_MAX }, (_, n) => note(`n${n}`));
  await assert.rejects(note("one more"), /1024 notes wait already/);
  await Promise.all(taken);
  await note("one more");
});

const RULES = 900;

/** A store that is replaced, and the parts of what takes its place. */
async function twoStores(kv: FaultyKv, other: FaultyKv) {
  const { store, applier } = await start(kv);
  const changes = [list(1), list(2), rules(5, "old")];
  await applyAll(applier, ...changes, { type: "user_create", user: newUser(1, "ann") });
  const session = { sha256: "ab", userId: ids.user(1), epoch: 0, expiresAtMs: 9e12 };
  await store.putSession(session);
  const { applier: foreign, store: foreignStore } = await start(other);
  await applyAll(foreign, rules(RULES, "new"), list(9), gone(9), [list(3), "theirs"]);
  await applyAll(foreign, { type: "user_create", user: newUser(2, "bob") });
  return { store, applier, session, foreign, foreignStore };
}

Deno.test("replaceAll() puts another configuration in the place of its own", none, async () => {
  using kv = await FaultyKv.open();
  using other = await FaultyKv.open();
  const { store, applier, session, foreign, foreignStore } = await twoStores(kv, other);
  const parts = [...foreignStore.export(7)];
  assert.ok(parts.length > 3, `${parts.length} parts`);
  assert.ok(parts.every(({ length }) => length <= STATE_PART_BYTES_MAX));
  const seen: Shown[] = [];
  applier.subscribe((shown) => seen.push(shown));
  await applier.replaceAll(parts, [{ key: ["raft", "start"], value: { index: 3 } }]);
  assert.equal(seen.length, 1);
  assert.equal(seen[0].change, null);
  assert.equal(seen[0].state, applier.state);
  for (const over of [store, await kv.store()]) {
    assert.deepEqual(plain(over.state), plain(foreign.state));
    assert.equal(over.epoch, 7);
    assert.deepEqual(await over.session("ab"), session, "sessions stay this node's own");
    const { entries: [newest, before] } = await over.audit({ limit: 9 });
    assert.deepEqual([newest.action, newest.actor.kind], ["replicate", "replication"]);
    assert.deepEqual(newest.after, { epoch: 7, version: foreign.state.appliedIndex });
    assert.equal(before.resource.id, ids.user(1), "and so does the audit log");
  }
  const dump = await kv.dump();
  assert.ok(dump.some(([key, text]) => key === "raft/start" && text === '{"index":3}'));
  assert.ok(!dump.some(([key]) => key.startsWith("journal")));
  // It goes on from there, and knows what was applied before.
  assert.deepEqual(await applyAll(applier, [list(3), "theirs"], list(4)), ["done", "done"]);
  assert.deepEqual(plain((await kv.store()).state), plain(applier.state));
  // A later export of the former state is the former state.
  await applier.replaceAll(foreignStore.export());
  assert.equal(store.epoch, 0);
  assert.deepEqual(plain(store.state), plain(foreign.state));
});

Deno.test("replaceAll() leaves the old or the new, wherever the disk fails", none, async (t) => {
  const run = async (faultAt: number, fault: "before" | "after") => {
    using kv = await FaultyKv.open();
    using other = await FaultyKv.open();
    const { store, applier, foreign, foreignStore } = await twoStores(kv, other);
    const [old, before] = [plain(store.state), kv.commits];
    let shown = 0;
    applier.subscribe(() => shown++);
    kv.faultOf = (commit) => commit - before >= faultAt ? fault : null;
    const alongside = [{ key: ["raft", "start"], value: 1 }];
    const isDone = await applier.replaceAll(foreignStore.export(7), alongside)
      .then(() => true, () => false);
    const commits = kv.commits - before;
    kv.faultOf = () => null;
    assert.equal(shown, isDone ? 1 : 0);
    const next = await applyAll(applier, list(4)).then(() => true, () => false);
    const opened = await kv.store();
    const expected = opened.epoch === 7 ? plain(foreign.state) : old;
    if (!next) assert.deepEqual(plain(opened.state), expected);
    else assert.deepEqual(plain(opened.state), plain(applier.state));
    if (isDone) assert.equal(opened.epoch, 7);
    const keys = (await kv.dump()).map(([key]) => key);
    assert.ok(!keys.some((key) => key.startsWith("journal")), "nothing is left behind");
    assert.equal(keys.includes("raft/start"), opened.epoch === 7);
    return { commits, isNew: opened.epoch === 7 };
  };
  const { commits } = await run(Infinity, "before");
  assert.ok(commits > 6, `${commits} transactions`);
  const results = new Set<boolean>();
  for (let faultAt = 1; faultAt <= commits; faultAt++) {
    for (const fault of ["before", "after"] as const) {
      await t.step(`transaction ${faultAt} of ${commits} fails, ${fault} it is made`, async () => {
        results.add((await run(faultAt, fault)).isNew);
      });
    }
  }
  assert.equal(results.size, 2, "some end with the old and some with the new");
});

const encode = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));
const decode = (part: Uint8Array) => JSON.parse(new TextDecoder().decode(part));

const SPOILED: readonly (readonly [string, (parts: Uint8Array[]) => Uint8Array[], RegExp])[] = [
  ["nothing", () => [], /it has no parts/],
  ["no header", ([_, ...rest]) => rest, /no header that is known/],
  ["a part left out", ([first, _, ...rest]) => [first, ...rest], /should be|is missing/],
  ["its end left out", (parts) => parts.slice(0, -1), /should be/],
  ["a part twice", (parts) => [...parts, parts[1]], /is there twice/],
  ["a part that is cut", ([first, next]) => [first, next.slice(0, -3)], /is no JSON text/],
  ["a part that is no list", ([first]) => [first, encode({})], /is no list of writes/],
  [
    "a part that is too large",
    ([first]) => [first, new Uint8Array(STATE_PART_BYTES_MAX + 1)],
    /a part has 61441 bytes/,
  ],
  ["another schema", ([first]) => [encode({ ...decode(first), schema: 99 })], /has schema 99/],
  ["no counts", ([first]) => [encode({ ...decode(first), counts: {} })], /number of \w+ is none/],
  [
    "a key of this node's own",
    ([first]) => [first, encode([{ key: ["session", "aa"], value: {} }])],
    /session\/aa is no key of it/,
  ],
  [
    "another's key",
    ([first]) => [first, encode([{ key: ["resource", "lists", "a", "b"], value: {} }])],
    /lists\/a\/b is no key of it/,
  ],
  [
    "more than it says",
    (parts) => [...parts, encode([{ key: ["user", "us_1"], value: {} }])],
    /users should be 1, but there are more/,
  ],
  [
    "a damaged value",
    ([first, next, ...rest]) => {
      const text = new TextDecoder().decode(next).replace('"revision":1', '"revision":"1"');
      return [first, new TextEncoder().encode(text), ...rest];
    },
    /^state: .*revision/,
  ],
];

Deno.test("replaceAll() refuses what is no whole state, and changes nothing", none, async (t) => {
  using kv = await FaultyKv.open();
  using other = await FaultyKv.open();
  const { applier, foreignStore } = await twoStores(kv, other);
  const [parts, before] = [[...foreignStore.export()], await kv.dump()];
  for (const [name, spoil, message] of SPOILED) {
    await t.step(name, async () => {
      await assert.rejects(applier.replaceAll(spoil([...parts])), (error) => {
        assert.ok(error instanceof SvcError && error.code === "invalid", String(error));
        assert.match(error.message, message);
        assert.doesNotMatch(error.message, /SECRET/);
        return true;
      });
      assert.deepEqual(await kv.dump(), before);
    });
  }
});

Deno.test("replaceAll() reads a state of before there were tokens", none, async () => {
  using kv = await FaultyKv.open();
  using other = await FaultyKv.open();
  const { applier, foreign, foreignStore } = await twoStores(kv, other);
  const [first, ...rest] = foreignStore.export();
  const { counts: { tokens: _, webhooks: __, ...counts }, ...header } = decode(first);
  await applier.replaceAll([encode({ ...header, schema: 3, counts }), ...rest]);
  assert.deepEqual(plain(applier.state), plain(foreign.state));
});

Deno.test("export() is of its moment, however late it is read", none, async () => {
  using kv = await FaultyKv.open();
  using other = await FaultyKv.open();
  const { applier, store } = await start(kv);
  await applyAll(applier, [list(1), "a"]);
  const [then, parts] = [applier.state, store.export()];
  await applyAll(applier, [list(2), "b"], gone(1));
  const { applier: second, store: copy } = await start(other);
  await second.replaceAll(parts);
  assert.deepEqual(plain(second.state), plain(then));
  assert.equal(copy.proposals.find("b", then.appliedIndex), null);
  assert.equal(copy.proposals.find("a", then.appliedIndex)?.index, 2);
});
