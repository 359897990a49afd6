// Goal: what another product has is added whole or not at all, and nothing that is there changes.
import assert from "node:assert/strict";
import { MIGRATION_ITEMS_MAX } from "./apply_migration.ts";
import type { Change } from "./command.ts";
import {
  clientSpec,
  commandOf,
  groupSpec,
  ids,
  listSpec,
  recordSpec,
  ruleSpec,
  scheduleSpec,
  stateAfter,
} from "./fakes.ts";
import { apply, DEFAULT_GROUP_ID, DEFAULT_SETTINGS, type LiveState } from "./mod.ts";

const none = { permissions: "none" } as const;
type Migration = Extract<Change, { type: "migrate" }>;

function migration(add: Partial<Migration["add"]>, more: Partial<Migration> = {}): Migration {
  const all = { schedules: [], lists: [], records: [], groups: [], clients: [], rules: [] };
  return {
    type: "migrate",
    from: "adguard at router.example",
    add: { ...all, ...add },
    join: [],
    settings: null,
    ...more,
  };
}

const WHOLE = migration({
  schedules: [{ id: ids.schedule(1), spec: scheduleSpec("Night") }],
  lists: [{ id: ids.list(1), spec: listSpec("ads") }],
  records: [{ id: ids.record(1), spec: recordSpec("nas.example", "A", "192.0.2.1") }],
  groups: [{ id: ids.group(1), spec: groupSpec("Kids", [{ list: ids.list(1) }]) }],
  clients: [{ id: ids.client(1), spec: clientSpec("tv", ["192.0.2.7"], [], ids.group(1)) }],
  rules: [{ id: ids.rule(1), spec: { ...ruleSpec("||a.example^"), groups: [ids.group(1)] } }],
}, {
  join: [{
    group: DEFAULT_GROUP_ID,
    lists: [{ list: ids.list(1), schedule: ids.schedule(1) }],
    blocked_services: [{ service: "tiktok", schedule: ids.schedule(1) }],
    safe_search: true,
  }],
  settings: { spec: { ...DEFAULT_SETTINGS, block_ttl: 60 }, revision: 1 },
});

function refusal(state: LiveState, change: Change): string {
  const applied = apply(state, commandOf(change));
  assert.equal(applied.kind, "refused");
  assert.deepEqual(applied.state.collections, state.collections, "nothing is changed");
  assert.equal(applied.state.settings, state.settings);
  const { settled } = applied;
  return settled.kind === "refused" ? `${settled.code}: ${settled.message}` : "";
}

Deno.test("a migration adds, joins and sets in one change, which is one entry", none, () => {
  const applied = apply(stateAfter(), commandOf(WHOLE));
  assert.ok(applied.kind === "made");
  const { collections, settings } = applied.state;
  for (const map of Object.values(collections)) assert.ok(map.size >= 1);
  const joined = collections.groups.get(DEFAULT_GROUP_ID)!;
  assert.deepEqual(joined.spec.lists, [{ list: ids.list(1), schedule: ids.schedule(1) }]);
  assert.deepEqual([joined.revision, joined.spec.safe_search], [2, true]);
  assert.deepEqual([settings.revision, settings.spec.block_ttl], [2, 60]);
  const { action, resource, after } = applied.audit;
  assert.deepEqual([action, resource], ["migrate", { type: "config", id: null }]);
  assert.deepEqual(after, {
    from: "adguard at router.example",
    added: { schedules: 1, lists: 1, records: 1, groups: 1, clients: 1, rules: 1 },
    joined: 1,
    settings: true,
  });
});

Deno.test("a group that is joined keeps what it has, and gets nothing twice", none, () => {
  const own = { list: ids.list(9) };
  const state = stateAfter(
    { type: "create", collection: "lists", id: ids.list(9), spec: listSpec("own") },
    {
      type: "create",
      collection: "groups",
      id: ids.group(9),
      spec: { ...groupSpec("Old", [own], [{ service: "tiktok" }]), safe_search: true },
    },
  );
  const [join] = WHOLE.join;
  const lists = [{ list: ids.list(9), schedule: ids.schedule(1) }, ...join.lists];
  const change = {
    ...WHOLE,
    join: [{ ...join, group: ids.group(9), lists, safe_search: false }],
  };
  const applied = apply(state, commandOf(change));
  assert.ok(applied.kind === "made");
  const { spec } = applied.state.collections.groups.get(ids.group(9))!;
  assert.deepEqual(spec.lists, [own, ...join.lists]);
  assert.deepEqual(spec.blocked_services, [{ service: "tiktok" }], "at all times, as it was");
  assert.equal(spec.safe_search, true);
});

Deno.test("a migration that does not fit whole changes nothing", none, () => {
  const state = stateAfter(
    {
      type: "create",
      collection: "clients",
      id: ids.client(9),
      spec: clientSpec("mine", ["192.0.2.7"]),
    },
  );
  const rows: readonly (readonly [Migration, string])[] = [
    [WHOLE, `conflict: add.clients[0].addresses[0]: 192.0.2.7 belongs to ${ids.client(9)} already`],
    [
      migration({}, { join: [{ ...WHOLE.join[0], group: ids.group(7) }] }),
      `not_found: join[0]: ${ids.group(7)}: there is no such group`,
    ],
    [
      migration({}, { settings: { spec: DEFAULT_SETTINGS, revision: 7 } }),
      "revision_mismatch: settings: has revision 1, not 7",
    ],
    [
      migration({
        rules: Array.from({ length: MIGRATION_ITEMS_MAX + 1 }, (_, n) => ({
          id: ids.rule(n),
          spec: ruleSpec(`||n${n}.example^`),
        })),
      }),
      `invalid: add: one change takes ${MIGRATION_ITEMS_MAX} resources`,
    ],
    [
      migration({ lists: [{ id: "li_", spec: listSpec("a") }] }),
      "invalid: add.lists[0].id: li_ is no ID of lists",
    ],
  ];
  for (const [change, message] of rows) assert.equal(refusal(state, change), message);
});
