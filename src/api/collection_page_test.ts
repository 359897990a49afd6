import assert from "node:assert/strict";
import { PersistentMap } from "../model/mod.ts";
import { pageOf } from "./collection_page.ts";

const none = { permissions: "none" } as const;

function clients(count: number) {
  let map = PersistentMap.empty<{ id: string; spec: unknown }>();
  for (let i = 0; i < count; i++) {
    const spec = { name: `Tablet ${i}`, addresses: [`192.0.2.${i}`], managed_by: "api" };
    map = map.with(`cl_${i}`, { id: `cl_${i}`, spec });
  }
  return map;
}

Deno.test(
  "pageOf() goes through all of a collection, whatever comes and goes meanwhile",
  none,
  () => {
    let all = clients(10);
    const first = pageOf(all, { limit: 4 });
    assert.deepEqual(first.items.map(({ id }) => id), ["cl_0", "cl_1", "cl_2", "cl_3"]);
    all = all.without("cl_3").without("cl_4").with("cl_10", { id: "cl_10", spec: { name: "New" } });
    const second = pageOf(all, { limit: 5, next: first.next! });
    assert.deepEqual(second.items.map(({ id }) => id), ["cl_5", "cl_6", "cl_7", "cl_8", "cl_9"]);
    const third = pageOf(all, { limit: 5, next: second.next! });
    assert.deepEqual([third.items.map(({ id }) => id), third.next], [["cl_10"], null]);
    assert.equal(pageOf(all, { limit: 9 }).next, null, "there is no empty last page");
  },
);

Deno.test("pageOf() finds a text in any field, in either case", none, async (t) => {
  const all = clients(20).with("cl_x", {
    id: "cl_x",
    spec: { name: "<b>\u202eÄpfel", ids: ["kids-tv"], group: "gr_1", managed_by: "someone" },
  });
  const rows: readonly (readonly [string, readonly string[]])[] = [
    ["TABLET 7", ["cl_7"]],
    ["192.0.2.1", ["cl_1", ...Array.from({ length: 10 }, (_, i) => `cl_${10 + i}`)]],
    ["äPFEL", ["cl_x"]],
    ["<B>", ["cl_x"]],
    ["gr_1", ["cl_x"]],
    ["cl_3", ["cl_3"]],
    ["kids-tv", ["cl_x"]],
    ["someone", []],
    [".*", []],
  ];
  for (const [q, want] of rows) {
    await t.step(q, () => assert.deepEqual(pageOf(all, { q }).items.map(({ id }) => id), want));
  }
});
