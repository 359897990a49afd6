import type { PolicyState } from "../snapshot/mod.ts";
import type { Lists, Uses } from "./filtering.ts";

/** The lists of a state, as they are fetched and compiled. */
export function listsOf({ collections }: Pick<PolicyState, "collections">): Lists {
  const all = [...collections.lists.values()];
  return {
    sources: all.filter(({ spec }) => spec.enabled).map((
      { id, spec: { name, url, path, allows } },
    ) => ({
      id,
      name,
      ...(url !== undefined && { url }),
      ...(path !== undefined && { path }),
      ...(allows === true && { allows }),
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
