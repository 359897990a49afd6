import { createHash } from "node:crypto";
import {
  type Change,
  type Collection,
  decodeSpec,
  DEFAULT_GROUP_ID,
  describeProblems,
  type Envelope,
  ID_PREFIX,
  LIMITED_RULES_MAX,
  type LiveState,
  MIGRATION_ITEMS_MAX,
  nameKeys,
  type SpecOf,
} from "../model/mod.ts";
import { firstName } from "./identities.ts";
import { planSettings } from "./plan_settings.ts";
import type {
  Item,
  ItemType,
  Place,
  WishedClient,
  WishedGroup,
  WishedList,
  WishedRecord,
  WishedRule,
  WishedService,
  Wishes,
} from "./wishes.ts";
import { joined, lost } from "./wishes.ts";

type Migration = Extract<Change, { type: "migrate" }>;
type Join = Migration["join"][number];

/** What a migration comes to in a state: what becomes of each thing, and the change that does it. */
export interface Plan {
  readonly items: readonly Item[];
  /** `null`: there is nothing to add. */
  readonly change: Migration | null;
}

/** Hexadecimal digits of a hash that make an ID. */
const ID_DIGITS = 16;
const GROUPS_OF_RULE_MAX = 64;
const FULL = `one move takes ${MIGRATION_ITEMS_MAX} things`;

/**
 * An ID that is drawn from what a thing is: what was taken is known again, whoever changed it since,
 * and two who move at a time make it once.
 */
function idOf(collection: Collection, ...identity: readonly string[]): string {
  const hash = createHash("sha256").update(JSON.stringify([collection, ...identity])).digest("hex");
  return ID_PREFIX[collection] + hash.slice(0, ID_DIGITS);
}

/**
 * Says what of `wishes` is missing in a state, and adds that. Nothing that is there is changed: a
 * group that is there gets what it has not, and a setting counts as missing while it is that of a
 * fresh node.
 */
export function planMigration(
  from: string,
  wishes: Wishes,
  state: LiveState,
  place: Place,
): Plan {
  return new Planner(state, place).plan(from, wishes);
}

