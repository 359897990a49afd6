import assert from "node:assert/strict";
import type { Actor, Change } from "./command.ts";
import { clientSpec, groupSpec, ids, ruleSpec } from "./fakes.ts";
import { apply, decodeSpec, emptyState, type LiveState, restoreState, writesOf } from "./mod.ts";
import { LIMITED_RULES_MAX } from "./references.ts";

const none = { permissions: "none" } as const;
const ACTOR: Actor = { kind: "cli", name: null, address: null };
const AT = "2026-01-02T03:04:05.678Z";

/** A state of a group and a client of it, and what becomes of changes to it. */
class Bench {
  state: LiveState = emptyState();

  constructor() {
    const [group, client] = [ids.group(1), ids.client(1)];
    const spec = clientSpec("tv", ["192.0.2.1"], [], group);
    this.does({ type: "create", collection: "groups", id: group, spec: groupSpec("kids") });
    this.does({ type: "create", collection: "clients", id: client, spec });
  }

  does(change: Change): string {
    const applied = apply(this.state, { change, actor: ACTOR, at: AT, node: "n" });
    this.state = applied.state;
    const { settled } = applied;
    return settled.kind === "refused" ? `${settled.code} ${settled.message}` : "done";
  }

  rule(n: number, limits: Partial<ReturnType<typeof ruleSpec>>): string {
    const spec = { ...ruleSpec(`||${n}.example^`), ...limits };
    return this.does({ type: "create", collection: "rules", id: ids.rule(n), spec });
  }

  gone(collection: "groups" | "clients" | "rules", id: string): string {
    return this.does({ type: "delete", collection, id, ifMatch: null });
  }
}

Deno.test("apply() keeps a rule's groups and clients there", none, () => {
  const bench = new Bench();
  const [group, client] = [ids.group(1), ids.client(1)];
  assert.match(bench.rule(1, { groups: [group, ids.group(9)] }), /^conflict groups\[1\]: no group/);
  assert.match(bench.rule(1, { clients: [ids.client(9)] }), /^conflict clients\[0\]: no client/);
  assert.equal(bench.rule(1, { groups: [group] }), "done");
  assert.equal(bench.rule(2, { clients: [client] }), "done");
  assert.match(bench.gone("clients", client), /is used by ru_\w+ \(\|\|2\.example\^\)/);
  assert.equal(bench.gone("rules", ids.rule(2)), "done");
  assert.equal(bench.gone("clients", client), "done");
  assert.match(bench.gone("groups", group), /is used by ru_\w+ \(\|\|1\.example\^\)/);
  const spec = ruleSpec("||1.example^");
  const id = ids.rule(1);
  bench.does({ type: "replace", collection: "rules", id, spec, ifMatch: null });
  assert.equal(bench.gone("groups", group), "done", "the rule is for everybody now");
});

Deno.test("apply() refuses one limited rule too many", none, () => {
  const bench = new Bench();
  for (let n = 0; n < LIMITED_RULES_MAX; n++) {
    assert.equal(bench.rule(n, { expires_at: AT }), "done");
  }
  assert.match(bench.rule(9_999, { groups: [ids.group(1)] }), /^conflict rules: 1000 have an end/);
  assert.equal(bench.rule(9_999, {}), "done", "a rule for everybody is none of them");
  const again = { ...ruleSpec("||0.example^"), expires_at: AT, comment: "as it was" };
  const id = ids.rule(0);
  const change = { type: "replace", collection: "rules", id, spec: again, ifMatch: null } as const;
  assert.equal(bench.does(change), "done", "one that is there may be changed");
});

/** What is stored of a state, as values that may be changed. */
// deno-lint-ignore no-explicit-any -- JSON of every form
function storedParts(state: LiveState, change: (copy: any) => void = () => {}) {
  const stored = [...writesOf(state)];
  const resources = Object.fromEntries(
    ["schedules", "lists", "rules", "records", "groups", "clients"].map((collection) => [
      collection,
      new Map(
        stored.filter(({ key }) => key[1] === collection).map(({ key, value }) => {
          const copy = JSON.parse(JSON.stringify(value));
          change(copy);
          return [key[2], copy];
        }),
      ),
    ]),
  ) as unknown as Parameters<typeof restoreState>[0]["resources"];
  const settings = stored.find(({ key }) => key[0] === "settings")?.value;
  const users = new Map<string, unknown>();
  const credentials = { tokens: users, webhooks: users };
  return { resources, users, credentials, settings, appliedIndex: 4 };
}

Deno.test("restoreState() knows limited rules again, and reads what had no limits", none, () => {
  const bench = new Bench();
  bench.rule(1, { expires_at: AT });
  bench.rule(2, {});
  const restored = restoreState(storedParts(bench.state, ({ value: { spec } }) => {
    // As an earlier version wrote it.
    for (const field of ["groups", "clients", "paused_until"]) delete spec[field];
  }));
  assert.ok(restored.ok, JSON.stringify(restored));
  assert.deepEqual([...restored.state.limitedRules.keys()], [ids.rule(1)]);
  assert.deepEqual(restored.state.collections.rules, bench.state.collections.rules);
  assert.equal(restored.state.collections.groups.get(ids.group(1))?.spec.paused_until, null);
});

Deno.test(
  "restoreState() takes as many limited rules as there may be, and names the next",
  none,
  () => {
    const bench = new Bench();
    for (let n = 0; n < LIMITED_RULES_MAX; n++) bench.rule(n, { expires_at: AT });
    bench.rule(LIMITED_RULES_MAX, {});
    assert.ok(restoreState(storedParts(bench.state)).ok);
    const restored = restoreState(storedParts(bench.state, ({ value: { spec } }) => {
      if ("rule" in spec) spec.expires_at = AT;
    }));
    assert.deepEqual(restored, {
      ok: false,
      key: `resource/rules/${ids.rule(LIMITED_RULES_MAX)}`,
      message: "more than 1000 rules have an end, groups or clients",
    });
  },
);

Deno.test("decodeSpec() refuses limits that can't be", none, async (t) => {
  const group = ids.group(1);
  const rows: readonly (readonly [object, string])[] = [
    [{ rule: "||a.example^$badfilter", groups: [group] }, "rule"],
    [{ rule: "||a.example^", groups: [group, group] }, "groups[1]"],
    [{ rule: "||a.example^", clients: [group] }, "clients[0]"],
    [{ rule: "||a.example^", expires_at: "tomorrow" }, "expires_at"],
    [{ rule: "||a.example^", expires_at: 1_767_323_045 }, "expires_at"],
    [
      { rule: "||a.example^", groups: Array.from({ length: 65 }, (_, i) => ids.group(i)) },
      "groups",
    ],
  ];
  for (const [json, path] of rows) {
    await t.step(JSON.stringify(json).slice(0, 100), () => {
      const decoded = decodeSpec("rules", json);
      assert.ok(!decoded.ok);
      assert.equal(decoded.problems[0].path, path);
    });
  }
});
