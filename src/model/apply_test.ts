import assert from "node:assert/strict";
import { apply, noteEntry } from "./apply.ts";
import type { AuditAction } from "./audit_words.ts";
import type { Change, Settled } from "./command.ts";
import {
  ACTOR,
  AT,
  clientSpec,
  commandOf,
  FIRST_SEED,
  groupSpec,
  ids,
  listSpec,
  newUser,
  recordSpec,
  ruleSpec,
  scheduleSpec,
  stateAfter,
} from "./fakes.ts";
import { emptyState, type LiveState, type Made, writesOf } from "./live_state.ts";
import { DEFAULT_GROUP_ID } from "./constants.ts";
import { RESOURCE_TYPE } from "./resources.ts";
import { DEFAULT_SETTINGS } from "./settings.ts";

const none = { permissions: "none" } as const;

function create(collection: "lists" | "rules", n: number, name: string): Change {
  return collection === "lists"
    ? { type: "create", collection, id: ids.list(n), spec: listSpec(name) }
    : { type: "create", collection, id: ids.rule(n), spec: ruleSpec(name) };
}

const LIST = create("lists", 1, "ads");
const SCHEDULE: Change = {
  type: "create",
  collection: "schedules",
  id: ids.schedule(1),
  spec: scheduleSpec("work"),
};
const GROUP: Change = {
  type: "create",
  collection: "groups",
  id: ids.group(1),
  spec: groupSpec("kids", [{ list: ids.list(1), schedule: ids.schedule(1) }]),
};
const CLIENT: Change = {
  type: "create",
  collection: "clients",
  id: ids.client(1),
  spec: clientSpec("tv", ["192.0.2.7", "2001:db8::/64"], ["tv"], ids.group(1)),
};
const WEB: Change = {
  type: "create",
  collection: "records",
  id: ids.record(1),
  spec: recordSpec("web.example", "A", "192.0.2.1"),
};
const ALIAS: Change = {
  type: "create",
  collection: "records",
  id: ids.record(2),
  spec: recordSpec("alias.example", "CNAME", "web.example"),
};
const ADMIN: Change = { type: "user_create", user: newUser(1, "ann") };
const VIEWER: Change = { type: "user_create", user: newUser(2, "bob", { role: "viewer" }) };
const ALL = [LIST, SCHEDULE, GROUP, CLIENT, WEB, ALIAS, ADMIN, VIEWER];

type UserFields = Extract<Change, { type: "user_change" }>["fields"];
const changeUser = (n: number, fields: UserFields, ifMatch: number | null = null): Change => ({
  type: "user_change",
  id: ids.user(n),
  ifMatch,
  fields,
  endSessions: true,
  action: "update",
});
const deleteOf = (
  collection: keyof typeof RESOURCE_TYPE,
  id: string,
  ifMatch?: number,
): Change => ({
  type: "delete",
  collection,
  id,
  ifMatch: ifMatch ?? null,
});
const record = (n: number, spec: ReturnType<typeof recordSpec>): Change => ({
  type: "create",
  collection: "records",
  id: ids.record(n),
  spec,
});
const client = (n: number, addresses: string[], clientIds: string[] = []): Change => ({
  type: "create",
  collection: "clients",
  id: ids.client(n),
  spec: clientSpec("other", addresses, clientIds),
});
const group = (spec: ReturnType<typeof groupSpec>): Change => ({
  type: "create",
  collection: "groups",
  id: ids.group(9),
  spec,
});

