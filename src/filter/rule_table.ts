import { DROPPED, EMPTY_TAG, MORE_WORDS, SLOT_WORDS, tagOf, TextChunks } from "./filled_table.ts";
import {
  entryWords,
  Flag,
  hasTail,
  hasValue,
  identityOf,
  partOf,
  scaleFor,
  TAIL_HEAD_BYTES,
} from "./layout.ts";
import { nameEnd } from "./names.ts";
import type { PatternTable } from "./pattern_table.ts";
import { writeRules } from "./rule_writer.ts";

/** Names to a slot at most: at 0.7 a search reads two slots on average. */
const LOAD_MAX = 0.7;
/** Slots behind the last home slot, so that a search needs not wrap around. */
const SPILL_SLOTS = 64;
const GROWTH = 1.5;
const NAMES_MIN = 64;
/** Room that is made at once: a text may hold lines by the hundred million, and no name. */
const NAMES_AT_ONCE_MAX = 4_194_304;
/**
 * Most names of all sources together, of which one brings half at most: few have a tenth of that, and
 * memory is to suffice for it.
 */
const NAMES_MAX = 10_000_000;
const MORE_MIN = 64;

const NO_TAIL: Uint8Array = new Uint8Array(0);

/** What came of adding a rule. */
export const Added = {
  Yes: 0,
  /** The source already has it. */
  Duplicate: 1,
  /** The name has too many rules with values. */
  TooMany: 2,
  /** There are too many names. */
  Full: 3,
} as const;
export type Added = typeof Added[keyof typeof Added];

/**
 * Most rules about one name when one with a value is added: a name needs few addresses, and a list
 * of many thousands for one name would take a time that grows with their square.
 */
export const VALUES_MAX = 1_024;

/** The rules that hold, as `RuleTable.finish` writes them. */
export interface FinishedTable {
  readonly rules: SharedArrayBuffer;
  /** Rules that a `$badfilter` of their own source turned off, by source. */
  readonly disabled: Uint32Array;
}

/**
 * The table while it is filled: slots ordered by tag, text in chunks. No object is made a rule. A
 * tag's home slot grows with the tag, and tags stand in ascending order from their home slot on: a
 * search ends at the first larger tag, and a free slot's is the largest of all. A name with several rules has `Flag.Run` in its slot, and the slot's last word is
 * the number of its newest further rule; these are linked in a ring, so that the newest one leads
 * to the first.
 */
export class RuleTable {
  #table: Int32Array<ArrayBuffer>;
  #slots: number;
  #scale: number;
  #namesMax: number;
  #names = 0;
  /** The source that brought the last name, and how many names there were before its first. */
  #source = -1;
  #sourceFrom = 0;
  #more: Int32Array<ArrayBuffer> = new Int32Array(MORE_MIN * MORE_WORDS);
  #moreCount = 0;
  readonly #text = new TextChunks();
  #entryWordsMax = 0;
  #tailBytesMax = 0;

