import assert from "node:assert/strict";
import { SvcError } from "../errors.ts";
import {
  ACTOR,
  clientSpec,
  FIRST_SEED,
  groupSpec,
  ids,
  listSpec,
  UNLIMITED,
} from "../model/fakes.ts";
import { type Change, DEFAULT_SETTINGS, type LiveState, type Settled } from "../model/mod.ts";
import { FakeClock, FaultyKv } from "./fakes.ts";
import { Applier } from "./applier.ts";
import { LocalReplicator, QUEUE_LENGTH_MAX, valueOf } from "./local_replicator.ts";

const none = { permissions: "none" } as const;
const clock = new FakeClock();

async function start(kv: FaultyKv) {
  const store = await kv.store();
  const replicator = new LocalReplicator(new Applier(store), { clock, node: "node-1" });
  await replicator.propose(FIRST_SEED, ACTOR);
  return { store, replicator };
}

const list = (n: number): Change => ({
  type: "create",
  collection: "lists",
  id: ids.list(n),
  spec: listSpec(`l${n}`),
});

Deno.test("propose() answers once a change is durable, and shows it then", none, async () => {
  using kv = await FaultyKv.open();
  const { replicator } = await start(kv);
  const seen: string[] = [];
  replicator.subscribe(({ change, state }) => {
    seen.push(`${change?.type} ${state.appliedIndex} ${state.collections.lists.size}`);
    assert.equal(replicator.state, state);
  });
  const before = replicator.state;
  const first = replicator.propose(list(1), ACTOR);
  assert.equal(replicator.state, before, "nothing is shown before it is durable");
  const settled = await first;
  assert.equal(settled.kind, "done");
  assert.deepEqual(seen, ["create 2 1"]);
  assert.equal((await kv.store()).state.collections.lists.size, 1);
  assert.equal(before.collections.lists.size, 0, "what was handed out stays");
});

Deno.test(
  "propose() makes changes that wait durable together, each with its own end",
  none,
  async () => {
    using kv = await FaultyKv.open();
    const { store, replicator } = await start(kv);
    const sizes: number[] = [];
    replicator.subscribe(({ state }) => sizes.push(state.collections.lists.size));
    const commits = kv.commits;
    const changes = [1, 2, 2, 3, 4].map(list);
    const results = await Promise.all(changes.map((change) => replicator.propose(change, ACTOR)));
    assert.deepEqual(results.map(({ kind }) => kind), ["done", "done", "refused", "done", "done"]);
    assert.deepEqual(sizes, [1, 2, 3, 4], "each listener call has the state after its change");
    assert.equal(kv.commits - commits, 2, "one for the first, one for the rest");
    const entries = (await store.audit({ limit: 4 })).entries.map(({ resource }) => resource.id);
    assert.deepEqual(entries, [4, 3, 2, 1].map(ids.list));
  },
);

Deno.test("propose() moves the index by a refused change, and nothing else", none, async () => {
  using kv = await FaultyKv.open();
  const { replicator } = await start(kv);
  const before = await kv.dump();
  let called = 0;
  replicator.subscribe(() => called++);
  const spec = clientSpec("tv", ["192.0.2.7"], [], ids.group(9));
  const change: Change = { type: "create", collection: "clients", id: ids.client(1), spec };
  const settled = await replicator.propose(change, ACTOR);
  assert.ok(settled.kind === "refused" && settled.code === "conflict");
  assert.throws(() => valueOf(settled), SvcError);
  assert.equal(called, 0);
  assert.equal(replicator.state.appliedIndex, 2);
  const others = (entries: [string, string][]) => entries.filter(([key]) => key !== "applied");
  assert.deepEqual(others(await kv.dump()), others(before));
  assert.equal(
    (await kv.store()).state.appliedIndex,
    2,
    "a refusal is durable once it is answered",
  );
});

Deno.test("propose() refuses more changes than may wait", none, async () => {
  using kv = await FaultyKv.open();
  const { replicator } = await start(kv);
  const change: Change = { type: "settings", spec: DEFAULT_SETTINGS, ifMatch: null };
  const propose = () => replicator.propose(change, ACTOR);
  // The first is on its way to the disk and waits no more.
  const taken = Array.from({ length: QUEUE_LENGTH_MAX + 1 }, propose);
  await assert.rejects(propose(), /1024 changes wait already/);
  const results = await Promise.all(taken);
  assert.ok(results.every(({ kind }) => kind === "done"));
  assert.equal((await propose()).kind, "done");
});

Deno.test("propose() is unavailable while the disk fails, and goes on after", none, async () => {
  using kv = await FaultyKv.open();
  const { replicator } = await start(kv);
  let called = 0;
  replicator.subscribe(() => called++);
  const before = replicator.state;
  kv.faultOf = () => "before";
  // The third would be refused for what the second makes: neither is known to be there.
  const results = await Promise.allSettled(
    [list(1), list(2), list(2)].map((change) => replicator.propose(change, ACTOR)),
  );
  for (const result of results) {
    assert.ok(result.status === "rejected");
    assert.ok(result.reason instanceof SvcError && result.reason.code === "unavailable");
    assert.match(result.reason.message, /no space left/);
  }
  assert.equal(replicator.state, before);
  assert.equal(called, 0);
  kv.faultOf = () => null;
  assert.equal((await replicator.propose(list(1), ACTOR)).kind, "done");
  assert.equal((await kv.store()).state.collections.lists.size, 1);
});