const REFUSED: readonly (readonly [string, Change, code: string, message: RegExp])[] = [
  [
    "a stale revision of a list",
    {
      type: "replace",
      collection: "lists",
      id: ids.list(1),
      spec: listSpec("x"),
      ifMatch: 2,
    },
    "revision_mismatch",
    /li_0+1: has revision 1, not 2/,
  ],
  [
    "a stale revision in a deletion",
    deleteOf("lists", ids.list(1), 3),
    "revision_mismatch",
    /li_0+1: has revision 1, not 3/,
  ],
  [
    "a stale revision of settings",
    { type: "settings", spec: DEFAULT_SETTINGS, ifMatch: 7 },
    "revision_mismatch",
    /settings: has revision 1, not 7/,
  ],
  ["a stale revision of a user", changeUser(1, {}, 5), "revision_mismatch", /revision 1, not 5/],
  [
    "what is not there, replaced",
    {
      type: "replace",
      collection: "lists",
      id: ids.list(5),
      spec: listSpec("x"),
      ifMatch: null,
    },
    "not_found",
    /li_0+5: there is no such list/,
  ],
  ["what is not there, deleted", deleteOf("schedules", ids.schedule(5)), "not_found", /schedule/],
  ["a user that is not there", changeUser(9, {}), "not_found", /us_0+9: there is no such user/],
  ["an ID that is taken", LIST, "conflict", /li_0+1: there is one already/],
  [
    "an ID of another collection",
    { type: "create", collection: "lists", id: ids.rule(1), spec: listSpec("x") },
    "invalid",
    /^id: ru_0+1 is no ID of lists/,
  ],
  [
    "a spec that is too large",
    {
      type: "create",
      collection: "rules",
      id: ids.rule(9),
      spec: {
        ...ruleSpec("||a.example^"),
        comment: "\u0000".repeat(1_024),
        rule: "\u0001".repeat(4_000),
      },
    },
    "invalid",
    /^spec: is larger than 24576 bytes/,
  ],
  [
    "a spec of another shape",
    group({ ...groupSpec("g"), blocked_services: [{ service: "Not one" }] }),
    "invalid",
    /^blocked_services\[0\]\.service: /,
  ],
  [
    "settings of another shape",
    { type: "settings", spec: { ...DEFAULT_SETTINGS, block_ttl: -1 }, ifMatch: null },
    "invalid",
    /^block_ttl: /,
  ],
  [
    "a user of another shape",
    changeUser(2, { password_hash: 7 } as unknown as UserFields),
    "invalid",
    /^password_hash: /,
  ],
  [
    "a group whose list is missing",
    group(groupSpec("g", [{ list: ids.list(1) }, { list: ids.list(9) }])),
    "conflict",
    /^lists\[1\]\.list: no list has the ID li_0+9/,
  ],
  [
    "a group whose list's schedule is missing",
    group(groupSpec("g", [{ list: ids.list(1), schedule: ids.schedule(9) }])),
    "conflict",
    /^lists\[0\]\.schedule: no schedule has the ID sc_0+9/,
  ],
  [
    "a group whose service's schedule is missing",
    group(groupSpec("g", [], [{ service: "tube", schedule: ids.schedule(8) }])),
    "conflict",
    /^blocked_services\[0\]\.schedule: no schedule has the ID sc_0+8/,
  ],
  [
    "a client whose group is missing",
    {
      type: "create",
      collection: "clients",
      id: ids.client(9),
      spec: clientSpec("c", ["192.0.2.9"], [], ids.group(9)),
    },
    "conflict",
    /^group: no group has the ID gr_0+9/,
  ],
  ["a list in use", deleteOf("lists", ids.list(1)), "conflict", /is used by gr_0+1 \(kids\)/],
  ["a schedule in use", deleteOf("schedules", ids.schedule(1)), "conflict", /used by gr_0+1/],
  ["a group in use", deleteOf("groups", ids.group(1)), "conflict", /used by cl_0+1 \(tv\)/],
  ["the default group", deleteOf("groups", DEFAULT_GROUP_ID), "conflict", /default group/],
  [
    "an address of another client",
    client(2, ["192.0.2.8", "192.0.2.7"]),
    "conflict",
    /^addresses\[1\]: 192\.0\.2\.7 belongs to cl_0+1/,
  ],
  ["a network of another client", client(2, ["2001:db8::/64"]), "conflict", /^addresses\[0\]/],
  ["a client ID of another", client(2, [], ["pc", "tv"]), "conflict", /^ids\[1\]: tv belongs/],
  [
    "a CNAME beside an address",
    record(9, recordSpec("web.example", "CNAME", "a.example")),
    "conflict",
    /^name: a CNAME record stands alone, and re_0+1 is a A record/,
  ],
  [
    "an address beside a CNAME",
    record(9, recordSpec("alias.example", "AAAA", "2001:db8::1")),
    "conflict",
    /re_0+2 is a CNAME record/,
  ],
  [
    "a second CNAME",
    record(9, recordSpec("alias.example", "CNAME", "b.example")),
    "conflict",
    /re_0+2/,
  ],
  [
    "a user name that is taken",
    { type: "user_create", user: newUser(3, "Ann") },
    "conflict",
    /ann/,
  ],
  ["a user renamed to a taken name", changeUser(2, { name: "ANN" }), "conflict", /us_0+1/],
  ["a user without a name", { type: "user_create", user: newUser(3, "") }, "invalid", /^name:/],
  ["a user ID that is taken", { type: "user_create", user: newUser(1, "x") }, "conflict", /us_0+1/],
  [
    "a user that is too large",
    { type: "user_create", user: newUser(3, "x", { password_hash: "x".repeat(9_000) }) },
    "invalid",
    /^user: is larger/,
  ],
  [
    "a seed of lists with other IDs",
    {
      type: "seed",
      first: false,
      lists: [{ id: ids.list(1), spec: listSpec("x") }],
      rules: [],
      settings: DEFAULT_SETTINGS,
    },
    "invalid",
    /^filter\.lists\[0\]: li_0+1 is no ID of a configured list/,
  ],
];

