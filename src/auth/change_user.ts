import { SvcError } from "../errors.ts";
import {
  type Actor,
  type Change,
  isSameUserName,
  type Settled,
  shownText,
  type StoredUser,
} from "../model/mod.ts";
import type { Auth, UserStore } from "./ports.ts";

/** Times a change is made anew because another came before it. */
const TRIES_MAX = 4;

type UserChange = Extract<Change, { type: "user_change" }>;

/** What changes, and what the audit log calls it. */
export type UserChangeBody = Pick<UserChange, "fields" | "endSessions" | "action">;

export function userByName({ state }: UserStore, name: string): StoredUser | null {
  for (const user of state.users.values()) if (isSameUserName(user.name, name)) return user;
  return null;
}

/** @throws {SvcError} `not_found` */
export function userById({ state }: UserStore, id: string): StoredUser {
  const user = state.users.get(id);
  if (user === undefined) {
    throw new SvcError("not_found", `users: no user has the ID ${shownText(id)}`);
  }
  return user;
}

/** @throws {SvcError} With the code of the refusal, if it is one. */
export function checkDone(settled: Settled): void {
  if (settled.kind === "refused") throw new SvcError(settled.code, settled.message);
}

/**
 * Changes a user on the condition that nobody else does in between: then `make` is asked again, with
 * the user as it is by then. What `make` throws ends it.
 *
 * @throws {SvcError} `not_found`; `unavailable`, when others changed the user time after time.
 */
export async function changeStored(
  { users }: Pick<Auth, "users">,
  id: string,
  actor: Actor,
  make: (current: StoredUser) => UserChangeBody,
): Promise<StoredUser> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const current = userById(users, id);
    const change = {
      type: "user_change",
      id,
      ifMatch: current.revision,
      ...make(current),
    } as const;
    const settled = await users.propose(change, actor);
    if (settled.kind === "refused" && settled.code === "revision_mismatch") continue;
    checkDone(settled);
    return userById(users, id);
  }
  throw new SvcError("unavailable", `users: ${id} is being changed by others: try again`);
}