class Planner {
  readonly #state: LiveState;
  readonly #place: Place;
  readonly #items: Item[] = [];
  readonly #add: { [C in Collection]: { readonly id: string; readonly spec: SpecOf<C> }[] } = {
    schedules: [],
    lists: [],
    records: [],
    groups: [],
    clients: [],
    rules: [],
  };
  readonly #joins: Join[] = [];
  /** IDs of lists by URL, of schedules by what they say, and of groups by the wishes' keys. */
  readonly #lists = new Map<string, string>();
  readonly #schedules = new Map<string, string>();
  readonly #groups = new Map<string, string>();
  /** Groups that are here by what their names are told apart by, and all that are taken. */
  readonly #named = new Map<string, Envelope<SpecOf<"groups">>>();
  readonly #takenNames = new Set<string>();
  /** Who has an address or a client ID, beside who has it already. */
  readonly #clientKeys = new Set<string>();
  #size = 0;
  #limited = 0;

  constructor(state: LiveState, place: Place) {
    this.#state = state;
    this.#place = place;
    for (const { id, spec } of state.collections.lists.values()) {
      if (spec.url !== undefined) this.#lists.set(spec.url, id);
    }
    for (const group of state.collections.groups.values()) {
      for (const key of nameKeys(group.spec.name)) {
        this.#takenNames.add(key);
        if (group.id !== DEFAULT_GROUP_ID) this.#named.set(key, group);
      }
    }
    for (const { id, spec } of state.collections.schedules.values()) {
      this.#schedules.set(whenOf(spec), id);
    }
  }

  plan(from: string, wishes: Wishes): Plan {
    for (const list of wishes.lists) this.#planList(list);
    for (const group of wishes.groups) this.#planGroup(group);
    for (const client of wishes.clients) this.#planClient(client);
    this.#planRules(wishes.rules);
    this.#planRecords(wishes.records);
    const settings = planSettings(wishes, this.#state.settings, this.#items);
    this.#items.push(...wishes.items);
    const isEmpty = this.#size + this.#joins.length === 0 && settings === null;
    const items = this.#items.toSorted((a, b) => ORDER.indexOf(a.type) - ORDER.indexOf(b.type));
    if (isEmpty) return { items, change: null };
    return {
      items,
      change: { type: "migrate", from, add: this.#add, join: this.#joins, settings },
    };
  }

  #note(type: ItemType, name: string, outcome: Item["outcome"], detail: string | null = null) {
    this.#items.push({ type, name, outcome, detail });
  }

  /** Adds a resource; says so of `name`. */
  #take<C extends Collection>(
    collection: C,
    type: ItemType,
    name: string,
    id: string,
    spec: SpecOf<C>,
    adapted: string | null,
    detail: string | null = null,
  ): boolean {
    if (this.#size >= MIGRATION_ITEMS_MAX - GROUPS_OF_RULE_MAX) {
      this.#items.push(lost(type, name, FULL));
      return false;
    }
    this.#size++;
    this.#add[collection].push({ id, spec });
    this.#note(type, name, adapted === null ? "added" : "adapted", adapted ?? detail);
    return true;
  }

  #has(collection: Collection, id: string): boolean {
    return this.#state.collections[collection].has(id) ||
      this.#add[collection].some((one) => one.id === id);
  }

  #planList({ url, name, enabled, allows, comment }: WishedList): void {
    const shown = firstName([name, url]);
    const decoded = decodeSpec("lists", {
      ...{ name: shown, url, enabled, comment },
      ...(allows && { allows }),
    });
    if (!decoded.ok) {
      const reason = describeProblems(decoded.problems, "list");
      this.#items.push(lost("list", `${shown} (${url})`, reason));
      return;
    }
    const id = idOf("lists", url);
    const there = this.#lists.get(url) ??
      (this.#state.collections.lists.has(id) ? id : undefined);
    const item = `${shown} (${url})`;
    if (there === undefined) {
      const adapted = shown === name.trim() ? null : `its name is written as ${shown}`;
      if (this.#take("lists", "list", item, id, decoded.spec, adapted)) this.#lists.set(url, id);
      return;
    }
    this.#lists.set(url, there);
    const here = this.#state.collections.lists.get(there)?.spec;
    if (here !== undefined && allows !== (here.allows === true)) {
      const reason = `it ${here.allows === true ? "lets names through" : "blocks"} here, and stays`;
      this.#items.push(lost("list", item, reason));
      return;
    }
    const isOff = enabled && here?.enabled === false;
    this.#note("list", item, "there_already", isOff ? "it is off here" : null);
  }

  /** The ID of a schedule, which is made where there is none that says the same. */
  #scheduleOf({ schedule }: WishedService): { readonly id: string | null } | string {
    if (schedule === null) return { id: null };
    const when = whenOf(schedule);
    const known = this.#schedules.get(when);
    if (known !== undefined) return { id: known };
    const decoded = decodeSpec("schedules", schedule);
    if (!decoded.ok) return `schedule: ${describeProblems(decoded.problems, "schedule")}`;
    const id = idOf("schedules", when);
    if (this.#has("schedules", id)) {
      this.#note("schedule", schedule.name, "there_already");
    } else if (!this.#take("schedules", "schedule", schedule.name, id, decoded.spec, null)) {
      return FULL;
    }
    this.#schedules.set(when, id);
    return { id };
  }

  #planGroup(wish: WishedGroup): void {
    const shown = wish.name ?? "the default group";
    const there = this.#groupThere(wish);
    const services: SpecOf<"groups">["blocked_services"] = [];
    const has = new Set(there?.spec.blocked_services.map(({ service }) => service));
    for (const wished of wish.services) {
      const { service, adapted } = wished;
      const item = `${service} for ${there?.spec.name ?? shown}`;
      if (this.#place.services !== null && !this.#place.services.has(service)) {
        this.#items.push(lost("service", item, "the catalogue of services has none of this ID"));
        continue;
      }
      if (has.has(service)) {
        this.#note("service", item, "there_already");
        continue;
      }
      const schedule = this.#scheduleOf(wished);
      if (typeof schedule === "string") {
        this.#items.push(lost("service", item, schedule));
        continue;
      }
      has.add(service);
      services.push({ service, ...(schedule.id !== null && { schedule: schedule.id }) });
      this.#note("service", item, adapted === null ? "added" : "adapted", adapted);
    }
    const known = new Set(there?.spec.lists.map(({ list }) => list));
    const wanted = [...new Set(wish.lists.flatMap((url) => this.#lists.get(url) ?? []))];
    const lists = wanted.filter((list) => !known.has(list)).map((list) => ({ list }));
    if (there === undefined) this.#makeGroup(wish, shown, lists, services);
    else this.#joinGroup(wish, there, lists, services);
  }

  #groupThere({ name, identity, isNamed }: WishedGroup): Envelope<SpecOf<"groups">> | undefined {
    const { groups } = this.#state.collections;
    if (name === null) return groups.get(DEFAULT_GROUP_ID);
    const known = groups.get(idOf("groups", identity));
    if (known !== undefined || !isNamed) return known;
    for (const key of nameKeys(name)) {
      const there = this.#named.get(key);
      if (there !== undefined) return there;
    }
    return undefined;
  }

  #makeGroup(
    wish: WishedGroup,
    shown: string,
    lists: SpecOf<"groups">["lists"],
    services: SpecOf<"groups">["blocked_services"],
  ): void {
    const id = idOf("groups", wish.identity);
    if (this.#has("groups", id)) {
      this.#items.push(lost("group", shown, "there is another one of this name there"));
      return;
    }
    const name = this.#freeName(shown);
    const { filtering, safe_search } = wish;
    const decoded = decodeSpec("groups", {
      ...{ name, filtering, safe_search, lists, blocked_services: services },
    });
    if (!decoded.ok) {
      this.#items.push(lost("group", shown, describeProblems(decoded.problems, "group")));
      return;
    }
    const renamed = name === shown ? null : `called ${name}: the name is taken here`;
    const adapted = joined(wish.adapted, wish.safe_search_adapted, renamed);
    if (this.#take("groups", "group", name, id, decoded.spec, adapted)) {
      this.#groups.set(wish.key, id);
      for (const key of nameKeys(name)) this.#takenNames.add(key);
    }
  }

  /** A name that reads as no other group's. */
  #freeName(name: string): string {
    const isFree = (one: string) => !nameKeys(one).some((key) => this.#takenNames.has(key));
    if (isFree(name)) return name;
    for (let n = 2;; n++) {
      const next = firstName([`${name.slice(0, 120)} ${n}`]);
      if (isFree(next)) return next;
    }
  }

  #joinGroup(
    wish: WishedGroup,
    { id, spec }: Envelope<SpecOf<"groups">>,
    lists: SpecOf<"groups">["lists"],
    services: SpecOf<"groups">["blocked_services"],
  ): void {
    this.#groups.set(wish.key, id);
    const isSafer = wish.safe_search && !spec.safe_search;
    const whole = decodeSpec("groups", {
      ...spec,
      safe_search: spec.safe_search || isSafer,
      lists: [...spec.lists, ...lists],
      blocked_services: [...spec.blocked_services, ...services],
    });
    if (!whole.ok) {
      const reason = `nothing is added to it: ${describeProblems(whole.problems, "group")}`;
      this.#items.push(lost("group", spec.name, reason));
      return;
    }
    if (isSafer) {
      const { safe_search_adapted: adapted } = wish;
      const outcome = adapted === null ? "added" : "adapted";
      this.#note("safe_search", `for ${spec.name}`, outcome, adapted);
    } else if (wish.safe_search) this.#note("safe_search", `for ${spec.name}`, "there_already");
    const gets = lists.length === 0
      ? null
      : `gets ${lists.length} ${lists.length === 1 ? "list" : "lists"}`;
    if (!wish.filtering && spec.filtering) {
      this.#items.push(lost("group", spec.name, "it is filtered here, and that stays"));
    } else if (gets !== null) this.#note("group", spec.name, "added", joined(gets, wish.adapted));
    else this.#note("group", spec.name, "there_already");
    if (lists.length + services.length > 0 || isSafer) {
      this.#joins.push({ group: id, lists, blocked_services: services, safe_search: isSafer });
    }
  }

  #planClient(wish: WishedClient): void {
    const group = this.#groups.get(wish.group);
    if (group === undefined) {
      this.#items.push(lost("client", wish.name, "its group can't be made"));
      return;
    }
    const { name, addresses, ids, recorded } = wish;
    const all = [...addresses, ...ids];
    const decoded = decodeSpec("clients", { name, addresses, ids, group, ...recorded });
    if (!decoded.ok) {
      this.#items.push(lost("client", name, describeProblems(decoded.problems, "client")));
      return;
    }
    const id = idOf("clients", ...all.toSorted());
    const isTaken = (key: string) =>
      this.#state.clientKeys.get(key) !== undefined || this.#clientKeys.has(key);
    const { spec } = decoded;
    const free = {
      ...spec,
      addresses: spec.addresses.filter((key) => !isTaken(key)),
      ids: spec.ids.filter((key) => !isTaken(key)),
    };
    const left = [...free.addresses, ...free.ids];
    const item = `${name} (${[...spec.addresses, ...spec.ids].join(", ")})`;
    if (left.length === 0 || this.#has("clients", id)) {
      this.#note("client", item, "there_already");
      return;
    }
    const without = [...spec.addresses, ...spec.ids].filter(isTaken);
    const adapted = joined(
      wish.adapted,
      without.length > 0 && `without ${without.join(", ")}, which belong to others here`,
    );
    if (this.#take("clients", "client", item, id, free, adapted)) {
      for (const key of left) this.#clientKeys.add(key);
    }
  }

  #planRules(wishes: readonly WishedRule[]): void {
    const there = new Set<string>();
    const note = ({ rule, groups }: SpecOf<"rules">) =>
      there.add(JSON.stringify([rule, groups.toSorted()]));
    for (const { spec } of this.#state.collections.rules.values()) {
      if (spec.expires_at === null && spec.clients.length === 0) note(spec);
    }
    for (const wish of wishes) {
      const shown = wish.name ?? wish.rule;
      const groups = (wish.groups ?? []).flatMap((key) => this.#groups.get(key) ?? []);
      const { rule, enabled, comment } = wish;
      const decoded = decodeSpec("rules", { rule, enabled, comment, groups: [...new Set(groups)] });
      if (!decoded.ok) {
        const [{ message }] = decoded.problems;
        this.#items.push(lost("rule", shown, message));
        continue;
      }
      const { spec } = decoded;
      const isLimited = wish.groups !== null;
      if (isLimited && groups.length === 0) {
        this.#items.push(lost("rule", shown, "its groups can't be made"));
        continue;
      }
      const forAll = JSON.stringify([spec.rule, []]);
      const own = JSON.stringify([spec.rule, spec.groups.toSorted()]);
      const id = idOf("rules", own);
      if (there.has(own) || there.has(forAll) || this.#state.collections.rules.has(id)) {
        this.#note("rule", shown, "there_already");
        continue;
      }
      const isFull = this.#state.limitedRules.size + this.#limited >= LIMITED_RULES_MAX;
      if (isLimited && isFull) {
        const reason = `${LIMITED_RULES_MAX} rules may be for some groups alone`;
        this.#items.push(lost("rule", shown, reason));
        continue;
      }
      const written = shown === spec.rule || wish.adapted !== null ? null : `as ${spec.rule}`;
      if (!this.#take("rules", "rule", shown, id, spec, wish.adapted, written)) continue;
      note(spec);
      if (isLimited) this.#limited++;
    }
  }

  #planRecords(wishes: readonly WishedRecord[]): void {
    const here = new Map<string, SpecOf<"records">[]>();
    const keys = new Set<string>();
    const note = (spec: SpecOf<"records">) => {
      keys.add(recordKey(spec));
      const others = here.get(spec.name);
      if (others === undefined) here.set(spec.name, [spec]);
      else others.push(spec);
    };
    for (const { spec } of this.#state.collections.records.values()) note(spec);
    const own = new Set<SpecOf<"records">>();
    const read = wishes.map((wish) => {
      const { name, type, value, ttl, enabled } = wish;
      const spec = { name, type, value, enabled, ...(ttl !== null && { ttl }) };
      return { wish, decoded: decodeSpec("records", spec) };
    });
    // Which values a name has there: where it has others here, those stay alone.
    const theirs = new Set(
      read.flatMap(({ decoded }) => decoded.ok ? [recordKey(decoded.spec)] : []),
    );
    for (const { wish, decoded } of read) {
      const shown = `${wish.name} ${wish.type} ${wish.value}`;
      if (!decoded.ok) {
        this.#items.push(lost("record", shown, decoded.problems[0].message));
        continue;
      }
      const { spec } = decoded;
      const others = here.get(spec.name) ?? [];
      const id = idOf("records", recordKey(spec));
      if (keys.has(recordKey(spec)) || this.#state.collections.records.has(id)) {
        this.#note("record", shown, "there_already");
        continue;
      }
      const foreign = others.find((one) =>
        one.type === spec.type && !own.has(one) && !theirs.has(recordKey(one))
      );
      const isAlone = [spec, ...others].some(({ type, enabled }) => type === "CNAME" && enabled);
      const beside = others.find(({ enabled }) => enabled);
      if (foreign !== undefined) {
        const reason = `${foreign.value} is what it is here, and stays`;
        this.#items.push(lost("record", shown, reason));
      } else if (spec.enabled && isAlone && beside !== undefined) {
        const reason = `a CNAME stands alone, and there is a ${beside.type} of the name`;
        this.#items.push(lost("record", shown, reason));
      } else if (this.#take("records", "record", shown, id, spec, wish.adapted)) {
        own.add(spec);
        note(spec);
      }
    }
  }
}

/** The order of the table. */
const ORDER: readonly ItemType[] = [
  "list",
  "rule",
  "group",
  "client",
  "service",
  "schedule",
  "safe_search",
  "record",
  "access",
  "setting",
  "file",
];

function whenOf({ time_zone, windows }: SpecOf<"schedules">): string {
  return JSON.stringify([time_zone, windows]);
}

function recordKey({ name, type, value }: SpecOf<"records">): string {
  return `${name} ${type} ${value}`;
}