Deno.test("apply() refuses", none, async (t) => {
  const state = stateAfter(...ALL);
  for (const [name, change, code, message] of REFUSED) {
    await t.step(name, () => {
      const { kind, settled, state: after } = apply(state, commandOf(change), 99);
      assert.equal(kind, "refused");
      assert.deepEqual(after, { ...state, appliedIndex: 99 }, "it moves the index alone");
      assert.ok(settled.kind === "refused");
      assert.equal(settled.code, code);
      assert.match(settled.message, message);
    });
  }
});

Deno.test(
  "noteEntry() makes an entry of what a node does, and refuses too large a one",
  none,
  () => {
    const note = {
      action: "x".repeat(300) as AuditAction,
      resource: { type: "node", id: null } as const,
      after: undefined,
    };
    const { change: _, ...by } = commandOf(ALL[0]);
    assert.deepEqual(noteEntry(note, by), {
      time: AT,
      actor: ACTOR,
      action: "x".repeat(256),
      resource: { type: "node", id: null },
      before: null,
      after: null,
      node: by.node,
    });
    assert.throws(() => noteEntry({ ...note, after: "x".repeat(30_000) }, by), /larger/);
  },
);

Deno.test("writesOf() names all that is stored of a state", none, () => {
  const state = stateAfter(...ALL);
  const written = new Map<string, unknown>();
  for (const { key, value } of writesOf(state)) written.set(key.join("/"), value);
  let step = emptyState();
  const stored = new Map<string, unknown>();
  for (const change of [FIRST_SEED, ...ALL]) {
    const { state, writes } = made(step, change);
    step = state;
    for (const { key, value } of writes) {
      if (value === null) stored.delete(key.join("/"));
      else stored.set(key.join("/"), value);
    }
  }
  assert.deepEqual(written, stored);
});

function made(state: LiveState, change: Change, at = AT): Made {
  const applied = apply(state, commandOf(change, at));
  assert.ok(applied.kind === "made", JSON.stringify(applied));
  return applied;
}

const TAKEN: readonly (readonly [string, Change])[] = [
  [
    "a CNAME beside one that is off",
    record(9, recordSpec("web.example", "CNAME", "b.example", false)),
  ],
  ["an address beside an address", record(9, recordSpec("web.example", "A", "192.0.2.2"))],
  ["a CNAME at a wildcard", record(9, recordSpec("*.web.example", "CNAME", "b.example"))],
  ["a network around a client's address", client(2, ["192.0.2.0/24"])],
  ["a client's own address again", {
    type: "replace",
    collection: "clients",
    id: ids.client(1),
    spec: clientSpec("tv", ["192.0.2.7"], ["tv"]),
    ifMatch: 1,
  }],
  ["a list that only was named", {
    type: "replace",
    collection: "lists",
    id: ids.list(1),
    spec: listSpec("b"),
    ifMatch: 1,
  }],
  ["the default group, edited", {
    type: "replace",
    collection: "groups",
    id: DEFAULT_GROUP_ID,
    spec: groupSpec("Everyone"),
    ifMatch: null,
  }],
  ["a viewer, deleted", { type: "user_delete", id: ids.user(2), ifMatch: 1 }],
  ["a viewer, promoted", changeUser(2, { role: "admin" })],
  ["a user's own name in other letters", changeUser(1, { name: "Ann" })],
];

