/**
 * The compiled filter in memory, as the compiler writes it and the matcher reads it. Words are
 * 32 bits in the machine's order: a snapshot never leaves the process.
 *
 * ```
 * header    HEADER_WORDS words, see `Header`
 * presence  1 bit for each of PRESENCE_BITS parts of the range of hashes to a name: any name in it?
 * slots     3 words each: tag (the hash of a name) | source and flags | text offset
 * runs      2 words an entry: source and flags | text offset
 * text      each distinct name once: wire format, lower case; then what an odd rule looks like
 * ```
 *
 * Presence bits are few enough to stay near the processor, so a name that no rule is about costs no
 * walk to memory. A slot holds what a hit needs in one cache line. A tag's home slot grows with the
 * tag, and tags stand in ascending order from their home slot on: a search ends at the first larger
 * tag, and a free slot's is the largest of all.
 *
 * A rule reference is the number of the word, counted from the first slot's, that holds the rule's
 * source and flags; the text offset is the next word. A name with several rules has `Flag.Run` in
 * its slot, and there a reference to the first entry of a run instead; `Flag.Last` ends the run.
 */

import type { RuleForm } from "./parse_rule.ts";

export const MAGIC = 0x53564346; // "SVCF"
export const VERSION = 1;

/** Words of the header; what it does not name yet is for sections to come. */
export const HEADER_WORDS = 32;
/** Which word of the header holds what. Offsets count bytes from the start. */
export const Header = {
  Magic: 0,
  Version: 1,
  Seed: 2,
  Sources: 3,
  Names: 4,
  Rules: 5,
  HomeSlots: 6,
  PresenceOffset: 7,
  PresenceWords: 8,
  RulesOffset: 9,
  /** Words of slots and runs together. */
  RulesWords: 10,
  TextOffset: 11,
  TextBytes: 12,
} as const;

/** Words of a slot. */
export const SLOT_WORDS = 3;
/** Words of a run entry. */
export const ENTRY_WORDS = 2;

/** Presence bits to a name: one name in nine that no rule is about gets past them. */
export const PRESENCE_BITS = 8;

/** Most sources of one snapshot; a source number is 16 bits. */
export const SOURCES_MAX = 65_536;

/** Names to a slot at most: at 0.7 a search reads two slots on average. */
export const LOAD_MAX = 0.7;

/** The tag of a free slot. */
export const EMPTY_TAG = 0x7fffffff;

const TAGS = 2 ** 32;
const TAG_MIN = -(2 ** 31);

/** The tag of a hash: the hash itself, but never `EMPTY_TAG`. */
export function tagOf(hash: number): number {
  return hash === EMPTY_TAG ? EMPTY_TAG - 1 : hash;
}

/** What `partOf` takes for `parts`; exact, as TAGS is a power of two. */
export function scaleFor(parts: number): number {
  return parts / TAGS;
}

/**
 * In which of equal parts of the range of tags a tag is: its home slot among the slots, its bit
 * among the presence bits. Any number of parts will do, so no table is larger than it must be.
 */
export function partOf(tag: number, scale: number): number {
  return ((tag - TAG_MIN) * scale) | 0;
}

/**
 * The low half of a rule's first word; the source is the high half. Bits 12 to 15 are free: a kind
 * of rule that `match` must not take for a block sets one of them and neither `Self` nor `Below`,
 * and keeps its payload behind the name, as an odd rule keeps its text.
 */
export const Flag = {
  /** Covers the name itself. */
  Self: 1 << 0,
  /** Covers the names below. */
  Below: 1 << 1,
  /** Bits 2 and 3 read as a number are the rank; see `RANK_SHIFT`. */
  Exception: 1 << 2,
  Important: 1 << 3,
  /** The text is not what `canonicalText` makes of the rule; it follows the name. */
  Odd: 1 << 8,
  Run: 1 << 9,
  Last: 1 << 10,
  /** While compiling only: turns off the rules of the same identity. */
  Badfilter: 1 << 11,
} as const;

/** Important exception 3, important block 2, exception 1, block 0. */
export const RANK_SHIFT = 2;
export const RANK_MASK = 3;

const FORM_SHIFT = 4;
const FORM_MASK = 15;

/** Which form a rule was written in, in flag bits 4 to 7. */
export const Form = {
  Plain: 0,
  Domain: 1,
  Exact: 2,
  Below: 3,
  /** Hosts lines by their address; `HostsOther` is any other that blocks, and always odd. */
  HostsZero: 4,
  HostsLoopback: 5,
  HostsZero6: 6,
  HostsLoopback6: 7,
  HostsOther: 8,
} as const;
export type Form = typeof Form[keyof typeof Form];

const HOSTS_FORM: ReadonlyMap<string, Form> = new Map<string, Form>([
  ["0.0.0.0", Form.HostsZero],
  ["127.0.0.1", Form.HostsLoopback],
  ["::", Form.HostsZero6],
  ["::1", Form.HostsLoopback6],
]);

/** Most that `identityOf` returns. */
export const IDENTITY_MASK = (FORM_MASK << (FORM_SHIFT - RANK_SHIFT)) | RANK_MASK;

/** Form and rank: rules of one name that have the same are one rule to `$badfilter`. */
export function identityOf(flags: number): number {
  return (flags >>> RANK_SHIFT) & IDENTITY_MASK;
}

/** The flags that say how a form is written and what it covers. */
export function formFlags(form: Form): number {
  const covers = form === Form.Domain
    ? Flag.Self | Flag.Below
    : form === Form.Below
    ? Flag.Below
    : Flag.Self;
  return covers | (form << FORM_SHIFT);
}

/** The form of a rule; `address` is the first word of a hosts line. */
export function formOf(form: RuleForm, address: string): Form {
  switch (form) {
    case "plain":
      return Form.Plain;
    case "domain":
      return Form.Domain;
    case "exact":
      return Form.Exact;
    case "below":
      return Form.Below;
    case "hosts":
      return HOSTS_FORM.get(address) ?? Form.HostsOther;
  }
}

const PREFIX = ["", "||", "|", "*.", "0.0.0.0 ", "127.0.0.1 ", ":: ", "::1 ", ""] as const;
const SUFFIX = ["", "^", "^", "", "", "", "", "", ""] as const;

/** What a rule without `Flag.Odd` looks like. */
export function canonicalText(flags: number, name: string): string {
  const form = (flags >>> FORM_SHIFT) & FORM_MASK;
  const before = (flags & Flag.Exception) !== 0 ? "@@" : "";
  const behind = (flags & Flag.Important) !== 0 ? "$important" : "";
  return before + PREFIX[form] + name + SUFFIX[form] + behind;
}
