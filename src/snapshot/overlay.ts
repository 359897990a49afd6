import { DEFAULT_GROUP_ID } from "../model/constants.ts";
import type {
  Envelope,
  GroupSpec,
  RecordedSpec,
  RecordSpec,
  ScheduleSpec,
  Settings,
  State,
} from "../model/mod.ts";
import { AccessCompiler, type AccessData } from "./access.ts";
import { type Base, SERVICE_PREFIX } from "./base.ts";
import { type ClientTables, ClientTablesCompiler } from "./client_tables.ts";
import type { CustomRules } from "./custom_rules.ts";
import { type Limit, type LimitedRules, LimitedRulesCompiler } from "./limited_rules.ts";
import { compileRecords, type RecordsData } from "./records.ts";
import { packTexts, share, type Shared } from "./shared.ts";
import { type SpecialClient, SpecialClients } from "./special_clients.ts";

/** What the overlay is made of. */
export type PolicyState = Pick<State, "collections" | "settings">;

/** The groups, by number. */
export interface GroupParts {
  /** Bits of `GroupFlag` of each group; the default group is the first. */
  readonly groupFlags: Int32Array;
  /** Where each group's entries start, and where the last one's end. */
  readonly groupEntries: Int32Array;
  /** The number of the time plus one until which each group is not filtered; 0: it is. */
  readonly groupPauses: Int32Array;
  /**
   * Four words each: the source, or `NO_INTERNET`; the number of its schedule plus one, 0 for always;
   * the numbers of the times plus one from when and until when it applies, 0 for none.
   */
  readonly entries: Int32Array;
  /** ID and name of each group. */
  readonly groupTextOffsets: Int32Array;
  readonly groupTextBytes: Uint8Array;
}

/** The last two: queries are not logged, and not counted in statistics. */
export const GroupFlag = { Filtering: 1, SafeSearch: 2, NoLog: 4, NoStatistics: 8 } as const;
export const ENTRY_WORDS = 4;
/** Of an entry in the place of its source: while it applies, the group has no Internet. */
export const NO_INTERNET = -1;
/** Texts of a group. */
export const TEXTS_EACH = 2;

/** What changes make anew: each part is the same from change to change that is not about it. */
export interface OverlayData {
  /** Of every hash of a name in here. */
  readonly seed: number;
  readonly custom: CustomRules;
  /** The level of custom rules for some only or for a time, and how many sources it has. */
  readonly limited: SharedArrayBuffer | null;
  readonly limitedSources: number;
  readonly records: Shared<RecordsData>;
  readonly groups: Shared<GroupParts>;
  /** What upstreams groups name, by their number; those that name none are not in it. */
  readonly upstreams: ReadonlyMap<number, readonly string[]>;
  readonly clients: ClientTables;
  /** Who may ask. */
  readonly access: AccessData;
  readonly sources: Base["sources"];
  /** Those that a group refers to. */
  readonly schedules: readonly ScheduleSpec[];
  /** At which something ends, in milliseconds since 1970. */
  readonly times: readonly number[];
  readonly settings: Settings;
}

/** The memory of an overlay. */
export function overlayMemory(
  { custom, limited, records, groups, clients, access }: OverlayData,
): SharedArrayBuffer[] {
  const shared = [custom, records, groups, clients.networks, clients.ids, clients.details, access];
  const levels = limited === null ? custom.levels : [...custom.levels, limited];
  return [...levels, ...shared.map(({ memory }) => memory)];
}

/** What was made of the same things before, if they are the same. */
class Kept<T> {
  #of: readonly unknown[] = [];
  #made: { readonly value: T } | null = null;

  get(of: readonly unknown[], make: () => T): T {
    const isSame = this.#made !== null && of.every((one, i) => one === this.#of[i]);
    if (this.#made === null || !isSame) this.#made = { value: make() };
    this.#of = of;
    return this.#made.value;
  }
}

/** Compiles clients, groups, records and settings; milliseconds, whatever the lists hold. */
export class OverlayCompiler {
  readonly #seed: number;
  readonly #designated: readonly RecordSpec[];
  readonly #records = new Kept<Shared<RecordsData>>();
  readonly #groups = new Kept<Groups>();
  readonly #clients = new ClientTablesCompiler();
  readonly #access = new AccessCompiler();
  readonly #limited: LimitedRulesCompiler;
  readonly #special = new SpecialClients();

