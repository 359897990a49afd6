// Goal: a restored state is the one of the backup, whatever was there, and nothing of it is half.
import assert from "node:assert/strict";
import { apply } from "./apply.ts";
import { DIFFERENCES_MAX, type RestoreReport } from "./restore_report.ts";
import type { Actor, Change, RestoredUser, StoredUser } from "./command.ts";
import type { Credential, CredentialKind, RestoredCredential } from "./credentials.ts";
import { DEFAULT_GROUP_ID } from "./constants.ts";
import {
  ACTOR,
  clientSpec,
  commandOf,
  groupSpec,
  ids,
  listSpec,
  newTokenChange,
  newUser,
  newWebhookChange,
  recordSpec,
  ruleSpec,
  scheduleSpec,
  stateAfter,
} from "./fakes.ts";
import { type LiveState, type Made, writesOf } from "./live_state.ts";
import { LIMITED_RULES_MAX } from "./references.ts";
import { COLLECTIONS } from "./resources.ts";

const none = { permissions: "none" } as const;
type Restore = Extract<Change, { type: "restore" }>;

function userOf(user: StoredUser, hasSecrets = true): RestoredUser {
  const { password_hash, otp, reset: _, session_epoch: __, ...rest } = user;
  return { ...rest, secrets: hasSecrets ? { password_hash, otp } : null };
}

function credentialOf<K extends CredentialKind>(
  one: Credential<K>,
  hasSecrets: boolean,
): RestoredCredential<K> {
  return hasSecrets ? one : { ...one, secret: null };
}

/** All of a state, as a backup brings it. */
function restoreOf(state: LiveState, hasSecrets = true): Restore {
  const { schedules, lists, records, groups, clients, rules } = state.collections;
  return {
    type: "restore",
    settings: state.settings.spec,
    resources: {
      schedules: [...schedules.values()],
      lists: [...lists.values()],
      records: [...records.values()],
      groups: [...groups.values()],
      clients: [...clients.values()],
      rules: [...rules.values()],
    },
    users: Array.from(state.users.values(), (user) => userOf(user, hasSecrets)),
    credentials: {
      tokens: Array.from(state.credentials.tokens.values(), (one) => credentialOf(one, hasSecrets)),
      webhooks: Array.from(
        state.credentials.webhooks.values(),
        (one) => credentialOf(one, hasSecrets),
      ),
    },
    hasSecrets,
  };
}

function made(state: LiveState, change: Change, actor: Actor = ACTOR): Made {
  const applied = apply(state, { ...commandOf(change, "2026-03-01T00:00:00.000Z"), actor });
  assert.ok(applied.kind === "made", JSON.stringify(applied.settled));
  return applied;
}

function refused(state: LiveState, change: Change): string {
  const applied = apply(state, commandOf(change));
  assert.ok(applied.kind === "refused");
  assert.equal(applied.state.collections, state.collections);
  assert.equal(applied.state.users, state.users);
  return `${applied.settled.code} ${applied.settled.message}`;
}

const reportOf = ({ settled }: Made) => settled.value as RestoreReport;
const create = (collection: string, id: string, spec: unknown) =>
  ({ type: "create", collection, id, spec }) as Change;

/** One of everything, each referring to the one before. */
const FULL: readonly Change[] = [
  create("schedules", ids.schedule(1), scheduleSpec("School")),
  create("lists", ids.list(1), listSpec("ads")),
  create("records", ids.record(1), recordSpec("nas.example", "A", "192.0.2.1")),
  create(
    "groups",
    ids.group(1),
    groupSpec("Kids", [{ list: ids.list(1), schedule: ids.schedule(1) }]),
  ),
  create("clients", ids.client(1), clientSpec("tv", ["192.0.2.7"], ["tv"], ids.group(1))),
  create("rules", ids.rule(1), { ...ruleSpec("||a.example^"), groups: [ids.group(1)] }),
  create("rules", ids.rule(2), ruleSpec("||b.example^")),
  { type: "user_create", user: newUser(1, "ann") },
  { type: "user_create", user: newUser(2, "bob", { role: "viewer", otp: null }) },
];
const FULL_STATE = stateAfter(...FULL);
const lines = (state: LiveState) =>
  COLLECTIONS.map((one) => JSON.stringify([...state.collections[one].values()]));

