import type { StoredUser } from "./command.ts";
import type { Credential, CredentialKind, Credentials } from "./credentials.ts";
import {
  type Collections,
  credentialKey,
  isLimited,
  keysOfClient,
  type LiveState,
  placed,
  resourceKey,
  SETTINGS_KEY,
  userKey,
  type Write,
} from "./live_state.ts";
import { withName, withoutName } from "./names.ts";
import type { PersistentMap } from "./persistent_map.ts";
import type { Collection, Envelope, SpecOf } from "./resources.ts";
import type { Settings } from "./settings.ts";

/** A state in the making, with what has to be stored for it. The state it began with stays. */
export class Draft {
  #state: LiveState;
  /** By key, so that the last write of a key is the one that counts. */
  readonly #writes = new Map<string, Write>();

  constructor(state: LiveState) {
    this.#state = state;
  }

  get state(): LiveState {
    return this.#state;
  }

  get writes(): Write[] {
    return [...this.#writes.values()];
  }

  put<C extends Collection>(collection: C, envelope: Envelope<SpecOf<C>>): void {
    const { id } = envelope;
    this.#dropKeys(collection, id);
    const map: PersistentMap<Envelope<SpecOf<C>>> = this.#state.collections[collection];
    const next = map.with(id, envelope);
    this.#setCollection(collection, next);
    this.#addKeys(collection, id);
    this.#write(resourceKey(collection, id), placed(next, id));
  }

  remove(collection: Collection, id: string): void {
    this.#dropKeys(collection, id);
    const map: PersistentMap<Envelope<SpecOf<Collection>>> = this.#state.collections[collection];
    this.#setCollection(collection, map.without(id));
    this.#write(resourceKey(collection, id), null);
  }

  putUser(user: StoredUser): void {
    this.#dropUserName(user.id);
    const users = this.#state.users.with(user.id, user);
    const nameKeys = withName(this.#state.nameKeys, "users", user.name, user.id);
    this.#state = { ...this.#state, users, nameKeys };
    this.#write(userKey(user.id), placed(users, user.id));
  }

  removeUser(id: string): void {
    this.#dropUserName(id);
    this.#state = { ...this.#state, users: this.#state.users.without(id) };
    this.#write(userKey(id), null);
  }

  putCredential<K extends CredentialKind>(kind: K, one: Credential<K>): void {
    this.#dropCredentialName(kind, one.id);
    const map: PersistentMap<Credential<K>> = this.#state.credentials[kind];
    const next = map.with(one.id, one);
    const nameKeys = withName(this.#state.nameKeys, kind, one.spec.name, one.id);
    this.#setCredentials(kind, next, nameKeys);
    this.#write(credentialKey(kind, one.id), placed(next, one.id));
  }

  removeCredential(kind: CredentialKind, id: string): void {
    this.#dropCredentialName(kind, id);
    const map: PersistentMap<Credential<CredentialKind>> = this.#state.credentials[kind];
    this.#setCredentials(kind, map.without(id), this.#state.nameKeys);
    this.#write(credentialKey(kind, id), null);
  }

  putSettings(settings: Envelope<Settings>): void {
    this.#state = { ...this.#state, settings };
    this.#write(SETTINGS_KEY, settings);
  }

  /** Puts another state in the place of this one; `writes` are what has to be stored for it. */
  replace(state: LiveState, writes: Iterable<Write>): void {
    this.#state = state;
    for (const { key, value } of writes) this.#write(key, value);
  }

  setIndex(appliedIndex: number): void {
    this.#state = { ...this.#state, appliedIndex };
  }

  #setCollection<C extends Collection>(
    collection: C,
    map: PersistentMap<Envelope<SpecOf<C>>>,
  ): void {
    const collections: Collections = { ...this.#state.collections, [collection]: map };
    this.#state = { ...this.#state, collections };
  }

  #setCredentials<K extends CredentialKind>(
    kind: K,
    map: PersistentMap<Credential<K>>,
    nameKeys: LiveState["nameKeys"],
  ): void {
    const credentials: Credentials = { ...this.#state.credentials, [kind]: map };
    this.#state = { ...this.#state, credentials, nameKeys };
  }

  #dropCredentialName(kind: CredentialKind, id: string): void {
    const one = this.#state.credentials[kind].get(id);
    if (one === undefined) return;
    const nameKeys = withoutName(this.#state.nameKeys, kind, one.spec.name, id);
    this.#state = { ...this.#state, nameKeys };
  }

  /** Takes what a resource is found by out of the indexes. */
  #dropKeys(collection: Collection, id: string): void {
    let { clientKeys, nameKeys, limitedRules } = this.#state;
    const { clients, groups } = this.#state.collections;
    const client = collection === "clients" ? clients.get(id) : undefined;
    const group = collection === "groups" ? groups.get(id) : undefined;
    if (client !== undefined) {
      for (const key of keysOfClient(client.spec)) clientKeys = clientKeys.without(key);
    }
    if (group !== undefined) nameKeys = withoutName(nameKeys, "groups", group.spec.name, id);
    if (collection === "rules") limitedRules = limitedRules.without(id);
    this.#state = { ...this.#state, clientKeys, nameKeys, limitedRules };
  }

  /** Puts what a resource that was put is found by into the indexes. */
  #addKeys(collection: Collection, id: string): void {
    let { clientKeys, nameKeys, limitedRules } = this.#state;
    const { clients, groups } = this.#state.collections;
    const client = collection === "clients" ? clients.get(id) : undefined;
    const group = collection === "groups" ? groups.get(id) : undefined;
    if (client !== undefined) {
      for (const key of keysOfClient(client.spec)) clientKeys = clientKeys.with(key, id);
    }
    if (group !== undefined) nameKeys = withName(nameKeys, "groups", group.spec.name, id);
    const rule = collection === "rules" ? this.#state.collections.rules.get(id) : undefined;
    if (rule !== undefined && isLimited(rule.spec)) limitedRules = limitedRules.with(id, true);
    this.#state = { ...this.#state, clientKeys, nameKeys, limitedRules };
  }

  #dropUserName(id: string): void {
    const user = this.#state.users.get(id);
    if (user === undefined) return;
    const nameKeys = withoutName(this.#state.nameKeys, "users", user.name, id);
    this.#state = { ...this.#state, nameKeys };
  }

  #write(key: readonly string[], value: unknown): void {
    const name = key.join("\0");
    this.#writes.delete(name); // Moves to the end: writes stay in the order they were made.
    this.#writes.set(name, { key, value });
  }
}
