import * as z from "zod";
import type { StoredUser } from "./command.ts";
import {
  CREDENTIAL_SCHEMAS,
  type CredentialKind,
  CREDENTIALS,
  type Credentials,
} from "./credentials.ts";
import { DEFAULT_GROUP_ID } from "./constants.ts";
import {
  type Collections,
  credentialKey,
  isLimited,
  isSeeded,
  keysOfClient,
  type LiveState,
  type Placed,
  resourceKey,
  SETTINGS_KEY,
  userKey,
} from "./live_state.ts";
import { PersistentMap, PLACES_MAX } from "./persistent_map.ts";
import { describeProblems, parseWith } from "./problems.ts";
import { findConflict, LIMITED_RULES_MAX } from "./references.ts";
import { withName } from "./names.ts";
import { type Collection, COLLECTIONS, type Envelope, SettingsSpec, SPECS } from "./resources.ts";
import type { Settings } from "./settings.ts";
import { StoredUserSchema } from "./stored_user.ts";

function envelope<S extends z.ZodType>(spec: S) {
  return z.strictObject({
    id: z.string().min(1),
    revision: z.int().min(0),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
    spec,
  });
}

function placed<V extends z.ZodType>(value: V) {
  return z.strictObject({ place: z.int().min(0).lt(PLACES_MAX), value });
}

const RESOURCE_SCHEMA = {
  schedules: placed(envelope(SPECS.schedules)),
  lists: placed(envelope(SPECS.lists)),
  rules: placed(envelope(SPECS.rules)),
  records: placed(envelope(SPECS.records)),
  groups: placed(envelope(SPECS.groups)),
  clients: placed(envelope(SPECS.clients)),
} as const satisfies Record<Collection, z.ZodType>;
const SettingsSchema = envelope(SettingsSpec) satisfies z.ZodType<Envelope<Settings>>;
const UserSchema = placed(StoredUserSchema);

/** Everything of a state as the store keeps it. */
export interface StoredParts {
  /** Values of `resourceKey`, by ID, in any order. */
  readonly resources: { readonly [C in Collection]: ReadonlyMap<string, unknown> };
  /** Values of `userKey`, by ID, in any order. */
  readonly users: ReadonlyMap<string, unknown>;
  /** Values of `credentialKey`, by ID, in any order. */
  readonly credentials: { readonly [K in CredentialKind]: ReadonlyMap<string, unknown> };
  /** The value of `SETTINGS_KEY`. */
  readonly settings: unknown;
  readonly appliedIndex: number;
}

export type Restored =
  | { readonly ok: true; readonly state: LiveState }
  | {
    readonly ok: false;
    /** The key whose value is damaged, as a text. */
    readonly key: string;
    readonly message: string;
  };

/**
 * Makes the state of what was stored and checks that it is one: every value is of its form, what is
 * referred to is there, no two clients share an address or ID, and there are not too many limited rules.
 */
export function restoreState(parts: StoredParts): Restored {
  const settings = parseWith(SettingsSchema, parts.settings);
  if (!settings.ok) return damaged(SETTINGS_KEY, describeProblems(settings.problems, "value"));
  const collections: Partial<Record<Collection, unknown>> = {};
  for (const collection of COLLECTIONS) {
    const stored = parts.resources[collection];
    const schema: z.ZodType<Placed<Envelope<unknown>>> = RESOURCE_SCHEMA[collection];
    const read = readPlaced(stored, schema, (id) => resourceKey(collection, id));
    if (!read.ok) return read;
    collections[collection] = read.map;
  }
  const users = readPlaced<StoredUser>(parts.users, UserSchema, userKey);
  if (!users.ok) return users;
  const credentials: Partial<Record<CredentialKind, unknown>> = {};
  for (const kind of CREDENTIALS) {
    const schema: z.ZodType<Placed<{ id: string }>> = placed(CREDENTIAL_SCHEMAS[kind]);
    const read = readPlaced(parts.credentials[kind], schema, (id) => credentialKey(kind, id));
    if (!read.ok) return read;
    credentials[kind] = read.map;
  }
  const state: LiveState = {
    // Each was read by its own collection's schema.
    collections: collections as Collections,
    settings: settings.value,
    users: users.map,
    credentials: credentials as Credentials,
    clientKeys: PersistentMap.empty(),
    nameKeys: PersistentMap.empty(),
    limitedRules: PersistentMap.empty(),
    appliedIndex: parts.appliedIndex,
  };
  return restoreKeys(state);
}

