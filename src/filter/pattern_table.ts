import { type Automaton, compileRegex } from "./automaton.ts";
import { Header, HEADER_WORDS } from "./layout.ts";
import { commonness, gramsOf, literalsOf, SHORT_MARK } from "./literals.ts";
import { patternLiterals } from "./pattern.ts";
import type { SkipReason } from "./parse_rule.ts";
import { parseRegex } from "./regex.ts";

/** Most patterns of one source, regular expressions among them, and of these. */
export const PATTERNS_MAX = 20_000;
export const REGEXES_MAX = 1_000;
/** Most of all sources together. */
export const ALL_PATTERNS_MAX = 60_000;
/** Words of 16 bits of all regular expressions: some thousand of the largest kind, many of others. */
export const AUTOMATA_MAX = 4_194_304;
/** Patterns that one gram leads to, and those that each name is tried on, since none does. */
export const CROWD_MAX = 64;
export const ALWAYS_MAX = 32;
/** So many expressions of one source that grow too large are tried; each takes some milliseconds. */
const FAILURES_MAX = 64;

/** Bits a gram has in the filter before the table, and the fewest of all. */
const FILTER_BITS = 64;
const FILTER_BITS_MIN = 10;
/** Slots a gram has in the table. */
const SLOTS = 2;
/** Words of a pattern, and of a slot: its gram, 0 where it is free | where its patterns stand. */
export const PATTERN_WORDS = 2;
export const GRAM_WORDS = 2;
/** In place of where an automaton starts: the pattern is its own text. */
export const NO_AUTOMATON = -1;
/** Spreads grams over the table and the filter. */
export const GRAM_FACTOR = 0x9e3779b1;

/** Where the sections begin and end, in words from the first. */
export interface PatternSections {
  readonly patterns: number;
  readonly filter: number;
  readonly grams: number;
  readonly lists: number;
  readonly automata: number;
  readonly end: number;
}

interface Admitted {
  readonly grams: readonly number[];
  readonly automaton: Automaton | null;
  /** Its entry among the rules, once it is written. */
  entry: number;
}

/**
 * The patterns of all sources on their way into shared memory, each text once:
 *
 * ```
 * patterns  2 words a pattern: its entry among the rules | where its automaton starts, or -1
 * filter    a bit for each hash of a gram: may it lead to a pattern?
 * grams     2 words a slot: a gram | where in lists its patterns stand
 * lists     how many, and their numbers; the first are those that every name is tried on
 * automata  words of 16 bits, see `Automaton`
 * ```
 *
 * A name is looked through once, four codes at a time; what no pattern has is in no gram, and so most
 * names end at the filter, which stays near the processor.
 */
export class PatternTable {
  readonly #admitted = new Map<string, Admitted>();
  readonly #loads = new Map<number, number>();
  #always = 0;
  #links = 0;
  #automataWords = 0;
  #failures = 0;
  #source = -1;
  #patterns = 0;
  #regexes = 0;

  /** Takes the pattern of a rule, if there is room for it; else says why not. */
  admit(text: string, isRegex: boolean, source: number): SkipReason | null {
    if (source !== this.#source) {
      this.#source = source;
      this.#patterns = 0;
      this.#regexes = 0;
      this.#failures = 0;
    }
    if (this.#patterns === PATTERNS_MAX || (isRegex && this.#regexes === REGEXES_MAX)) {
      return "crowded";
    }
    const problem = this.#admitted.has(text) ? null : this.#admitNew(text, isRegex);
    if (problem !== null) return problem;
    this.#patterns++;
    if (isRegex) this.#regexes++;
    return null;
  }

  #admitNew(text: string, isRegex: boolean): SkipReason | null {
    if (this.#admitted.size === ALL_PATTERNS_MAX || (isRegex && this.#failures === FAILURES_MAX)) {
      return "crowded";
    }
    let automaton: Automaton | null = null;
    /** Of each of these groups a gram is in the index: every name that is covered has one of them. */
    let groups: readonly (readonly number[])[];
    if (isRegex) {
      const parsed = parseRegex(text.slice(1, -1));
      const compiled = parsed.problem === null ? compileRegex(parsed) : parsed;
      if (parsed.problem !== null || compiled.problem !== null) {
        if (compiled.problem === "regex_size") this.#failures++;
        return compiled.problem;
      }
      automaton = compiled.automaton;
      if (this.#automataWords + automaton.length > AUTOMATA_MAX) return "crowded";
      groups = (literalsOf(parsed.node) ?? []).map(gramsOf);
    } else groups = [patternLiterals(text).flatMap(gramsOf)];
    const grams = this.#gramsFor(groups);
    if (grams === null) return "crowded";
    for (const gram of grams) this.#loads.set(gram, this.#loadOf(gram) + 1);
    if (grams.length === 0) this.#always++;
    this.#links += grams.length;
    this.#automataWords += automaton?.length ?? 0;
    this.#admitted.set(text, { grams, automaton, entry: NO_AUTOMATON });
    return null;
  }

