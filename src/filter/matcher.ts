import { isMappedAt, unmapIpv4 } from "../addr/mod.ts";
import type { HashedName } from "../dns/mod.ts";
import { tagOf } from "./filled_table.ts";
import {
  covers,
  Flag,
  flagsOf,
  hasValue,
  Header,
  HEADER_WORDS,
  identityOf,
  INDEX_WORDS,
  isPattern,
  Kind,
  KIND_FLAGS,
  kindOf,
  partOf,
  PRESENCE_MASK,
  RANK_MASK,
  RANK_SHIFT,
  RUN_WORDS,
} from "./layout.ts";
import { NameReader } from "./names.ts";
import type { Rule } from "./parse_rule.ts";
import { PatternMatcher } from "./pattern_matcher.ts";
import { RuleReader } from "./rule_reader.ts";

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
const NO_SERVICES: Uint32Array = new Uint32Array(1);
/** Octets of an IPv4 address, and of an IPv6 one. */
const [IPV4_OCTETS, IPV6_OCTETS] = [4, 16];

const encoder = new TextEncoder();

/** What `Matcher.match` met beside the rule that it returns; made once, filled in by each call. */
export class Met {
  /** The rule of the given services that blocks the name, or `NO_RULE`. */
  service = NO_RULE;
  /** An exception of one of these covers the name. */
  hasServiceException = false;
  /** There may be rules that answer the name: `answerRules` finds them. */
  hasAnswers = false;
}

/** Says which compiled rule decides about a name or an address. */
export class Matcher extends RuleReader {
  /** Sources with rules about addresses. */
  readonly #addressSources: Uint32Array;
  /** Bit `n`: there are rules about addresses that begin with `n` octets. */
  readonly #addressLengths: number;
  readonly #address = new NameReader();
  /** `null`: there are no rules about patterns. */
  readonly #patterns: PatternMatcher | null;
  readonly #oneSource: Uint32Array;
  /** For those who ask for the rule alone. */
  readonly #met = new Met();

  /** @throws {InvariantError} If `compile` of this version did not write the memory. */
  constructor(memory: SharedArrayBuffer) {
    super(memory);
    const header = new Uint32Array(memory, 0, HEADER_WORDS);
    const words = (this.sources + 31) >>> 5;
    this.#oneSource = new Uint32Array(words);
    this.#addressSources = new Uint32Array(memory, header[Header.SourcesOffset], words);
    this.#addressLengths = header[Header.AddressLengths];
    this.#patterns = header[Header.Patterns] === 0 ? null : new PatternMatcher(memory);
  }

  /**
   * Returns the block or the exception that decides about a name among the sources whose bits are
   * set (source `s` is bit `s & 31` of word `s >> 5`; a word for every 32 sources), or `NO_RULE`. Of
   * several rules the one of the highest rank decides, and of these the one about the longest name; one
   * about a pattern comes behind those about names.
   * `name` was read from `packet` with the seed of the rules. `turnedOff` are references of rules
   * that do not count, in ascending order. `services` are sources whose blocks nothing lifts. `met`
   * is filled in with what else the walk met. Leaves no garbage.
   */
  match(
    packet: Uint8Array,
    name: HashedName,
    groupSources: Uint32Array,
    turnedOff: Int32Array = NONE,
    services: Uint32Array = NO_SERVICES,
    met: Met = this.#met,
  ): number {
    const index = this.index;
    const scale = this.bucketScale;
    const { count, hashes, offsets } = name;
    let best = NO_RULE;
    let covered: number = Flag.Self;
    met.service = NO_RULE;
    met.hasServiceException = false;
    met.hasAnswers = false;
    for (let k = 0; k < count; k++) {
      const tag = tagOf(hashes[k]);
      const bucket = partOf(tag, scale) * INDEX_WORDS;
      if (((index[bucket + 1] >>> (tag & PRESENCE_MASK)) & 1) === 1) {
        const entry = this.findIn(index[bucket], tag, packet, offsets[k]);
        if (entry >= 0) {
          best = this.#better(best, entry, covered, groupSources, turnedOff, services, met);
        }
      }
      covered = Flag.Below;
    }
    const patterns = this.#patterns;
    if (patterns !== null) {
      covered = Flag.Self | Flag.Below;
      const found = patterns.find(packet, name);
      for (let i = 0; i < found; i++) {
        const entry = patterns.found[i];
        best = this.#better(best, entry, covered, groupSources, turnedOff, services, met);
      }
    }
    if (met.hasServiceException) met.service = this.#matchServices(packet, name, services);
    return best;
  }

