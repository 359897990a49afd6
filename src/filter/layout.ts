/**
 * The compiled filter in memory, as the compiler writes it and the matcher reads it. Words are
 * 32 bits in the machine's order: compiled rules never leave the machine.
 *
 * ```
 * header    HEADER_WORDS words, see `Header`
 * index     2 words a bucket: where it starts among the words of the next two sections | presence,
 *           1 bit for each part of the bucket's range of hashes: any name in it?
 * runs      2 words a rule: source and flags | its entry or, where it has a tail, the tail's offset
 * buckets   see below
 * sources   1 bit a source: has it rules about addresses?
 * patterns  the index of patterns, see `PatternTable`; nothing where there are none
 * text      1 tail a rule that has one: its entry | its value | what it looks like, each of the
 *           last two behind its length
 * ```
 *
 * A bucket holds some four names: how many (2 bytes), a mark of each, a byte of its hash, and how
 * many words it is from the bucket's start or the entry before to its entry; then the entries. An
 * entry is the rule's source and flags, and the name in wire format and lower case. Before it stands
 * a word where `hasExtra` says so.
 *
 * The index is small enough to stay near the processor, so a name that no rule is about costs no
 * walk to memory, and a hit costs one: all that a verdict needs is in a row, and marks keep most
 * other names from being looked at. The bucket of a name grows with its tag (its hash).
 *
 * A rule reference is the number of the word, counted from the first run's, that holds the rule's
 * source and flags. A name with several rules has `Flag.Run` in its entry, and in the word before it
 * a reference to the first rule of a run; `Flag.Last` ends the run. A `$badfilter` counts where its
 * source is active: it stands, of kind `Name` or not, without `Self` and `Below` behind the rules that
 * it turns off, which have `Flag.Disputed`. What it turns off in its own source is left out.
 */

import { formatIp } from "../addr/mod.ts";
import { Rcode } from "../dns/mod.ts";
import { addressOctets, nameText, patternAt } from "./names.ts";
import type { Rule, RuleKind } from "./parse_rule.ts";

export const MAGIC = 0x53564346; // "SVCF"
export const VERSION = 5;

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
  Buckets: 6,
  IndexOffset: 7,
  RulesOffset: 8,
  /** Words of runs and buckets together. */
  RulesWords: 9,
  /** Words of runs. */
  BucketsStart: 10,
  SourcesOffset: 11,
  TextOffset: 12,
  /** Bit `n`: there are rules about addresses that begin with `n` octets. */
  AddressLengths: 13,
  /** Patterns, and where their sections are; see `PatternTable`. */
  Patterns: 14,
  PatternsOffset: 15,
  FilterOffset: 16,
  GramsOffset: 17,
  ListsOffset: 18,
  AutomataOffset: 19,
  /** Bits of a number in the filter and in the grams, and whether there are grams of three codes. */
  FilterBits: 20,
  SlotBits: 21,
  HasShortGrams: 22,
} as const;

/**
 * Names to a bucket on average: their entries are about as long as two lines of a cache, and one
 * name in nine that no rule is about gets past the presence bits.
 */
export const BUCKET_NAMES = 4;
/** Words of a bucket in the index, and which presence bit a tag has. */
export const INDEX_WORDS = 2;
export const PRESENCE_MASK = 31;
/** Where in an entry the name stands. */
export const ENTRY_NAME_BYTES = 4;
/** Bytes of a bucket before the marks. */
export const COUNT_BYTES = 2;
/** Which bits of the tag are the mark: the bucket goes by the highest, presence by the lowest. */
export const MARK_SHIFT = 5;
export const MARK_MASK = 0xff;
/** Words of a rule in a run. */
export const RUN_WORDS = 2;
/** A tail begins with the number of its entry, in network order. */
export const TAIL_HEAD_BYTES = 4;

/** Most lists and services; a source number is 16 bits, and custom rules are the source behind them. */
export const SOURCES_MAX = 65_535;

const TAGS = 2 ** 32;
const TAG_MIN = -(2 ** 31);

/** What `partOf` takes for `parts`; exact, as TAGS is a power of two. */
export function scaleFor(parts: number): number {
  return parts / TAGS;
}

/**
 * In which of equal parts of the range of tags a tag is: its home slot, its bucket. Any number of
 * parts will do, so no table is larger than it must be.
 */
export function partOf(tag: number, scale: number): number {
  return ((tag - TAG_MIN) * scale) | 0;
}

/**
 * The low half of a rule's first word; the source is the high half. Bits 12 and 13 are the kind, and
 * whatever is not of kind `Name` has neither `Self` nor `Below`: `match` never takes it for a block.
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
  /** It turns off the rules of other sources before it in its run that are `Disputed`. */
  Badfilter: 1 << 11,
  /** A `$badfilter` of another source may turn it off. */
  Disputed: 1 << 14,
  /** Its source has it more than once, whatever the spelling. */
  Repeated: 1 << 15,
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
  /** Not about one name: what it covers only its text says, which stands where a name would. */
  Pattern: 9,
  Regex: 10,
} as const;
export type Form = typeof Form[keyof typeof Form];

const HOSTS_FORM: ReadonlyMap<string, Form> = new Map<string, Form>([
  ["0.0.0.0", Form.HostsZero],
  ["127.0.0.1", Form.HostsLoopback],
  ["::", Form.HostsZero6],
  ["::1", Form.HostsLoopback6],
]);

/** What a rule does, in flag bits 12 and 13; see `RuleKind`. */
export const Kind = { Name: 0, Rewrite: 1, HostsAddress: 2, Address: 3 } as const;
export type Kind = typeof Kind[keyof typeof Kind];