/** What is stored makes the state that is shown. */
function assertStored(before: LiveState, { state, writes }: Made): void {
  const stored = new Map([...writesOf(before)].map(({ key, value }) => [key.join("/"), value]));
  for (const { key, value } of writes) {
    if (value === null) stored.delete(key.join("/"));
    else stored.set(key.join("/"), value);
  }
  const wanted = [...writesOf(state)].map(({ key, value }) => [key.join("/"), value]);
  assert.deepEqual(
    JSON.parse(JSON.stringify([...stored].sort())),
    JSON.parse(JSON.stringify(wanted.sort())),
  );
}

Deno.test("apply() restores everything into an empty service", none, () => {
  const empty = stateAfter(create("lists", ids.list(9), listSpec("recommended")));
  const restored = made(empty, restoreOf(FULL_STATE));
  const defaults = restored.state.collections.groups.get(DEFAULT_GROUP_ID);
  assert.deepEqual(defaults, empty.collections.groups.get(DEFAULT_GROUP_ID));
  assert.deepEqual(lines(restored.state), lines(FULL_STATE));
  assert.deepEqual(restored.state.settings.spec, FULL_STATE.settings.spec);
  const access = ({ users }: LiveState) =>
    [...users.values()].map(({ id, name, role, password_hash, otp }) => {
      return { id, name, role, password_hash, otp };
    });
  assert.deepEqual(access(restored.state), access(FULL_STATE));
  assertStored(empty, restored);
  const { counts } = reportOf(restored);
  assert.deepEqual(counts.lists, { added: 1, changed: 0, removed: 1, kept: 0, left_out: 0 });
  assert.deepEqual(counts.users, { added: 2, changed: 0, removed: 0, kept: 0, left_out: 0 });
  assert.deepEqual(restored.audit.action, "restore");
  assert.ok(!JSON.stringify(restored.audit).includes("SECRET"));
  assert.ok(!JSON.stringify(restored.settled).includes("SECRET"));
});

Deno.test("apply() restores a second time and changes nothing", none, () => {
  const again = made(FULL_STATE, restoreOf(FULL_STATE));
  assert.deepEqual(again.writes, []);
  assert.deepEqual(reportOf(again).items, []);
  assert.deepEqual(lines(again.state), lines(FULL_STATE));
  assert.deepEqual([...again.state.users.values()], [...FULL_STATE.users.values()]);
});

Deno.test("apply() restores over what was changed since, in the order of the backup", none, () => {
  const later = [
    { type: "delete", collection: "rules", id: ids.rule(1), ifMatch: null },
    create("rules", ids.rule(3), ruleSpec("||c.example^")),
    {
      ...{ type: "replace", collection: "rules", id: ids.rule(2), ifMatch: null },
      spec: ruleSpec("||other.example^"),
    },
  ] as Change[];
  const state = stateAfter(...FULL, ...later);
  const restored = made(state, restoreOf(FULL_STATE));
  const { rules } = restored.state.collections;
  assert.deepEqual([...rules.keys()], [ids.rule(1), ids.rule(2)]);
  assert.equal(rules.get(ids.rule(2))?.revision, 3, "a revision is never had twice");
  assert.deepEqual(rules.get(ids.rule(2))?.spec, ruleSpec("||b.example^"));
  assertStored(state, restored);
  assert.deepEqual(
    reportOf(restored).items.map(({ kind, name }) => `${kind} ${name}`),
    ["added ||a.example^", "changed ||b.example^", "removed ||c.example^"],
  );
});

