import { DEFAULT_GROUP_ID } from "../model/constants.ts";
import type { Envelope, GroupSpec, ScheduleSpec, Settings, State } from "../model/mod.ts";
import { AccessCompiler, type AccessData } from "./access.ts";
import { type Base, SERVICE_PREFIX } from "./base.ts";
import { type ClientTables, ClientTablesCompiler } from "./client_tables.ts";
import type { CustomRules } from "./custom_rules.ts";
import { compileRecords, type RecordsData } from "./records.ts";
import { packTexts, share, type Shared } from "./shared.ts";

/** What the overlay is made of. */
export type PolicyState = Pick<State, "collections" | "settings">;

/** The groups, by number. */
export interface GroupParts {
  /** Bits of `GroupFlag` of each group; the default group is the first. */
  readonly groupFlags: Int32Array;
  /** Where each group's entries start, and where the last one's end. */
  readonly groupEntries: Int32Array;
  /** Two words each: the base source, and the number of its schedule plus one, 0 for always. */
  readonly entries: Int32Array;
  /** ID and name of each group. */
  readonly groupTextOffsets: Int32Array;
  readonly groupTextBytes: Uint8Array;
}

export const GroupFlag = { Filtering: 1, SafeSearch: 2 } as const;
export const ENTRY_WORDS = 2;
/** Texts of a group. */
export const TEXTS_EACH = 2;

/** What changes make anew: each part is the same from change to change that is not about it. */
export interface OverlayData {
  /** Of every hash of a name in here. */
  readonly seed: number;
  readonly custom: CustomRules;
  readonly records: Shared<RecordsData>;
  readonly groups: Shared<GroupParts>;
  readonly clients: ClientTables;
  /** Who may ask. */
  readonly access: AccessData;
  readonly sources: Base["sources"];
  /** Those that a group refers to. */
  readonly schedules: readonly ScheduleSpec[];
  readonly settings: Settings;
}

/** The memory of an overlay. */
export function overlayMemory(
  { custom, records, groups, clients, access }: OverlayData,
): SharedArrayBuffer[] {
  const shared = [custom, records, groups, clients.networks, clients.ids, clients.details, access];
  return [...custom.levels, ...shared.map(({ memory }) => memory)];
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
  readonly #records = new Kept<Shared<RecordsData>>();
  readonly #groups = new Kept<Groups>();
  readonly #clients = new ClientTablesCompiler();
  readonly #access = new AccessCompiler();

  /** `seed` is that of every hash of a name in the process. */
  constructor(seed: number) {
    this.#seed = seed;
  }

  compile(state: PolicyState, base: Base, custom: CustomRules): OverlayData {
    const { collections, settings } = state;
    const { groups: all, lists, schedules, records } = collections;
    const groups = this.#groups.get([all, lists, schedules, base], () => groupsOf(state, base));
    return {
      seed: this.#seed,
      custom,
      records: this.#records.get([records], () => {
        const specs = Array.from(records.values(), ({ spec }) => spec);
        return share({ ...compileRecords(specs, this.#seed) });
      }),
      groups: groups.shared,
      clients: this.#clients.compile(collections.clients, groups.numbers),
      access: this.#access.compile(settings.spec.access),
      sources: groups.sources,
      schedules: groups.schedules,
      settings: settings.spec,
    };
  }
}

/** Groups, and what else depends on the same collections. */
interface Groups {
  readonly shared: Shared<GroupParts>;
  readonly numbers: ReadonlyMap<string, number>;
  readonly sources: Base["sources"];
  readonly schedules: readonly ScheduleSpec[];
}

function groupsOf(state: PolicyState, base: Base): Groups {
  const { all, numbers, schedules, starts, entries } = new GroupTable(state, base);
  const texts = packTexts(all.flatMap(({ id, spec }) => [id, spec.name]));
  const { lists } = state.collections;
  return {
    shared: share<GroupParts>({
      groupFlags: Int32Array.from(all, ({ spec }) => flagsOf(spec)),
      groupEntries: Int32Array.from(starts),
      entries: Int32Array.from(entries),
      groupTextOffsets: texts.offsets,
      groupTextBytes: texts.bytes,
    }),
    numbers,
    // A list may have got another name since it was compiled.
    sources: base.sources.map(({ id, name }) => ({ id, name: lists.get(id)?.spec.name ?? name })),
    schedules,
  };
}

function flagsOf({ filtering, safe_search }: GroupSpec): number {
  return (filtering ? GroupFlag.Filtering : 0) | (safe_search ? GroupFlag.SafeSearch : 0);
}

/** Groups with numbers in place of IDs. */
class GroupTable {
  readonly all: readonly Pick<Envelope<GroupSpec>, "id" | "spec">[];
  readonly numbers: ReadonlyMap<string, number>;
  readonly schedules: ScheduleSpec[] = [];
  readonly starts: number[] = [0];
  readonly entries: number[] = [];

  constructor({ collections }: PolicyState, { sources }: Base) {
    const { groups, lists, schedules } = collections;
    const others = [...groups.values()].filter(({ id }) => id !== DEFAULT_GROUP_ID);
    this.all = [groups.get(DEFAULT_GROUP_ID) ?? NO_DEFAULT_GROUP, ...others];
    this.numbers = new Map(this.all.map(({ id }, number) => [id, number]));
    const sourceNumbers = new Map(sources.map(({ id }, number) => [id, number]));
    const scheduleNumbers = new Map<string, number>();
    const scheduleNumber = (id: string) => {
      const schedule = schedules.get(id);
      if (schedule === undefined) return -1;
      const known = scheduleNumbers.get(id);
      if (known !== undefined) return known;
      scheduleNumbers.set(id, this.schedules.length);
      return this.schedules.push(schedule.spec) - 1;
    };
    const add = (source: string, schedule: string | undefined) => {
      const number = sourceNumbers.get(source);
      const when = schedule === undefined ? 0 : scheduleNumber(schedule) + 1;
      // Without text a source has no number; without its schedule it never applies.
      if (number === undefined || (when === 0 && schedule !== undefined)) return;
      this.entries.push(number, when);
    };
    for (const { spec } of this.all) {
      for (const { list, schedule } of spec.lists) {
        if (lists.get(list)?.spec.enabled === true) add(list, schedule);
      }
      for (const { service, schedule } of spec.blocked_services) {
        add(SERVICE_PREFIX + service, schedule);
      }
      this.starts.push(this.entries.length / ENTRY_WORDS);
    }
  }
}

/** Stands in where the state has none yet. */
const NO_DEFAULT_GROUP: Pick<Envelope<GroupSpec>, "id" | "spec"> = {
  id: DEFAULT_GROUP_ID,
  spec: { name: "default", filtering: true, safe_search: false, lists: [], blocked_services: [] },
};
