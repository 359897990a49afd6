import {
  compile,
  Flag,
  Matcher,
  parseRule,
  type Rule,
  ruleIdentity,
  type SourcedRule,
  type SourceStats,
} from "../filter/mod.ts";
import { type Difference, differences } from "../model/differences.ts";
import type { Envelope, RuleSpec } from "../model/mod.ts";
import { type Base, SERVICE_PREFIX } from "./base.ts";
import { share, type Shared } from "./shared.ts";

type Rules = ReadonlyMap<string, Envelope<RuleSpec>>;

/** Rules that do not count though they are compiled: references in ascending order. */
export interface CustomParts {
  /** Of the base: those that custom `$badfilter` rules name. */
  readonly turnedOff: Int32Array;
  /** Of the first level: those, and those that are gone. */
  readonly settledOff: Int32Array;
}

/** The custom rules: the source behind the last one of the base. */
export interface CustomRules extends Shared<CustomParts> {
  /**
   * Compiled rules, two at most: most of them, and those made since these were compiled. A level
   * without a rule is left out, but for an empty one before another.
   */
  readonly levels: readonly SharedArrayBuffer[];
}

/**
 * Most rules that may differ from the first level before it is due to be compiled again, and so many
 * that are compiled as fast as what changed of them…
 */
export const RECENT_MAX = 512;
/** …and before a change waits for that. */
export const RECENT_LIMIT = 4_096;
/** A longer text, a hosts line with many names, counts as several rules. */
const RULE_LENGTH = 64;

/** Says whether a rule that is on holds for some only, or for a time; see `limited_rules.ts`. */
export function isLimited({ spec }: Envelope<RuleSpec>): boolean {
  const { enabled, expires_at, groups, clients } = spec;
  return enabled && (expires_at !== null || groups.length > 0 || clients.length > 0);
}

/**
 * The rule of each line; a rule is a line, so what is more than one is made one. `null`: it is off, or
 * limited.
 */
export function textOf(envelope: Envelope<RuleSpec> | undefined): string | null {
  if (envelope === undefined || !envelope.spec.enabled || isLimited(envelope)) return null;
  return envelope.spec.rule.replaceAll(/[\r\n]+/g, " ");
}

/** How many rules a text counts as. */
function weightOf(text: string | null): number {
  return text === null ? 0 : Math.ceil(text.length / RULE_LENGTH);
}

export function rulesOf(text: string): readonly Rule[] {
  const parsed = parseRule(text);
  return parsed.kind === "rules" ? parsed.rules : [];
}

/** The `$badfilter` rule that a text is, or `null`. */
export function badfilterOf(text: string): Rule | null {
  if (!text.includes("badfilter")) return null; // What most texts lack.
  return rulesOf(text).find(({ badfilter }) => badfilter) ?? null;
}

/** A custom `$badfilter` rule, and what it turns off. */
interface Badfilter {
  readonly rule: Rule;
  readonly inBase: readonly number[];
  readonly inSettled: readonly number[];
}

/** The rules as they were when they were all compiled. */
interface Settled {
  readonly rules: Rules;
  readonly weight: number;
  readonly base: Base;
  /** `null`: the base has no rules. */
  readonly baseMatcher: Matcher | null;
  readonly matcher: Matcher;
  /** By the ID of the rule. They are in no level: what they turn off is in `CustomParts`. */
  readonly badfilters: ReadonlyMap<string, Badfilter>;
  /** Those of lists, by the identity of what they name. */
  readonly listed: ReadonlyMap<string, readonly SourcedRule[]>;
}

/** All rules on their way to being compiled. */
export interface Settling {
  readonly input: {
    readonly seed: number;
    readonly sources: readonly { readonly bytes: Uint8Array<ArrayBuffer> }[];
  };
  readonly rules: Rules;
  readonly base: Base;
  readonly badfilters: ReadonlyMap<string, Rule>;
  /** As how many rules they count. */
  readonly weight: number;
}