Deno.test(
  "apply() ends the sessions of users that a restoration changes, and of no others",
  none,
  () => {
    const state = stateAfter(...FULL, {
      type: "user_change",
      id: ids.user(1),
      ifMatch: null,
      fields: { password_hash: "$argon2id$new" },
      endSessions: true,
      action: "password",
    });
    const { users } = made(state, restoreOf(FULL_STATE)).state;
    assert.equal(users.get(ids.user(1))?.session_epoch, 2);
    assert.equal(users.get(ids.user(1))?.password_hash, "$argon2id$SECRET-hash-1");
    assert.equal(users.get(ids.user(2))?.session_epoch, 0);
    // One who was removed had sessions of epochs below the number of any later change.
    const gone = stateAfter(...FULL, { type: "user_delete", id: ids.user(2), ifMatch: null });
    const back = made(gone, restoreOf(FULL_STATE)).state;
    assert.equal(back.users.get(ids.user(2))?.session_epoch, back.appliedIndex);
  },
);

Deno.test(
  "apply() restores tokens and webhooks with their secrets in the place of all",
  none,
  () => {
    const backup = restoreOf(stateAfter(newTokenChange(1, "phone"), newWebhookChange(1, "home")));
    const state = stateAfter(newTokenChange(2, "phone"));
    const restored = made(state, backup);
    const { tokens, webhooks } = restored.state.credentials;
    assert.deepEqual([[...tokens.keys()], [...webhooks.keys()]], [[ids.token(1)], [
      ids.webhook(1),
    ]]);
    assert.deepEqual(webhooks.get(ids.webhook(1))?.secret, newWebhookChange(1, "home").secret);
    assertStored(state, restored);
    assert.deepEqual(reportOf(restored).counts.tokens, {
      ...{ added: 1, changed: 0, removed: 1, kept: 0, left_out: 0 },
    });
    assert.ok(!JSON.stringify([restored.audit, restored.settled]).includes("SECRET"));
  },
);

Deno.test(
  "apply() restores without secrets what is there alone, and removes no token",
  none,
  () => {
    const backup = restoreOf(
      stateAfter(newTokenChange(1, "phone"), newTokenChange(3, "car")),
      false,
    );
    const state = stateAfter(newTokenChange(1, "handset"), newTokenChange(2, "tv"));
    const restored = made(state, backup);
    const { tokens } = restored.state.credentials;
    assert.deepEqual([...tokens.values()].map(({ spec }) => spec.name), ["phone", "tv"]);
    assert.deepEqual(tokens.get(ids.token(1))?.secret, newTokenChange(1, "").secret);
    assertStored(state, restored);
    assert.deepEqual(reportOf(restored).counts.tokens, {
      ...{ added: 0, changed: 1, removed: 0, kept: 1, left_out: 1 },
    });
  },
);

Deno.test(
  "apply() leaves tokens as they are where a backup is from before there were any",
  none,
  () => {
    const state = stateAfter(newTokenChange(1, "phone"));
    const restored = made(state, { ...restoreOf(FULL_STATE), credentials: null });
    assert.deepEqual([...restored.state.credentials.tokens], [...state.credentials.tokens]);
    assertStored(state, restored);
  },
);

Deno.test("apply() keeps recovery codes used that were used since the backup", none, () => {
  const otp = { secret: "SECRET-otp-1", active: true, last_step: 77, recovery: [] };
  const state = stateAfter(...FULL, {
    ...{ type: "user_change", id: ids.user(1), ifMatch: null, fields: { otp } },
    ...{ endSessions: false, action: "recovery" },
  });
  assert.deepEqual(
    made(state, restoreOf(FULL_STATE)).state.users.get(ids.user(1))?.otp,
    otp,
  );
});