  /** A gram of each group, the rarest; none where a group has none. `null` where there is no room. */
  #gramsFor(groups: readonly (readonly number[])[]): number[] | null {
    if (groups.some((all) => all.length === 0) || groups.length === 0) {
      return this.#always === ALWAYS_MAX ? null : [];
    }
    const grams = new Set<number>();
    for (const all of groups) {
      // Short ones cost every name a further look, so they are for what has no other.
      const long = all.filter((gram) => (gram & SHORT_MARK) === 0);
      const best = long.length > 0 ? long : all;
      const free = best.filter((gram) => this.#loadOf(gram) < CROWD_MAX);
      if (free.length === 0) return null;
      const costs = free.map((gram) => commonness(gram) + Math.log2(1 + this.#loadOf(gram)));
      grams.add(free[costs.indexOf(Math.min(...costs))]);
    }
    return [...grams];
  }

  #loadOf(gram: number): number {
    return this.#loads.get(gram) ?? 0;
  }

  get size(): number {
    return this.#admitted.size;
  }

  /** Where the sections go, if the first begins at word 0. */
  sections(): PatternSections {
    const { filterWords, slots } = this.#extent();
    const patterns = 0;
    const filter = patterns + this.size * PATTERN_WORDS;
    const grams = filter + filterWords;
    const lists = grams + slots * GRAM_WORDS;
    // A count before each list, and one before those of every name.
    const automata = lists + 1 + this.#always + this.#links + this.#loads.size;
    return {
      patterns,
      filter,
      grams,
      lists,
      automata,
      end: automata + ((this.#automataWords + 1) >>> 1),
    };
  }

  #extent(): { filterBits: number; filterWords: number; slotBits: number; slots: number } {
    const { size } = this.#loads;
    const filterBits = Math.max(FILTER_BITS_MIN, Math.ceil(Math.log2(size * FILTER_BITS + 1)));
    const slotBits = Math.max(1, Math.ceil(Math.log2(size * SLOTS + 1)));
    return { filterBits, filterWords: 2 ** filterBits / 32, slotBits, slots: 2 ** slotBits };
  }

  /** Notes where the rules of a pattern stand. */
  place(text: string, entry: number): void {
    const admitted = this.#admitted.get(text);
    if (admitted !== undefined) admitted.entry = entry;
  }

  /**
   * Writes the sections of all that have a place from a byte of the memory on, and what its header
   * says of them.
   */
  write(memory: SharedArrayBuffer, offset: number): void {
    const at = this.sections();
    const words = new Int32Array(memory, offset, at.automata);
    const automata = new Uint16Array(memory, offset + 4 * at.automata, this.#automataWords);
    const lists = new Map<number, number[]>();
    const always: number[] = [];
    let [count, automatonAt] = [0, 0];
    for (const { grams, automaton, entry } of this.#admitted.values()) {
      if (entry === NO_AUTOMATON) continue; // A `$badfilter` turned it off.
      const number = count++;
      words[at.patterns + number * PATTERN_WORDS] = entry;
      words[at.patterns + number * PATTERN_WORDS + 1] = automaton === null
        ? NO_AUTOMATON
        : automatonAt;
      if (automaton !== null) {
        automata.set(automaton, automatonAt);
        automatonAt += automaton.length;
      }
      if (grams.length === 0) always.push(number);
      for (const gram of grams) {
        const list = lists.get(gram);
        if (list === undefined) lists.set(gram, [number]);
        else list.push(number);
      }
    }
    const { filterBits, slotBits, slots } = this.#extent();
    let to = at.lists;
    const put = (list: readonly number[]) => {
      const start = to;
      words[to++] = list.length;
      for (const number of list) words[to++] = number;
      return start - at.lists;
    };
    put(always);
    let hasShort = 0;
    for (const [gram, list] of lists) {
      const hash = Math.imul(gram, GRAM_FACTOR);
      const bit = hash >>> (32 - filterBits);
      words[at.filter + (bit >>> 5)] |= 1 << (bit & 31);
      let slot = hash >>> (32 - slotBits);
      while (words[at.grams + slot * GRAM_WORDS] !== 0) slot = (slot + 1) & (slots - 1);
      words[at.grams + slot * GRAM_WORDS] = gram;
      words[at.grams + slot * GRAM_WORDS + 1] = put(list);
      if ((gram & SHORT_MARK) !== 0) hasShort = 1;
    }
    const header = new Uint32Array(memory, 0, HEADER_WORDS);
    header[Header.Patterns] = count;
    header[Header.PatternsOffset] = offset + 4 * at.patterns;
    header[Header.FilterOffset] = offset + 4 * at.filter;
    header[Header.GramsOffset] = offset + 4 * at.grams;
    header[Header.ListsOffset] = offset + 4 * at.lists;
    header[Header.AutomataOffset] = offset + 4 * at.automata;
    header[Header.FilterBits] = filterBits;
    header[Header.SlotBits] = slotBits;
    header[Header.HasShortGrams] = hasShort;
  }
}
