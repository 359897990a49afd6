import { compile, Matcher, ruleIdentity } from "../filter/mod.ts";
import { differences } from "../model/differences.ts";
import type { Envelope, RuleSpec } from "../model/mod.ts";
import type { Base } from "./base.ts";
import { badfilterOf, byIdentity, inputOf, isLimited, rulesOf, textOf } from "./custom_rules.ts";

type Rules = ReadonlyMap<string, Envelope<RuleSpec>>;

/** For whom, and until when, some custom rules hold. */
export interface Limit {
  /** IDs; with no client either: for everybody. */
  readonly groups: readonly string[];
  readonly clients: readonly string[];
  /** In milliseconds since 1970; `Infinity`: for good. */
  readonly expiresAtMs: number;
}

/**
 * The custom rules that hold for some only, or for a time: a level of their own, where there is one.
 * Those of one limit are a source, behind that of the other custom rules.
 */
export interface LimitedRules {
  readonly rules: SharedArrayBuffer | null;
  /** Of each source. */
  readonly limits: readonly Limit[];
}

const NO_RULES: LimitedRules = { rules: null, limits: [] };

/** Keeps the limited rules in step with the state: few, and compiled anew when one of them changes. */
export class LimitedRulesCompiler {
  readonly #seed: number;
  #rules: Rules = new Map();
  #base: Base | null = null;
  readonly #limited = new Map<string, RuleSpec>();
  /** `$badfilter` rules, which hold for everybody. */
  readonly #badfilters = new Map<string, string>();
  #made: LimitedRules = NO_RULES;

  /** `seed` is that of every hash of a name in the process. */
  constructor(seed: number) {
    this.#seed = seed;
  }

  compile(rules: Rules, base: Base): LimitedRules {
    let isOther = base !== this.#base;
    for (const { key, after } of differences(this.#rules, rules)) {
      const hadAny = this.#limited.delete(key) || this.#badfilters.delete(key);
      if (after !== undefined && isLimited(after)) this.#limited.set(key, after.spec);
      const text = textOf(after);
      if (text !== null && badfilterOf(text) !== null) this.#badfilters.set(key, text);
      isOther ||= hadAny || this.#limited.has(key) || this.#badfilters.has(key);
    }
    this.#rules = rules;
    this.#base = base;
    if (this.#limited.size === 0) this.#made = NO_RULES;
    else if (isOther) this.#made = this.#compile(base);
    return this.#made;
  }

  #compile(base: Base): LimitedRules {
    const byLimit = Map.groupBy(this.#limited.values(), limitKey);
    const lines: string[][] = base.sources.map(() => []);
    const named = new Set(
      [...this.#limited.values()].flatMap(({ rule }) => rulesOf(rule).map(ruleIdentity)),
    );
    for (const [identity, badfilters] of byIdentity(base.badfilters)) {
      if (!named.has(identity)) continue;
      for (const { source, text } of badfilters) lines[source].push(text);
    }
    const sources = Array.from(byLimit.values(), (specs) => specs.map(({ rule }) => rule));
    const input = inputOf([...lines, [...this.#badfilters.values()], ...sources], this.#seed);
    const { rules } = compile(input);
    return {
      rules: new Matcher(rules).rules === 0 ? null : rules,
      limits: Array.from(byLimit.values(), ([spec]) => limitOf(spec)),
    };
  }
}

function limitKey({ groups, clients, expires_at }: RuleSpec): string {
  return JSON.stringify([groups.toSorted(), clients.toSorted(), expires_at]);
}

function limitOf({ groups, clients, expires_at }: RuleSpec): Limit {
  const expiresAtMs = expires_at === null ? Infinity : Date.parse(expires_at);
  return { groups, clients, expiresAtMs };
}
