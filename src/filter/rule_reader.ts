import { getU32 } from "../bytes/mod.ts";
import { FOLD } from "../dns/mod.ts";
import { invariant } from "../errors.ts";
import {
  canonicalText,
  COUNT_BYTES,
  ENTRY_NAME_BYTES,
  Flag,
  hasTail,
  hasValue,
  Header,
  HEADER_WORDS,
  INDEX_WORDS,
  isPattern,
  MAGIC,
  MARK_MASK,
  MARK_SHIFT,
  partOf,
  PRESENCE_MASK,
  RANK_MASK,
  RANK_SHIFT,
  RUN_WORDS,
  scaleFor,
  subjectAt,
  TAIL_HEAD_BYTES,
  VERSION,
} from "./layout.ts";
import { nameEnd } from "./names.ts";

const decoder = new TextDecoder();

/**
 * Reads compiled rules: finds the entry of a name, and says what a rule is. A rule is named by its
 * reference, an integer of zero or more that holds for these rules alone.
 */
export class RuleReader {
  readonly seed: number;
  /** Rules in force. */
  readonly rules: number;
  readonly sources: number;
  /** Where each bucket starts among the rules, and its presence bits. */
  protected readonly index: Int32Array;
  protected readonly bucketScale: number;
  /** Runs and buckets; a rule reference is an index of it. */
  protected readonly words: Int32Array;
  /** Where the first bucket starts. */
  protected readonly bucketsStart: number;
  /** All of the memory, and where rules and tails start in it. */
  protected readonly bytes: Uint8Array;
  protected readonly rulesAt: number;
  protected readonly tailsAt: number;

  /** @throws {InvariantError} If `compile` of this version did not write the memory. */
  constructor(readonly memory: SharedArrayBuffer) {
    const header = new Uint32Array(memory, 0, HEADER_WORDS);
    const known = header[Header.Magic] === MAGIC && header[Header.Version] === VERSION;
    invariant(known, "compiled rules have the layout of this version");
    this.seed = header[Header.Seed];
    this.rules = header[Header.Rules];
    this.sources = header[Header.Sources];
    this.words = new Int32Array(memory, header[Header.RulesOffset], header[Header.RulesWords]);
    const buckets = header[Header.Buckets];
    this.index = new Int32Array(memory, header[Header.IndexOffset], buckets * INDEX_WORDS);
    this.bucketScale = scaleFor(buckets);
    this.bucketsStart = header[Header.BucketsStart];
    this.bytes = new Uint8Array(memory);
    this.rulesAt = header[Header.RulesOffset];
    this.tailsAt = header[Header.TextOffset];
  }

  /** The entry about the name at `offset`, or -1. */
  protected find(tag: number, packet: Uint8Array, offset: number): number {
    const bucket = partOf(tag, this.bucketScale) * INDEX_WORDS;
    const mayBe = ((this.index[bucket + 1] >>> (tag & PRESENCE_MASK)) & 1) === 1;
    return mayBe ? this.findIn(this.index[bucket], tag, packet, offset) : -1;
  }

  /** The same in the bucket that starts at a word, which has names. */
  protected findIn(bucket: number, tag: number, packet: Uint8Array, offset: number): number {
    const bytes = this.bytes;
    const rulesAt = this.rulesAt;
    const mark = (tag >>> MARK_SHIFT) & MARK_MASK;
    const at = rulesAt + 4 * bucket;
    const count = (bytes[at] << 8) | bytes[at + 1];
    const end = at + COUNT_BYTES + count;
    let entry = bucket;
    for (let i = at + COUNT_BYTES; i < end; i++) {
      entry += bytes[i + count];
      if (bytes[i] !== mark) continue;
      if (this.isName(rulesAt + 4 * entry + ENTRY_NAME_BYTES, packet, offset)) return entry;
    }
    return -1;
  }

  /** The first rule of an entry. */
  protected firstRef(entry: number): number {
    return (this.words[entry] & Flag.Run) !== 0 ? this.words[entry - 1] : entry;
  }

