import type { HashedName } from "../dns/mod.ts";
import { type Hit, type Kind, kindOf, Matcher, Met, NO_RULE } from "../filter/mod.ts";
import { invariant } from "../errors.ts";
import { AnswerRules } from "./answer_rules.ts";
import { SERVICE_PREFIX } from "./base.ts";
import type { CustomRules } from "./custom_rules.ts";
import { type Decision, Ruling } from "./decision.ts";
import type { OverlayData } from "./overlay.ts";

/** A rule's reference here is the number of its level, four at most, and that of the matcher. */
const LEVEL_SHIFT = 29;
const REF_MASK = (1 << LEVEL_SHIFT) - 1;
const NONE: Int32Array = new Int32Array(0);

/** How custom rules are called where a list would be. */
export const CUSTOM_LIST: { readonly id: string; readonly name: string } = {
  id: "rules",
  name: "custom rules",
};

/** Rules that were compiled together. */
interface Level {
  readonly matcher: Matcher;
  /** What references of its rules have beside. */
  readonly mark: number;
  /** References of its rules that do not count. */
  readonly off: Int32Array;
}

/** What applies to whom asks: bits of sources, custom rules among the lists. */
export interface SourceBits {
  readonly lists: Uint32Array;
  readonly services: Uint32Array;
}

/** All rules: the levels of the custom ones, and the base. Deciding leaves no garbage. */
export class RuleLevels {
  /** Of rules that are equal the one of the first level decides: custom ones come first. */
  readonly #levels: readonly Level[];
  readonly #sources: OverlayData["sources"];
  readonly #answers: AnswerRules;
  readonly #met = new Met();