const KIND_SHIFT = 12;
/** None of these bits is set for a rule of kind `Name`. */
export const KIND_FLAGS = 3 << KIND_SHIFT;

const KINDS = {
  name: Kind.Name,
  rewrite: Kind.Rewrite,
  hosts_address: Kind.HostsAddress,
  address: Kind.Address,
} as const satisfies Record<RuleKind, Kind>;

export function kindOf(flags: number): Kind {
  return ((flags & KIND_FLAGS) >>> KIND_SHIFT) as Kind;
}

/** Says whether a rule has a value that its name does not say. */
export function hasValue(flags: number): boolean {
  const kind = kindOf(flags);
  return kind === Kind.Rewrite || kind === Kind.HostsAddress;
}

/** Says whether a rule has a tail: a value, or a look of its own. */
export function hasTail(flags: number): boolean {
  return (flags & Flag.Odd) !== 0 || hasValue(flags);
}

/** Says whether a word stands before an entry: where its run starts, or its rule's tail. */
export function hasExtra(flags: number): boolean {
  return (flags & Flag.Run) !== 0 || hasTail(flags);
}

/** Words of the entry of a name, without what may stand before it. */
export function entryWords(nameBytes: number): number {
  return (ENTRY_NAME_BYTES + nameBytes + 3) >>> 2;
}

/** Words of a bucket before its entries. */
export function bucketHeadWords(names: number): number {
  return (COUNT_BYTES + 2 * names + 3) >>> 2;
}

const IDENTITY_FLAGS = KIND_FLAGS | (FORM_MASK << FORM_SHIFT) | (RANK_MASK << RANK_SHIFT);

/**
 * Kind, form and rank: rules of one name that have the same, and the same value, are one rule to
 * `$badfilter`.
 */
export function identityOf(flags: number): number {
  return flags & IDENTITY_FLAGS;
}

/** What `$badfilter` compares rules by, as a text: two rules that have it alike are one to it. */
export function ruleIdentity(rule: Rule): string {
  return `${identityOf(flagsOf(rule))} ${rule.name} ${rule.value.join(".")}`;
}

/** The flags that say how a form is written and what it covers, for a rule of kind `Name`. */
export function formFlags(form: Form): number {
  return coversOf(form) | (form << FORM_SHIFT);
}

/** What rules of a form cover: bits `Flag.Self` and `Flag.Below`. */
function coversOf(form: number): number {
  if (isPatternForm(form)) return Flag.Self | Flag.Below;
  if (form === Form.Domain) return Flag.Self | Flag.Below;
  return form === Form.Below ? Flag.Below : Flag.Self;
}

function isPatternForm(form: number): boolean {
  return form === Form.Pattern || form === Form.Regex;
}

/** Says whether a rule is about a pattern: its entry is found by that alone. */
export function isPattern(flags: number): boolean {
  return isPatternForm((flags >>> FORM_SHIFT) & FORM_MASK);
}

/** `coversOf` for the form in a rule's flags: of whatever kind the rule is. */
export function covers(flags: number): number {
  return coversOf((flags >>> FORM_SHIFT) & FORM_MASK);
}

/** The flags of a rule but for `Odd` and `Badfilter`. */
export function flagsOf({ kind, form, address, exception, important }: Rule): number {
  const written = FORMS[form] ?? HOSTS_FORM.get(address) ?? Form.HostsOther;
  const flags = kind === "name" ? formFlags(written) : written << FORM_SHIFT;
  return flags | (KINDS[kind] << KIND_SHIFT) | (exception ? Flag.Exception : 0) |
    (important ? Flag.Important : 0);
}

const FORMS = {
  plain: Form.Plain,
  domain: Form.Domain,
  exact: Form.Exact,
  below: Form.Below,
  hosts: null,
  pattern: Form.Pattern,
  regex: Form.Regex,
} as const satisfies Record<Rule["form"], Form | null>;

const PREFIX = ["", "||", "|", "*.", "0.0.0.0 ", "127.0.0.1 ", ":: ", "::1 ", "", "", ""] as const;
const SUFFIX = ["", "^", "^", "", "", "", "", "", "", "", ""] as const;

/** What a rule is about, where it stands in wire format: its name or its pattern. */
export function subjectAt(flags: number, wire: Uint8Array, offset: number): string {
  return isPattern(flags) ? patternAt(wire, offset) : nameText(wire, offset);
}

/** What a rule without `Flag.Odd` looks like; `value` is that of the rule. */
export function canonicalText(flags: number, name: string, value: Uint8Array): string {
  const form = (flags >>> FORM_SHIFT) & FORM_MASK;
  const kind = kindOf(flags);
  if (kind === Kind.HostsAddress) return `${formatIp(value)} ${name}`;
  const before = ((flags & Flag.Exception) !== 0 ? "@@" : "") + PREFIX[form];
  const modifiers = (flags & Flag.Important) !== 0 ? ["important"] : [];
  if (kind === Kind.Rewrite) modifiers.push(`dnsrewrite${rewriteText(value)}`);
  const behind = modifiers.length === 0 ? "" : `$${modifiers.join(",")}`;
  if (kind !== Kind.Address) return before + name + SUFFIX[form] + behind;
  const octets = addressOctets(name);
  const isWhole = octets.length >= 4;
  const address = isWhole ? formatIp(octets) : `${octets.join(".")}.*`;
  return before + address + (form === Form.Domain ? SUFFIX[form] : "") + behind;
}

function rewriteText(value: Uint8Array): string {
  if (value.length === 0) return "";
  if (value.length > 1) return `=${formatIp(value)}`;
  switch (value[0]) {
    case Rcode.NXDomain:
      return "=NXDOMAIN";
    case Rcode.Refused:
      return "=REFUSED";
    default:
      return "=NOERROR";
  }
}