  /** Says whether no further rule of a name follows one of its rules. */
  protected isLast(ref: number): boolean {
    return ref >= this.bucketsStart || (this.words[ref] & Flag.Last) !== 0;
  }

  /** Where the tail of a rule stands, which has one. */
  protected tailAt(ref: number): number {
    const offset = this.words[ref < this.bucketsStart ? ref + 1 : ref - 1];
    return this.tailsAt + offset + TAIL_HEAD_BYTES;
  }

  /** Where the name of a rule stands. */
  protected nameAt(ref: number): number {
    let entry = ref;
    if (ref < this.bucketsStart) {
      const isTail = hasTail(this.words[ref]);
      entry = isTail ? getU32(this.bytes, this.tailAt(ref) - TAIL_HEAD_BYTES) : this.words[ref + 1];
    }
    return this.rulesAt + 4 * entry + ENTRY_NAME_BYTES;
  }

  /** Compares the name at `nameAt` with the one at `offset` in the packet, in any case. */
  protected isName(nameAt: number, packet: Uint8Array, offset: number): boolean {
    const bytes = this.bytes;
    let at = offset;
    for (let i = nameAt;; i++) {
      const byte = bytes[i];
      const asked = packet[at++];
      // A label's length is below every letter, so folding leaves it as it is.
      if (asked !== byte && FOLD[asked] !== byte) return false;
      if (byte === 0) return true;
    }
  }

  /** The rules of an entry but for `$badfilter` ones; none of -1. */
  protected refsOf(entry: number): number[] {
    const refs = [];
    for (let ref = entry < 0 ? -1 : this.firstRef(entry); ref >= 0; ref += RUN_WORDS) {
      if ((this.words[ref] & Flag.Badfilter) === 0) refs.push(ref);
      if (this.isLast(ref)) break;
    }
    return refs;
  }

  /**
   * Where the value of a rewrite or of a hosts line's address stands in `text`: its length in a byte,
   * then the value; see `Rule.value`.
   */
  valueAt(ref: number): number {
    return this.tailAt(ref);
  }

  /** The memory that `valueAt` counts in; not to be written to. */
  get text(): Uint8Array {
    return this.bytes;
  }

  /** A copy of the value; none of other rules. */
  protected valueOf(ref: number): Uint8Array {
    if (!hasValue(this.flags(ref))) return new Uint8Array(0);
    const at = this.valueAt(ref);
    return this.bytes.slice(at + 1, at + 1 + this.bytes[at]);
  }

  /** Bytes of the name that the rule is about, in wire format; 0 of a rule about a pattern. */
  nameLengthBytes(ref: number): number {
    if (isPattern(this.flags(ref))) return 0;
    const at = this.nameAt(ref);
    return nameEnd(this.bytes, at) - at;
  }

  /** The number of the source that the rule is of. */
  source(ref: number): number {
    return this.words[ref] >>> 16;
  }

  /** Bits of `Flag`. */
  flags(ref: number): number {
    return this.words[ref] & 0xffff;
  }

  /** Important exception 3, important block 2, exception 1, block 0. */
  rank(ref: number): number {
    return (this.words[ref] >>> RANK_SHIFT) & RANK_MASK;
  }

  /** `false` for an exception. */
  isBlock(ref: number): boolean {
    return (this.words[ref] & Flag.Exception) === 0;
  }

  /** What the rule looks like in its list, without comment; a hosts line with one name. */
  ruleText(ref: number): string {
    const flags = this.flags(ref);
    const bytes = this.bytes;
    if ((flags & Flag.Odd) === 0) {
      const subject = subjectAt(flags, bytes, this.nameAt(ref));
      return canonicalText(flags, subject, this.valueOf(ref));
    }
    const tail = this.tailAt(ref);
    const at = hasValue(flags) ? tail + 1 + bytes[tail] : tail;
    const length = (bytes[at] << 8) | bytes[at + 1];
    // A copy: text in shared memory can't be decoded where it stands.
    return decoder.decode(bytes.slice(at + 2, at + 2 + length));
  }
}
