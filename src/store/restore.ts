import {
  COLLECTIONS,
  CREDENTIALS,
  type Restored,
  restoreState,
  SETTINGS_KEY,
  type State,
  type StoredParts,
} from "../model/mod.ts";
import { APPLIED_KEY, keyText } from "./keys.ts";

/** How many there are of each collection, of users and of each kind of credential. */
export type Counts = Readonly<Record<string, number>>;

export function countsOf({ collections, users, credentials }: State): Counts {
  const counts: Record<string, number> = { users: users.size };
  for (const collection of COLLECTIONS) counts[collection] = collections[collection].size;
  for (const kind of CREDENTIALS) counts[kind] = credentials[kind].size;
  return counts;
}

function mapsOf({ resources, users, credentials }: StoredParts) {
  return { ...resources, users, ...credentials };
}

/** Makes the state of what was stored, once it has been seen that nothing of it was lost. */
export function restore(parts: StoredParts, counts: Counts): Restored {
  for (const [name, { size }] of Object.entries(mapsOf(parts))) {
    if (counts[name] === size) continue;
    const message = `${name} should be ${counts[name]}, but ${size} are there`;
    return { ok: false, key: keyText(APPLIED_KEY), message };
  }
  if (parts.settings !== undefined) return restoreState(parts);
  return { ok: false, key: keyText(SETTINGS_KEY), message: "is missing" };
}
