import type { Change } from "./command.ts";
import { DEFAULT_GROUP_ID } from "./constants.ts";
import type { Draft } from "./draft.ts";
import { isSeeded, type Refused, settingsEnvelope } from "./live_state.ts";
import { refuse } from "./references.ts";
import {
  CONFIG_LIST_PREFIX,
  type Envelope,
  GROUP_LISTS_MAX,
  ID_PREFIX,
  MANAGED_BY_CONFIG,
  SPEC_BYTES_MAX,
  type SpecOf,
} from "./resources.ts";
import { jsonBytes, type Result, TOO_LARGE } from "./result.ts";
import { takeSettings, takeSpec } from "./take_spec.ts";

type Seed = Extract<Change, { type: "seed" }>;

/** Most custom rules and lists of one seed: they are one change, stored whole or not at all. */
export const SEED_ITEMS_MAX = 20_000;

/** What a seed changed, by kind; its value and what the audit log says of it. */
interface Counts {
  added: number;
  replaced: number;
  removed: number;
}

/**
 * Puts what the configuration file names in the place of what came from it before; what a user
 * made stays. The default group uses every list of the file. Settings and the default group are
 * made where there are none, by the first seed only.
 */
export function applySeed(draft: Draft, seed: Seed, at: string): Result {
  const size = seed.lists.length + seed.rules.length;
  if (size > SEED_ITEMS_MAX) {
    return refuse("invalid", `filter: more than ${SEED_ITEMS_MAX} lists and rules`);
  }
  for (const [i, { id }] of seed.lists.entries()) {
    // The first seed may bring the recommended lists that a new node starts with.
    if (!id.startsWith(seed.first ? ID_PREFIX.lists : CONFIG_LIST_PREFIX)) {
      return refuse("invalid", `filter.lists[${i}]: ${id} is no ID of a configured list`);
    }
  }
  if (seed.first && !isSeeded(draft.state)) {
    const settings = takeSettings(seed.settings);
    if (settings.kind === "refused") return settings;
    draft.putSettings(settingsEnvelope(1, at, at, settings.spec));
  }

  const lists = merge(draft, "lists", seed.lists, isConfigList, at);
  const rules = merge(draft, "rules", seed.rules, isConfigRule, at);
  if ("kind" in lists) return lists;
  if ("kind" in rules) return rules;
  const groups = updateGroups(draft, seed, at);
  if (groups !== null) return groups;
  const counts = { lists, rules };
  return {
    kind: "done",
    value: counts,
    action: seed.first ? "seed" : "import",
    resource: { type: "config", id: null },
    before: null,
    after: counts,
  };
}

/** Has the default group use all lists of the file, and no group one that is gone. */
function updateGroups(draft: Draft, seed: Seed, at: string): Refused | null {
  const { groups } = draft.state.collections;
  const wanted = seed.lists.map(({ id }) => id);
  if (!groups.has(DEFAULT_GROUP_ID)) {
    if (!seed.first) return refuse("conflict", "filter: the store has had no first seed");
    const lists = usedLists(draft, [], wanted);
    const spec = { ...DEFAULT_GROUP, lists };
    draft.put("groups", {
      id: DEFAULT_GROUP_ID,
      revision: 1,
      created_at: at,
      updated_at: at,
      spec,
    });
  }
  for (const group of groups.values()) {
    const isDefault = group.id === DEFAULT_GROUP_ID;
    const lists = usedLists(draft, group.spec.lists, isDefault ? wanted : []);
    if (JSON.stringify(lists) === JSON.stringify(group.spec.lists)) continue;
    const spec = { ...group.spec, lists };
    draft.put("groups", { ...group, revision: group.revision + 1, updated_at: at, spec });
  }
  const used = draft.state.collections.groups.get(DEFAULT_GROUP_ID)?.spec;
  if (used !== undefined && used.lists.length > GROUP_LISTS_MAX) {
    return refuse("invalid", `filter.lists: the default group takes ${GROUP_LISTS_MAX} lists`);
  }
  return jsonBytes(used) > SPEC_BYTES_MAX ? TOO_LARGE : null;
}

const DEFAULT_GROUP: SpecOf<"groups"> = {
  name: "Default",
  filtering: true,
  safe_search: false,
  lists: [],
  blocked_services: [],
  paused_until: null,
};

function isConfigList({ id }: Envelope<unknown>): boolean {
  return id.startsWith(CONFIG_LIST_PREFIX);
}

function isConfigRule({ spec }: Envelope<SpecOf<"rules">>): boolean {
  return spec.managed_by === MANAGED_BY_CONFIG;
}

/** Makes `items` what came from the file. */
function merge<C extends "lists" | "rules">(
  draft: Draft,
  collection: C,
  items: readonly { readonly id: string; readonly spec: SpecOf<C> }[],
  isOurs: (envelope: Envelope<SpecOf<C>>) => boolean,
  at: string,
): Counts | Refused {
  const counts: Counts = { added: 0, replaced: 0, removed: 0 };
  const before: ReadonlyMap<string, Envelope<SpecOf<C>>> = draft.state.collections[collection];
  const named = new Set(items.map(({ id }) => id));
  for (const envelope of before.values()) {
    if (!isOurs(envelope) || named.has(envelope.id)) continue;
    draft.remove(collection, envelope.id);
    counts.removed++;
  }
  for (const { id, spec: given } of items) {
    const taken = takeSpec(collection, given);
    if (taken.kind === "refused") return taken;
    const { spec } = taken;
    const old = before.get(id);
    if (old === undefined) {
      draft.put(collection, { id, revision: 1, created_at: at, updated_at: at, spec });
      counts.added++;
    } else if (JSON.stringify(old.spec) !== JSON.stringify(spec)) {
      draft.put(collection, { ...old, revision: old.revision + 1, updated_at: at, spec });
      counts.replaced++;
    }
  }
  return counts;
}

/** `used` without the lists that are gone, and with `wanted` behind them. */
function usedLists(
  draft: Draft,
  used: SpecOf<"groups">["lists"],
  wanted: readonly string[],
): SpecOf<"groups">["lists"] {
  const { lists } = draft.state.collections;
  const kept = used.filter(({ list }) => lists.has(list));
  const named = new Set(kept.map(({ list }) => list));
  const missing = wanted.filter((list) => !named.has(list) && lists.has(list));
  return [...kept, ...missing.map((list) => ({ list }))];
}
