/**
 * What a node begins with: its name as long as it is in no cluster, and what `[filter]` puts into a
 * new store. For commands on a node that is stopped, which need no more of it. Scope: none. @module
 */
import type { FilterConfig } from "../config/mod.ts";
import { configListId, PRESETS, RECOMMENDED, recommendedListId } from "../lists/mod.ts";
import type { DefaultList, SeedSource } from "../store/mod.ts";

/** What the audit log calls a node that is in no cluster. */
export const LONE_NODE = "local";

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
