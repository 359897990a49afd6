import assert from "node:assert/strict";
import { apply } from "./apply.ts";
import type { Change } from "./command.ts";
import { decodeRulesBatch, REGEX_BATCH_MAX } from "./decode.ts";
import { AT, commandOf, FIRST_SEED, ids, ruleSpec, stateAfter } from "./fakes.ts";
import { emptyState, type LiveState, type Made } from "./live_state.ts";
import { PROBLEMS_MAX } from "./problems.ts";
import { COLLECTION_SIZE_MAX, RULES_BATCH_MAX } from "./resources.ts";
import { jsonBytes } from "./result.ts";

const none = { permissions: "none" } as const;
type Batch = Extract<Change, { type: "rules_batch" }>;

function batch(add: readonly [n: number, rule: string][], remove: readonly number[] = []): Batch {
  return {
    type: "rules_batch",
    add: add.map(([n, rule]) => ({ id: ids.rule(n), spec: ruleSpec(rule) })),
    remove: remove.map(ids.rule),
  };
}

function made(state: LiveState, change: Change): Made {
  const applied = apply(state, commandOf(change));
  assert.ok(applied.kind === "made", JSON.stringify(applied));
  return applied;
}

function texts({ collections }: LiveState): string[] {
  return [...collections.rules.values()].map(({ spec }) => spec.rule);
}

const THREE = stateAfter(batch([[1, "||a.example^"], [2, "||b.example^"], [3, "||c.example^"]]));

Deno.test("apply() of a batch removes and adds rules in one change", none, () => {
  const add: [number, string][] = [[4, "||b.example^"], [5, "||d.example^"], [6, "||d.example^"]];
  const { state, settled, writes, audit } = made(THREE, batch(add, [2, 1]));
  assert.deepEqual(texts(state), ["||c.example^", "||b.example^", "||d.example^", "||d.example^"]);
  assert.equal(state.appliedIndex, THREE.appliedIndex + 1, "one change");
  const envelopes = add.map(([n]) => state.collections.rules.get(ids.rule(n)));
  assert.deepEqual(settled.value, envelopes);
  assert.deepEqual(envelopes[0], {
    id: ids.rule(4),
    revision: 1,
    created_at: AT,
    updated_at: AT,
    spec: ruleSpec("||b.example^"),
  });
  assert.equal(writes.length, 5);
  assert.deepEqual([audit.action, audit.resource], ["batch", { type: "rule", id: null }]);
  assert.deepEqual(audit.before, {
    removed: 2,
    rules: [
      { id: ids.rule(2), rule: "||b.example^" },
      { id: ids.rule(1), rule: "||a.example^" },
    ],
  });
  assert.deepEqual(audit.after, {
    added: 3,
    rules: add.map(([n, rule]) => ({ id: ids.rule(n), rule })),
  });
  assert.equal(made(THREE, batch([], [1])).audit.after, null);
  assert.equal(made(THREE, batch([[9, "||x.example^"]])).audit.before, null);
});

Deno.test("apply() refuses a batch whole, and names the first bad item", none, async (t) => {
  const rows: [string, Change, code: string, message: RegExp][] = [
    [
      "an ID of no rule",
      batch([[4, "||d.example^"]], [1, 9]),
      "not_found",
      /^remove\[1\]: ru_0+9: /,
    ],
    ["an ID twice", batch([], [1, 1]), "not_found", /^remove\[1\]: ru_0+1: /],
    [
      "an ID that is taken",
      batch([[4, "||d.example^"], [3, "||x.example^"]]),
      "conflict",
      /^add\[1\]/,
    ],
    [
      "two new ones of one ID",
      batch([[4, "||d.example^"], [4, "||x.example^"]]),
      "conflict",
      /add\[1\]/,
    ],
    ["no rule", batch([[4, "||d.example^"], [5, ""]]), "invalid", /^add\[1\]\.rule: /],
    [
      "an ID of something else",
      {
        type: "rules_batch",
        add: [{ id: ids.list(1), spec: ruleSpec("||d.example^") }],
        remove: [],
      },
      "invalid",
      /^add\[0\]\.id: /,
    ],
    [
      "too many",
      batch(Array.from({ length: RULES_BATCH_MAX + 1 }, (_, i) => [i + 9, "||x.example^"])),
      "invalid",
      /^add: /,
    ],
  ];
  for (const [name, change, code, message] of rows) {
    await t.step(name, () => {
      const applied = apply(THREE, commandOf(change));
      assert.ok(applied.kind === "refused");
      assert.equal(applied.settled.code, code);
      assert.match(applied.settled.message, message);
    });
  }
});

Deno.test("apply() makes room before it fills it", none, () => {
  let state = made(emptyState(), FIRST_SEED).state;
  for (let n = 0; n < COLLECTION_SIZE_MAX; n += RULES_BATCH_MAX) {
    const add: [number, string][] = Array.from(
      { length: RULES_BATCH_MAX },
      (_, i) => [n + i, "||a.example^"],
    );
    state = made(state, batch(add)).state;
  }
  assert.equal(state.collections.rules.size, COLLECTION_SIZE_MAX);
  const one: [number, string][] = [[COLLECTION_SIZE_MAX, "||b.example^"]];
  const full = apply(state, commandOf(batch(one)));
  assert.ok(full.kind === "refused" && full.settled.code === "conflict");
  assert.equal(made(state, batch(one, [7])).state.collections.rules.size, COLLECTION_SIZE_MAX);
});

