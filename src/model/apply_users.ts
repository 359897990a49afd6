import type { Change, StoredUser } from "./command.ts";
import type { Draft } from "./draft.ts";
import type { LiveState, Refused } from "./live_state.ts";
import { refuse } from "./references.ts";
import { USER_ID_PREFIX } from "./resources.ts";
import { copyWithin, type Result } from "./result.ts";
import { StoredUserSchema } from "./stored_user.ts";

/** Longest user name, in UTF-16 units. */
export const USER_NAME_LENGTH_MAX = 128;
/** Most users: each is in memory, and sign-in looks for a name among all. */
export const USERS_MAX = 10_000;
/** Largest stored user as JSON: hash, second factor, recovery codes and reset link included. */
const USER_BYTES_MAX = 8 * 1024;

const TOO_LARGE = refuse("invalid", `user: is larger than ${USER_BYTES_MAX} bytes as JSON`);

/** Says whether two names are one: nobody should sign in as `Ann` and be looked for as `ann`. */
export function isSameUserName(a: string, b: string): boolean {
  return a.normalize("NFC").toLowerCase() === b.normalize("NFC").toLowerCase();
}

/** All that the audit log may know of a user. */
function shown({ name, role, disabled }: StoredUser) {
  return { name, role, disabled };
}

function findNameProblem(state: LiveState, id: string, name: string) {
  if (name.length === 0 || name.length > USER_NAME_LENGTH_MAX) {
    return refuse("invalid", `name: has 1 to ${USER_NAME_LENGTH_MAX} characters`);
  }
  for (const other of state.users.values()) {
    if (other.id !== id && isSameUserName(other.name, name)) {
      return refuse("conflict", `name: ${other.id} is called ${other.name} already`);
    }
  }
  return null;
}

/** A copy of the user, once it has been seen that it could be read again. */
function takeUser(made: StoredUser): StoredUser | Refused {
  const user = StoredUserSchema.safeParse(made);
  if (user.success) return copyWithin(user.data, USER_BYTES_MAX) ?? TOO_LARGE;
  const { path, message } = user.error.issues[0];
  return refuse("invalid", `${path.join(".") || "user"}: ${message}`);
}

function found(state: LiveState, id: string, ifMatch: number | null) {
  const user = state.users.get(id);
  if (user === undefined) return refuse("not_found", `${id}: there is no such user`);
  if (ifMatch === null || ifMatch === user.revision) return user;
  return refuse("revision_mismatch", `${id}: has revision ${user.revision}, not ${ifMatch}`);
}

export function createUser(
  draft: Draft,
  change: Extract<Change, { type: "user_create" }>,
  at: string,
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
  const problem = findNameProblem(state, id, name);
  if (problem !== null) return problem;
  const made: StoredUser = { ...change.user, revision: 1, created_at: at, updated_at: at };
  const user = takeUser(made);
  if ("kind" in user) return user;
  draft.putUser(user);
  const resource = { type: "user", id };
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
  at: string,
): Result {
  const { id, fields, action } = change;
  const { state } = draft;
  const before = found(state, id, change.ifMatch);
  if ("kind" in before) return before;
  const made: StoredUser = {
    ...before,
    ...fields,
    revision: before.revision + 1,
    updated_at: at,
    session_epoch: before.session_epoch + (change.endSessions ? 1 : 0),
  };
  const problem = findNameProblem(state, id, made.name);
  if (problem !== null) return problem;
  const user = takeUser(made);
  if ("kind" in user) return user;
  draft.putUser(user);
  const resource = { type: "user", id };
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
): Result {
  const before = found(draft.state, id, ifMatch);
  if ("kind" in before) return before;
  draft.removeUser(id);
  const resource = { type: "user", id };
  return {
    kind: "done",
    value: null,
    action: "delete",
    resource,
    before: shown(before),
    after: null,
  };
}
