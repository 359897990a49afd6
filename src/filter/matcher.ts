import { FOLD, type HashedName } from "../dns/mod.ts";
import { invariant } from "../errors.ts";
import {
  canonicalText,
  ENTRY_WORDS,
  Flag,
  formFlags,
  formOf,
  Header,
  HEADER_WORDS,
  identityOf,
  MAGIC,
  partOf,
  RANK_MASK,
  RANK_SHIFT,
  scaleFor,
  SLOT_WORDS,
  tagOf,
  VERSION,
} from "./layout.ts";
import { nameEnd, NameReader, nameText } from "./names.ts";
import type { Rule } from "./parse_rule.ts";

/** What `match` returns when no rule covers the name. */
export const NO_RULE = -1;

/** A rule that covers a name, for `svc explain`. */
export interface Hit {
  /** Rule reference, for the accessors of the same matcher. */
  readonly ref: number;
  /** Important exception 3, important block 2, exception 1, block 0. */
  readonly rank: number;
}

/** No rule is turned off beside those that the compiler left out. */
const NONE: Int32Array = new Int32Array(0);

const decoder = new TextDecoder();
const encoder = new TextEncoder();

/**
 * Looks names up in a snapshot. A rule is named by its reference, an integer of zero or more that
 * holds for this snapshot only.
 */
export class Matcher {
  readonly seed: number;
  /** Rules in force. */
  readonly rules: number;
  readonly sources: number;
  readonly #presence: Int32Array;
  readonly #presenceScale: number;
  /** Slots and runs; a rule reference is an index of it. */
  readonly #rules: Int32Array;
  readonly #slotScale: number;
  readonly #text: Uint8Array;

  /** @throws {InvariantError} If `compile` of this version did not write the snapshot. */
  constructor(readonly snapshot: SharedArrayBuffer) {
    const header = new Uint32Array(snapshot, 0, HEADER_WORDS);
    const known = header[Header.Magic] === MAGIC && header[Header.Version] === VERSION;
    invariant(known, "a filter snapshot has the layout of this version");
    this.seed = header[Header.Seed];
    this.rules = header[Header.Rules];
    this.sources = header[Header.Sources];
    const presenceWords = header[Header.PresenceWords];
    this.#presence = new Int32Array(snapshot, header[Header.PresenceOffset], presenceWords);
    this.#presenceScale = scaleFor(32 * presenceWords);
    this.#rules = new Int32Array(snapshot, header[Header.RulesOffset], header[Header.RulesWords]);
    this.#slotScale = scaleFor(header[Header.HomeSlots]);
    this.#text = new Uint8Array(snapshot, header[Header.TextOffset], header[Header.TextBytes]);
  }

  /**
   * Returns the rule that decides about a name among the sources whose bits are set (source `s` is
   * bit `s & 31` of word `s >> 5`; a word for every 32 sources), or `NO_RULE`. Of several rules the
   * one of the highest rank decides, and of these the one about the longest name. `name` was read
   * from `packet` with this snapshot's seed. `turnedOff` are references of rules that do not count,
   * in ascending order. Leaves no garbage.
   */
  match(
    packet: Uint8Array,
    name: HashedName,
    groupSources: Uint32Array,
    turnedOff: Int32Array = NONE,
  ): number {
    const presence = this.#presence;
    const scale = this.#presenceScale;
    const { count, hashes, offsets } = name;
    let best = NO_RULE;
    let covers: number = Flag.Self;
    for (let k = 0; k < count; k++) {
      const tag = tagOf(hashes[k]);
      const bit = partOf(tag, scale);
      if (((presence[bit >>> 5] >>> (bit & 31)) & 1) === 1) {
        const word = this.#find(tag, packet, offsets[k]);
        if (word >= 0) best = this.#better(best, word, covers, groupSources, turnedOff);
      }
      covers = Flag.Below;
    }
    return best;
  }

  /** The first word of the slot about the name at `offset`, or -1. */
  #find(tag: number, packet: Uint8Array, offset: number): number {
    const rules = this.#rules;
    let word = partOf(tag, this.#slotScale) * SLOT_WORDS;
    // The last slot is free, and a free slot's tag is above all others.
    while (rules[word] < tag) word += SLOT_WORDS;
    for (; rules[word] === tag; word += SLOT_WORDS) {
      const first = (rules[word + 1] & Flag.Run) !== 0 ? rules[word + 2] : word + 1;
      if (this.#isName(rules[first + 1], packet, offset)) return word;
    }
    return -1;
  }

  /** The best of `best` and the active rules of a slot that cover the name. */
  #better(
    best: number,
    word: number,
    covers: number,
    groupSources: Uint32Array,
    turnedOff: Int32Array,
  ): number {
    const rules = this.#rules;
    const run = (rules[word + 1] & Flag.Run) !== 0;
    let found = best;
    let rank = best === NO_RULE ? -1 : this.rank(best);
    for (let ref = run ? rules[word + 2] : word + 1;; ref += ENTRY_WORDS) {
      const meta = rules[ref];
      const source = meta >>> 16;
      const newRank = (meta >>> RANK_SHIFT) & RANK_MASK;
      const active = (groupSources[source >>> 5] >>> (source & 31)) & 1;
      if ((meta & covers) !== 0 && newRank > rank && active === 1 && !holds(turnedOff, ref)) {
        found = ref;
        rank = newRank;
      }
      if (!run || (meta & Flag.Last) !== 0) return found;
    }
  }

