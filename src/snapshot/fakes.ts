/** Policies for tests, in as few words as they need: who asks, by which lists, on whose schedule. */
import { compile } from "../filter/mod.ts";
import {
  type BlockedSpec,
  type ClientSpec,
  DEFAULT_GROUP_ID,
  DEFAULT_SETTINGS,
  type Envelope,
  type GroupSpec,
  type ListSpec,
  type RecordSpec,
  type RuleSpec,
  type ScheduleSpec,
  type Settings,
} from "../model/mod.ts";
import { type Base, SERVICE_PREFIX } from "./base.ts";
import { type CustomRules, CustomRulesCompiler } from "./custom_rules.ts";
import { OverlayCompiler, type PolicyState } from "./overlay.ts";
import type { SnapshotData } from "./snapshot.ts";

/** A policy; lists, groups, clients and schedules go by their names. */
export interface FakePolicy {
  /** Texts of lists; a name that begins with `service:` is a blocked service. */
  readonly lists?: Readonly<Record<string, string>>;
  readonly disabledLists?: readonly string[];
  readonly rules?: readonly string[];
  /** `name type value`, and a TTL where it is not 300. */
  readonly records?: readonly string[];
  /** Left out: the default group with every list. Lists as `name` or `name@schedule`. */
  readonly groups?: Readonly<Record<string, FakeGroup>>;
  readonly clients?: Readonly<Record<string, FakeClient>>;
  readonly schedules?: Readonly<Record<string, Omit<ScheduleSpec, "name">>>;
  readonly settings?: Partial<Settings>;
  readonly pausedUntilMs?: number;
}

export interface FakeGroup {
  readonly filtering?: boolean;
  readonly safeSearch?: boolean;
  readonly lists?: readonly string[];
  /** As lists; `name until TIME` is paused until then. */
  readonly services?: readonly string[];
  readonly pausedUntil?: string;
  readonly off?: Off;
}

/** Without Internet: by a schedule, or `""` for always; with ` until TIME` behind it paused until then. */
type Off = string;

export interface FakeClient {
  readonly addresses?: readonly string[];
  readonly ids?: readonly string[];
  readonly group?: string;
  readonly pausedUntil?: string;
  readonly off?: Off;
}

function blocked({ off }: { readonly off?: Off }): BlockedSpec {
  if (off === undefined) return {};
  const [schedule, until = null] = off.split(" until ");
  const when = schedule === "" ? {} : { blocked_schedule: `sc_${schedule}` };
  return { blocked: true, ...when, blocked_paused_until: until };
}

const DEFAULT_GROUP = "default";

function idOf(prefix: string, name: string): string {
  const isDefault = prefix === "gr_" && name === DEFAULT_GROUP;
  return isDefault ? DEFAULT_GROUP_ID : prefix + name;
}

function envelopes<T, S>(
  prefix: string,
  named: Readonly<Record<string, T>>,
  specOf: (value: T, name: string) => S,
): Map<string, Envelope<S>> {
  const time = "2026-01-01T00:00:00.000Z";
  return new Map(
    Object.entries(named).map(([name, value]) => {
      const id = idOf(prefix, name);
      const spec = specOf(value, name);
      return [id, { id, revision: 1, created_at: time, updated_at: time, spec }];
    }),
  );
}

/** A rule, with ` for NAMES` or ` until TIME` behind it, where it is limited; a client has an `@`. */
function limited(text: string): RuleSpec {
  const [, rule, names = "", time = null] = /^(.*?)(?: for (.*?))?(?: until (.*))?$/s.exec(text)!;
  const all = names.split(" ").filter((name) => name !== "");
  const [clients, groups] = [true, false].map((isClient) =>
    all.filter((name) => name.startsWith("@") === isClient)
  );
  return {
    ...COMMON,
    rule,
    expires_at: time,
    groups: groups.map((name) => idOf("gr_", name)),
    clients: clients.map((name) => idOf("cl_", name.slice(1))),
  };
}

const COMMON = { enabled: true, comment: "", managed_by: "api" } as const;

