import { compile, Matcher, parseRule, type Rule } from "../filter/mod.ts";
import { DEFAULT_GROUP_ID } from "../model/constants.ts";
import type { Envelope, GroupSpec, ScheduleSpec, Settings, State } from "../model/mod.ts";
import { AccessCompiler, type AccessData } from "./access.ts";
import { type ClientParts, ClientTablesCompiler } from "./client_tables.ts";
import { compileRecords, type RecordsData } from "./records.ts";
import { packTexts, share } from "./shared.ts";

/** What the overlay is made of. */
export type PolicyState = Pick<State, "collections" | "settings">;

/** The rules of lists and services: large, compiled when one of their texts changes. */
export interface Base {
  /** `null` filters by custom rules alone. */
  readonly rules: SharedArrayBuffer | null;
  /** By the number that the compiled rules name: a list's ID, or `service:` and the service's. */
  readonly sources: readonly { readonly id: string; readonly name: string }[];
  /** The `$badfilter` rules among them: they turn custom rules off as well. */
  readonly badfilters: readonly string[];
}

/** What the ID of a blocked service's source begins with. */
export const SERVICE_PREFIX = "service:";

/** The custom rules, and which of the base's they turn off. Compiled when one of them changes. */
export interface CustomRules {
  /** `null` where there is none. */
  readonly rules: SharedArrayBuffer | null;
  /** References of base rules, ascending. */
  readonly turnedOff: readonly number[];
  /** Custom rules that can't be read. */
  readonly unreadable: number;
}

/** Tables of the overlay: the clients' are views of one memory, all others of another. */
export interface OverlayParts extends ClientParts, RecordsData {
  /** Group number of each client. */
  readonly clientGroups: Int32Array;
  /** Bits of `GroupFlag` of each group; the default group is the first. */
  readonly groupFlags: Int32Array;
  /** Where each group's entries start, and where the last one's end. */
  readonly groupEntries: Int32Array;
  /** Two words each: the base source, and the number of its schedule plus one, 0 for always. */
  readonly entries: Int32Array;
  /** References of base rules that custom rules turn off, ascending. */
  readonly turnedOff: Int32Array;
  /** ID and name of each group. */
  readonly groupTextOffsets: Int32Array;
  readonly groupTextBytes: Uint8Array;
}

export const GroupFlag = { Filtering: 1, SafeSearch: 2 } as const;
export const ENTRY_WORDS = 2;
/** Texts of a group or a client. */
export const TEXTS_EACH = 2;

/** Everything that a change makes anew: small, and shared with the dns isolates. */
export interface OverlayData {
  /** Of every hash of a name in here. */
  readonly seed: number;
  readonly memory: SharedArrayBuffer;
  /** Of the clients' tables: the same from change to change that is not about them. */
  readonly clientMemory: SharedArrayBuffer;
  readonly parts: OverlayParts;
  /** Who may ask; the same from change to change that is not about it. */
  readonly access: AccessData;
  /** The custom rules as the only source; `null` where there is none. */
  readonly customRules: SharedArrayBuffer | null;
  readonly sources: Base["sources"];
  /** Those that a group refers to. */
  readonly schedules: readonly ScheduleSpec[];
  readonly settings: Settings;
}

/** The rules that hold for every filtered group, one text a rule. */
export function customRuleTexts({ collections }: Pick<PolicyState, "collections">): string[] {
  const enabled = [...collections.rules.values()].filter(({ spec }) => spec.enabled);
  // A rule is a line: what is more than one can't be read.
  return enabled.map(({ spec }) => spec.rule.replaceAll(/[\r\n]+/g, " "));
}

/** Compiles custom rules against the base whose `$badfilter` rules concern them, and theirs it. */
export function compileCustomRules(
  texts: readonly string[],
  base: Base,
  seed: number,
): CustomRules {
  const own = texts.flatMap((text) => {
    const parsed = parseRule(text);
    return parsed.kind === "rules" ? parsed.rules : [];
  });
  const unreadable = texts.filter((text) => parseRule(text).kind === "skipped").length;
  const badfilters = own.filter(({ badfilter }) => badfilter);
  const turnedOff = turnedOffBy(badfilters, base);
  if (own.length === badfilters.length) return { rules: null, turnedOff, unreadable };
  // The base's badfilters stand in a source of their own, whose rules are gone once they have acted.
  const { snapshot } = compile({
    seed,
    sources: [texts, base.badfilters].map((lines) => ({
      bytes: new TextEncoder().encode(lines.join("\n")),
    })),
  });
  return { rules: snapshot, turnedOff, unreadable };
}

function turnedOffBy(badfilters: readonly Rule[], { rules, sources }: Base): number[] {
  if (rules === null) return [];
  const matcher = new Matcher(rules);
  // A blocked service stays blocked whatever the custom rules say.
  const isList = (ref: number) => !sources[matcher.source(ref)].id.startsWith(SERVICE_PREFIX);
  const refs = new Set(badfilters.flatMap((rule) => matcher.turnedOffBy(rule).filter(isList)));
  return [...refs].sort((a, b) => a - b);
}

/** Compiles clients, groups, records and settings; milliseconds, whatever the lists hold. */
export class OverlayCompiler {
  readonly #seed: number;
  readonly #clients = new ClientTablesCompiler();
  readonly #access = new AccessCompiler();

  /** `seed` is that of every hash of a name in the process. */
  constructor(seed: number) {
    this.#seed = seed;
  }

  compile(state: PolicyState, base: Base, custom: CustomRules): OverlayData {
    const { collections, settings } = state;
    const groups = new GroupTable(state, base);
    const clients = [...collections.clients.values()];
    const found = this.#clients.compile(clients);
    const texts = packTexts(groups.all.flatMap(({ id, spec }) => [id, spec.name]));
    const rest = share<Omit<OverlayParts, keyof ClientParts>>({
      ...compileRecords(
        Array.from(collections.records.values(), ({ spec }) => spec),
        this.#seed,
      ),
      clientGroups: Int32Array.from(clients, ({ spec }) => groups.numbers.get(spec.group) ?? 0),
      groupFlags: Int32Array.from(groups.all, ({ spec }) => flagsOf(spec)),
      groupEntries: Int32Array.from(groups.starts),
      entries: Int32Array.from(groups.entries),
      turnedOff: Int32Array.from(custom.turnedOff),
      groupTextOffsets: texts.offsets,
      groupTextBytes: texts.bytes,
    });
    return {
      seed: this.#seed,
      memory: rest.memory,
      clientMemory: found.memory,
      parts: { ...found.parts, ...rest.parts },
      access: this.#access.compile(settings.spec.access),
      customRules: custom.rules,
      // A list may have got another name since it was compiled.
      sources: base.sources.map(({ id, name }) => ({
        id,
        name: collections.lists.get(id)?.spec.name ?? name,
      })),
      schedules: groups.schedules,
      settings: settings.spec,
    };
  }
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
