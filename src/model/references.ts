import { DEFAULT_GROUP_ID } from "./constants.ts";
import { findNameClash } from "./names.ts";
import { isLimited, keysOfClient, type LiveState, type Refused } from "./live_state.ts";
import type { BlockedSpec, Collection, Envelope, SpecOf } from "./resources.ts";

/** Most rules with an end, or for some only: each may be a source of its own for who decides. */
export const LIMITED_RULES_MAX = 1_000;

/** Users of a resource that a refusal names; the rest it counts. */
const NAMED_USERS_MAX = 5;

export function refuse(code: Refused["code"], message: string): Refused {
  return { kind: "refused", code, message };
}

type Check<C extends Collection> = (
  state: LiveState,
  id: string,
  spec: SpecOf<C>,
) => Refused | null;

/** What each collection asks of the others before a spec may stand. */
const CHECKS: { readonly [C in Collection]?: Check<C> } = {
  rules: checkRule,
  records: checkRecord,
  groups: checkGroup,
  clients: checkClient,
};

/** Why `spec` can't stand beside the rest of the state, or `null`. */
export function findConflict<C extends Collection>(
  state: LiveState,
  collection: C,
  id: string,
  spec: SpecOf<C>,
): Refused | null {
  const check: Check<C> | undefined = CHECKS[collection];
  return check === undefined ? null : check(state, id, spec);
}

/** What a rule is limited to is there, and there are not too many of its kind. */
function checkRule(state: LiveState, id: string, spec: SpecOf<"rules">): Refused | null {
  if (!isLimited(spec)) return null;
  const { groups, clients } = state.collections;
  for (const [field, map] of [["groups", groups], ["clients", clients]] as const) {
    const i = spec[field].findIndex((one) => !map.has(one));
    if (i < 0) continue;
    return refuse(
      "conflict",
      `${field}[${i}]: no ${field.slice(0, -1)} has the ID ${spec[field][i]}`,
    );
  }
  if (state.limitedRules.size < LIMITED_RULES_MAX || state.limitedRules.has(id)) return null;
  return refuse(
    "conflict",
    `rules: ${LIMITED_RULES_MAX} have an end, groups or clients, which is the most: use the lists ` +
      "of groups for more",
  );
}

/** A CNAME stands alone at its name (RFC 1034 §3.6.2); records that are off don't count. */
function checkRecord(state: LiveState, id: string, spec: SpecOf<"records">): Refused | null {
  if (!spec.enabled) return null;
  for (const other of state.collections.records.values()) {
    if (other.id === id || !other.spec.enabled || other.spec.name !== spec.name) continue;
    if (spec.type !== "CNAME" && other.spec.type !== "CNAME") continue;
    const there = `${other.id} is a ${other.spec.type} record of the same name`;
    return refuse("conflict", `name: a CNAME record stands alone, and ${there}`);
  }
  return null;
}

function checkGroup(state: LiveState, id: string, spec: SpecOf<"groups">): Refused | null {
  return findNameClash(state, "groups", id, spec.name) ?? checkGroupReferences(state, spec);
}

function checkGroupReferences(state: LiveState, spec: SpecOf<"groups">): Refused | null {
  const { lists, schedules } = state.collections;
  const missing = (path: string, what: string, id: string) =>
    refuse("conflict", `${path}: no ${what} has the ID ${id}`);
  for (const [i, { list, schedule }] of spec.lists.entries()) {
    if (!lists.has(list)) return missing(`lists[${i}].list`, "list", list);
    if (schedule !== undefined && !schedules.has(schedule)) {
      return missing(`lists[${i}].schedule`, "schedule", schedule);
    }
  }
  for (const [i, { schedule }] of spec.blocked_services.entries()) {
    if (schedule !== undefined && !schedules.has(schedule)) {
      return missing(`blocked_services[${i}].schedule`, "schedule", schedule);
    }
  }
  return checkBlocked(state, spec);
}

function checkBlocked(state: LiveState, { blocked_schedule: id }: BlockedSpec): Refused | null {
  if (id === undefined || state.collections.schedules.has(id)) return null;
  return refuse("conflict", `blocked_schedule: no schedule has the ID ${id}`);
}

function checkClient(state: LiveState, id: string, spec: SpecOf<"clients">): Refused | null {
  if (!state.collections.groups.has(spec.group)) {
    return refuse("conflict", `group: no group has the ID ${spec.group}`);
  }
  for (const key of keysOfClient(spec)) {
    const owner = state.clientKeys.get(key);
    if (owner === undefined || owner === id) continue;
    const at = spec.addresses.indexOf(key);
    const path = at < 0 ? `ids[${spec.ids.indexOf(key)}]` : `addresses[${at}]`;
    return refuse("conflict", `${path}: ${key} belongs to ${owner} already`);
  }
  return checkBlocked(state, spec);
}

/** Why the resource can't be deleted, or `null`; a refusal names those that use it. */
export function findUsers(state: LiveState, collection: Collection, id: string): Refused | null {
  if (collection === "groups" && id === DEFAULT_GROUP_ID) {
    return refuse("conflict", `${id}: the default group can't be deleted`);
  }
  const users: string[] = [];
  for (const { id: user, spec } of possibleUsers(state, collection)) {
    if (refersTo(spec, id)) users.push(`${user} (${"name" in spec ? spec.name : spec.rule})`);
  }
  if (users.length === 0) return null;
  const more = users.length - NAMED_USERS_MAX;
  const named = users.slice(0, NAMED_USERS_MAX).join(", ") + (more > 0 ? ` and ${more} more` : "");
  return refuse("conflict", `${id}: is used by ${named}`);
}

type User = Envelope<SpecOf<"groups"> | SpecOf<"clients"> | SpecOf<"rules">>;

function* possibleUsers(state: LiveState, collection: Collection): Iterable<User> {
  const { groups, clients, rules } = state.collections;
  if (collection === "lists" || collection === "schedules") yield* groups.values();
  if (collection === "groups" || collection === "schedules") yield* clients.values();
  if (collection !== "groups" && collection !== "clients") return;
  for (const id of state.limitedRules.keys()) yield rules.get(id)!;
}

function refersTo(spec: User["spec"], id: string): boolean {
  if ("rule" in spec) return spec.groups.includes(id) || spec.clients.includes(id);
  if (spec.blocked_schedule === id) return true;
  if ("group" in spec) return spec.group === id;
  return spec.lists.some(({ list, schedule }) => list === id || schedule === id) ||
    spec.blocked_services.some(({ schedule }) => schedule === id);
}
