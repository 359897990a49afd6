import type { FilterConfig } from "../config/mod.ts";
import { configListId } from "../lists/mod.ts";
import {
  DEFAULT_GROUP_ID,
  type Envelope,
  FRESH_NODE_SETTINGS,
  type GroupSpec,
  ID_PREFIX,
  type ListSpec,
  type RuleSpec,
} from "../model/mod.ts";
import type { PolicyState } from "../snapshot/mod.ts";
import type { Lists } from "./filtering.ts";

const COMMON = { enabled: true, comment: "", managed_by: "config" } as const;

/** The state that `[filter]` describes: its rules, and its lists in the default group. */
export function configState({ lists, rules }: FilterConfig): PolicyState {
  const listSpecs = lists.map((list): [string, ListSpec] => {
    const place = list.kind === "url" ? { url: list.url } : { path: list.path };
    return [configListId(list.name), { ...COMMON, name: list.name, ...place }];
  });
  const ruleSpecs = rules.map((rule, i): [string, RuleSpec] => {
    return [ID_PREFIX.rules + i.toString(16).padStart(16, "0"), { ...COMMON, rule }];
  });
  const group: GroupSpec = {
    name: "default",
    filtering: true,
    safe_search: false,
    lists: listSpecs.map(([list]) => ({ list })),
    blocked_services: [],
  };
  return {
    collections: {
      schedules: new Map(),
      lists: envelopes(listSpecs),
      rules: envelopes(ruleSpecs),
      records: new Map(),
      groups: envelopes([[DEFAULT_GROUP_ID, group]]),
      clients: new Map(),
    },
    settings: envelope("settings", FRESH_NODE_SETTINGS),
  };
}

function envelopes<S>(specs: readonly (readonly [string, S])[]): Map<string, Envelope<S>> {
  return new Map(specs.map(([id, spec]) => [id, envelope(id, spec)]));
}

function envelope<S>(id: string, spec: S): Envelope<S> {
  const time = new Date(0).toISOString();
  return { id, revision: 1, created_at: time, updated_at: time, spec };
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
