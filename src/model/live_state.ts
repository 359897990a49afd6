import { invariant } from "../errors.ts";
import type { NewAuditEntry, Settled, State, StoredUser } from "./command.ts";
import { type CredentialKind, CREDENTIALS, type Credentials } from "./credentials.ts";
import { PersistentMap } from "./persistent_map.ts";
import { type Collection, COLLECTIONS, type Envelope, type SpecOf } from "./resources.ts";
import { DEFAULT_SETTINGS, type Settings } from "./settings.ts";

/** The maps of a state, one a collection. */
export type Collections = {
  readonly [C in Collection]: PersistentMap<Envelope<SpecOf<C>>>;
};

/**
 * The state as `apply` works on it: what is shown, and what makes it quick. Each is immutable; the
 * next shares what did not change, so one that was handed out stays as it was.
 */
export interface LiveState extends State {
  readonly collections: Collections;
  readonly users: PersistentMap<StoredUser>;
  readonly credentials: Credentials;
  /** Which client has an address or an ID. */
  readonly clientKeys: PersistentMap<string>;
  /** Which groups, users and credentials have a name that reads so; see `names.ts`. */
  readonly nameKeys: PersistentMap<readonly string[]>;
  /** The IDs of rules with an end, or for some groups and clients only. */
  readonly limitedRules: PersistentMap<true>;
}

/** One key of the store and what becomes of it: a JSON value, or `null` when it is deleted. */
export interface Write {
  readonly key: readonly string[];
  readonly value: unknown;
}

export type Refused = Extract<Settled, { kind: "refused" }>;

/** A change that is made: what it makes of the state, and what has to be stored for it. */
export interface Made {
  readonly kind: "made";
  readonly settled: Extract<Settled, { kind: "done" }>;
  readonly state: LiveState;
  readonly writes: readonly Write[];
  readonly audit: NewAuditEntry;
}

/** What a command came to. That of a refused one is the state before, at the command's index. */
export type Applied = Made | {
  readonly kind: "refused";
  readonly settled: Refused;
  readonly state: LiveState;
};

/** The ID of the settings' envelope. */
export const SETTINGS_ID = "settings";
/** When nothing was: the settings of a state that was never seeded have revision 0. */
const NEVER = "1970-01-01T00:00:00.000Z";

/** A resource or user in the store, with its place in the order of creation. */
export interface Placed<V> {
  readonly place: number;
  readonly value: V;
}

export function resourceKey(collection: Collection, id: string): readonly string[] {
  return ["resource", collection, id];
}

export function userKey(id: string): readonly string[] {
  return ["user", id];
}

export function credentialKey(kind: CredentialKind, id: string): readonly string[] {
  return ["credential", kind, id];
}

export const SETTINGS_KEY: readonly string[] = ["settings"];

/** What is stored for an entry of a map. */
export function placed<V>(map: PersistentMap<V>, id: string): Placed<V> {
  const [place, value] = [map.placeOf(id), map.get(id)];
  invariant(place !== undefined && value !== undefined, "what is stored has a place");
  return { place, value };
}

/** All that is stored of a state but its index; `restoreState` makes the state of it again. */
export function* writesOf(
  { settings, collections, users, credentials }: LiveState,
): Generator<Write> {
  yield { key: SETTINGS_KEY, value: settings };
  for (const collection of COLLECTIONS) {
    const map: PersistentMap<unknown> = collections[collection];
    for (const id of map.keys()) yield { key: resourceKey(collection, id), value: placed(map, id) };
  }
  for (const id of users.keys()) yield { key: userKey(id), value: placed(users, id) };
  for (const kind of CREDENTIALS) {
    const map: PersistentMap<unknown> = credentials[kind];
    for (const id of map.keys()) yield { key: credentialKey(kind, id), value: placed(map, id) };
  }
}

/** The state before the first seed: nothing, and the default settings at revision 0. */
export function emptyState(): LiveState {
  return {
    collections: {
      schedules: PersistentMap.empty(),
      lists: PersistentMap.empty(),
      rules: PersistentMap.empty(),
      records: PersistentMap.empty(),
      groups: PersistentMap.empty(),
      clients: PersistentMap.empty(),
    },
    settings: settingsEnvelope(0, NEVER, NEVER, DEFAULT_SETTINGS),
    users: PersistentMap.empty(),
    credentials: { tokens: PersistentMap.empty(), webhooks: PersistentMap.empty() },
    clientKeys: PersistentMap.empty(),
    nameKeys: PersistentMap.empty(),
    limitedRules: PersistentMap.empty(),
    appliedIndex: 0,
  };
}

export function settingsEnvelope(
  revision: number,
  createdAt: string,
  updatedAt: string,
  spec: Settings,
): Envelope<Settings> {
  return { id: SETTINGS_ID, revision, created_at: createdAt, updated_at: updatedAt, spec };
}

/** Says whether a store with this state has had its first seed. */
export function isSeeded(state: State): boolean {
  return state.settings.revision > 0;
}

/** Says whether a rule has an end, or holds for some only. */
export function isLimited({ expires_at, groups, clients }: SpecOf<"rules">): boolean {
  return expires_at !== null || groups.length > 0 || clients.length > 0;
}

/** The keys that no two clients share. An address never looks like an ID: IDs have no `.` or `:`. */
export function keysOfClient(spec: SpecOf<"clients">): string[] {
  return [...spec.addresses, ...spec.ids];
}