  /** The best of `best` and the active rules of an entry that cover the name. */
  #better(
    best: number,
    entry: number,
    covered: number,
    groupSources: Uint32Array,
    turnedOff: Int32Array,
    services: Uint32Array,
    met: Met,
  ): number {
    const rules = this.words;
    let found = best;
    let rank = best === NO_RULE ? -1 : this.rank(best);
    for (let ref = this.firstRef(entry);; ref += RUN_WORDS) {
      const meta = rules[ref];
      if ((meta & covered) !== 0) {
        const newRank = (meta >>> RANK_SHIFT) & RANK_MASK;
        if (newRank > rank && this.#isInForce(ref, meta, groupSources, turnedOff)) {
          found = ref;
          rank = newRank;
        }
        if (hasBit(services, meta >>> 16)) this.#considerService(ref, newRank, met);
      } else if ((meta & KIND_FLAGS) !== 0) met.hasAnswers = true;
      if (this.isLast(ref)) return found;
    }
  }

  /** Says whether a rule counts for a group: its source is active, and nothing turns it off. */
  #isInForce(
    ref: number,
    meta: number,
    groupSources: Uint32Array,
    turnedOff: Int32Array,
  ): boolean {
    return hasBit(groupSources, meta >>> 16) && !holds(turnedOff, ref) &&
      ((meta & Flag.Disputed) === 0 || this.badfilterOf(ref, groupSources) === NO_RULE);
  }

  /**
   * The `$badfilter` of an active source that turns a rule of another source off, or `NO_RULE`. Those
   * that name a rule stand behind it, and behind the rules of other sources that it names as well.
   */
  badfilterOf(ref: number, groupSources: Uint32Array): number {
    const words = this.words;
    if ((words[ref] & Flag.Disputed) === 0) return NO_RULE;
    let met = false;
    for (let at = ref; !this.isLast(at);) {
      at += RUN_WORDS;
      const isBadfilter = (words[at] & Flag.Badfilter) !== 0;
      if (isBadfilter && hasBit(groupSources, words[at] >>> 16)) return at;
      if (met && !isBadfilter) return NO_RULE;
      met = isBadfilter;
    }
    return NO_RULE;
  }

  #considerService(ref: number, rank: number, met: Met): void {
    if (!this.isBlock(ref)) met.hasServiceException = true;
    else if (met.service === NO_RULE || rank > this.rank(met.service)) met.service = ref;
  }

  /** The block of the first of the services that blocks the name: its own exceptions lift it only. */
  #matchServices(packet: Uint8Array, name: HashedName, services: Uint32Array): number {
    const one = this.#oneSource;
    for (let source = 0; source < this.sources; source++) {
      if (!hasBit(services, source)) continue;
      one[source >>> 5] = 1 << (source & 31);
      const ref = this.match(packet, name, one);
      one[source >>> 5] = 0;
      if (ref !== NO_RULE && this.isBlock(ref)) return ref;
    }
    return NO_RULE;
  }

  /**
   * Writes references of the rules that answer a name, and of the exceptions to them, to `refs` from
   * `count` on: rewrites that cover it, and its own addresses of hosts lines; the longest names
   * first. Returns the new count; what `refs` has no room for is left out. Parameters as of `match`.
   */
  answerRules(
    packet: Uint8Array,
    name: HashedName,
    groupSources: Uint32Array,
    turnedOff: Int32Array,
    refs: Int32Array,
    count: number,
  ): number {
    let to = count;
    let covered: number = Flag.Self;
    for (let k = 0; k < name.count; k++) {
      const entry = this.find(tagOf(name.hashes[k]), packet, name.offsets[k]);
      if (entry >= 0) to = this.#addAnswers(entry, covered, groupSources, turnedOff, refs, to);
      covered = Flag.Below;
    }
    const patterns = this.#patterns;
    const found = patterns === null ? 0 : patterns.find(packet, name);
    for (let i = 0; i < found; i++) {
      const entry = patterns!.found[i];
      to = this.#addAnswers(entry, covered, groupSources, turnedOff, refs, to);
    }
    return to;
  }

  /** Adds the rules of an entry to `refs`; see `answerRules`. */
  #addAnswers(
    entry: number,
    covered: number,
    groupSources: Uint32Array,
    turnedOff: Int32Array,
    refs: Int32Array,
    count: number,
  ): number {
    const rules = this.words;
    let to = count;
    for (let ref = this.firstRef(entry);; ref += RUN_WORDS) {
      const meta = rules[ref];
      const isAbout = hasValue(meta) && (meta & Flag.Badfilter) === 0 &&
        (covers(meta) & covered) !== 0;
      if (isAbout && to < refs.length && this.#isInForce(ref, meta, groupSources, turnedOff)) {
        refs[to++] = ref;
      }
      if (this.isLast(ref)) return to;
    }
  }

  /** Says whether one of the sources has rules about addresses. */
  hasAddressRules(groupSources: Uint32Array): boolean {
    const all = this.#addressSources;
    for (let i = 0; i < all.length; i++) if ((all[i] & groupSources[i]) !== 0) return true;
    return false;
  }

  /**
   * Returns the rule, a block or an exception, that decides about a response with an address of 4 or
   * 16 bytes, or `NO_RULE`: the highest rank, and of these the one about the most octets. Leaves no
   * garbage.
   */
  matchAddress(
    bytes: Uint8Array,
    offset: number,
    lengthBytes: number,
    groupSources: Uint32Array,
    turnedOff: Int32Array = NONE,
  ): number {
    const octetsMax = octetsOf(bytes, offset, lengthBytes);
    const start = offset + lengthBytes - octetsMax;
    const rules = this.words;
    let best = NO_RULE;
    let rank = -1;
    for (let octets = octetsMax; octets >= octetsMin(octetsMax); octets--) {
      const entry = this.#findAddress(bytes, start, octets);
      for (let ref = entry < 0 ? -1 : this.firstRef(entry); ref >= 0; ref += RUN_WORDS) {
        const meta = rules[ref];
        const newRank = (meta >>> RANK_SHIFT) & RANK_MASK;
        const isAbout = newRank > rank && (meta & Flag.Badfilter) === 0;
        if (isAbout && this.#isInForce(ref, meta, groupSources, turnedOff)) {
          best = ref;
          rank = newRank;
        }
        if (this.isLast(ref)) break;
      }
    }
    return best;
  }

  /** Says whether a block or an exception of any source covers a name, whatever turns it off. */
  mentions(packet: Uint8Array, name: HashedName): boolean {
    let covered: number = Flag.Self;
    for (let k = 0; k < name.count; k++) {
      const entry = this.find(tagOf(name.hashes[k]), packet, name.offsets[k]);
      if (entry >= 0 && this.#hasCovering(entry, covered)) return true;
      covered = Flag.Below;
    }
    const patterns = this.#patterns;
    const found = patterns === null ? 0 : patterns.find(packet, name);
    for (let i = 0; i < found; i++) {
      if (this.#hasCovering(patterns!.found[i], covered)) return true;
    }
    return false;
  }

  #hasCovering(entry: number, covered: number): boolean {
    for (let ref = this.firstRef(entry);; ref += RUN_WORDS) {
      if ((this.words[ref] & covered) !== 0) return true;
      if (this.isLast(ref)) return false;
    }
  }

  /** The same of rules about an address of 4 or 16 bytes. */
  mentionsAddress(bytes: Uint8Array, offset: number, lengthBytes: number): boolean {
    const octetsMax = octetsOf(bytes, offset, lengthBytes);
    const start = offset + lengthBytes - octetsMax;
    for (let octets = octetsMax; octets >= octetsMin(octetsMax); octets--) {
      if (this.#findAddress(bytes, start, octets) >= 0) return true;
    }
    return false;
  }

  /** The entry about addresses that begin with these octets, or -1. */
  #findAddress(bytes: Uint8Array, offset: number, octets: number): number {
    if (((this.#addressLengths >>> octets) & 1) === 0) return -1;
    const address = this.#address;
    address.readAddress(bytes, offset, octets);
    return this.find(tagOf(address.hash(this.seed)), address.wire, 0);
  }

  /**
   * All rules of any source that cover the name, rewrites and addresses of hosts lines among them: by
   * rank, the longest names first and patterns last; allocates.
   */
  matchAll(packet: Uint8Array, name: HashedName): Hit[] {
    const hits: Hit[] = [];
    for (let k = 0; k < name.count; k++) {
      const covered = k === 0 ? Flag.Self : Flag.Below;
      const entry = this.find(tagOf(name.hashes[k]), packet, name.offsets[k]);
      for (const ref of this.refsOf(entry)) {
        const flags = this.flags(ref);
        if (kindOf(flags) !== Kind.Address && (covers(flags) & covered) !== 0) {
          hits.push({ ref, rank: this.rank(ref) });
        }
      }
    }
    const found = this.#patterns?.find(packet, name) ?? 0;
    for (const entry of this.#patterns?.found.subarray(0, found) ?? []) {
      for (const ref of this.refsOf(entry)) hits.push({ ref, rank: this.rank(ref) });
    }
    // The sort is stable: longer names stay first within a rank.
    return hits.sort((a, b) => b.rank - a.rank);
  }

  /** The same about an address of 4 or 16 bytes: by rank, the most octets first; allocates. */
  matchAllAddress(address: Uint8Array): Hit[] {
    const hits: Hit[] = [];
    const bytes = unmapIpv4(address);
    for (let octets = bytes.length; octets >= octetsMin(bytes.length); octets--) {
      const refs = this.refsOf(this.#findAddress(bytes, 0, octets));
      for (const ref of refs) hits.push({ ref, rank: this.rank(ref) });
    }
    return hits.sort((a, b) => b.rank - a.rank);
  }

  /** References of the rules that a `$badfilter` of this rule turns off. */
  turnedOffBy(rule: Rule): number[] {
    const name = new NameReader();
    if (rule.kind === "address") name.readAddress(rule.value, 0, rule.value.length);
    else if (isPattern(flagsOf(rule))) name.readPattern(rule.name);
    else {
      const ascii = encoder.encode(rule.name);
      if (name.read(ascii, 0, ascii.length) !== ascii.length) return [];
    }
    const entry = this.find(tagOf(name.hash(this.seed)), name.wire, 0);
    const identity = identityOf(flagsOf(rule));
    return this.refsOf(entry).filter((ref) => {
      const flags = this.flags(ref);
      if (identityOf(flags) !== identity) return false;
      return !hasValue(flags) || equalBytes(this.valueOf(ref), rule.value);
    });
  }
}

/** Octets of the address of `lengthBytes` at `offset`: those of an IPv4 one, if it is mapped. */
function octetsOf(bytes: Uint8Array, offset: number, lengthBytes: number): number {
  const isIpv4 = lengthBytes === IPV4_OCTETS || isMappedAt(bytes, offset);
  return isIpv4 ? IPV4_OCTETS : IPV6_OCTETS;
}

/** The fewest octets that rules are about: rules about IPv6 addresses are about whole ones. */
function octetsMin(octetsMax: number): number {
  return octetsMax === IPV4_OCTETS ? 1 : IPV6_OCTETS;
}

/** Says whether bit `i` is set; none is behind the end. */
function hasBit(bits: Uint32Array, i: number): boolean {
  return ((bits[i >>> 5] >>> (i & 31)) & 1) === 1;
}

function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
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
export function ruleText(memory: SharedArrayBuffer, ref: number): string {
  return new Matcher(memory).ruleText(ref);
}
