import type { Actor, Change, Command, StoredUser } from "./command.ts";
import type { Draft } from "./draft.ts";
import { found } from "./found.ts";
import type { LiveState, Refused } from "./live_state.ts";
import { findNameClash } from "./names.ts";
import { describeProblems, parseWith } from "./problems.ts";
import { refuse } from "./references.ts";
import { USER_ID_PREFIX } from "./resources.ts";
import { copyWithin, type Result } from "./result.ts";
import { StoredUserSchema } from "./stored_user.ts";

/** Longest user name, in UTF-16 units. */
export const USER_NAME_LENGTH_MAX = 128;
/** Most users: each is in memory, and sign-in looks for a name among all. */
export const USERS_MAX = 10_000;
/** Largest stored user as JSON: hash, second factor, recovery codes and reset link included. */
export const USER_BYTES_MAX = 8 * 1024;

const TOO_LARGE = refuse("invalid", `user: is larger than ${USER_BYTES_MAX} bytes as JSON`);

/** Says whether two names are one: nobody should sign in as `Ann` and be looked for as `ann`. */
export function isSameUserName(a: string, b: string): boolean {
  return a.normalize("NFC").toLowerCase() === b.normalize("NFC").toLowerCase();
}

/** All that the audit log may know of a user. */
function shown({ name, role, disabled }: StoredUser) {
  return { name, role, disabled };
}

function checkName(state: LiveState, id: string, name: string): Refused | null {
  if (name.length === 0 || name.length > USER_NAME_LENGTH_MAX) {
    return refuse("invalid", `name: it has other than 1 to ${USER_NAME_LENGTH_MAX} characters`);
  }
  return findNameClash(state, "users", id, name);
}

export function isEnabledAdmin({ role, disabled }: Pick<StoredUser, "role" | "disabled">): boolean {
  return role === "admin" && !disabled;
}

/**
 * Refuses to leave nobody who may change anything. The operator of a stopped node may: the command
 * makes another admin as well.
 */
function checkAdmins(
  state: LiveState,
  actor: Actor,
  before: StoredUser,
  after: StoredUser | null,
): Refused | null {
  if (actor.kind === "cli" || !isEnabledAdmin(before)) return null;
  if (after !== null && isEnabledAdmin(after)) return null;
  for (const other of state.users.values()) {
    if (other.id !== before.id && isEnabledAdmin(other)) return null;
  }
  return refuse(
    "conflict",
    `${before.id}: is the last admin who can sign in: make another one first`,
  );
}

/** A copy of the user, once it has been seen that it could be read again. */
function takeUser(made: StoredUser): StoredUser | Refused {
  const user = parseWith(StoredUserSchema, made);
  if (user.ok) return copyWithin(user.value, USER_BYTES_MAX) ?? TOO_LARGE;
  return refuse("invalid", describeProblems(user.problems, "user"));
}

export function createUser(
  draft: Draft,
  change: Extract<Change, { type: "user_create" }>,
  { actor, at }: Command,
): Result {
  const { id, name } = change.user;
  const { state } = draft;
  if (!id.startsWith(USER_ID_PREFIX) || !/^[0-9a-f]{16}$/.test(id.slice(USER_ID_PREFIX.length))) {
    return refuse("invalid", `id: ${id.slice(0, 64)} is no ID of users`);
  }
  if (state.users.has(id)) return refuse("conflict", `${id}: there is one already`);
  if (state.users.size >= USERS_MAX) {
    return refuse("conflict", `users: there are ${USERS_MAX} already`);
  }
  if (state.users.size === 0 && actor.kind !== "cli" && !isEnabledAdmin(change.user)) {
    return refuse("invalid", "role: the first user is an admin who is not disabled");
  }
  const problem = checkName(state, id, name);
  if (problem !== null) return problem;
  const made: StoredUser = { ...change.user, revision: 1, created_at: at, updated_at: at };
  const user = takeUser(made);
  if ("kind" in user) return user;
  draft.putUser(user);
  const resource = { type: "user", id } as const;
  return {
    kind: "done",
    value: user,
    action: "create",
    resource,
    before: null,
    after: shown(user),
  };
}

export function changeUser(
  draft: Draft,
  change: Extract<Change, { type: "user_change" }>,
  { actor, at }: Command,
): Result {
  const { id, fields, action } = change;
  const { state } = draft;
  const before = found(state.users, "user", id, change.ifMatch);
  if ("kind" in before) return before;
  const made: StoredUser = {
    ...before,
    ...fields,
    revision: before.revision + 1,
    updated_at: at,
    session_epoch: before.session_epoch + (change.endSessions ? 1 : 0),
  };
  const problem = checkName(state, id, made.name) ?? checkAdmins(state, actor, before, made);
  if (problem !== null) return problem;
  const user = takeUser(made);
  if ("kind" in user) return user;
  draft.putUser(user);
  const resource = { type: "user", id } as const;
  return {
    kind: "done",
    value: user,
    action,
    resource,
    before: shown(before),
    after: shown(user),
  };
}

export function deleteUser(
  draft: Draft,
  { id, ifMatch }: Extract<Change, { type: "user_delete" }>,
  { actor }: Command,
): Result {
  const before = found(draft.state.users, "user", id, ifMatch);
  if ("kind" in before) return before;
  const last = checkAdmins(draft.state, actor, before, null);
  if (last !== null) return last;
  draft.removeUser(id);
  const resource = { type: "user", id } as const;
  return {
    kind: "done",
    value: null,
    action: "delete",
    resource,
    before: shown(before),
    after: null,
  };
}
