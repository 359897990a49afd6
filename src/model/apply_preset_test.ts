import assert from "node:assert/strict";
import type { Actor, Change } from "./command.ts";
import { groupSpec, ids, listSpec } from "./fakes.ts";
import { apply, emptyState, type LiveState } from "./mod.ts";

const none = { permissions: "none" } as const;
const ACTOR: Actor = { kind: "token", name: null, address: null };
const AT = "2026-01-02T03:04:05.678Z";

class Bench {
  state: LiveState = emptyState();

  does(change: Change) {
    const applied = apply(this.state, { change, actor: ACTOR, at: AT, node: "n" });
    this.state = applied.state;
    return applied;
  }

  preset(
    names: readonly string[],
    without: readonly string[],
    groups: readonly string[],
    from = 50,
  ) {
    const add = names.map((name, i) => ({ id: ids.list(from + i), spec: listSpec(name) }));
    const urls = without.map((name) => listSpec(name).url!);
    return this.does({ type: "lists_preset", preset: "strict", add, without: urls, groups });
  }

  /** Names of the lists of a group. */
  lists(group: string): string {
    const { lists, groups } = this.state.collections;
    return groups.get(group)!.spec.lists.map(({ list, schedule }) =>
      lists.get(list)!.spec.name + (schedule === undefined ? "" : "@")
    ).join(" ");
  }
}

function filled(): Bench {
  const bench = new Bench();
  const list = (n: number, name: string, enabled = true) =>
    bench.does({
      type: "create",
      collection: "lists",
      id: ids.list(n),
      spec: { ...listSpec(name), enabled },
    });
  list(1, "ads");
  list(2, "mine");
  list(3, "old");
  list(4, "off", false);
  const windows = [{ days: ["mon" as const], start: "08:00", end: "09:00" }];
  const schedule = ids.schedule(1);
  const spec = { name: "s", time_zone: "UTC", windows };
  bench.does({ type: "create", collection: "schedules", id: schedule, spec });
  const lists = [{ list: ids.list(1), schedule }, { list: ids.list(2) }, { list: ids.list(3) }];
  for (const n of [1, 2]) {
    const group = groupSpec(`g${n}`, n === 1 ? lists : []);
    bench.does({ type: "create", collection: "groups", id: ids.group(n), spec: group });
  }
  return bench;
}

Deno.test("a preset replaces what others recommend, and keeps what was chosen", none, () => {
  const bench = filled();
  const groups = [ids.group(1), ids.group(2)];
  const applied = bench.preset(["ads", "off", "new"], ["old", "never"], groups);
  assert.equal(applied.settled.kind, "done");
  assert.equal(bench.lists(ids.group(1)), "ads@ mine off new");
  assert.equal(bench.lists(ids.group(2)), "ads off new");
  const { lists } = bench.state.collections;
  assert.equal(lists.size, 5, "one is made, and none is removed");
  assert.equal(lists.get(ids.list(4))?.spec.enabled, true);
  assert.ok(applied.kind === "made");
  assert.deepEqual(applied.audit.action, "preset");
  assert.deepEqual(applied.audit.after, {
    preset: "strict",
    groups,
    lists: [ids.list(1), ids.list(4), ids.list(52)],
    made: 1,
  });
  bench.preset(["ads", "off", "new"], ["old"], groups, 70);
  assert.equal(bench.state.collections.lists.size, 5, "once more it makes none");
});

Deno.test("a preset is given to all of the groups or to none", none, () => {
  const bench = filled();
  const before = bench.state;
  const { settled } = bench.preset(["new"], [], [ids.group(1), ids.group(9)]);
  assert.ok(settled.kind === "refused");
  assert.match(settled.message, /^groups\[1\]: .*no such group/);
  assert.equal(bench.state.collections, before.collections);
});