export function policyState(fake: FakePolicy): PolicyState {
  const { lists = {}, disabledLists = [], rules = [], records = [] } = fake;
  const listNames = Object.keys(lists).filter((name) => !name.startsWith(SERVICE_PREFIX));
  const groups = { [DEFAULT_GROUP]: { lists: listNames }, ...fake.groups };
  const when = (text: string) => text.includes("@") ? { schedule: `sc_${text.split("@")[1]}` } : {};
  return {
    collections: {
      lists: envelopes("li_", lists, (_, name): ListSpec => ({
        ...COMMON,
        name,
        path: name,
        enabled: !disabledLists.includes(name),
      })),
      rules: envelopes(
        "ru_",
        Object.fromEntries(rules.entries()),
        (rule): RuleSpec => limited(rule),
      ),
      records: envelopes("re_", Object.fromEntries(records.entries()), (text): RecordSpec => {
        const [name, type, value, ttl = "300"] = text.split(" ");
        return { ...COMMON, name, type: type as RecordSpec["type"], value, ttl: Number(ttl) };
      }),
      groups: envelopes("gr_", groups, (group: FakeGroup, name): GroupSpec => ({
        name,
        filtering: group.filtering ?? true,
        safe_search: group.safeSearch ?? false,
        lists: (group.lists ?? []).map((text) => ({
          list: `li_${text.split("@")[0]}`,
          ...when(text),
        })),
        blocked_services: (group.services ?? []).map((whole) => {
          const [text, until = null] = whole.split(" until ");
          return { service: text.split("@")[0], ...when(text), paused_until: until };
        }),
        paused_until: group.pausedUntil ?? null,
        ...blocked(group),
      })),
      clients: envelopes("cl_", fake.clients ?? {}, (client, name): ClientSpec => ({
        name,
        addresses: [...client.addresses ?? []],
        ids: [...client.ids ?? []],
        group: idOf("gr_", client.group ?? DEFAULT_GROUP),
        paused_until: client.pausedUntil ?? null,
        ...blocked(client),
      })),
      schedules: envelopes("sc_", fake.schedules ?? {}, (schedule, name): ScheduleSpec => ({
        name,
        ...schedule,
      })),
    },
    settings: {
      id: "settings",
      revision: 1,
      created_at: "2026-01-01T00:00:00.000Z",
      updated_at: "2026-01-01T00:00:00.000Z",
      // Whoever asks, unless a test says who may.
      spec: { ...DEFAULT_SETTINGS, access: { allowed: [], disallowed: [] }, ...fake.settings },
    },
  };
}

/** The compiled lists and services of a policy. */
export function baseOf({ lists = {} }: FakePolicy, seed: number): Base {
  const names = Object.keys(lists);
  const { rules, badfilters } = compile({
    seed,
    sources: names.map((name) => ({
      bytes: new TextEncoder().encode(lists[name]),
      isService: name.startsWith(SERVICE_PREFIX),
    })),
  });
  const sources = names.map((name) => ({
    id: name.startsWith(SERVICE_PREFIX) ? name : `li_${name}`,
    name,
  }));
  return { rules: names.length === 0 ? null : rules, sources, badfilters };
}

/** The custom rules of a state, all in the first level. */
export function customRulesOf(
  { collections: { rules } }: PolicyState,
  base: Base,
  seed: number,
): CustomRules {
  const compiler = new CustomRulesCompiler(seed);
  const settling = compiler.begin(rules, base);
  const compiled = compile(settling.input);
  compiler.settle(settling, compiled.rules, compiled.stats);
  return compiler.current(rules, base)!;
}

/** A policy as it travels to a dns isolate. */
export function policyData(fake: FakePolicy, seed: number, generation = 1): SnapshotData {
  const state = policyState(fake);
  const base = baseOf(fake, seed);
  const custom = customRulesOf(state, base, seed);
  return {
    generation,
    rules: base.rules,
    overlay: new OverlayCompiler(seed).compile(state, base, custom),
    pausedUntilMs: fake.pausedUntilMs ?? 0,
  };
}
