import type { Change } from "./command.ts";
import type { Draft } from "./draft.ts";
import { findConflict, refuse } from "./references.ts";
import { type Collection, type Envelope, ID_PREFIX, type SpecOf } from "./resources.ts";
import type { Result } from "./result.ts";
import { takeSpec } from "./take_spec.ts";
import { shownText } from "./text.ts";

/** Most lists of a preset, and most groups that get one at once. */
export const PRESET_LISTS_MAX = 64;
export const PRESET_GROUPS_MAX = 64;

type Preset = Extract<Change, { type: "lists_preset" }>;

/**
 * Gives groups the lists of a preset in place of those of others: a list with the same URL is taken
 * as it is and turned on, others are made. Lists of the groups' own choice, and when they hold, stay.
 */
export function applyPreset(draft: Draft, change: Preset, at: string, sizeMax: number): Result {
  const { preset, add, without, groups } = change;
  if (add.length > PRESET_LISTS_MAX || groups.length > PRESET_GROUPS_MAX) {
    return refuse("invalid", `groups: ${PRESET_GROUPS_MAX} at a time, and as many lists`);
  }
  const wanted: string[] = [];
  let made = 0;
  for (const { id, spec } of add) {
    const there = [...draft.state.collections.lists.values()].find((one) =>
      one.spec.url === spec.url
    );
    if (there === undefined && draft.state.collections.lists.size >= sizeMax) {
      return refuse("conflict", `lists: there are ${sizeMax} already`);
    }
    if (there === undefined) made++;
    wanted.push(there?.id ?? id);
    if (there?.spec.enabled === true) continue;
    const refusal = put(
      draft,
      "lists",
      there?.id ?? id,
      { ...there?.spec ?? spec, enabled: true },
      at,
    );
    if (refusal !== null) return refusal;
  }
  const gone = new Set(
    [...draft.state.collections.lists.values()]
      .filter(({ spec }) => spec.url !== undefined && without.includes(spec.url))
      .map(({ id }) => id),
  );
  for (const [i, id] of groups.entries()) {
    const group = draft.state.collections.groups.get(id);
    if (group === undefined) {
      return refuse("not_found", `groups[${i}]: ${shownText(id)}: there is no such group`);
    }
    const kept = group.spec.lists.filter(({ list }) => !gone.has(list));
    const has = new Set(kept.map(({ list }) => list));
    const lists = [...kept, ...wanted.filter((list) => !has.has(list)).map((list) => ({ list }))];
    const refusal = put(draft, "groups", id, { ...group.spec, lists }, at);
    if (refusal !== null) return refusal;
  }
  return {
    kind: "done",
    value: null,
    action: "preset",
    resource: { type: "group", id: groups.length === 1 ? groups[0] : null },
    before: null,
    after: { preset, groups, lists: wanted, made },
  };
}

/** Makes a resource, or another revision of it; why that can't be, or `null`. */
function put<C extends Collection>(
  draft: Draft,
  collection: C,
  id: string,
  given: SpecOf<C>,
  at: string,
) {
  if (!id.startsWith(ID_PREFIX[collection])) {
    return refuse("invalid", `id: ${id.slice(0, 64)} is no ID of ${collection}`);
  }
  const taken = takeSpec(collection, given);
  if (taken.kind === "refused") return taken;
  const conflict = findConflict(draft.state, collection, id, taken.spec);
  if (conflict !== null) return conflict;
  const map: ReadonlyMap<string, Envelope<SpecOf<C>>> = draft.state.collections[collection];
  const before = map.get(id);
  const revision = (before?.revision ?? 0) + 1;
  const created_at = before?.created_at ?? at;
  draft.put(collection, { id, revision, created_at, updated_at: at, spec: taken.spec });
  return null;
}
