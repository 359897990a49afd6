import type { FilterConfig } from "../config/mod.ts";
import { configListId } from "../lists/mod.ts";
import type { PolicyState } from "../snapshot/mod.ts";
import type { SeedSource } from "../store/mod.ts";
import type { Lists } from "./filtering.ts";

/** What `[filter]` seeds a store with. */
export function seedSource({ lists, rules }: FilterConfig): SeedSource {
  return { lists: lists.map((list) => ({ ...list, id: configListId(list.name) })), rules };
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