Deno.test("apply() keeps the audit entry of a batch small, whatever it holds", none, () => {
  const long = (n: number): [number, string] => [n, `||${"ü".repeat(1_000)}${n}.example^`];
  const first = batch(Array.from({ length: 300 }, (_, n) => long(n)));
  const { state, audit } = made(THREE.collections.rules.size > 0 ? emptySeeded() : THREE, first);
  const after = audit.after as { added: number; rules: unknown[] };
  assert.equal(after.added, 300);
  assert.ok(after.rules.length > 5 && after.rules.length < 30, `${after.rules.length} rules`);
  const both = made(
    state,
    batch(
      Array.from({ length: 300 }, (_, n) => long(n + 1_000)),
      Array.from({ length: 300 }, (_, n) => n),
    ),
  );
  assert.ok(jsonBytes(both.audit) < 50 * 1024, `${jsonBytes(both.audit)} bytes`);
});

function emptySeeded(): LiveState {
  return made(emptyState(), FIRST_SEED).state;
}

Deno.test("decodeRulesBatch() names the first bad item by its index", none, async (t) => {
  const good = { rule: "||a.example^" };
  const many = (count: number) => Array.from({ length: count }, () => good);
  const rows: [string, unknown, path: string, message: RegExp][] = [
    ["no object", [], "", /not an object/],
    ["nothing", null, "", /not an object/],
    ["another field", { change: [] }, "change", /no such field/],
    ["no array", { add: good }, "add", /it is not an array/],
    ["no spec", { add: [good, null] }, "add[1]", /not an object/],
    ["no rule", { add: [good, {}] }, "add[1].rule", /is missing/],
    [
      "a bad rule",
      { add: [good, good, { rule: "||a.example/path" }, { rule: "" }] },
      "add[2].rule",
      /./,
    ],
    ["what is no rule", { add: [good, { rule: "a*" }] }, "add[1].rule", /3 characters/],
    ["a broken expression", { add: [{ rule: "/a(/" }] }, "add[0].rule", /regular expression/],
    [
      "an expression that grows too large",
      { add: [{ rule: "/[ab].{40}c/" }] },
      "add[0].rule",
      /too large/,
    ],
    [
      "an expression that finds no name",
      { add: [{ rule: "/^https?:/" }] },
      "add[0].rule",
      /about a URL/,
    ],
    [
      "too many expressions",
      { add: Array.from({ length: REGEX_BATCH_MAX + 1 }, () => ({ rule: " @@/a/" })) },
      "",
      /201 regular expressions/,
    ],
    ["two lines", { add: [{ rule: "||a.example^\n||b.example^" }] }, "add[0].rule", /one line/],
    ["an unknown field", { add: [{ ...good, colour: 1 }] }, "add[0].colour", /no such field/],
    ["no ID", { remove: ["ru_0000000000000001", "ru_1"] }, "remove[1]", /no ID of ru_/],
    ["a list's ID", { remove: ["li_0000000000000001"] }, "remove[0]", /no ID of ru_/],
    ["an ID twice", { remove: [1, 2, 1].map(ids.rule) }, "remove[2]", /is remove\[0\] again/],
    ["too many", { add: many(RULES_BATCH_MAX + 1) }, "", /has 10001 rules/],
    ["too many together", { add: many(RULES_BATCH_MAX), remove: [ids.rule(1)] }, "", /10001/],
    ["very many that are none", { add: Array.from({ length: 300_000 }, () => 0) }, "", /300000/],
  ];
  for (const [name, json, path, message] of rows) {
    await t.step(name, () => {
      const decoded = decodeRulesBatch(json);
      assert.ok(!decoded.ok);
      assert.equal(decoded.problems[0].path, path);
      assert.match(decoded.problems[0].message, message);
    });
  }
  await t.step("all that is wrong, up to a bound", () => {
    const bad = decodeRulesBatch({
      add: [{ rule: "||a.example/path", colour: 1 }, good, {}],
      remove: [ids.rule(1), ids.rule(1)],
    });
    assert.ok(!bad.ok);
    assert.deepEqual(bad.problems.map(({ path }) => path), [
      "add[0].colour",
      "add[0].rule",
      "add[2].rule",
      "remove[1]",
    ]);
    const worst = decodeRulesBatch({ add: Array.from({ length: RULES_BATCH_MAX }, () => 0) });
    assert.ok(!worst.ok && worst.problems.length === PROBLEMS_MAX);
  });
  await t.step("what is good", () => {
    const full = decodeRulesBatch({ add: many(RULES_BATCH_MAX - 1), remove: [ids.rule(1)] });
    assert.ok(full.ok && full.spec.add.length === RULES_BATCH_MAX - 1);
    assert.deepEqual(decodeRulesBatch({}), { ok: true, spec: { add: [], remove: [] } });
    assert.deepEqual(decodeRulesBatch({ add: [{ rule: "  ||a.example^|  " }] }), {
      ok: true,
      spec: { add: [ruleSpec("||a.example^|")], remove: [] },
    });
  });
});
