/**
 * What one map of a state has otherwise than an earlier one: for who keeps tables in step with the
 * state, and so without the schemas of `mod.ts`. Scope: none. @module
 */
import { type Difference, PersistentMap } from "./persistent_map.ts";

export type { Difference } from "./persistent_map.ts";

/** The entries that differ, in the order of `after`, those that are gone first. */
export function differences<V>(
  before: ReadonlyMap<string, V>,
  after: ReadonlyMap<string, V>,
): Difference<V>[] {
  if (before === after) return [];
  if (before instanceof PersistentMap && after instanceof PersistentMap) {
    return PersistentMap.differences<V>(before, after);
  }
  const found: Difference<V>[] = [];
  for (const [key, value] of before) {
    if (!after.has(key)) found.push({ key, before: value, after: undefined });
  }
  for (const [key, value] of after) {
    if (before.get(key) !== value) found.push({ key, before: before.get(key), after: value });
  }
  return found;
}
