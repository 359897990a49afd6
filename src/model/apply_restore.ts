import type { Actor, Change, Command, RestoredUser, StoredUser } from "./command.ts";
import { isEnabledAdmin, isSameUserName, USER_BYTES_MAX, USERS_MAX } from "./apply_users.ts";
import { credentialsAfter } from "./restore_credentials.ts";
import { type CredentialKind, CREDENTIALS } from "./credentials.ts";
import type { Draft } from "./draft.ts";
import {
  credentialKey,
  type LiveState,
  type Placed,
  placed,
  type Refused,
  resourceKey,
  SETTINGS_KEY,
  settingsEnvelope,
  userKey,
  type Write,
} from "./live_state.ts";
import type { PersistentMap } from "./persistent_map.ts";
import { refuse } from "./references.ts";
import {
  type Collection,
  COLLECTION_SIZE_MAX,
  COLLECTIONS,
  type Envelope,
  isIdOf,
  RESOURCE_TYPE,
  SPEC_BYTES_MAX,
  type SpecOf,
  USER_ID_PREFIX,
} from "./resources.ts";
import { restoreState } from "./restore.ts";
import { isSame, nextOf, type RestoredKind, type RestoreReport, Tally } from "./restore_report.ts";
import { jsonBytes, type Result } from "./result.ts";

type Restore = Extract<Change, { type: "restore" }>;

/** A part of the state as it is to be, and which of its entries have to be written. */
interface Target<V> {
  readonly entries: ReadonlyMap<string, Placed<V>>;
  readonly written: readonly string[];
  readonly removed: readonly string[];
}

/**
 * Puts what a backup has in the place of all settings and resources, whole or not at all. What is
 * there as it was stays as it is, so that a second time changes nothing. Users: see `usersAfter`.
 */
export function applyRestore(draft: Draft, change: Restore, { actor, at }: Command): Result {
  const { state } = draft;
  const tally = new Tally();
  const writes: Write[] = [];
  const resources: Partial<Record<Collection, Target<Envelope<unknown>>>> = {};
  for (const collection of COLLECTIONS) {
    const refusal = findResourceProblem(collection, change.resources[collection]);
    if (refusal !== null) return refusal;
    resources[collection] = targetOf(
      state.collections[collection],
      restoredEnvelopes(collection, state, change.resources[collection], at, tally),
    );
  }
  const given = usersAfter(state, change.users, at, tally);
  if ("kind" in given) return given;
  const refusal = findUserProblem(state, given, actor);
  if (refusal !== null) return refusal;
  const users = targetOf(state.users, given);
  const credentials: Partial<Record<CredentialKind, Target<{ readonly id: string }>>> = {};
  for (const kind of CREDENTIALS) {
    const next = credentialsAfter(kind, state, change, at, tally);
    if ("kind" in next) return next;
    credentials[kind] = targetOf(state.credentials[kind], next);
  }
  const settings = settingsAfter(state, change, at, tally);
  const entriesOf = (collection: Collection) => resources[collection]!.entries;
  const restored = restoreState({
    resources: {
      schedules: entriesOf("schedules"),
      lists: entriesOf("lists"),
      records: entriesOf("records"),
      groups: entriesOf("groups"),
      clients: entriesOf("clients"),
      rules: entriesOf("rules"),
    },
    users: users.entries,
    credentials: {
      tokens: credentials.tokens!.entries,
      webhooks: credentials.webhooks!.entries,
    },
    settings,
    appliedIndex: state.appliedIndex,
  });
  if (!restored.ok) return refuse("invalid", `${placeOf(restored.key)}: ${restored.message}`);
  const next = restored.state;
  for (const collection of COLLECTIONS) {
    const map: PersistentMap<unknown> = next.collections[collection];
    const keyOf = (id: string) => resourceKey(collection, id);
    writes.push(...writesOfTarget(resources[collection]!, map, keyOf));
  }
  writes.push(...writesOfTarget(users, next.users, userKey));
  for (const kind of CREDENTIALS) {
    const keyOf = (id: string) => credentialKey(kind, id);
    writes.push(...writesOfTarget(credentials[kind]!, next.credentials[kind], keyOf));
  }
  if (settings !== state.settings) writes.push({ key: SETTINGS_KEY, value: settings });
  draft.replace(next, writes);
  const { counts, items } = tally;
  return {
    kind: "done",
    value: { counts, items } satisfies RestoreReport,
    action: "restore",
    resource: { type: "config", id: null },
    before: null,
    after: counts,
  };
}