  /**
   * `seed` is that of every hash of a name in the process; `designated` are records of the service's
   * own, which those of the state take the place of.
   */
  constructor(seed: number, designated: readonly RecordSpec[] = []) {
    this.#seed = seed;
    this.#designated = designated;
    this.#limited = new LimitedRulesCompiler(seed);
  }

  compile(state: PolicyState, base: Base, custom: CustomRules): OverlayData {
    const { collections, settings } = state;
    const { groups: all, lists, schedules, records } = collections;
    const limited = this.#limited.compile(collections.rules, base);
    const special = this.#special.find(collections.clients, limited.limits);
    const groups = this.#groups.get(
      [all, lists, schedules, base, limited, special],
      () => groupsOf(state, base, limited, special),
    );
    return {
      seed: this.#seed,
      custom,
      limited: limited.rules,
      limitedSources: limited.limits.length,
      records: this.#records.get([records], () => {
        const specs = Array.from(records.values(), ({ spec }) => spec);
        const known = new Set(specs.filter(({ enabled }) => enabled).map(({ name }) => name));
        const own = this.#designated.filter(({ name }) => !known.has(name));
        return share({ ...compileRecords([...specs, ...own], this.#seed) });
      }),
      groups: groups.shared,
      upstreams: groups.upstreams,
      clients: this.#clients.compile(collections.clients, groups.numbers),
      access: this.#access.compile(settings.spec.access),
      sources: groups.sources,
      schedules: groups.schedules,
      times: groups.times,
      settings: settings.spec,
    };
  }
}

/** Groups, and what else depends on the same collections. */
interface Groups {
  readonly shared: Shared<GroupParts>;
  readonly upstreams: OverlayData["upstreams"];
  /** By the ID of a group, or of a client that is in one of its own. */
  readonly numbers: ReadonlyMap<string, number>;
  readonly sources: Base["sources"];
  readonly schedules: readonly ScheduleSpec[];
  readonly times: readonly number[];
}

function groupsOf(
  state: PolicyState,
  base: Base,
  { limits }: LimitedRules,
  special: readonly SpecialClient[],
): Groups {
  const table = new GroupTable(state, base, limits, special);
  const { all, numbers, schedules, times, starts, entries, pauses, flags } = table;
  const texts = packTexts(all.flatMap(({ id, spec }) => [id, spec.name]));
  const { lists } = state.collections;
  return {
    shared: share<GroupParts>({
      groupFlags: Int32Array.from(flags),
      groupEntries: Int32Array.from(starts),
      groupPauses: Int32Array.from(pauses),
      entries: Int32Array.from(entries),
      groupTextOffsets: texts.offsets,
      groupTextBytes: texts.bytes,
    }),
    upstreams: new Map(
      all.map(({ spec }, number) => [number, spec.upstreams ?? []] as const)
        .filter(([, upstreams]) => upstreams.length > 0),
    ),
    numbers,
    // A list may have got another name since it was compiled.
    sources: base.sources.map(({ id, name }) => ({ id, name: lists.get(id)?.spec.name ?? name })),
    schedules,
    times,
  };
}

function flagsOf({ filtering, safe_search, ...spec }: GroupSpec): number {
  return (filtering ? GroupFlag.Filtering : 0) | (safe_search ? GroupFlag.SafeSearch : 0) |
    tracesOf(spec);
}

function tracesOf({ querylog, statistics }: RecordedSpec): number {
  return (querylog === false ? GroupFlag.NoLog : 0) |
    (statistics === false ? GroupFlag.NoStatistics : 0);
}

type Group = Pick<Envelope<GroupSpec>, "id" | "spec">;
/** What clients have of their own. */
type Own = Omit<SpecialClient, "id" | "group">;
const ORDINARY: Own = { pausedUntilMs: 0, blocked: null, recorded: {}, limits: [] };

/** Groups with numbers in place of IDs: those of the state, and those made for special clients. */
class GroupTable {
  readonly all: Group[];
  readonly numbers: Map<string, number>;
  readonly schedules: ScheduleSpec[] = [];
  readonly times: number[] = [];
  readonly starts: number[] = [0];
  readonly entries: number[] = [];
  readonly pauses: number[] = [];
  readonly flags: number[] = [];
  readonly #collections: PolicyState["collections"];
  readonly #limits: readonly Limit[];
  readonly #sourceNumbers: ReadonlyMap<string, number>;
  /** The first source of the limits, behind that of the other custom rules. */
  readonly #firstLimit: number;
  readonly #scheduleNumbers = new Map<string, number>();
  readonly #timeNumbers = new Map<number, number>();