Deno.test("apply() takes", none, async (t) => {
  const state = stateAfter(...ALL);
  for (const [name, change] of TAKEN) {
    await t.step(name, () => assert.equal(made(state, change).settled.kind, "done"));
  }
});

Deno.test(
  "apply() counts revisions, keeps created_at and leaves the state it got alone",
  none,
  () => {
    const later = "2026-01-02T04:00:00.000Z";
    const before = stateAfter(LIST);
    const change: Change = {
      type: "replace",
      collection: "lists",
      id: ids.list(1),
      spec: listSpec("more"),
      ifMatch: 1,
    };
    const { state, settled, writes, audit } = made(before, change, later);
    const envelope = {
      id: ids.list(1),
      revision: 2,
      created_at: AT,
      updated_at: later,
      spec: listSpec("more"),
    };
    assert.deepEqual(settled.value, envelope);
    assert.deepEqual(state.collections.lists.get(ids.list(1)), envelope);
    assert.deepEqual(writes, [{
      key: ["resource", "lists", ids.list(1)],
      value: { place: 0, value: envelope },
    }]);
    assert.deepEqual(audit, {
      time: later,
      actor: { kind: "user", name: "ann", address: "192.0.2.1" },
      action: "update",
      resource: { type: "list", id: ids.list(1) },
      before: listSpec("ads"),
      after: listSpec("more"),
      node: "node-1",
    });
    assert.equal(state.appliedIndex, before.appliedIndex + 1);
    assert.equal(before.collections.lists.get(ids.list(1))?.revision, 1);
  },
);

Deno.test("apply() shares nothing with whoever proposed the change", none, () => {
  const spec = groupSpec("kids");
  const { state } = made(stateAfter(), group(spec));
  spec.name = "changed";
  assert.equal(state.collections.groups.get(ids.group(9))?.spec.name, "kids");
});

Deno.test("apply() frees the addresses and IDs of a client that loses them", none, () => {
  const replaced = made(stateAfter(...ALL), {
    type: "replace",
    collection: "clients",
    id: ids.client(1),
    spec: clientSpec("tv", ["192.0.2.99"]),
    ifMatch: null,
  }).state;
  const taken = made(replaced, client(2, ["192.0.2.7"], ["tv"])).state;
  const gone = made(taken, deleteOf("clients", ids.client(2))).state;
  assert.deepEqual([...gone.clientKeys], [["192.0.2.99", ids.client(1)]]);
});

Deno.test("apply() names no more than five users of what is in use", none, () => {
  const groups = Array.from({ length: 8 }, (_, n): Change => ({
    type: "create",
    collection: "groups",
    id: ids.group(n + 10),
    spec: groupSpec(`g${n}`, [{ list: ids.list(1) }]),
  }));
  const { settled } = apply(stateAfter(LIST, ...groups), commandOf(deleteOf("lists", ids.list(1))));
  assert.ok(settled.kind === "refused");
  assert.match(settled.message, /g0\), .*g4\) and 3 more$/);
});

Deno.test("apply() ends sessions where it is told to", none, () => {
  const state = stateAfter(ADMIN);
  const epoch = (settled: Settled) => {
    assert.ok(settled.kind === "done");
    return (settled.value as { session_epoch: number }).session_epoch;
  };
  assert.equal(epoch(made(state, changeUser(1, { password_hash: "x" })).settled), 1);
  const quiet = { ...changeUser(1, { reset: null }), endSessions: false } as Change;
  assert.equal(epoch(made(state, quiet).settled), 0);
});

Deno.test("apply() writes no secret of a user into the audit log", none, () => {
  const changes: Change[] = [
    VIEWER,
    changeUser(1, { password_hash: "SECRET-new", role: "admin", otp: null }),
    { type: "user_delete", id: ids.user(2), ifMatch: null },
  ];
  let state = stateAfter(ADMIN);
  for (const change of changes) {
    const { audit, state: next } = made(state, change);
    state = next;
    assert.doesNotMatch(JSON.stringify(audit), /SECRET/);
    for (const shown of [audit.before, audit.after]) {
      if (shown !== null) {
        assert.deepEqual(Object.keys(shown as object).sort(), ["disabled", "name", "role"]);
      }
    }
  }
});

