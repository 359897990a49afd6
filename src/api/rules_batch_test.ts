// Goal: a batch of rules over HTTP is made whole or not at all, whatever is sent.
import assert from "node:assert/strict";
import { SvcError } from "../errors.ts";
import { ACTOR, ids, ruleSpec } from "../model/fakes.ts";
import { Applier, LocalReplicator } from "../store/mod.ts";
import { FakeClock, FaultyKv } from "../store/fakes.ts";
import { createApi } from "./app.ts";
import { fakeDeps, LOOPBACK } from "./fakes.ts";
import type { ApiDeps } from "./ports.ts";

const none = { permissions: "none" } as const;
const BATCH = "/api/v1/rules/batch";

interface Answered {
  readonly status: number;
  // deno-lint-ignore no-explicit-any -- whatever the API answers
  readonly json: any;
}

async function send(
  deps: ApiDeps,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answered> {
  const text = body === undefined ? null : JSON.stringify(body);
  const request = new Request(`http://api.invalid${path}`, {
    method,
    headers: {
      host: "localhost:8053",
      ...(text !== null && {
        "content-type": "application/json",
        "content-length": String(new TextEncoder().encode(text).length),
      }),
      ...headers,
    },
    body: text,
  });
  const response = await createApi(deps)(request, LOOPBACK);
  const answer = await response.text();
  return { status: response.status, json: answer === "" ? null : JSON.parse(answer) };
}

const rulesOf = (deps: ApiDeps) =>
  [...deps.replicator.state.collections.rules.values()].map(({ spec }) => spec.rule);
const specs = (count: number, first = 0) =>
  Array.from({ length: count }, (_, n) => ({ rule: `||n${first + n}.example^` }));

Deno.test("POST rules/batch adds and removes in one change", none, async () => {
  const { deps, store } = fakeDeps();
  const first = await send(deps, "POST", BATCH, { add: specs(3) });
  assert.equal(first.status, 200);
  assert.equal(first.json.removed, 0);
  assert.deepEqual(first.json.added.map(({ spec }: { spec: unknown }) => spec), [
    ruleSpec("||n0.example^"),
    ruleSpec("||n1.example^"),
    ruleSpec("||n2.example^"),
  ]);
  const id = first.json.added[1].id;
  // The same text goes and comes: it is another rule.
  const entries = store.entries.length;
  const second = await send(deps, "POST", BATCH, {
    add: [{ rule: "||n1.example^" }],
    remove: [id],
  });
  assert.deepEqual([second.status, second.json.removed], [200, 1]);
  assert.notEqual(second.json.added[0].id, id);
  assert.deepEqual(rulesOf(deps), ["||n0.example^", "||n2.example^", "||n1.example^"]);
  assert.equal(store.entries.length, entries + 1, "one entry of the audit log");
  const { json } = await send(deps, "GET", "/api/v1/audit?limit=1");
  const [{ action, resource, before, after }] = json.entries ?? json.items;
  assert.deepEqual([action, resource], ["batch", { type: "rule", id: null }]);
  assert.deepEqual([before.removed, after.added], [1, 1]);
});

Deno.test(
  "POST rules/batch takes 10,000 rules, and nothing of what holds a bad one",
  none,
  async () => {
    const { deps } = fakeDeps();
    const body = { add: specs(10_000) };
    assert.ok(JSON.stringify(body).length < 1024 * 1024, "they fit a body");
    const full = await send(deps, "POST", BATCH, body);
    assert.deepEqual([full.status, full.json.added.length], [200, 10_000]);
    const remove = full.json.added.map(({ id }: { id: string }) => id);
    const bad = [...specs(16, 20_000), { rule: "||a/b^" }, ...specs(9)];
    const refused = await send(deps, "POST", BATCH, { add: bad, remove: remove.slice(0, 5) });
    assert.equal(refused.status, 422);
    assert.match(refused.json.error.message, /^add\[16\]\.rule: /);
    assert.deepEqual(refused.json.error.details.map(({ path }: { path: string }) => path), [
      "add[16].rule",
    ]);
    assert.equal(rulesOf(deps).length, 10_000);
    const emptied = await send(deps, "POST", BATCH, { remove });
    assert.deepEqual([emptied.status, emptied.json.removed], [200, 10_000]);
    assert.deepEqual(rulesOf(deps), []);
  },
);

Deno.test("POST rules/batch refuses as every change is refused", none, async (t) => {
  const { deps, store } = fakeDeps();
  const { json } = await send(deps, "POST", "/api/v1/rules", { rule: "||a.example^" });
  const rows: [string, unknown, status: number, message: RegExp][] = [
    [
      "an ID that is not there",
      { remove: [json.id, ids.rule(0xff)] },
      404,
      /^remove\[1\]: ru_0+ff: /,
    ],
    ["an ID twice", { remove: [json.id, json.id] }, 422, /^remove\[1\]: /],
    ["one rule too many", { add: specs(10_001) }, 422, /^body: it has 10001 rules/],
    ["a body too large", { add: specs(3), x: "x".repeat(1024 * 1024) }, 413, /larger than 1048576/],
    [
      "a rule of a megabyte",
      { add: [{ rule: `||${"a".repeat(1_000_000)}` }] },
      422,
      /^add\[0\]\.rule/,
    ],
  ];
  for (const [name, body, status, message] of rows) {
    await t.step(name, async () => {
      const answer = await send(deps, "POST", BATCH, body);
      assert.equal(answer.status, status);
      assert.match(answer.json.error.message, message);
      assert.deepEqual(rulesOf(deps), ["||a.example^"]);
    });
  }
  await t.step("nothing to do", async () => {
    const entries = store.entries.length;
    const answer = await send(deps, "POST", BATCH, {});
    assert.deepEqual(answer, { status: 200, json: { added: [], removed: 0 } });
    assert.equal(store.entries.length, entries);
  });
  await t.step("a store that can't be written", async () => {
    store.failure = new SvcError("unavailable", "store: it is read-only");
    const answer = await send(deps, "POST", BATCH, { add: specs(2) });
    assert.equal(answer.status, 503);
    assert.deepEqual(rulesOf(deps), ["||a.example^"]);
  });
  await t.step("another method", async () => {
    assert.equal((await send(deps, "GET", BATCH)).status, 405);
    assert.equal((await send(deps, "DELETE", BATCH)).status, 405);
  });
});

Deno.test("batches and changes of one rule come one after another", none, async () => {
  using kv = await FaultyKv.open();
  const clock = new FakeClock();
  const store = await kv.store();
  const replicator = new LocalReplicator(new Applier(store), { clock, node: "node-1" });
  const { deps } = fakeDeps({ replicator, local: store });
  const { json: { added: [rule] } } = await send(deps, "POST", BATCH, { add: specs(1) });
  const path = `/api/v1/rules/${rule.id}`;
  const put = (text: string) => send(deps, "PUT", path, { rule: text }, { "if-match": "1" });
  const [one, batch, other, again] = await Promise.all([
    put("||one.example^"),
    send(deps, "POST", BATCH, { add: specs(2, 10), remove: [rule.id] }),
    put("||other.example^"),
    send(deps, "POST", BATCH, { add: specs(2, 20), remove: [rule.id] }),
  ]);
  const statuses = [one, batch, other, again].map(({ status }) => status);
  // Whoever came first had the rule; a second batch, or a change behind one, finds none.
  assert.equal(statuses.filter((status) => status === 200).length, 2, statuses.join());
  assert.equal([batch, again].filter(({ status }) => status === 200).length, 1);
  const first = batch.status === 200 ? 10 : 20;
  assert.deepEqual(rulesOf(deps), [`||n${first}.example^`, `||n${first + 1}.example^`]);
  const { state } = await kv.store();
  assert.equal(state.collections.rules.size, 2);
  assert.equal((await store.audit({ limit: 1 })).entries[0].actor.kind, "unauthenticated");
  assert.equal(
    (await replicator.propose({ type: "rules_batch", add: [], remove: [] }, ACTOR)).kind,
    "done",
  );
});

Deno.test("a batch is whole in the store or not in it, wherever the disk fails", none, async () => {
  const add = Array.from(
    { length: 1_200 },
    (_, n) => ({ id: ids.rule(n), spec: ruleSpec("||a.example^") }),
  );
  const change = { type: "rules_batch", add, remove: [] } as const;
  const run = async (faultAt: number, fault: "before" | "after") => {
    using kv = await FaultyKv.open();
    const store = await kv.store();
    const replicator = new LocalReplicator(new Applier(store), {
      clock: new FakeClock(),
      node: "node-1",
    });
    const before = kv.commits;
    kv.faultOf = (commit) => commit - before >= faultAt ? fault : null;
    const done = await replicator.propose(change, ACTOR).then(() => true, () => false);
    const commits = kv.commits - before;
    kv.faultOf = () => null;
    const { state } = await kv.store();
    const size = state.collections.rules.size;
    assert.ok([0, add.length].includes(size), `${size} rules, ${fault} commit ${faultAt}`);
    if (done) assert.equal(size, add.length);
    return commits;
  };
  const commits = await run(Infinity, "before");
  assert.ok(commits > 4, `${commits} transactions`);
  for (let faultAt = 1; faultAt <= commits; faultAt++) {
    await run(faultAt, "before");
    await run(faultAt, "after");
  }
});