Deno.test(
  "propose() writes nothing more after a change was made and called failed",
  none,
  async () => {
    using kv = await FaultyKv.open();
    const { replicator } = await start(kv);
    kv.faultOf = () => "after";
    await assert.rejects(replicator.propose(list(1), ACTOR), /the disk went away/);
    kv.faultOf = () => null;
    await assert.rejects(
      replicator.propose(list(2), ACTOR),
      /called failed is there: start svc again/,
    );
    const { state } = await kv.store();
    assert.deepEqual([...state.collections.lists.keys()], [ids.list(1)]);
  },
);

Deno.test("a listener or a change that fails stops no other", none, async () => {
  using kv = await FaultyKv.open();
  const { replicator } = await start(kv);
  let last: LiveState | undefined;
  const unsubscribe = replicator.subscribe(() => {
    throw new Error("mine");
  });
  replicator.subscribe(({ state }) => last = state);
  const broken = { type: "create", collection: "nothing" } as unknown as Change;
  const results = await Promise.allSettled(
    [list(1), broken, list(2)].map((change) => replicator.propose(change, ACTOR)),
  );
  assert.deepEqual(results.map(({ status }) => status), ["fulfilled", "rejected", "fulfilled"]);
  assert.equal(last?.collections.lists.size, 2);
  unsubscribe();
});

Deno.test("close() finishes what waits and takes no more", none, async () => {
  using kv = await FaultyKv.open();
  const { replicator } = await start(kv);
  const waiting: Promise<Settled>[] = [1, 2, 3].map((n) => replicator.propose(list(n), ACTOR));
  const closed = replicator.close();
  await assert.rejects(replicator.propose(list(4), ACTOR), /svc is stopping/);
  await closed;
  assert.equal(replicator.state.collections.lists.size, 3);
  await Promise.all(waiting);
});

const RULES = 1_200;
const many = (name: string): Change => ({
  type: "seed",
  first: false,
  lists: [],
  rules: Array.from({ length: RULES }, (_, n) => ({
    id: ids.rule(n),
    spec: {
      rule: "||a.example^",
      enabled: true,
      comment: name,
      managed_by: "config",
      ...UNLIMITED,
    },
  })),
  settings: {} as never,
});

Deno.test("a change too large for one transaction is made whole or not at all", none, async (t) => {
  const count = await (async () => {
    using kv = await FaultyKv.open();
    const { replicator } = await start(kv);
    const before = kv.commits;
    assert.equal((await replicator.propose(many("new"), ACTOR)).kind, "done");
    return kv.commits - before;
  })();
  assert.ok(count > 4, `it takes ${count} transactions`);
  for (let failing = 1; failing <= count; failing++) {
    for (const fault of ["before", "after"] as const) {
      await t.step(`transaction ${failing} of ${count} fails, ${fault} it is made`, async () => {
        using kv = await FaultyKv.open();
        const { replicator } = await start(kv);
        await replicator.propose(many("old"), ACTOR);
        const first = kv.commits + failing;
        kv.faultOf = (commit) => commit >= first ? fault : null;
        const result = await replicator.propose(many("new"), ACTOR).then(
          () => "done",
          () => "failed",
        );
        kv.faultOf = () => null;
        // Goes on if it may; what it then makes must outlast the next start.
        const next = await replicator.propose(list(1), ACTOR).then(() => "done", () => "failed");
        const { state } = await kv.store();
        const names = new Set(
          [...state.collections.rules.values()].map(({ spec }) => spec.comment),
        );
        assert.equal(state.collections.rules.size, RULES);
        assert.equal(names.size, 1, [...names].join());
        if (result === "done") assert.ok(names.has("new"));
        assert.equal(state.collections.lists.size, next === "done" ? 1 : 0);
        const keys = (await kv.dump()).map(([key]) => key);
        assert.deepEqual(keys.filter((key) => key.startsWith("journal")), []);
      });
    }
  }
});

Deno.test("groups keep up with a large import", none, async () => {
  using kv = await FaultyKv.open();
  const { replicator } = await start(kv);
  const group: Change = {
    type: "create",
    collection: "groups",
    id: ids.group(1),
    spec: groupSpec("kids"),
  };
  const results = await Promise.all(
    [many("a"), group, many("b"), list(1)].map((change) => replicator.propose(change, ACTOR)),
  );
  assert.ok(results.every(({ kind }) => kind === "done"));
  const { state } = await kv.store();
  assert.equal(state.appliedIndex, replicator.state.appliedIndex);
  assert.equal(state.collections.groups.size, 2);
});
