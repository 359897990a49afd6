/** Holds the answers of upstreams against the rules: CNAME uncloaking, and rules about addresses. */
import { getU16 } from "../bytes/mod.ts";
import type { Cache } from "../cache/mod.ts";
import {
  expandName,
  HashedName,
  HEADER_BYTES,
  NAME_BYTES_MAX,
  Qtype,
  readRecord,
  readSvcParam,
  RecordView,
  skipQuestion,
  skipSvcbTarget,
  SvcParam,
  SvcParamView,
} from "../dns/mod.ts";
import { NO_RULE, type Snapshot } from "../snapshot/mod.ts";
import { type Reply, streamReply } from "./reply.ts";

const IPV4_BYTES = 4;
const IPV6_BYTES = 16;

/** Looks through answers; made once and used for all of them, leaves no garbage. */
export class AnswerFilter {
  /**
   * Of the message looked through last: no rule of any source is about what it holds, so that it
   * passes whoever asks, while the snapshot lasts.
   */
  isClean = false;
  /** The message looked through last holds a CNAME. */
  hasAlias = false;
  readonly #seed: number;
  readonly #record = new RecordView();
  readonly #param = new SvcParamView();
  readonly #name = new Uint8Array(NAME_BYTES_MAX);
  readonly #hashes = new HashedName();
  /** The kept message that is looked through; made when first needed. */
  #looked: Reply | null = null;

  /** `seed` is that of every hash of a name in this process. */
  constructor(seed: number) {
    this.#seed = seed;
  }

  /**
   * The rule that blocks a kept message for clients of a group, or `NO_RULE`. Notes with the entry
   * what need not be looked at again.
   */
  ruleOnEntry(cache: Cache, entry: number, snapshot: Snapshot, group: number): number {
    const { bytes, words } = this.#looked ??= streamReply();
    cache.copyTo(entry, bytes, words, 0, 0, 0); // No rule is about TTLs.
    let rule = this.blockingRule(bytes, cache.messageLength(entry), snapshot, group);
    if (rule === NO_RULE) {
      // The message has been looked through: its room is free.
      const taken = cache.copyAside(entry, bytes);
      rule = this.ruleOnTaken(bytes, taken, snapshot, group);
    }
    if (this.isClean) cache.markClean(entry, snapshot.generation);
    if (rule === NO_RULE && !this.hasAlias) cache.markNoAlias(entry);
    return rule;
  }

  /**
   * The rule that blocks the message in the first `length` bytes of `message` for clients of a
   * group, or `NO_RULE`: one about a name of its CNAME chain, or about an address that it hands out.
   * A record that is cut off ends the look; messages are checked before they are kept.
   */
  blockingRule(message: Uint8Array, length: number, snapshot: Snapshot, group: number): number {
    this.isClean = true;
    this.hasAlias = false;
    const record = this.#record;
    let at = skipQuestion(message, HEADER_BYTES, length);
    for (let left = getU16(message, 6); left > 0 && at >= 0; left--) {
      at = readRecord(message, at, length, record);
      if (at < 0) break;
      const rule = this.#ruleOnRecord(message, snapshot, group);
      if (rule !== NO_RULE) return rule;
    }
    return NO_RULE;
  }

  /**
   * The rule that blocks a response because of an address that was taken out of it, as
   * `RebindingProtection.taken` notes them in the first `length` bytes of `taken`, or `NO_RULE`. It
   * adds to what `blockingRule` has found.
   */
  ruleOnTaken(taken: Uint8Array, length: number, snapshot: Snapshot, group: number): number {
    for (let at = 0; at < length; at += 1 + taken[at]) {
      const rule = this.#ruleOnAddress(taken, at + 1, taken[at], snapshot, group);
      if (rule !== NO_RULE) return rule;
    }
    return NO_RULE;
  }

  #ruleOnRecord(message: Uint8Array, snapshot: Snapshot, group: number): number {
    const { type, rdataOffset, rdataLength } = this.#record;
    switch (type) {
      case Qtype.CNAME:
        return this.#ruleOnName(message, snapshot, group);
      case Qtype.A:
        if (rdataLength !== IPV4_BYTES) return NO_RULE;
        return this.#ruleOnAddress(message, rdataOffset, IPV4_BYTES, snapshot, group);
      case Qtype.AAAA:
        if (rdataLength !== IPV6_BYTES) return NO_RULE;
        return this.#ruleOnAddress(message, rdataOffset, IPV6_BYTES, snapshot, group);
      case Qtype.SVCB:
      case Qtype.HTTPS:
        return this.#ruleOnHints(message, snapshot, group);
      default:
        return NO_RULE;
    }
  }

  /** The rule that blocks the target of the CNAME at hand. */
  #ruleOnName(message: Uint8Array, snapshot: Snapshot, group: number): number {
    this.hasAlias = true;
    const { rdataOffset, end } = this.#record;
    const name = this.#name;
    const length = expandName(message, rdataOffset, name, 0, end);
    if (length < 0 || this.#hashes.read(name, 0, length, this.#seed) < 0) return NO_RULE;
    if (!snapshot.mentions(name, this.#hashes)) return NO_RULE;
    this.isClean = false;
    return snapshot.match(name, this.#hashes, group);
  }

  #ruleOnAddress(
    message: Uint8Array,
    offset: number,
    lengthBytes: number,
    snapshot: Snapshot,
    group: number,
  ): number {
    if (!snapshot.mentionsAddress(message, offset, lengthBytes)) return NO_RULE;
    this.isClean = false;
    return snapshot.matchAddress(message, offset, lengthBytes, group);
  }

  /** The rule that blocks an address of the hints of the SVCB or HTTPS record at hand. */
  #ruleOnHints(message: Uint8Array, snapshot: Snapshot, group: number): number {
    const { rdataOffset, end } = this.#record;
    const param = this.#param;
    param.key = -1;
    let at = skipSvcbTarget(message, rdataOffset, end);
    while (at >= 0 && at < end) {
      at = readSvcParam(message, at, end, param);
      if (at < 0) return NO_RULE;
      const { key, valueOffset, valueLength } = param;
      if (key !== SvcParam.Ipv4Hint && key !== SvcParam.Ipv6Hint) continue;
      const size = key === SvcParam.Ipv4Hint ? IPV4_BYTES : IPV6_BYTES;
      for (let i = 0; i + size <= valueLength; i += size) {
        const rule = this.#ruleOnAddress(message, valueOffset + i, size, snapshot, group);
        if (rule !== NO_RULE) return rule;
      }
    }
    return NO_RULE;
  }
}