  /** `namesExpected` names fit without growing, unless they are very many; `namesLimit` are taken. */
  constructor(namesExpected: number, private readonly namesLimit: number = NAMES_MAX) {
    this.#namesMax = Math.min(Math.max(NAMES_MIN, namesExpected), NAMES_AT_ONCE_MAX);
    const homeSlots = Math.ceil(this.#namesMax / LOAD_MAX);
    this.#scale = scaleFor(homeSlots);
    this.#slots = homeSlots + SPILL_SLOTS;
    this.#table = emptyTable(this.#slots);
  }

  /** Adds a rule about the name in `wire`. `tail` is what stands behind the name, see `tailOf`. */
  add(
    wire: Uint8Array,
    lengthBytes: number,
    hash: number,
    source: number,
    flags: number,
    tail: Uint8Array = NO_TAIL,
  ): Added {
    const tag = tagOf(hash);
    const table = this.#table;
    let word = partOf(tag, this.#scale) * SLOT_WORDS;
    while (table[word] < tag) word += SLOT_WORDS;
    for (let at = word; table[at] === tag; at += SLOT_WORDS) {
      if (this.#text.isName(this.#textOffset(at), wire, lengthBytes)) {
        return this.#addToName(at, source, flags, tail);
      }
    }
    if (source !== this.#source) [this.#source, this.#sourceFrom] = [source, this.#names];
    const limit = Math.min(this.namesLimit, this.#sourceFrom + this.namesLimit / 2);
    if (this.#names >= limit) return Added.Full;
    if (this.#names === this.#namesMax || !this.#makeRoom(word)) {
      this.#grow();
      return this.add(wire, lengthBytes, hash, source, flags, tail);
    }
    table[word] = tag;
    table[word + 1] = (source << 16) | flags;
    table[word + 2] = this.#putText(wire, 0, lengthBytes, tail);
    this.#entryWordsMax += entryWords(lengthBytes) + (hasTail(flags) ? 1 : 0);
    this.#names++;
    return Added.Yes;
  }

  /** Moves the slots from `word` to the next free one up; `false` where none is left. */
  #makeRoom(word: number): boolean {
    const table = this.#table;
    let end = word;
    while (table[end] !== EMPTY_TAG) end += SLOT_WORDS;
    // The last slot stays free: it ends every search.
    if (end >= (this.#slots - 1) * SLOT_WORDS) return false;
    for (let i = end + SLOT_WORDS - 1; i >= word + SLOT_WORDS; i--) {
      table[i] = table[i - SLOT_WORDS];
    }
    return true;
  }

  #grow(): void {
    const old = this.#table;
    this.#namesMax = Math.ceil(this.#namesMax * GROWTH);
    const homeSlots = Math.ceil(this.#namesMax / LOAD_MAX);
    this.#scale = scaleFor(homeSlots);
    this.#slots = spread(old, homeSlots, () => {}) + SPILL_SLOTS;
    const table = emptyTable(this.#slots);
    spread(old, homeSlots, (from, slot) => {
      const to = slot * SLOT_WORDS;
      table[to] = old[from];
      table[to + 1] = old[from + 1];
      table[to + 2] = old[from + 2];
    });
    this.#table = table;
    old.buffer.transfer(0);
  }

  /** The text offset of the slot at `word`: of its rule, or of its newest one. */
  #textOffset(word: number): number {
    const last = this.#table[word + 2];
    return (this.#table[word + 1] & Flag.Run) !== 0 ? this.#more[last * MORE_WORDS + 1] : last;
  }

  /** Adds a rule to a name that has one; texts the name already has are used again. */
  #addToName(word: number, source: number, flags: number, tail: Uint8Array): Added {
    const table = this.#table;
    const meta = (source << 16) | flags;
    const nameOffset = this.#textOffset(word);
    let offset = hasTail(flags) ? -1 : nameOffset;
    if ((table[word + 1] & Flag.Run) === 0) {
      const [only, text] = [table[word + 1], table[word + 2]];
      if (this.#isDuplicate(only, text, meta, tail)) {
        table[word + 1] |= Flag.Repeated;
        return Added.Duplicate;
      }
      if (this.#isSame(only, text, flags, tail)) offset = text;
      const first = this.#putMore(only, text, this.#moreCount);
      if (!hasTail(only)) this.#entryWordsMax++; // It leads to a run from now on.
      table[word + 1] = Flag.Run;
      table[word + 2] = first;
    } else {
      const more = this.#more;
      const last = table[word + 2];
      let at = last;
      let count = 0;
      do {
        const entry = at * MORE_WORDS;
        const [other, text] = [more[entry], more[entry + 1]];
        if (this.#isDuplicate(other, text, meta, tail)) {
          more[entry] |= Flag.Repeated;
          return Added.Duplicate;
        }
        if (this.#isSame(other, text, flags, tail)) offset = text;
        if (++count === VALUES_MAX && hasValue(flags)) return Added.TooMany;
        at = more[entry + 2];
      } while (at !== last);
    }
    if (offset < 0) {
      const chunk = this.#text.chunkOf(nameOffset);
      const start = this.#text.startOf(nameOffset);
      offset = this.#putText(chunk, start, nameEnd(chunk, start) - start, tail);
    }
    const last = table[word + 2] * MORE_WORDS;
    const added = this.#putMore(meta, offset, this.#more[last + 2]);
    this.#more[last + 2] = added;
    table[word + 2] = added;
    return Added.Yes;
  }

  /** Says whether two rules of a name do the same for the same source, however they are spelled. */
  #isDuplicate(meta: number, offset: number, other: number, tail: Uint8Array): boolean {
    if (((meta ^ other) & ~(Flag.Odd | Flag.Repeated)) !== 0) return false;
    return !hasValue(meta) || this.#text.tailStartsWith(offset, tail, 1 + tail[0]);
  }

  /** Says whether a rule of the same name looks the same, whichever source it is of. */
  #isSame(meta: number, offset: number, flags: number, tail: Uint8Array): boolean {
    if ((meta & 0xffff & ~Flag.Repeated) !== flags) return false;
    // What begins alike is alike: each part of a tail stands behind its length.
    return !hasTail(flags) || this.#text.tailStartsWith(offset, tail, tail.length);
  }

  #putText(wire: Uint8Array, start: number, lengthBytes: number, tail: Uint8Array): number {
    if (tail.length > 0) this.#tailBytesMax += TAIL_HEAD_BYTES + tail.length;
    return this.#text.put(wire, start, lengthBytes, tail);
  }

  #putMore(meta: number, offset: number, next: number): number {
    const at = this.#moreCount++;
    if ((at + 1) * MORE_WORDS > this.#more.length) {
      const old = this.#more;
      this.#more = new Int32Array(Math.ceil(at * GROWTH) * MORE_WORDS);
      this.#more.set(old);
      old.buffer.transfer(0);
    }
    const word = at * MORE_WORDS;
    this.#more[word] = meta;
    this.#more[word + 1] = offset;
    this.#more[word + 2] = next;
    return at;
  }

  /**
   * Writes the rules and frees the table, which can't be used after. `services` says of each
   * source whether it is a blocked service, which no other source's `$badfilter` concerns.
   */
  finish(seed: number, services: readonly boolean[], patterns: PatternTable): FinishedTable {
    const disabled = new Uint32Array(services.length);
    const counts = this.#applyBadfilters(disabled, services);
    const filled = {
      table: this.#table,
      more: this.#more,
      text: this.#text,
      entryWordsMax: this.#entryWordsMax,
      tailBytesMax: this.#tailBytesMax,
      ...counts,
    };
    const rules = writeRules(filled, patterns, seed, services.length);
    this.#table.buffer.transfer(0);
    this.#more.buffer.transfer(0);
    this.#text.free();
    return { rules, disabled };
  }

  /**
   * Drops what a `$badfilter` of the same source turns off, marks what one of another source does, and
   * drops the `$badfilter` rules that name nothing. Counts what is left; a run of one rule becomes a
   * plain slot again.
   */
  #applyBadfilters(
    disabled: Uint32Array,
    services: readonly boolean[],
  ): { names: number; rules: number; runEntries: number } {
    const table = this.#table;
    const more = this.#more;
    let [names, rules, runEntries] = [0, 0, 0];
    for (let word = 0; word < table.length; word += SLOT_WORDS) {
      if (table[word] === EMPTY_TAG) continue;
      if ((table[word + 1] & Flag.Run) === 0) {
        if ((table[word + 1] & Flag.Badfilter) !== 0) {
          table[word + 1] = DROPPED;
          continue;
        }
        names++;
        rules++;
        continue;
      }
      if (this.#hasBadfilter(table[word + 2])) this.#settleName(word, disabled, services);
      const last = table[word + 2];
      let [kept, keptRules, keptAt] = [0, 0, 0];
      let at = last;
      do {
        const entry = at * MORE_WORDS;
        at = more[entry + 2];
        if (more[entry] === DROPPED) continue;
        if ((more[entry] & Flag.Badfilter) === 0) keptRules++;
        kept++;
        keptAt = entry;
      } while (at !== last);
      rules += keptRules;
      if (kept > 0) names++;
      if (kept > 1) runEntries += kept;
      else {
        table[word + 1] = kept === 0 ? DROPPED : more[keptAt];
        table[word + 2] = more[keptAt + 1];
      }
    }
    return { names, rules, runEntries };
  }

  #hasBadfilter(last: number): boolean {
    const more = this.#more;
    let at = last;
    do {
      if ((more[at * MORE_WORDS] & Flag.Badfilter) !== 0) return true;
      at = more[at * MORE_WORDS + 2];
    } while (at !== last);
    return false;
  }

  /**
   * Applies the `$badfilter` rules of the slot at `word`. Those that count for some groups only stay,
   * behind the rules that they name; rules that none names come first.
   */
  #settleName(word: number, disabled: Uint32Array, services: readonly boolean[]): void {
    const more = this.#more;
    /** Rules by what they do, so that many of one name take no time that grows with their square. */
    const alike = new Map<string, { rules: number[]; badfilters: number[] }>();
    const last = this.#table[word + 2];
    let at = last;
    do {
      at = more[at * MORE_WORDS + 2]; // The newest leads to the first.
      const identity = this.#identityAt(at);
      const known = alike.get(identity) ?? { rules: [], badfilters: [] };
      alike.set(identity, known);
      const isBadfilter = (more[at * MORE_WORDS] & Flag.Badfilter) !== 0;
      (isBadfilter ? known.badfilters : known.rules).push(at);
    } while (at !== last);

    const sourceOf = (at: number) => more[at * MORE_WORDS] >>> 16;
    const [free, disputed]: number[][] = [[], []];
    for (const { rules, badfilters } of alike.values()) {
      const by = new Set(badfilters.map(sourceOf));
      const kept = rules.filter((at) => !by.has(sourceOf(at)));
      for (const at of rules) if (by.has(sourceOf(at))) disabled[sourceOf(at)]++;
      // No other source's badfilter concerns a service, and a service's no other source.
      const isOpen = (at: number) => !services[sourceOf(at)];
      const others = badfilters.filter(isOpen);
      const named = others.length === 0 ? [] : kept.filter(isOpen);
      free.push(...(named.length === 0 ? kept : kept.filter((at) => !isOpen(at))));
      if (named.length === 0) continue;
      for (const at of named) more[at * MORE_WORDS] |= Flag.Disputed;
      for (const at of others) more[at * MORE_WORDS] &= ~(Flag.Self | Flag.Below);
      disputed.push(...named, ...others);
    }
    this.#link(word, [...free, ...disputed]);
  }

  /** What a `$badfilter` is compared by: kind, form, rank and value. */
  #identityAt(at: number): string {
    const [meta, offset] = [this.#more[at * MORE_WORDS], this.#more[at * MORE_WORDS + 1]];
    const identity = identityOf(meta).toString();
    if (!hasValue(meta)) return identity;
    const chunk = this.#text.chunkOf(offset);
    const start = nameEnd(chunk, this.#text.startOf(offset));
    return `${identity} ${chunk.subarray(start, start + 1 + chunk[start]).join()}`;
  }

  /** Makes these the rules of the slot at `word`, in this order. */
  #link(word: number, order: readonly number[]): void {
    const more = this.#more;
    if (order.length === 0) {
      more[this.#table[word + 2] * MORE_WORDS] = DROPPED;
      order = [this.#table[word + 2]];
    }
    for (const [i, at] of order.entries()) {
      more[at * MORE_WORDS + 2] = order[(i + 1) % order.length];
    }
    this.#table[word + 2] = order[order.length - 1];
  }
}

/** What stands behind a rule's name: its value, where the flags say so, and then its odd text. */
export function tailOf(flags: number, value: Uint8Array, odd: Uint8Array): Uint8Array {
  const valueBytes = hasValue(flags) ? 1 + value.length : 0;
  const oddBytes = (flags & Flag.Odd) === 0 ? 0 : 2 + odd.length;
  const tail = new Uint8Array(valueBytes + oddBytes);
  if (valueBytes > 0) {
    tail[0] = value.length;
    tail.set(value, 1);
  }
  if (oddBytes > 0) {
    tail[valueBytes] = odd.length >>> 8;
    tail[valueBytes + 1] = odd.length;
    tail.set(odd, valueBytes + 2);
  }
  return tail;
}

function emptyTable(slots: number): Int32Array<ArrayBuffer> {
  const table = new Int32Array(slots * SLOT_WORDS);
  for (let word = 0; word < table.length; word += SLOT_WORDS) table[word] = EMPTY_TAG;
  return table;
}

/**
 * Calls `place` with each rule's word in `table` and its slot in a table of `homeSlots`, in order:
 * its home or, where that is taken, the next slot. Returns how many slots this takes, one for every
 * home at least.
 */
function spread(
  table: Int32Array,
  homeSlots: number,
  place: (word: number, slot: number) => void,
): number {
  const scale = scaleFor(homeSlots);
  let next = 0;
  for (let word = 0; word < table.length; word += SLOT_WORDS) {
    const tag = table[word];
    if (tag === EMPTY_TAG || table[word + 1] === DROPPED) continue;
    const slot = Math.max(next, partOf(tag, scale));
    place(word, slot);
    next = slot + 1;
  }
  return Math.max(next, homeSlots);
}