type Read<V> =
  | { readonly ok: true; readonly map: PersistentMap<V> }
  | Extract<Restored, { ok: false }>;

function readPlaced<V extends { readonly id: string }>(
  stored: ReadonlyMap<string, unknown>,
  schema: z.ZodType<Placed<V>>,
  keyOf: (id: string) => readonly string[],
): Read<V> {
  const read: Placed<V>[] = [];
  for (const [id, json] of stored) {
    const result = parseWith(schema, json);
    // Problems tell of places and never of values: those of a user are secrets.
    if (!result.ok) return damaged(keyOf(id), describeProblems(result.problems, "value"));
    if (result.value.value.id !== id) return damaged(keyOf(id), `holds ${result.value.value.id}`);
    read.push(result.value);
  }
  let map = PersistentMap.empty<V>();
  const taken = new Set<number>();
  for (const { place, value } of read) {
    if (taken.has(place)) return damaged(keyOf(value.id), `has the place ${place} of another`);
    taken.add(place);
    map = map.with(value.id, value, place);
  }
  return { ok: true, map };
}

/**
 * Checks what one part asks of another, and fills the indexes. Names that read alike may stand: they
 * were taken when nobody looked.
 */
function restoreKeys(state: LiveState): Restored {
  const { groups, clients, records } = state.collections;
  let { nameKeys } = state;
  for (const { id, spec } of groups.values()) {
    nameKeys = withName(nameKeys, "groups", spec.name, id);
  }
  for (const { id, name } of state.users.values()) nameKeys = withName(nameKeys, "users", name, id);
  for (const kind of CREDENTIALS) {
    for (const { id, spec } of state.credentials[kind].values()) {
      nameKeys = withName(nameKeys, kind, spec.name, id);
    }
  }
  if (isSeeded(state) && !groups.has(DEFAULT_GROUP_ID)) {
    return damaged(resourceKey("groups", DEFAULT_GROUP_ID), "is missing");
  }
  let clientKeys = state.clientKeys;
  for (const { id, spec } of clients.values()) {
    for (const key of keysOfClient(spec)) clientKeys = clientKeys.with(key, id);
  }
  let { limitedRules } = state;
  for (const { id, spec } of state.collections.rules.values()) {
    if (!isLimited(spec)) continue;
    if (limitedRules.size === LIMITED_RULES_MAX) {
      const message = `more than ${LIMITED_RULES_MAX} rules have an end, groups or clients`;
      return damaged(resourceKey("rules", id), message);
    }
    limitedRules = limitedRules.with(id, true);
  }
  const whole = { ...state, clientKeys, nameKeys, limitedRules };
  for (const id of limitedRules.keys()) {
    const conflict = findConflict(whole, "rules", id, state.collections.rules.get(id)!.spec);
    if (conflict !== null) return damaged(resourceKey("rules", id), conflict.message);
  }
  for (const { id, spec } of groups.values()) {
    const conflict = findConflict(whole, "groups", id, spec);
    if (conflict !== null) return damaged(resourceKey("groups", id), conflict.message);
  }
  for (const { id, spec } of clients.values()) {
    const conflict = findConflict(whole, "clients", id, spec);
    if (conflict !== null) return damaged(resourceKey("clients", id), conflict.message);
  }
  const alone = new Map<string, boolean>();
  for (const { id, spec } of records.values()) {
    if (!spec.enabled) continue;
    const isAlone = alone.get(spec.name);
    if (isAlone === true || (isAlone === false && spec.type === "CNAME")) {
      return damaged(resourceKey("records", id), "stands beside a CNAME record");
    }
    alone.set(spec.name, spec.type === "CNAME");
  }
  return { ok: true, state: whole };
}

function damaged(key: readonly string[], message: string): Extract<Restored, { ok: false }> {
  return { ok: false, key: key.join("/"), message };
}
