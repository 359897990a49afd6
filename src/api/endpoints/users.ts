import { SvcError } from "../../errors.ts";
import { shownText, type StoredUser } from "../../model/mod.ts";
import { type Answer, type Endpoint, endpoint } from "../endpoint.ts";
import {
  ResetLink,
  UserCollection,
  UserCreate,
  UserEnvelope,
  UserReplace,
} from "../schemas/accounts.ts";

const PATH = "/api/v1/users";

/** A user as the API shows it: field by field, so that no secret ever comes along. */
function shownUser(user: StoredUser): UserEnvelope {
  const { id, revision, created_at, updated_at, name, role, disabled } = user;
  const otp = user.otp?.active === true;
  return { id, revision, created_at, updated_at, spec: { name, role, disabled, otp } };
}

function answerOf(user: StoredUser): Answer<UserEnvelope> {
  return { body: shownUser(user), revision: user.revision };
}

function find(users: ReadonlyMap<string, StoredUser>, id: string): StoredUser {
  const user = users.get(id);
  if (user === undefined) {
    throw new SvcError("not_found", `${shownText(id)}: there is no such user`);
  }
  return user;
}

/** What was read may be sent back; what would be no change is none. */
function checkOtp(sent: boolean | undefined, has: boolean): void {
  if (sent === undefined || sent === has) return;
  throw new SvcError("invalid", "otp: it is changed by the user, or by an admin at otp/disable");
}

export const userEndpoints: readonly Endpoint[] = [
  endpoint(`POST ${PATH}`, {
    operationId: "createUser",
    tag: "users",
    summary: "Add a user",
    need: "admin",
    body: UserCreate,
    status: 201,
    answer: UserEnvelope,
    hasEtag: true,
    errors: ["conflict", "unavailable"],
    handle: async ({ body, deps, caller }) => {
      checkOtp(body.otp, false);
      const { name, role, disabled, password } = body;
      const user = await deps.accounts.create({ name, role, disabled, password }, caller.actor);
      return { ...answerOf(user), location: `${PATH}/${user.id}` };
    },
  }),
  endpoint(`GET ${PATH}`, {
    operationId: "listUsers",
    tag: "users",
    summary: "Every user, oldest first",
    need: "viewer",
    answer: UserCollection,
    handle: ({ deps }) => ({
      body: { items: [...deps.replicator.state.users.values()].map(shownUser) },
    }),
  }),
  endpoint(`GET ${PATH}/{id}`, {
    operationId: "getUser",
    tag: "users",
    summary: "One user",
    need: "viewer",
    answer: UserEnvelope,
    hasEtag: true,
    errors: ["not_found"],
    handle: ({ deps, param }) => answerOf(find(deps.replicator.state.users, param)),
  }),
  endpoint(`PUT ${PATH}/{id}`, {
    operationId: "replaceUser",
    tag: "users",
    summary: "Replace a user's fields; a password that is left out stays",
    need: "admin",
    body: UserReplace,
    takesIfMatch: true,
    answer: UserEnvelope,
    hasEtag: true,
    errors: ["conflict", "not_found", "unavailable"],
    handle: async ({ body, deps, param, ifMatch, caller }) => {
      const before = find(deps.replicator.state.users, param);
      checkOtp(body.otp, before.otp?.active === true);
      const { name, role, disabled, password = null } = body;
      const fields = { name, role, disabled, password };
      return answerOf(await deps.accounts.replace(param, fields, ifMatch, caller.actor));
    },
  }),
  endpoint(`DELETE ${PATH}/{id}`, {
    operationId: "deleteUser",
    tag: "users",
    summary: "Remove a user",
    need: "admin",
    takesIfMatch: true,
    errors: ["conflict", "not_found", "unavailable"],
    handle: async ({ deps, param, ifMatch, caller }) => {
      await deps.accounts.remove(param, ifMatch, caller.actor);
      return {};
    },
  }),
  endpoint(`POST ${PATH}/{id}/reset`, {
    operationId: "resetUser",
    hasSecrets: true,
    tag: "users",
    summary: "Make a link by which the user sets a new password, once and within an hour",
    need: "admin",
    answer: ResetLink,
    errors: ["not_found", "unavailable"],
    handle: async ({ deps, param, caller }) => {
      const { token, expiresAt } = await deps.accounts.issueReset(param, caller.actor);
      // Never by the request's host: whoever sends that would get the token.
      const url = `${deps.publicUrl ?? ""}/reset?token=${token}`;
      return { body: { url, token, expires_at: expiresAt } };
    },
  }),
  endpoint(`POST ${PATH}/{id}/otp/disable`, {
    operationId: "disableUserOtp",
    tag: "users",
    summary: "Take a user's second factor away",
    need: "admin",
    errors: ["not_found", "unavailable"],
    handle: async ({ deps, param, caller }) => {
      await deps.accounts.disableOtp(param, caller.actor);
      return {};
    },
  }),
];
