import {
  COLLECTIONS,
  type Restored,
  restoreState,
  SETTINGS_KEY,
  type State,
  type StoredParts,
} from "../model/mod.ts";
import { APPLIED_KEY, keyText } from "./keys.ts";

/** How many there are of each collection, and of users. */
export type Counts = Readonly<Record<string, number>>;

export function countsOf({ collections, users }: State): Counts {
  const counts: Record<string, number> = { users: users.size };
  for (const collection of COLLECTIONS) counts[collection] = collections[collection].size;
  return counts;
}

/** Makes the state of what was stored, once it has been seen that nothing of it was lost. */
export function restore(parts: StoredParts, counts: Counts): Restored {
  for (const [name, { size }] of Object.entries({ ...parts.resources, users: parts.users })) {
    if (counts[name] === size) continue;
    const message = `${name} should be ${counts[name]}, but ${size} are there`;
    return { ok: false, key: keyText(APPLIED_KEY), message };
  }
  if (parts.settings !== undefined) return restoreState(parts);
  return { ok: false, key: keyText(SETTINGS_KEY), message: "is missing" };
}
