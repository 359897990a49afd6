import type { HashedName } from "../dns/mod.ts";
import { Flag, Kind, kindOf, type Matcher } from "../filter/mod.ts";
import type { Decision } from "./decision.ts";

/** Most rules that answer one name and exceptions to them; further ones are left out. */
export const ANSWER_RULES_MAX = 512;

/** Bytes of the value that is a response code. */
const RCODE_BYTES = 1;

/**
 * The rewrites, the exceptions to them and the addresses of hosts lines that are about one name.
 * Few names have any, so nothing here is in the way of the others; made once, leaves no garbage.
 */
export class AnswerRules {
  readonly #refs = new Int32Array(ANSWER_RULES_MAX);
  readonly #matchers: Matcher[] = [];
  /** How many of these are in use. */
  #used = 0;
  /** Where the rules of each matcher end among the references. */
  readonly #ends: Int32Array;
  /** Set in the references of each matcher that are given out. */
  readonly #marks: Int32Array;

  /** Of so many matchers at most. */
  constructor(matchersMax: number) {
    this.#ends = new Int32Array(matchersMax);
    this.#marks = new Int32Array(matchersMax);
  }

  clear(): void {
    this.#used = 0;
  }

  /** Adds the rules that a matcher has about a name. See `Matcher.answerRules`. */
  add(
    matcher: Matcher,
    mark: number,
    packet: Uint8Array,
    name: HashedName,
    sources: Uint32Array,
    turnedOff: Int32Array,
  ): void {
    const count = this.#count();
    const number = this.#used++;
    this.#matchers[number] = matcher;
    this.#marks[number] = mark;
    const refs = this.#refs;
    this.#ends[number] = matcher.answerRules(packet, name, sources, turnedOff, refs, count);
  }

  #count(): number {
    return this.#used === 0 ? 0 : this.#ends[this.#used - 1];
  }

  #matcherOf(i: number): number {
    let number = 0;
    while (i >= this.#ends[number]) number++;
    return number;
  }

  /**
   * Decides by the rewrites that no exception disables: the first response code, or else all
   * addresses. Returns `false` where none is left.
   */
  rewrite(decision: Decision): boolean {
    const count = this.#count();
    let found = false;
    for (let i = 0; i < count; i++) {
      const number = this.#matcherOf(i);
      const matcher = this.#matchers[number];
      const ref = this.#refs[i];
      const flags = matcher.flags(ref);
      if (kindOf(flags) !== Kind.Rewrite || (flags & Flag.Exception) !== 0) continue;
      if (this.#isDisabled(i, count)) continue;
      const { text } = matcher;
      const at = matcher.valueAt(ref);
      const isCode = text[at] === RCODE_BYTES;
      if (isCode) decision.clear(); // It outranks the addresses found before.
      if (isCode || !found) decision.rule = ref | this.#marks[number];
      found = true;
      decision.isRewrite = true;
      if (isCode) {
        decision.rcode = text[at + 1];
        return true;
      }
      decision.addAddress(text, at + 1, text[at]);
    }
    return found;
  }

  /** Says whether an exception is about rewrite `i`; only an important one is about important ones. */
  #isDisabled(i: number, count: number): boolean {
    const matcher = this.#matchers[this.#matcherOf(i)];
    const isImportant = (matcher.flags(this.#refs[i]) & Flag.Important) !== 0;
    const at = matcher.valueAt(this.#refs[i]);
    for (let k = 0; k < count; k++) {
      const other = this.#matchers[this.#matcherOf(k)];
      const flags = other.flags(this.#refs[k]);
      if ((flags & Flag.Exception) === 0) continue;
      if (isImportant && (flags & Flag.Important) === 0) continue;
      const otherAt = other.valueAt(this.#refs[k]);
      const lengthBytes = other.text[otherAt];
      let same = 0;
      while (same <= lengthBytes && other.text[otherAt + same] === matcher.text[at + same]) same++;
      if (lengthBytes === 0 || same > lengthBytes) return true;
    }
    return false;
  }

  /** References of the rules that answer or would, but for a response code; allocates. */
  answering({ isRewrite }: Decision): number[] {
    const count = this.#count();
    const kind = isRewrite ? Kind.Rewrite : Kind.HostsAddress;
    const found: number[] = [];
    for (let i = 0; i < count; i++) {
      const number = this.#matcherOf(i);
      const flags = this.#matchers[number].flags(this.#refs[i]);
      if (kindOf(flags) !== kind || (flags & Flag.Exception) !== 0) continue;
      if (!isRewrite || !this.#isDisabled(i, count)) {
        found.push(this.#refs[i] | this.#marks[number]);
      }
    }
    return found;
  }

  /** Decides by the addresses of hosts lines. Returns `false` where there are none. */
  hosts(decision: Decision): boolean {
    const count = this.#count();
    let found = false;
    for (let i = 0; i < count; i++) {
      const number = this.#matcherOf(i);
      const matcher = this.#matchers[number];
      const ref = this.#refs[i];
      if (kindOf(matcher.flags(ref)) !== Kind.HostsAddress) continue;
      if (!found) decision.rule = ref | this.#marks[number];
      found = true;
      const at = matcher.valueAt(ref);
      decision.addAddress(matcher.text, at + 1, matcher.text[at]);
    }
    return found;
  }
}
