import { type Envelope, type GroupSpec, PersistentMap, type RuleSpec } from "../model/mod.ts";
import type { PolicyState } from "../snapshot/mod.ts";

/** A change that nobody has made yet. */
export interface Draft {
  /** Rules that there would be. */
  readonly rules: readonly RuleSpec[];
  /** IDs of rules and lists that there would not be. */
  readonly without: readonly string[];
}

/** A draft is never stored. */
const NEVER = "1970-01-01T00:00:00.000Z";

/** The state as it would be after a draft. */
export function draftOf(state: PolicyState, { rules: added, without }: Draft): PolicyState {
  const gone = new Set(without);
  let rules = persistent(state.collections.rules);
  let groups = persistent(state.collections.groups);
  for (const id of gone) rules = rules.without(id);
  for (const [i, spec] of added.entries()) {
    const id = `draft ${i}`;
    const envelope = { id, revision: 0, created_at: NEVER, updated_at: NEVER, spec };
    rules = rules.with(id, envelope);
  }
  for (const group of state.collections.groups.values()) {
    const left = group.spec.lists.filter(({ list }) => !gone.has(list));
    if (left.length === group.spec.lists.length) continue;
    groups = groups.with(group.id, { ...group, spec: { ...group.spec, lists: left } });
  }
  // What a draft is not about stays the very same, and is compiled already.
  return { ...state, collections: { ...state.collections, rules, groups } };
}

function persistent<S extends RuleSpec | GroupSpec>(
  map: ReadonlyMap<string, Envelope<S>>,
): PersistentMap<Envelope<S>> {
  if (map instanceof PersistentMap) return map;
  let made = PersistentMap.empty<Envelope<S>>();
  for (const [id, envelope] of map) made = made.with(id, envelope);
  return made;
}
