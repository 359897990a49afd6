import { encodeHex } from "../bytes/mod.ts";
import { SvcError } from "../errors.ts";
import {
  type Actor,
  findNameProblem,
  type Role,
  type StoredUser,
  USER_ID_PREFIX,
  USER_NAME_LENGTH_MAX,
} from "../model/mod.ts";
import { changeStored, checkDone, userById } from "./change_user.ts";
import { hashPassword } from "./passwords.ts";
import type { Auth } from "./ports.ts";
import { newSecret, sha256Hex } from "./secrets.ts";
import { RESET_LIFETIME_MS } from "./sign_in.ts";

/** The page of the web UI that redeems a reset link. */
const RESET_PATH = "/reset?token=";
const ID_BYTES = 8;

type Users = Pick<Auth, "users">;

/** What an administrator says about a user. */
export interface UserInput {
  readonly name: string;
  readonly role: Role;
  readonly disabled: boolean;
}

/** What may be shown of a user, and what the audit log may hold beside `otp`. */
export interface ShownUser extends UserInput {
  readonly otp: boolean;
}

/** A reset link that was just made; the token is kept nowhere. */
export interface ResetLink {
  readonly token: string;
  /** Path and query on the API's address. */
  readonly path: string;
  /** RFC 3339 in UTC. */
  readonly expiresAt: string;
}

export function shownUser({ name, role, disabled, otp }: StoredUser): ShownUser {
  return { name, role, disabled, otp: otp !== null && otp.active };
}

/**
 * Makes a user with a password.
 *
 * @throws {SvcError} `invalid` for a bad name or password, `conflict` for a name that is taken.
 */
export async function createUser(
  { users }: Users,
  input: UserInput & { readonly password: string },
  actor: Actor,
): Promise<StoredUser> {
  const name = checkName(input.name);
  const id = USER_ID_PREFIX + encodeHex(crypto.getRandomValues(new Uint8Array(ID_BYTES)));
  const password_hash = await hashPassword(input.password);
  const { role, disabled } = input;
  const user = { id, name, role, disabled, password_hash, otp: null, reset: null };
  checkDone(
    await users.propose({ type: "user_create", user: { ...user, session_epoch: 0 } }, actor),
  );
  return userById(users, id);
}

/**
 * Replaces name, role and disabled state, and the password where one is given. Every session of the
 * user ends if anything but the name changes.
 *
 * @throws {SvcError} `not_found`, `revision_mismatch`, `invalid`, `conflict`.
 */
export async function changeUser(
  { users }: Users,
  id: string,
  input: UserInput & { readonly password: string | null },
  ifMatch: number | null,
  actor: Actor,
): Promise<StoredUser> {
  const name = checkName(input.name);
  userById(users, id);
  const hashed = input.password === null
    ? {}
    // A link that is open would undo it.
    : { password_hash: await hashPassword(input.password), reset: null };
  const make = (current: StoredUser) => ({
    fields: { name, role: input.role, disabled: input.disabled, ...hashed },
    endSessions: input.password !== null || input.role !== current.role ||
      input.disabled !== current.disabled,
    action: "update" as const,
  });
  const current = userById(users, id);
  if (ifMatch === null) return await changeStored({ users }, id, actor, make);
  checkDone(
    await users.propose({ type: "user_change", id, ifMatch, ...make(current) }, actor),
  );
  return userById(users, id);
}

/** @throws {SvcError} `not_found`, `revision_mismatch`. */
export async function removeUser(
  { users }: Users,
  id: string,
  ifMatch: number | null,
  actor: Actor,
): Promise<void> {
  checkDone(await users.propose({ type: "user_delete", id, ifMatch }, actor));
}

/**
 * Makes a link by which the user sets a new password, once and within an hour. An earlier link is
 * void.
 *
 * @throws {SvcError} `not_found`.
 */
export async function issueReset(
  { users, clock }: Pick<Auth, "users" | "clock">,
  id: string,
  actor: Actor,
): Promise<ResetLink> {
  const token = newSecret();
  const expiresAt = new Date(clock.nowMs() + RESET_LIFETIME_MS).toISOString();
  await changeStored({ users }, id, actor, () => ({
    fields: { reset: { token_sha256: sha256Hex(token), expires_at: expiresAt } },
    endSessions: false,
    action: "reset",
  }));
  return { token, path: RESET_PATH + token, expiresAt };
}

/**
 * Clears a user's second factor, whose authenticator is lost; every session of the user ends.
 *
 * @throws {SvcError} `not_found`.
 */
export async function disableOtp({ users }: Users, id: string, actor: Actor): Promise<StoredUser> {
  const user = userById(users, id);
  if (user.otp === null) return user;
  return await changeStored({ users }, id, actor, () => ({
    fields: { otp: null },
    endSessions: true,
    action: "otp_disable",
  }));
}

/** No control or invisible characters, and spaces only inside: two names that look alike differ. */
const NAME = /^[^\p{C}\p{Z}]+( [^\p{C}\p{Z}]+)*$/u;

function checkName(text: string): string {
  const name = text.normalize("NFC");
  const problem = findUserNameProblem(name);
  if (problem === null) return name;
  throw new SvcError("invalid", `name: ${problem}`);
}

/** Why nobody may be called so, in NFC; `null`: somebody may. */
export function findUserNameProblem(name: string): string | null {
  const isShort = name.length <= USER_NAME_LENGTH_MAX;
  if (isShort && NAME.test(name) && findNameProblem(name) === null) return null;
  return `it has 1 to ${USER_NAME_LENGTH_MAX} characters that show, and single spaces inside`;
}