Deno.test("apply() leaves passwords as they are without a backup's secrets", none, () => {
  const here = stateAfter(
    { type: "user_create", user: newUser(7, "Bob") },
    { type: "user_create", user: newUser(8, "eve") },
  );
  const restored = made(here, restoreOf(FULL_STATE, false));
  const { users } = restored.state;
  assert.deepEqual([...users.keys()], [ids.user(7), ids.user(8)], "none comes, none goes");
  const { name, role, password_hash, session_epoch } = users.get(ids.user(7))!;
  assert.deepEqual(
    { name, role, password_hash, session_epoch },
    { name: "bob", role: "viewer", password_hash: "$argon2id$SECRET-hash-7", session_epoch: 1 },
  );
  assert.deepEqual(
    reportOf(restored).counts.users,
    { added: 0, changed: 1, removed: 0, kept: 1, left_out: 1 },
  );
  assertStored(here, restored);
});

Deno.test("apply() restores nothing of what can't stand, and says where", none, async (t) => {
  const whole = restoreOf(FULL_STATE);
  const { resources, users } = whole;
  const withResources = (part: Partial<Restore["resources"]>): Restore => ({
    ...whole,
    resources: { ...resources, ...part },
  });
  const limited = Array.from({ length: LIMITED_RULES_MAX + 1 }, (_, n) => ({
    ...resources.rules[0],
    id: ids.rule(n),
  }));
  const rows: readonly (readonly [string, Restore, RegExp])[] = [
    ["a missing list", withResources({ lists: [] }), /groups\/gr_.*1: lists\[0\]\.list: no list/],
    ["a missing group", withResources({ groups: resources.groups.slice(0, 1) }), /no group has/],
    ["no default group", withResources({ groups: resources.groups.slice(1) }), /is missing/],
    ["an ID twice", withResources({ lists: [...resources.lists, ...resources.lists] }), /twice/],
    [
      "an ID of another collection",
      withResources({ lists: [{ ...resources.lists[0], id: ids.rule(1) }] }),
      /lists\[0\]\.id: ru_.* is no ID of lists/,
    ],
    [
      "too many limited rules",
      withResources({ rules: limited }),
      /invalid rules\/ru_0+3e8: more than 1000 rules have an end/,
    ],
    [
      "two clients with one address",
      withResources({
        clients: [...resources.clients, { ...resources.clients[0], id: ids.client(2) }],
      }),
      /belongs to/,
    ],
    [
      "a spec of a wrong type",
      withResources({
        lists: [{ ...resources.lists[0], spec: { ...listSpec("a"), enabled: 1 as never } }],
      }),
      /lists\/li_.*enabled/,
    ],
    ["no admin", { ...whole, users: users.slice(1) }, /conflict users: no admin could sign in/],
    [
      "two users of one name",
      { ...whole, users: [users[0], { ...users[1], name: "ANN" }] },
      /have the same name/,
    ],
    ["a user twice", { ...whole, users: [users[0], users[0]] }, /users\[1\]: is there twice/],
    ["a bad user's ID", { ...whole, users: [{ ...users[0], id: "x" }] }, /users\[0\]\.id/],
  ];
  for (const [name, change, message] of rows) {
    await t.step(name, () => assert.match(refused(FULL_STATE, change), message));
  }
});

Deno.test("apply() names the first differences and counts all", none, () => {
  const rules = Array.from({ length: DIFFERENCES_MAX + 5 }, (_, n) => ({
    ...{ id: ids.rule(n), revision: 1, spec: ruleSpec(`||n${n}.example^`) },
    ...{ created_at: "2026-01-01T00:00:00.000Z", updated_at: "2026-01-01T00:00:00.000Z" },
  }));
  const state = stateAfter();
  const whole = restoreOf(state);
  const restored = made(state, { ...whole, resources: { ...whole.resources, rules } });
  const { counts, items } = reportOf(restored);
  assert.equal(counts.rules.added, DIFFERENCES_MAX + 5);
  assert.equal(items.length, DIFFERENCES_MAX);
});
