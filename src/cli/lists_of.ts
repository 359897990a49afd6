import type { FilterConfig } from "../config/mod.ts";
import { configListId, PRESETS, RECOMMENDED, recommendedListId } from "../lists/mod.ts";
import type { PolicyState } from "../snapshot/mod.ts";
import type { DefaultList, SeedSource } from "../store/mod.ts";
import type { Lists, Uses } from "./filtering.ts";

/** The recommended lists that a new node begins with. */
const DEFAULT_PRESET = "balanced";

/** What `[filter]` seeds a store with. */
export function seedSource({ lists, rules, defaultLists }: FilterConfig): SeedSource {
  return {
    lists: lists.map((list) => ({ ...list, id: configListId(list.name) })),
    rules,
    defaults: defaultLists ? presetLists() : [],
  };
}

function presetLists(): DefaultList[] {
  const title = PRESETS.find(({ id }) => id === DEFAULT_PRESET)?.name;
  return RECOMMENDED.filter(({ presets }) => presets.includes(DEFAULT_PRESET)).map((list) => ({
    id: recommendedListId(list.id),
    name: list.name,
    url: list.url,
    comment: `${title} preset: ${list.description}`,
  }));
}

/** The lists of a state, as they are fetched and compiled. */
export function listsOf({ collections }: Pick<PolicyState, "collections">): Lists {
  const all = [...collections.lists.values()];
  return {
    sources: all.filter(({ spec }) => spec.enabled).map(({ id, spec: { name, url, path } }) => ({
      id,
      name,
      ...(url !== undefined && { url }),
      ...(path !== undefined && { path }),
    })),
    off: all.filter(({ spec }) => !spec.enabled).map(({ id }) => id),
  };
}

/** What the groups of a state filter by. */
export function usesOf({ collections }: Pick<PolicyState, "collections">): Uses {
  const { groups, lists, rules } = collections;
  const filtered = [...groups.values()].filter(({ spec }) => spec.filtering);
  const used = new Set(filtered.flatMap(({ spec }) => spec.lists.map(({ list }) => list)));
  return {
    lists: [...used].filter((id) => lists.get(id)?.spec.enabled === true),
    services: filtered.some(({ spec }) => spec.blocked_services.length > 0),
    rules: filtered.length > 0 && rules.values().some(({ spec }) => spec.enabled),
  };
}
