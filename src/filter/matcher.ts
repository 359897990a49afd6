import { isMappedAt, unmapIpv4 } from "../addr/mod.ts";
import { getU32 } from "../bytes/mod.ts";
import { FOLD, type HashedName } from "../dns/mod.ts";
import { invariant } from "../errors.ts";
import { tagOf } from "./filled_table.ts";
import {
  canonicalText,
  COUNT_BYTES,
  covers,
  ENTRY_NAME_BYTES,
  Flag,
  flagsOf,
  hasTail,
  hasValue,
  Header,
  HEADER_WORDS,
  identityOf,
  INDEX_WORDS,
  Kind,
  KIND_FLAGS,
  kindOf,
  MAGIC,
  MARK_MASK,
  MARK_SHIFT,
  partOf,
  PRESENCE_MASK,
  RANK_MASK,
  RANK_SHIFT,
  RUN_WORDS,
  scaleFor,
  TAIL_HEAD_BYTES,
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
const NO_SERVICES: Uint32Array = new Uint32Array(1);
/** Octets of an IPv4 address, and of an IPv6 one. */
const [IPV4_OCTETS, IPV6_OCTETS] = [4, 16];

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
  /** Where each bucket starts among the rules, and its presence bits. */
  readonly #index: Int32Array;
  readonly #bucketScale: number;
  /** Runs and buckets; a rule reference is an index of it. */
  readonly #rules: Int32Array;
  /** Where the first bucket starts. */
  readonly #bucketsStart: number;
  /** The whole snapshot, and where rules and tails start in it. */
  readonly #bytes: Uint8Array;
  readonly #rulesAt: number;
  readonly #tailsAt: number;
  /** Sources with rules about addresses. */
  readonly #addressSources: Uint32Array;
  /** Bit `n`: there are rules about addresses that begin with `n` octets. */
  readonly #addressLengths: number;
  readonly #address = new NameReader();
  readonly #oneSource: Uint32Array;
  #service = NO_RULE;
  #hasServiceException = false;
  #sawAnswers = false;

  /** @throws {InvariantError} If `compile` of this version did not write the snapshot. */
  constructor(readonly snapshot: SharedArrayBuffer) {
    const header = new Uint32Array(snapshot, 0, HEADER_WORDS);
    const known = header[Header.Magic] === MAGIC && header[Header.Version] === VERSION;
    invariant(known, "a filter snapshot has the layout of this version");
    this.seed = header[Header.Seed];
    this.rules = header[Header.Rules];
    this.sources = header[Header.Sources];
    this.#rules = new Int32Array(snapshot, header[Header.RulesOffset], header[Header.RulesWords]);
    const buckets = header[Header.Buckets];
    const indexWords = buckets * INDEX_WORDS;
    this.#index = new Int32Array(snapshot, header[Header.IndexOffset], indexWords);
    this.#bucketScale = scaleFor(buckets);
    this.#bucketsStart = header[Header.BucketsStart];
    this.#bytes = new Uint8Array(snapshot);
    this.#rulesAt = header[Header.RulesOffset];
    this.#tailsAt = header[Header.TextOffset];
    const words = (this.sources + 31) >>> 5;
    this.#oneSource = new Uint32Array(words);
    this.#addressSources = new Uint32Array(snapshot, header[Header.SourcesOffset], words);
    this.#addressLengths = header[Header.AddressLengths];
  }

  /**
   * Returns the block or the exception that decides about a name among the sources whose bits are
   * set (source `s` is bit `s & 31` of word `s >> 5`; a word for every 32 sources), or `NO_RULE`. Of
   * several rules the one of the highest rank decides, and of these the one about the longest name.
   * `name` was read from `packet` with this snapshot's seed. `turnedOff` are references of rules
   * that do not count, in ascending order. `services` are sources whose blocks nothing lifts; see
   * `service` and `sawAnswers` for what else the walk met. Leaves no garbage.
   */
  match(
    packet: Uint8Array,
    name: HashedName,
    groupSources: Uint32Array,
    turnedOff: Int32Array = NONE,
    services: Uint32Array = NO_SERVICES,
  ): number {
    const index = this.#index;
    const scale = this.#bucketScale;
    const { count, hashes, offsets } = name;
    let best = NO_RULE;
    let covered: number = Flag.Self;
    this.#service = NO_RULE;
    this.#hasServiceException = false;
    this.#sawAnswers = false;
    for (let k = 0; k < count; k++) {
      const tag = tagOf(hashes[k]);
      const bucket = partOf(tag, scale) * INDEX_WORDS;
      if (((index[bucket + 1] >>> (tag & PRESENCE_MASK)) & 1) === 1) {
        const entry = this.#findIn(index[bucket], tag, packet, offsets[k]);
        if (entry >= 0) {
          best = this.#better(best, entry, covered, groupSources, turnedOff, services);
        }
      }
      covered = Flag.Below;
    }
    if (this.#hasServiceException) {
      const sawAnswers = this.#sawAnswers;
      this.#service = this.#matchServices(packet, name, services);
      this.#sawAnswers = sawAnswers;
    }
    return best;
  }

  /** The rule of the given services that blocks the name that `match` was asked about last. */
  get service(): number {
    return this.#service;
  }

  /**
   * Says whether there may be rules that answer the name that `match` was asked about last: then
   * `answerRules` finds them.
   */
  get sawAnswers(): boolean {
    return this.#sawAnswers;
  }

  /** The entry about the name at `offset`, or -1. */
  #find(tag: number, packet: Uint8Array, offset: number): number {
    const bucket = partOf(tag, this.#bucketScale) * INDEX_WORDS;
    const mayBe = ((this.#index[bucket + 1] >>> (tag & PRESENCE_MASK)) & 1) === 1;
    return mayBe ? this.#findIn(this.#index[bucket], tag, packet, offset) : -1;
  }

  /** The same in the bucket that starts at a word, which has names. */
  #findIn(bucket: number, tag: number, packet: Uint8Array, offset: number): number {
    const bytes = this.#bytes;
    const rulesAt = this.#rulesAt;
    const mark = (tag >>> MARK_SHIFT) & MARK_MASK;
    const at = rulesAt + 4 * bucket;
    const count = (bytes[at] << 8) | bytes[at + 1];
    const end = at + COUNT_BYTES + count;
    let entry = bucket;
    for (let i = at + COUNT_BYTES; i < end; i++) {
      entry += bytes[i + count];
      if (bytes[i] !== mark) continue;
      if (this.#isName(rulesAt + 4 * entry + ENTRY_NAME_BYTES, packet, offset)) return entry;
    }
    return -1;
  }

  /** The first rule of an entry. */
  #firstRef(entry: number): number {
    return (this.#rules[entry] & Flag.Run) !== 0 ? this.#rules[entry - 1] : entry;
  }

  /** Says whether no further rule of a name follows one of its rules. */
  #isLast(ref: number): boolean {
    return ref >= this.#bucketsStart || (this.#rules[ref] & Flag.Last) !== 0;
  }

  /** Where the tail of a rule stands, which has one. */
  #tailAt(ref: number): number {
    const offset = this.#rules[ref < this.#bucketsStart ? ref + 1 : ref - 1];
    return this.#tailsAt + offset + TAIL_HEAD_BYTES;
  }

  /** Where the name of a rule stands. */
  #nameAt(ref: number): number {
    let entry = ref;
    if (ref < this.#bucketsStart) {
      const isTail = hasTail(this.#rules[ref]);
      entry = isTail
        ? getU32(this.#bytes, this.#tailAt(ref) - TAIL_HEAD_BYTES)
        : this.#rules[ref + 1];
    }
    return this.#rulesAt + 4 * entry + ENTRY_NAME_BYTES;
  }

  /** The best of `best` and the active rules of an entry that cover the name. */
  #better(
    best: number,
    entry: number,
    covered: number,
    groupSources: Uint32Array,
    turnedOff: Int32Array,
    services: Uint32Array,
  ): number {
    const rules = this.#rules;
    let found = best;
    let rank = best === NO_RULE ? -1 : this.rank(best);
    for (let ref = this.#firstRef(entry);; ref += RUN_WORDS) {
      const meta = rules[ref];
      if ((meta & covered) !== 0) {
        const source = meta >>> 16;
        const newRank = (meta >>> RANK_SHIFT) & RANK_MASK;
        if (newRank > rank && hasBit(groupSources, source) && !holds(turnedOff, ref)) {
          found = ref;
          rank = newRank;
        }
        if (hasBit(services, source)) this.#considerService(ref, newRank);
      } else if ((meta & KIND_FLAGS) !== 0) this.#sawAnswers = true;
      if (this.#isLast(ref)) return found;
    }
  }

  #considerService(ref: number, rank: number): void {
    if (!this.isBlock(ref)) this.#hasServiceException = true;
    else if (this.#service === NO_RULE || rank > this.rank(this.#service)) this.#service = ref;
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
    const rules = this.#rules;
    let to = count;
    let covered: number = Flag.Self;
    for (let k = 0; k < name.count; k++) {
      const entry = this.#find(tagOf(name.hashes[k]), packet, name.offsets[k]);
      for (let ref = entry < 0 ? -1 : this.#firstRef(entry); ref >= 0; ref += RUN_WORDS) {
        const meta = rules[ref];
        const active = hasValue(meta) && (covers(meta) & covered) !== 0 &&
          hasBit(groupSources, meta >>> 16) && !holds(turnedOff, ref);
        if (active && to < refs.length) refs[to++] = ref;
        if (this.#isLast(ref)) break;
      }
      covered = Flag.Below;
    }
    return to;
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
    const isIpv4 = lengthBytes === IPV4_OCTETS || isMappedAt(bytes, offset);
    const octetsMax = isIpv4 ? IPV4_OCTETS : IPV6_OCTETS;
    // Rules about IPv6 addresses are about whole ones.
    const octetsMin = isIpv4 ? 1 : IPV6_OCTETS;
    const start = offset + lengthBytes - octetsMax;
    const rules = this.#rules;
    const address = this.#address;
    let best = NO_RULE;
    let rank = -1;
    for (let octets = octetsMax; octets >= octetsMin; octets--) {
      if (((this.#addressLengths >>> octets) & 1) === 0) continue;
      address.readAddress(bytes, start, octets);
      const entry = this.#find(tagOf(address.hash(this.seed)), address.wire, 0);
      for (let ref = entry < 0 ? -1 : this.#firstRef(entry); ref >= 0; ref += RUN_WORDS) {
        const meta = rules[ref];
        const newRank = (meta >>> RANK_SHIFT) & RANK_MASK;
        const active = newRank > rank && kindOf(meta) === Kind.Address &&
          hasBit(groupSources, meta >>> 16) && !holds(turnedOff, ref);
        if (active) {
          best = ref;
          rank = newRank;
        }
        if (this.#isLast(ref)) break;
      }
    }
    return best;
  }

  /** Compares the name at `nameAt` with the one at `offset` in the packet, in any case. */
  #isName(nameAt: number, packet: Uint8Array, offset: number): boolean {
    const bytes = this.#bytes;
    let at = offset;
    for (let i = nameAt;; i++) {
      const byte = bytes[i];
      const asked = packet[at++];
      // A label's length is below every letter, so folding leaves it as it is.
      if (asked !== byte && FOLD[asked] !== byte) return false;
      if (byte === 0) return true;
    }
  }

  /**
   * All rules that cover the name, rewrites and addresses of hosts lines among them: by rank, the
   * longest names first; allocates.
   */
  matchAll(packet: Uint8Array, name: HashedName, groupSources: Uint32Array): Hit[] {
    const hits: Hit[] = [];
    for (let k = 0; k < name.count; k++) {
      const covered = k === 0 ? Flag.Self : Flag.Below;
      const entry = this.#find(tagOf(name.hashes[k]), packet, name.offsets[k]);
      if (entry < 0) continue;
      for (const ref of this.#refsOf(entry)) {
        const active = hasBit(groupSources, this.source(ref));
        const flags = this.flags(ref);
        if (active && kindOf(flags) !== Kind.Address && (covers(flags) & covered) !== 0) {
          hits.push({ ref, rank: this.rank(ref) });
        }
      }
    }
    // The sort is stable: longer names stay first within a rank.
    return hits.sort((a, b) => b.rank - a.rank);
  }

  /** All rules about an address of 4 or 16 bytes: by rank, the most octets first; allocates. */
  matchAllAddress(address: Uint8Array, groupSources: Uint32Array): Hit[] {
    const hits: Hit[] = [];
    const bytes = unmapIpv4(address);
    const octetsMin = bytes.length === IPV4_OCTETS ? 1 : IPV6_OCTETS;
    for (let octets = bytes.length; octets >= octetsMin; octets--) {
      this.#address.readAddress(bytes, 0, octets);
      const entry = this.#find(tagOf(this.#address.hash(this.seed)), this.#address.wire, 0);
      if (entry < 0) continue;
      for (const ref of this.#refsOf(entry)) {
        const isIt = kindOf(this.flags(ref)) === Kind.Address;
        if (isIt && hasBit(groupSources, this.source(ref))) {
          hits.push({ ref, rank: this.rank(ref) });
        }
      }
    }
    return hits.sort((a, b) => b.rank - a.rank);
  }

  #refsOf(entry: number): number[] {
    const refs = [];
    for (let ref = this.#firstRef(entry);; ref += RUN_WORDS) {
      refs.push(ref);
      if (this.#isLast(ref)) return refs;
    }
  }

  /** References of the rules that a `$badfilter` of this rule turns off. */
  turnedOffBy(rule: Rule): number[] {
    const name = new NameReader();
    if (rule.kind === "address") name.readAddress(rule.value, 0, rule.value.length);
    else {
      const ascii = encoder.encode(rule.name);
      if (name.read(ascii, 0, ascii.length) !== ascii.length) return [];
    }
    const entry = this.#find(tagOf(name.hash(this.seed)), name.wire, 0);
    if (entry < 0) return [];
    const identity = identityOf(flagsOf(rule));
    return this.#refsOf(entry).filter((ref) => {
      const flags = this.flags(ref);
      if (identityOf(flags) !== identity) return false;
      return !hasValue(flags) || equalBytes(this.#valueOf(ref), rule.value);
    });
  }

  /**
   * Where the value of a rewrite or of a hosts line's address stands in `text`: its length in a byte,
   * then the value; see `Rule.value`.
   */
  valueAt(ref: number): number {
    return this.#tailAt(ref);
  }

  /** The memory that `valueAt` counts in; not to be written to. */
  get text(): Uint8Array {
    return this.#bytes;
  }

  /** A copy of the value; none of other rules. */
  #valueOf(ref: number): Uint8Array {
    if (!hasValue(this.flags(ref))) return new Uint8Array(0);
    const at = this.valueAt(ref);
    return this.#bytes.slice(at + 1, at + 1 + this.#bytes[at]);
  }

  /** Bytes of the name that the rule is about, in wire format. */
  nameLengthBytes(ref: number): number {
    const at = this.#nameAt(ref);
    return nameEnd(this.#bytes, at) - at;
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
    const bytes = this.#bytes;
    if ((flags & Flag.Odd) === 0) {
      return canonicalText(flags, nameText(bytes, this.#nameAt(ref)), this.#valueOf(ref));
    }
    const tail = this.#tailAt(ref);
    const at = hasValue(flags) ? tail + 1 + bytes[tail] : tail;
    const length = (bytes[at] << 8) | bytes[at + 1];
    // A copy: text in shared memory can't be decoded where it stands.
    return decoder.decode(bytes.slice(at + 2, at + 2 + length));
  }
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
export function ruleText(snapshot: SharedArrayBuffer, ref: number): string {
  return new Matcher(snapshot).ruleText(ref);
}
