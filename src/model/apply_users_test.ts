import assert from "node:assert/strict";
import { apply } from "./apply.ts";
import type { Change, StoredUser } from "./command.ts";
import { commandOf, groupSpec, ids, newUser, stateAfter } from "./fakes.ts";
import { emptyState, type LiveState, type Made } from "./live_state.ts";

const none = { permissions: "none" } as const;
const ADMIN: Change = { type: "user_create", user: newUser(1, "ann") };

function made(state: LiveState, change: Change): Made {
  const applied = apply(state, commandOf(change));
  assert.ok(applied.kind === "made", JSON.stringify(applied));
  return applied;
}

function changeUser(n: number, fields: Partial<StoredUser>): Change {
  return {
    type: "user_change",
    id: ids.user(n),
    ifMatch: null,
    fields,
    endSessions: false,
    action: "update",
  };
}

/** Users of a state: name, role, disabled. */
type Row = readonly [string, "admin" | "viewer", boolean?];

function usersState(...rows: readonly Row[]): LiveState {
  let state = emptyState();
  for (const [i, [name, role, disabled = false]] of rows.entries()) {
    const change: Change = { type: "user_create", user: newUser(i + 1, name, { role, disabled }) };
    // The operator of a stopped node may make any state.
    const applied = apply(state, { ...commandOf(change), actor: CLI });
    assert.ok(applied.kind === "made");
    state = applied.state;
  }
  return state;
}

const CLI = { kind: "cli", name: null, address: null } as const;
const remove = (n: number): Change => ({ type: "user_delete", id: ids.user(n), ifMatch: null });

const LAST_ADMIN: readonly (readonly [string, readonly Row[], Change, boolean])[] = [
  ["removing the only admin", [["ann", "admin"]], remove(1), false],
  ["demoting it", [["ann", "admin"]], changeUser(1, { role: "viewer" }), false],
  ["disabling it", [["ann", "admin"]], changeUser(1, { disabled: true }), false],
  ["renaming it", [["ann", "admin"]], changeUser(1, { name: "eve" }), true],
  ["its password", [["ann", "admin"]], changeUser(1, { password_hash: "x" }), true],
  ["one of two", [["ann", "admin"], ["bob", "admin"]], remove(1), true],
  ["one beside a disabled one", [["ann", "admin"], ["bob", "admin", true]], remove(1), false],
  ["the disabled one", [["ann", "admin"], ["bob", "admin", true]], remove(2), true],
  ["a viewer", [["ann", "admin"], ["bob", "viewer"]], remove(2), true],
  ["a viewer where no admin is left", [["ann", "admin", true], ["bob", "viewer"]], remove(2), true],
  ["the disabled admin of such a state", [["ann", "admin", true]], remove(1), true],
  ["a new name there", [["ann", "viewer"]], changeUser(1, { name: "eve" }), true],
];

Deno.test("apply() keeps the last admin who can sign in", none, async (t) => {
  for (const [name, rows, change, taken] of LAST_ADMIN) {
    await t.step(name, () => {
      const state = usersState(...rows);
      const { kind, settled } = apply(state, commandOf(change));
      assert.equal(kind, taken ? "made" : "refused");
      if (settled.kind === "refused") assert.equal(settled.code, "conflict");
      assert.equal(apply(state, { ...commandOf(change), actor: CLI }).kind, "made", "svc user may");
    });
  }
});

Deno.test("apply() removes one of two admins who are removed at once", none, () => {
  const first = apply(usersState(["ann", "admin"], ["bob", "admin"]), commandOf(remove(1)));
  assert.ok(first.kind === "made");
  assert.equal(apply(first.state, commandOf(remove(2))).kind, "refused");
});

Deno.test("apply() takes an admin for the first user, and nobody else", none, () => {
  for (const fields of [{ role: "viewer" }, { disabled: true }] as const) {
    const change: Change = { type: "user_create", user: newUser(1, "ann", fields) };
    const { settled } = apply(emptyState(), commandOf(change));
    assert.ok(settled.kind === "refused");
    assert.equal(settled.code, "invalid");
    assert.equal(apply(emptyState(), { ...commandOf(change), actor: CLI }).kind, "made");
  }
  assert.equal(
    apply(emptyState(), commandOf({ type: "user_create", user: newUser(1, "ann") })).kind,
    "made",
  );
});

function namedGroup(n: number, name: string): Change {
  return { type: "create", collection: "groups", id: ids.group(n), spec: groupSpec(name) };
}

function renamed(n: number, name: string): Change {
  return {
    type: "replace",
    collection: "groups",
    id: ids.group(n),
    spec: groupSpec(name),
    ifMatch: null,
  };
}

Deno.test("apply() refuses a group or user whose name reads as another's", none, () => {
  const conflict = (state: LiveState, change: Change) => {
    const { settled } = apply(state, commandOf(change));
    assert.ok(settled.kind === "refused", JSON.stringify(change));
    assert.equal(settled.code, "conflict");
    assert.match(settled.message, /^name: (gr|us)_0+\d is called .*, which reads alike$/);
  };
  const state = stateAfter(namedGroup(1, "Kids"), ADMIN);
  for (
    const name of ["Kids", "kids", "KIDS", "Кids", " Kids", "ｋｉｄｓ", "K1ds".replace("1", "і")]
  ) {
    conflict(state, namedGroup(2, name));
  }
  conflict(state, namedGroup(2, "DEFAULT"));
  conflict(state, { type: "user_create", user: newUser(2, "аnn") });
  made(state, namedGroup(2, "ann")); // Users and groups are told apart.
  made(state, renamed(1, "Kids"));
  made(state, renamed(1, "KIDS"));
  const two = made(state, namedGroup(2, "Guests")).state;
  conflict(two, renamed(2, "kids"));
  const freed = made(made(two, renamed(1, "Teens")).state, renamed(2, "kids")).state;
  conflict(freed, renamed(1, "Kids"));
  const gone = made(freed, {
    type: "delete",
    collection: "groups",
    id: ids.group(2),
    ifMatch: null,
  }).state;
  made(gone, renamed(1, "Kids"));
});
