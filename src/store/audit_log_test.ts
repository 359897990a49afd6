import assert from "node:assert/strict";
import type { Actor, NewAuditEntry } from "../model/mod.ts";
import { hex } from "../model/fakes.ts";
import { AUDIT_SCAN_MAX, type AuditQuery } from "./audit_log.ts";
import { auditEntry, FaultyKv, nothing } from "./fakes.ts";
import type { Store } from "./store.ts";

const none = { permissions: "none" } as const;
const START_MS = Date.parse("2026-01-02T00:00:00Z");

/** Entry `i` is made in second `i`, by one of three, about one of two types. */
async function fill(store: Store, count: number): Promise<void> {
  const actors: readonly Actor[] = [
    { kind: "user", name: "ann", address: null },
    { kind: "user", name: "token", address: null },
    { kind: "token", name: null, address: null },
  ];
  for (let from = 0; from < count; from += 500) {
    const audit: NewAuditEntry[] = [];
    for (let i = from; i < Math.min(count, from + 500); i++) {
      audit.push(auditEntry(`n${i}`, {
        resource: { type: i % 2 === 0 ? "node" : "cache", id: null },
        time: new Date(START_MS + i * 1_000).toISOString(),
        actor: actors[i % 3],
      }));
    }
    await store.commit({ ...nothing(store), audit });
  }
}

/** The numbers of every entry that a query leads to, and of the answers it takes. */
async function all(store: Store, query: AuditQuery) {
  const found: number[] = [];
  for (let answers = 1;; answers++) {
    const next = found.length === 0 ? query.next : undefined;
    let page = await store.audit({ ...query, next });
    found.push(...page.entries.map(({ action }) => Number(action.slice(1))));
    while (page.next !== null) {
      page = await store.audit({ ...query, next: page.next });
      found.push(...page.entries.map(({ action }) => Number(action.slice(1))));
      answers++;
    }
    return { found, answers };
  }
}

const COUNT = 330;
const at = (i: number) => new Date(START_MS + i * 1_000).toISOString();
const down = Array.from({ length: COUNT }, (_, i) => COUNT - 1 - i);

const QUERIES: readonly (readonly [AuditQuery, (i: number) => boolean])[] = [
  [{ limit: 100 }, () => true],
  [{ limit: 110 }, () => true],
  [{ limit: 1_000 }, () => true],
  [{ limit: 7, type: "cache" }, (i) => i % 2 === 1],
  [{ limit: 7, actor: "ann" }, (i) => i % 3 === 0],
  [{ limit: 7, actor: "token" }, (i) => i % 3 > 0],
  [{ limit: 9, actor: "user", type: "node" }, (i) => i % 3 < 2 && i % 2 === 0],
  [{ limit: 9, since: at(50) }, (i) => i > 50],
  [{ limit: 9, until: at(50) }, (i) => i < 50],
  [{ limit: 9, since: at(50), until: "2026-01-02T01:01:00+01:00" }, (i) => i > 50 && i < 60],
  [{ limit: 9, type: "nothing" }, () => false],
];

Deno.test("Store.audit() leads through all that is asked for, once each", none, async (t) => {
  using kv = await FaultyKv.open();
  const store = await kv.store();
  await fill(store, COUNT);
  for (const [query, passes] of QUERIES) {
    await t.step(JSON.stringify(query), async () => {
      const { found, answers } = await all(store, query);
      assert.deepEqual(found, down.filter(passes));
      assert.equal(answers, Math.max(1, Math.ceil(found.length / query.limit)) + restOf(query));
    });
  }
  assert.deepEqual((await store.audit({ limit: 0 })).entries, []);
  assert.deepEqual(await store.audit({ limit: 9, next: hex(0) }), { entries: [], next: null });
  assert.equal((await store.audit({ limit: 9, next: "f".repeat(16) })).entries.length, 9);
});

/** An answer that is full tells of no end where older entries might yet pass. */
function restOf({ limit, type, actor, since, until }: AuditQuery): number {
  const passing =
    QUERIES.find(([query]) =>
      query.type === type && query.actor === actor && query.since === since && query.until === until
    )![1];
  const found = down.filter(passing);
  return found.length > 0 && found.length % limit === 0 && found.at(-1) !== 0 ? 1 : 0;
}

Deno.test("Store.audit() looks at so many entries and no more, and goes on", none, async () => {
  using kv = await FaultyKv.open();
  const store = await kv.store();
  await fill(store, AUDIT_SCAN_MAX + 10);
  const first = await store.audit({ limit: 5, actor: "nobody" });
  assert.deepEqual(first, { entries: [], next: hex(10) });
  const last = await store.audit({ limit: 5, actor: "nobody", next: first.next ?? "" });
  assert.deepEqual(last, { entries: [], next: null });
  const found = await store.audit({ limit: 5, next: first.next ?? "" });
  assert.deepEqual(found.entries.map(({ action }) => action), ["n9", "n8", "n7", "n6", "n5"]);
});

Deno.test("Store.audit() lets others have their turn while it looks", none, async () => {
  using kv = await FaultyKv.open();
  const store = await kv.store();
  await fill(store, 1_000);
  let turns = 0;
  let isDone = false;
  const others = (async () => {
    while (!isDone) {
      await new Promise((resolve) => setTimeout(resolve, 0));
      turns++;
    }
  })();
  await store.audit({ limit: 5, actor: "nobody" });
  isDone = true;
  await others;
  assert.ok(turns >= 1_000 / 50 / 2, `${turns} turns beside 20 slices`);
});