Deno.test("apply() cuts long texts of an audit entry", none, () => {
  const actor = { kind: "user", name: "n".repeat(9_999), address: "a".repeat(9_999) } as const;
  const applied = apply(stateAfter(), { ...commandOf(LIST), actor });
  assert.ok(applied.kind === "made");
  assert.equal(applied.audit.actor.name?.length, 256);
  assert.equal(applied.audit.actor.address?.length, 256);
});

Deno.test("apply() of a seed makes what a new node has", none, () => {
  const seed: Change = {
    type: "seed",
    first: true,
    lists: [{ id: "li_cfg_00000000000000aa", spec: listSpec("ads") }],
    rules: [{ id: ids.rule(1), spec: { ...ruleSpec("||a.example^"), managed_by: "config" } }],
    settings: { ...DEFAULT_SETTINGS, block_ttl: 11 },
  };
  const { state, audit, settled } = made(emptyState(), seed);
  assert.equal(state.settings.revision, 1);
  assert.equal(state.settings.spec.block_ttl, 11);
  const group = state.collections.groups.get(DEFAULT_GROUP_ID);
  assert.equal(group?.revision, 1);
  assert.deepEqual(group?.spec.lists, [{ list: "li_cfg_00000000000000aa" }]);
  assert.equal(audit.action, "seed");
  const counts = (added: number) => ({ added, replaced: 0, removed: 0 });
  assert.deepEqual(settled.value, { lists: counts(1), rules: counts(1) });
  assert.equal(apply(emptyState(), commandOf({ ...seed, first: false })).kind, "refused");
});

Deno.test("apply() of an import replaces what came from the file and nothing else", none, () => {
  const [a, b, c] = ["aa", "bb", "cc"].map((tail) => `li_cfg_00000000000000${tail}`);
  const ours = (rule: string) => ({ ...ruleSpec(rule), managed_by: "config" });
  const seed = (lists: [string, string][], rules: [number, string][]): Change => ({
    type: "seed",
    first: false,
    lists: lists.map(([id, name]) => ({ id, spec: listSpec(name) })),
    rules: rules.map(([n, rule]) => ({ id: ids.rule(n), spec: ours(rule) })),
    settings: { ...DEFAULT_SETTINGS, block_ttl: 99 },
  });
  let { state } = made(
    stateAfter(LIST, create("rules", 9, "||mine.example^")),
    seed(
      [[a, "a"], [b, "b"]],
      [[1, "||one.example^"], [2, "||two.example^"]],
    ),
  );
  const kids = groupSpec("kids", [{ list: a }, { list: ids.list(1) }, { list: b }]);
  state = made(state, group(kids)).state;
  const { state: after, settled } = made(
    state,
    seed([[b, "b2"], [c, "c"]], [[2, "||two.example^"]]),
  );
  assert.deepEqual(settled.value, {
    lists: { added: 1, replaced: 1, removed: 1 },
    rules: { added: 0, replaced: 0, removed: 1 },
  });
  const { lists, rules, groups } = after.collections;
  assert.deepEqual([...lists.keys()], [ids.list(1), b, c]);
  assert.deepEqual([...rules.keys()], [ids.rule(9), ids.rule(2)]);
  assert.equal(lists.get(b)?.revision, 2);
  assert.equal(rules.get(ids.rule(2))?.revision, 1, "what is the same is not touched");
  assert.deepEqual(groups.get(DEFAULT_GROUP_ID)?.spec.lists, [{ list: b }, { list: c }]);
  assert.deepEqual(groups.get(ids.group(9))?.spec.lists, [{ list: ids.list(1) }, { list: b }]);
  assert.equal(after.settings.revision, 1, "settings stay");
});

Deno.test("apply() of a seed takes as many lists as a group, and one is too many", none, () => {
  const seed = (size: number): Change => ({
    type: "seed",
    first: false,
    lists: Array.from({ length: size }, (_, n) => ({
      id: `li_cfg_${n.toString(16).padStart(16, "0")}`,
      spec: listSpec(`l${n}`),
    })),
    rules: [],
    settings: DEFAULT_SETTINGS,
  });
  assert.equal(apply(stateAfter(), commandOf(seed(256))).kind, "made");
  const { settled } = apply(stateAfter(), commandOf(seed(257)));
  assert.ok(settled.kind === "refused" && settled.code === "invalid");
});