  constructor(
    { collections }: PolicyState,
    { sources }: Base,
    limits: readonly Limit[],
    special: readonly SpecialClient[],
  ) {
    const { groups } = collections;
    const others = [...groups.values()].filter(({ id }) => id !== DEFAULT_GROUP_ID);
    this.all = [groups.get(DEFAULT_GROUP_ID) ?? NO_DEFAULT_GROUP, ...others];
    this.numbers = new Map(this.all.map(({ id }, number) => [id, number]));
    this.#collections = collections;
    this.#limits = limits;
    this.#sourceNumbers = new Map(sources.map(({ id }, number) => [id, number]));
    this.#firstLimit = sources.length + 1;
    for (const group of this.all) this.#addGroup(group, ORDINARY);
    const made = new Map<string, number>();
    for (const { id, group: of, ...own } of special) {
      const group = this.all[this.numbers.get(of) ?? 0];
      const key = JSON.stringify([group.id, own]);
      const number = made.get(key) ?? this.all.push(group) - 1;
      if (!made.has(key)) this.#addGroup(group, own);
      made.set(key, number);
      this.numbers.set(id, number);
    }
  }

  /** Adds what a group gets; `own` is what the clients get beside that it is made for. */
  #addGroup({ id, spec }: Group, own: Own): void {
    const pausedUntilMs = Math.max(own.pausedUntilMs, timeMs(spec.paused_until));
    this.pauses.push(this.#time(pausedUntilMs));
    this.flags.push(flagsOf(spec) | tracesOf(own.recorded));
    for (const one of [spec, own.blocked]) {
      if (one?.blocked !== true) continue;
      this.#addEntry(NO_INTERNET, one.blocked_schedule, timeMs(one.blocked_paused_until));
    }
    for (const { list, schedule } of spec.lists) {
      if (this.#collections.lists.get(list)?.spec.enabled === true) this.#add(list, schedule, 0);
    }
    for (const { service, schedule, paused_until } of spec.blocked_services) {
      this.#add(SERVICE_PREFIX + service, schedule, timeMs(paused_until));
    }
    for (const [number, { groups, clients, expiresAtMs }] of this.#limits.entries()) {
      const isForAll = groups.length + clients.length === 0;
      if (!isForAll && !groups.includes(id) && !own.limits.includes(number)) continue;
      const until = expiresAtMs === Infinity ? 0 : this.#time(expiresAtMs);
      this.entries.push(this.#firstLimit + number, 0, 0, until);
    }
    this.starts.push(this.entries.length / ENTRY_WORDS);
  }

  #add(source: string, schedule: string | undefined, fromMs: number): void {
    const number = this.#sourceNumbers.get(source);
    // Without text a source has no number.
    if (number !== undefined) this.#addEntry(number, schedule, fromMs);
  }

  #addEntry(source: number, schedule: string | undefined, fromMs: number): void {
    const when = schedule === undefined ? 0 : this.#schedule(schedule) + 1;
    // Without its schedule it never applies.
    if (when === 0 && schedule !== undefined) return;
    this.entries.push(source, when, this.#time(fromMs), 0);
  }

  #schedule(id: string): number {
    const schedule = this.#collections.schedules.get(id);
    if (schedule === undefined) return -1;
    const known = this.#scheduleNumbers.get(id);
    if (known !== undefined) return known;
    this.#scheduleNumbers.set(id, this.schedules.length);
    return this.schedules.push(schedule.spec) - 1;
  }

  /** The number of a time plus one; 0 is none. */
  #time(ms: number): number {
    if (ms === 0) return 0;
    const known = this.#timeNumbers.get(ms);
    if (known !== undefined) return known;
    const number = this.times.push(ms);
    this.#timeNumbers.set(ms, number);
    return number;
  }
}

/** Milliseconds since 1970, or 0 for none. */
function timeMs(time: string | null | undefined): number {
  return time === null || time === undefined ? 0 : Date.parse(time);
}

/** Stands in where the state has none yet. */
const NO_DEFAULT_GROUP: Pick<Envelope<GroupSpec>, "id" | "spec"> = {
  id: DEFAULT_GROUP_ID,
  spec: {
    name: "default",
    filtering: true,
    safe_search: false,
    lists: [],
    blocked_services: [],
    paused_until: null,
  },
};