/**
 * Keeps the compiled custom rules in step with the state. Most of them are compiled once, in the first
 * level, and a change is a level of its own beside it and a list of what no longer counts: its cost
 * does not grow with the number of rules. Now and then all are compiled anew, which whoever holds
 * this does (`begin`, `compile`, `settle`) where it is in nobody's way.
 */
export class CustomRulesCompiler {
  readonly #seed: number;
  #settled: Settled | null = null;
  /** What `current` made last, and what of. */
  #made: { readonly rules: Rules; readonly base: Base; readonly custom: CustomRules } | null = null;
  /** What `current` makes where nothing differs from the first level. */
  #unchanged: CustomRules | null = null;
  /** As how many rules those count that differ from the first level. */
  #recent = 0;

  /** `seed` is that of every hash of a name in the process. */
  constructor(seed: number) {
    this.#seed = seed;
  }

  /** The first level is due to be compiled again. */
  get isDue(): boolean {
    return this.#recent > RECENT_MAX;
  }

  /** What is to be compiled for all of these to be in the first level. */
  begin(rules: Rules, base: Base): Settling {
    const lines: string[][] = base.sources.map(() => []);
    for (const { source, text } of base.badfilters) lines[source].push(text);
    const badfilters = new Map<string, Rule>();
    const own: string[] = [];
    let weight = 0;
    for (const envelope of rules.values()) {
      const text = textOf(envelope);
      if (text === null) continue;
      weight += weightOf(text);
      const badfilter = badfilterOf(text);
      if (badfilter === null) own.push(text);
      else badfilters.set(envelope.id, badfilter);
    }
    return { input: inputOf([...lines, own], this.#seed), rules, base, badfilters, weight };
  }

  /** Takes what came of it. Returns the number of rules that can't be read. */
  settle(
    { rules, base, badfilters, weight }: Settling,
    compiled: SharedArrayBuffer,
    stats: readonly SourceStats[],
  ): number {
    const matcher = new Matcher(compiled);
    const former = this.#settled?.base === base ? this.#settled : null;
    const settled = {
      rules,
      weight,
      base,
      matcher,
      baseMatcher: former?.baseMatcher ?? (base.rules === null ? null : new Matcher(base.rules)),
      listed: former?.listed ?? byIdentity(base.badfilters),
    };
    this.#settled = {
      ...settled,
      badfilters: new Map(
        Array.from(badfilters, ([id, rule]) => [id, badfilterIn(settled, rule)]),
      ),
    };
    this.#made = null;
    this.#unchanged = null;
    return Object.values(stats[base.sources.length].skipped).reduce((sum, count) => sum + count);
  }

  /**
   * The rules as they are now; `null` where all have to be compiled first, since they are others than
   * those of the first level by too much, or another base is under them.
   */
  current(rules: Rules, base: Base): CustomRules | null {
    if (this.#made?.rules === rules && this.#made.base === base) return this.#made.custom;
    const settled = this.#settled;
    if (settled === null || settled.base !== base) return null;
    const changed = differences(settled.rules, rules).filter(({ before, after }) =>
      textOf(before) !== textOf(after)
    );
    this.#recent = changed.reduce(
      (sum, { before, after }) => sum + Math.max(weightOf(textOf(before)), weightOf(textOf(after))),
      0,
    );
    if (changed.length === 0 && this.#unchanged !== null) return this.#unchanged;
    const isSmall = settled.weight + this.#recent <= RECENT_MAX;
    const isFar = this.#recent > (isSmall ? 0 : RECENT_LIMIT);
    const custom = isFar ? null : this.#patch(settled, changed);
    if (custom !== null) this.#made = { rules, base, custom };
    if (changed.length === 0) this.#unchanged = custom;
    return custom;
  }

  /**
   * As `current`, of rules that are not about to hold: nothing is kept of them. `null` where all would
   * have to be compiled.
   */
  draft(rules: Rules, base: Base): CustomRules | null {
    const settled = this.#settled;
    if (settled === null || settled.base !== base) return null;
    const changed = differences(settled.rules, rules).filter(({ before, after }) =>
      textOf(before) !== textOf(after)
    );
    return this.#patch(settled, changed);
  }

  /** The settled rules with what changed since. */
  #patch(settled: Settled, changed: readonly Difference<Envelope<RuleSpec>>[]): CustomRules | null {
    const { matcher } = settled;
    const gone: number[] = [];
    const badfilters = new Map(settled.badfilters);
    const added: string[] = [];
    for (const { key, before, after } of changed) {
      const [former, text] = [textOf(before), textOf(after)];
      if (former !== null && !badfilters.delete(key)) {
        const refs = rulesOf(former).flatMap((rule) => matcher.turnedOffBy(rule));
        // Another custom rule may say the same, and then it goes on to hold.
        if (refs.some((ref) => (matcher.flags(ref) & Flag.Repeated) !== 0)) return null;
        gone.push(...refs);
      }
      if (text === null) continue;
      const badfilter = badfilterOf(text);
      if (badfilter === null) added.push(text);
      else badfilters.set(key, badfilterIn(settled, badfilter));
    }
    const recent = this.#compileRecent(settled, added, badfilters);
    const levels = recent !== null
      ? [matcher.memory, recent]
      : matcher.rules > 0
      ? [matcher.memory]
      : [];
    const all = [...badfilters.values()];
    return {
      levels,
      ...share<CustomParts>({
        turnedOff: ascending(all.flatMap(({ inBase }) => inBase)),
        settledOff: ascending([...gone, ...all.flatMap(({ inSettled }) => inSettled)]),
      }),
    };
  }

  /** Compiles new rules, with the `$badfilter` rules that name one of them; `null`: there is none. */
  #compileRecent(
    { base, listed }: Settled,
    added: readonly string[],
    badfilters: ReadonlyMap<string, Badfilter>,
  ): SharedArrayBuffer | null {
    if (added.length === 0) return null;
    const lines: string[][] = base.sources.map(() => []);
    const texts: string[] = [...added];
    const named = new Set<string>();
    for (const rule of added.flatMap(rulesOf)) {
      const identity = ruleIdentity(rule);
      if (named.has(identity)) continue;
      named.add(identity);
      for (const { source, text } of listed.get(identity) ?? []) lines[source].push(text);
    }
    for (const { rule } of badfilters.values()) {
      if (named.has(ruleIdentity(rule))) texts.push(rule.text);
    }
    const { rules } = compile(inputOf([...lines, texts], this.#seed));
    return new Matcher(rules).rules === 0 ? null : rules;
  }
}

export function inputOf(sources: readonly (readonly string[])[], seed: number): Settling["input"] {
  const encoder = new TextEncoder();
  return { seed, sources: sources.map((lines) => ({ bytes: encoder.encode(lines.join("\n")) })) };
}

export function byIdentity(badfilters: readonly SourcedRule[]): Map<string, SourcedRule[]> {
  const found = new Map<string, SourcedRule[]>();
  for (const badfilter of badfilters) {
    for (const identity of rulesOf(badfilter.text).map(ruleIdentity)) {
      const known = found.get(identity);
      if (known === undefined) found.set(identity, [badfilter]);
      else known.push(badfilter);
    }
  }
  return found;
}

function badfilterIn(
  { base, baseMatcher, matcher }: Omit<Settled, "badfilters">,
  rule: Rule,
): Badfilter {
  // A blocked service stays blocked whatever the custom rules say.
  const isList = (ref: number) =>
    !base.sources[baseMatcher!.source(ref)].id.startsWith(SERVICE_PREFIX);
  return {
    rule,
    inBase: baseMatcher?.turnedOffBy(rule).filter(isList) ?? [],
    inSettled: matcher.turnedOffBy(rule),
  };
}

function ascending(refs: readonly number[]): Int32Array {
  return Int32Array.from(new Set(refs)).sort();
}