  /** Compares the rule's name with the one at `offset` in the packet, in any case. */
  #isName(textOffset: number, packet: Uint8Array, offset: number): boolean {
    const text = this.#text;
    let at = offset;
    for (let i = textOffset;; i++) {
      const byte = text[i];
      const asked = packet[at++];
      // A label's length is below every letter, so folding leaves it as it is.
      if (asked !== byte && FOLD[asked] !== byte) return false;
      if (byte === 0) return true;
    }
  }

  /** All rules that cover the name, the deciding one first; allocates. */
  matchAll(packet: Uint8Array, name: HashedName, groupSources: Uint32Array): Hit[] {
    const hits: Hit[] = [];
    for (let k = 0; k < name.count; k++) {
      const covers = k === 0 ? Flag.Self : Flag.Below;
      const word = this.#find(tagOf(name.hashes[k]), packet, name.offsets[k]);
      if (word < 0) continue;
      for (const ref of this.#refsOf(word)) {
        const source = this.source(ref);
        const active = (groupSources[source >>> 5] >>> (source & 31)) & 1;
        if (active === 1 && (this.flags(ref) & covers) !== 0) {
          hits.push({ ref, rank: this.rank(ref) });
        }
      }
    }
    // The sort is stable: longer names stay first within a rank.
    return hits.sort((a, b) => b.rank - a.rank);
  }

  #refsOf(word: number): number[] {
    const rules = this.#rules;
    if ((rules[word + 1] & Flag.Run) === 0) return [word + 1];
    const refs = [];
    for (let ref = rules[word + 2];; ref += ENTRY_WORDS) {
      refs.push(ref);
      if ((rules[ref] & Flag.Last) !== 0) return refs;
    }
  }

  /** References of the rules that a `$badfilter` of this rule turns off. */
  turnedOffBy(rule: Rule): number[] {
    const name = new NameReader();
    const ascii = encoder.encode(rule.name);
    if (name.read(ascii, 0, ascii.length) !== ascii.length) return [];
    const word = this.#find(tagOf(name.hash(this.seed)), name.wire, 0);
    if (word < 0) return [];
    let flags = formFlags(formOf(rule.form, rule.address));
    if (rule.exception) flags |= Flag.Exception;
    if (rule.important) flags |= Flag.Important;
    return this.#refsOf(word).filter((ref) => identityOf(this.flags(ref)) === identityOf(flags));
  }

  /** Bytes of the name that the rule is about, in wire format. */
  nameLengthBytes(ref: number): number {
    const offset = this.#rules[ref + 1];
    return nameEnd(this.#text, offset) - offset;
  }

  /** The number of the source that the rule is of. */
  source(ref: number): number {
    return this.#rules[ref] >>> 16;
  }

  /** Bits of `Flag`. */
  flags(ref: number): number {
    return this.#rules[ref] & 0xffff;
  }

  /** Important exception 3, important block 2, exception 1, block 0. */
  rank(ref: number): number {
    return (this.#rules[ref] >>> RANK_SHIFT) & RANK_MASK;
  }

  /** `false` for an exception. */
  isBlock(ref: number): boolean {
    return (this.#rules[ref] & Flag.Exception) === 0;
  }

  /** What the rule looks like in its list, without comment; a hosts line with one name. */
  ruleText(ref: number): string {
    const flags = this.flags(ref);
    const offset = this.#rules[ref + 1];
    const text = this.#text;
    if ((flags & Flag.Odd) === 0) return canonicalText(flags, nameText(text, offset));
    const at = nameEnd(text, offset);
    const length = (text[at] << 8) | text[at + 1];
    // A copy: text in shared memory can't be decoded where it stands.
    return decoder.decode(text.slice(at + 2, at + 2 + length));
  }
}

/** Says whether an ascending array holds a number. */
function holds(ascending: Int32Array, wanted: number): boolean {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (ascending[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low < ascending.length && ascending[low] === wanted;
}

/** What the rule behind a reference looks like; see `Matcher.ruleText`. */
export function ruleText(snapshot: SharedArrayBuffer, ref: number): string {
  return new Matcher(snapshot).ruleText(ref);
}