  constructor(
    base: SharedArrayBuffer | null,
    { levels, parts }: CustomRules,
    limited: SharedArrayBuffer | null,
    sources: OverlayData["sources"],
  ) {
    const custom = levels.map((rules, i) => ({ rules, off: i === 0 ? parts.settledOff : NONE }));
    // Before the base: custom rules come first, whoever they are for.
    if (limited !== null) custom.push({ rules: limited, off: NONE });
    const all = base === null ? custom : [...custom, { rules: base, off: parts.turnedOff }];
    this.#levels = all.map(({ rules, off }, i) => ({
      matcher: new Matcher(rules),
      mark: i << LEVEL_SHIFT,
      off,
    }));
    this.#sources = sources;
    this.#answers = new AnswerRules(this.#levels.length);
  }

  /** Says what comes of a name that is asked for, and fills in the decision. */
  decide(packet: Uint8Array, name: HashedName, bits: SourceBits, decision: Decision): Ruling {
    const levels = this.#levels;
    const met = this.#met;
    let rule = NO_RULE;
    let service = NO_RULE;
    let mayAnswer = false;
    for (let i = 0; i < levels.length; i++) {
      const { matcher, mark, off } = levels[i];
      const ref = matcher.match(packet, name, bits.lists, off, bits.services, met);
      if (ref !== NO_RULE) rule = this.#first(rule, ref | mark);
      if (met.service !== NO_RULE) service = met.service | mark;
      mayAnswer ||= met.hasAnswers;
    }
    const answers = this.#answers;
    if (mayAnswer) {
      answers.clear();
      for (let i = 0; i < levels.length; i++) {
        const { matcher, mark, off } = levels[i];
        answers.add(matcher, mark, packet, name, bits.lists, off);
      }
      if (answers.rewrite(decision)) return Ruling.Answer;
    }
    decision.rule = service !== NO_RULE ? service : rule;
    if (decision.rule !== NO_RULE) {
      return this.isBlock(decision.rule) ? Ruling.Block : Ruling.Allow;
    }
    return mayAnswer && answers.hosts(decision) ? Ruling.Answer : Ruling.None;
  }

  /** The rule that blocks a name met in an answer, or `NO_RULE`. */
  match(packet: Uint8Array, name: HashedName, bits: SourceBits): number {
    const levels = this.#levels;
    const met = this.#met;
    let rule = NO_RULE;
    for (let i = 0; i < levels.length; i++) {
      const { matcher, mark, off } = levels[i];
      const ref = matcher.match(packet, name, bits.lists, off, bits.services, met);
      if (met.service !== NO_RULE) return met.service | mark;
      if (ref !== NO_RULE) rule = this.#first(rule, ref | mark);
    }
    return rule !== NO_RULE && this.isBlock(rule) ? rule : NO_RULE;
  }

  /** Says whether one of the lists has rules about addresses. */
  hasAddressRules(lists: Uint32Array): boolean {
    return this.#levels.some(({ matcher }) => matcher.hasAddressRules(lists));
  }

  /** The rule that blocks a response with this address of 4 or 16 bytes, or `NO_RULE`. */
  matchAddress(
    bytes: Uint8Array,
    offset: number,
    lengthBytes: number,
    lists: Uint32Array,
  ): number {
    const levels = this.#levels;
    let rule = NO_RULE;
    for (let i = 0; i < levels.length; i++) {
      const { matcher, mark, off } = levels[i];
      const ref = matcher.matchAddress(bytes, offset, lengthBytes, lists, off);
      if (ref !== NO_RULE) rule = this.#first(rule, ref | mark);
    }
    return rule !== NO_RULE && this.isBlock(rule) ? rule : NO_RULE;
  }

  /** Says whether a block or an exception of any source is about a name. */
  mentions(packet: Uint8Array, name: HashedName): boolean {
    const levels = this.#levels;
    for (let i = 0; i < levels.length; i++) {
      if (levels[i].matcher.mentions(packet, name)) return true;
    }
    return false;
  }

  /** As `mentions`, of an address of 4 or 16 bytes. */
  mentionsAddress(bytes: Uint8Array, offset: number, lengthBytes: number): boolean {
    const levels = this.#levels;
    for (let i = 0; i < levels.length; i++) {
      if (levels[i].matcher.mentionsAddress(bytes, offset, lengthBytes)) return true;
    }
    return false;
  }

  /** `false` for an exception. */
  isBlock(rule: number): boolean {
    return this.#matcherOf(rule).isBlock(rule & REF_MASK);
  }

  #matcherOf(rule: number): Matcher {
    const level = this.#levels.at(rule >>> LEVEL_SHIFT);
    invariant(level !== undefined, "a rule comes from a matcher");
    return level.matcher;
  }

  /**
   * Which of two rules decides, the first of which may be `NO_RULE`: the one of the higher rank, or
   * else about the longer name; of equal ones the first.
   */
  #first(one: number, other: number): number {
    if (one === NO_RULE) return other;
    const first = this.#matcherOf(one);
    const second = this.#matcherOf(other);
    const a = one & REF_MASK;
    const b = other & REF_MASK;
    const difference = second.rank(b) - first.rank(a) ||
      second.nameLengthBytes(b) - first.nameLengthBytes(a);
    return difference > 0 ? other : one;
  }

  /** The rule as its list has it, and the list. */
  decidedBy(rule: number): { rule: string; list: { id: string; name: string } } {
    const matcher = this.#matcherOf(rule);
    const ref = rule & REF_MASK;
    const list = this.#sources.at(matcher.source(ref)) ?? CUSTOM_LIST;
    return { rule: matcher.ruleText(ref), list };
  }

  /** References of all rules that answer, or would but for a response code, as just decided. */
  answering(decision: Decision): number[] {
    return this.#answers.answering(decision);
  }

  /** Every rule about the name, in whatever list, the highest rank first; for explanations. */
  matchAll(packet: Uint8Array, name: HashedName, bits: SourceBits): AnyMatch[] {
    return this.#describe(bits, (matcher) => matcher.matchAll(packet, name));
  }

  /** Every rule about an address, in whatever list, the highest rank first; for explanations. */
  matchAllAddress(address: Uint8Array, bits: SourceBits): AnyMatch[] {
    return this.#describe(bits, (matcher) => matcher.matchAllAddress(address));
  }

  #describe(bits: SourceBits, all: (matcher: Matcher) => Hit[]): AnyMatch[] {
    const matches: AnyMatch[] = [];
    for (const level of this.#levels) {
      for (const hit of all(level.matcher)) {
        const match = this.#describeHit(level, hit, bits);
        if (match !== null) matches.push(match);
      }
    }
    return matches.sort((a, b) =>
      Number(b.isService) - Number(a.isService) || b.rank - a.rank ||
      b.nameLengthBytes - a.nameLengthBytes
    );
  }

  /** `null` for a custom rule that others turn off, or that is gone. */
  #describeHit(
    { matcher, mark, off }: Level,
    { ref, rank }: Hit,
    { lists, services }: SourceBits,
  ): AnyMatch | null {
    const source = matcher.source(ref);
    const isOff = off.includes(ref);
    if (isOff && source === this.#sources.length) return null;
    const isService = this.#sources.at(source)?.id.startsWith(SERVICE_PREFIX) ?? false;
    const bits = isService ? services : lists;
    const badfilter = matcher.badfilterOf(ref, lists);
    const by = badfilter === NO_RULE ? null : this.decidedBy(badfilter | mark).list;
    return {
      ...this.decidedBy(ref | mark),
      ref: ref | mark,
      kind: kindOf(matcher.flags(ref)),
      rank,
      nameLengthBytes: matcher.nameLengthBytes(ref),
      applies: ((bits[source >> 5] >>> (source & 31)) & 1) === 1,
      turnedOffBy: isOff || by === CUSTOM_LIST
        ? "a custom $badfilter"
        : by === null
        ? null
        : `a $badfilter of ${by.name}`,
      isService,
      isLimited: source > this.#sources.length,
    };
  }
}

/** A rule about a name, whether it applies or not. */
export interface AnyMatch {
  readonly ref: number;
  readonly kind: Kind;
  readonly rule: string;
  readonly list: { readonly id: string; readonly name: string };
  /** Important exception 3, important block 2, exception 1, block 0. */
  readonly rank: number;
  readonly nameLengthBytes: number;
  /** The group has its list, and now. */
  readonly applies: boolean;
  /** Whose `$badfilter` turns it off; `null`: nobody's. */
  readonly turnedOffBy: string | null;
  readonly isService: boolean;
  /** It is for some groups and clients only, or has an end. */
  readonly isLimited: boolean;
}