/** `resource/groups/gr_1` as whoever sent it would look for it. */
function placeOf(key: string): string {
  return key.replace(/^resource\//, "").replace(/^user\//, "users/").replace(/^credential\//, "");
}

function findResourceProblem(
  collection: Collection,
  envelopes: readonly Envelope<unknown>[],
): Refused | null {
  if (envelopes.length > COLLECTION_SIZE_MAX) {
    return refuse("invalid", `${collection}: there are more than ${COLLECTION_SIZE_MAX}`);
  }
  const seen = new Set<string>();
  for (const [i, { id, spec }] of envelopes.entries()) {
    const place = `${collection}[${i}]`;
    if (!isIdOf(collection, id)) {
      return refuse("invalid", `${place}.id: ${id.slice(0, 64)} is no ID of ${collection}`);
    }
    if (seen.has(id)) return refuse("invalid", `${place}.id: ${id} is there twice`);
    seen.add(id);
    if (jsonBytes(spec) > SPEC_BYTES_MAX) {
      return refuse("invalid", `${place}.spec: is larger than ${SPEC_BYTES_MAX} bytes as JSON`);
    }
  }
  return null;
}

/** The envelopes as they are to be: those with another spec get the next revision. */
function restoredEnvelopes<C extends Collection>(
  collection: C,
  state: LiveState,
  envelopes: readonly Envelope<SpecOf<C>>[],
  at: string,
  tally: Tally,
): Map<string, Envelope<unknown>> {
  const before: PersistentMap<Envelope<SpecOf<C>>> = state.collections[collection];
  const after = new Map<string, Envelope<unknown>>();
  const note = (kind: RestoredKind, { id, spec }: Envelope<SpecOf<C>>) =>
    tally.add(collection, kind, { type: RESOURCE_TYPE[collection], id, name: nameOf(spec) });
  for (const envelope of envelopes) {
    const old = before.get(envelope.id);
    if (old === undefined) after.set(envelope.id, envelope);
    else if (isSame(old.spec, envelope.spec)) after.set(envelope.id, old);
    else {after.set(envelope.id, {
        ...old,
        ...nextOf(old.revision, envelope.revision, at),
        spec: envelope.spec,
      });}
    note(
      old === undefined ? "added" : after.get(envelope.id) === old ? "kept" : "changed",
      envelope,
    );
  }
  for (const old of before.values()) if (!after.has(old.id)) note("removed", old);
  return after;
}

function nameOf(spec: SpecOf<Collection>): string {
  if ("rule" in spec) return spec.rule;
  return "type" in spec ? `${spec.name} ${spec.type}` : spec.name;
}

/**
 * The entries in the order of `after`. Those that are there keep their places where that is their
 * order already.
 */
function targetOf<V>(before: PersistentMap<V>, after: ReadonlyMap<string, V>): Target<V> {
  const kept = Array.from(before.keys()).filter((id) => after.has(id));
  const ids = [...after.keys()];
  const isInOrder = kept.every((id, i) => ids[i] === id);
  const placeAt = (id: string) => isInOrder ? before.placeOf(id) : undefined;
  let place = 0;
  const entries = new Map<string, Placed<V>>();
  const written: string[] = [];
  for (const [id, value] of after) {
    place = placeAt(id) ?? place;
    entries.set(id, { place, value });
    if (before.get(id) !== value || before.placeOf(id) !== place) written.push(id);
    place++;
  }
  return { entries, written, removed: [...before.keys()].filter((id) => !after.has(id)) };
}

function* writesOfTarget(
  { written, removed }: Target<unknown>,
  map: PersistentMap<unknown>,
  keyOf: (id: string) => readonly string[],
): Generator<Write> {
  for (const id of removed) yield { key: keyOf(id), value: null };
  for (const id of written) yield { key: keyOf(id), value: placed(map, id) };
}

function settingsAfter(
  { settings }: LiveState,
  { settings: spec }: Restore,
  at: string,
  tally: Tally,
): LiveState["settings"] {
  const isKept = settings.revision > 0 && isSame(settings.spec, spec);
  const item = { type: "settings", id: null, name: "" };
  tally.add("settings", isKept ? "kept" : "changed", item);
  if (isKept) return settings;
  const createdAt = settings.revision === 0 ? at : settings.created_at;
  return settingsEnvelope(settings.revision + 1, createdAt, at, spec);
}

/**
 * The users as they are to be. Those of a backup with its secrets take the place of all. Without
 * them nobody can be made who could sign in: then users that are there, by ID or name, get name,
 * role and state, others of the backup are left out, and none is removed.
 */
function usersAfter(
  state: LiveState,
  users: readonly RestoredUser[],
  at: string,
  tally: Tally,
): Map<string, StoredUser> | Refused {
  const isWhole = users.length > 0 && users.every(({ secrets }) => secrets !== null);
  const after = new Map<string, StoredUser>(isWhole ? [] : state.users);
  const noted = new Set<string>();
  const note = (kind: RestoredKind, { id, name }: Pick<StoredUser, "id" | "name">) => {
    noted.add(id);
    tally.add("users", kind, { type: "user", id, name });
  };
  for (const [i, user] of users.entries()) {
    const place = `users[${i}]`;
    if (!new RegExp(`^${USER_ID_PREFIX}[0-9a-f]{16}$`).test(user.id)) {
      return refuse("invalid", `${place}.id: ${user.id.slice(0, 64)} is no ID of users`);
    }
    const old = state.users.get(user.id) ??
      (isWhole ? undefined : findByName(state.users.values(), user.name));
    if (noted.has(old?.id ?? user.id)) return refuse("invalid", `${place}: is there twice`);
    const next = old === undefined
      ? newUser(user, state.appliedIndex + 1)
      : changedUser(old, user, at);
    if (next === null) {
      note("left_out", user);
      continue;
    }
    if (jsonBytes(next) > USER_BYTES_MAX) {
      return refuse("invalid", `${place}: is larger than ${USER_BYTES_MAX} bytes as JSON`);
    }
    after.set(next.id, next);
    note(old === undefined ? "added" : next === old ? "kept" : "changed", next);
  }
  for (const old of state.users.values()) {
    if (!noted.has(old.id)) note(isWhole ? "removed" : "kept", old);
  }
  return after;
}

function findByName(users: Iterable<StoredUser>, name: string): StoredUser | undefined {
  for (const user of users) if (isSameUserName(user.name, name)) return user;
  return undefined;
}

/**
 * `null` without a password. `epoch` is more than the user's sessions can have, of whenever the user was here before: it grows
 * once a change at most.
 */
function newUser({ secrets, ...user }: RestoredUser, epoch: number): StoredUser | null {
  return secrets === null ? null : { ...user, ...secrets, reset: null, session_epoch: epoch };
}

function changedUser(old: StoredUser, { secrets, ...user }: RestoredUser, at: string): StoredUser {
  const { name, role, disabled } = user;
  const password_hash = secrets === null ? old.password_hash : secrets.password_hash;
  // Of the same second factor it is kept which codes are used up: they stay so.
  const isSameOtp = secrets === null ||
    (old.otp?.active === true && old.otp.secret === secrets.otp?.secret) ||
    (old.otp === null && secrets.otp === null);
  const otp = isSameOtp ? old.otp : secrets.otp;
  const isSameAccess = role === old.role && disabled === old.disabled &&
    password_hash === old.password_hash && isSameOtp;
  if (isSameAccess && name === old.name) return old;
  return {
    ...old,
    ...nextOf(old.revision, user.revision, at),
    ...{ name, role, disabled, password_hash, otp, reset: null },
    session_epoch: old.session_epoch + (isSameAccess ? 0 : 1),
  };
}

function findUserProblem(
  state: LiveState,
  users: ReadonlyMap<string, StoredUser>,
  actor: Actor,
): Refused | null {
  if (users.size > USERS_MAX) return refuse("invalid", `users: there are more than ${USERS_MAX}`);
  const byName = new Map<string, string>();
  for (const { id, name } of users.values()) {
    const key = name.normalize("NFC").toLowerCase();
    const other = byName.get(key);
    if (other !== undefined) {
      return refuse("conflict", `users: ${other} and ${id} have the same name: change one of them`);
    }
    byName.set(key, id);
  }
  const isAnyAdmin = (of: ReadonlyMap<string, StoredUser>) => of.values().some(isEnabledAdmin);
  if (actor.kind === "cli" || isAnyAdmin(users)) return null;
  if (users.size === 0 || (!isAnyAdmin(state.users) && state.users.size > 0)) return null;
  return refuse(
    "conflict",
    "users: no admin could sign in after this: take a backup that has one, or make one first",
  );
}
