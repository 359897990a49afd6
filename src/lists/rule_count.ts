import { SvcError } from "../errors.ts";
import {
  LINE_LENGTH_MAX,
  parseRule,
  SKIP_REASONS,
  type SkipReason,
  unsupportedCount,
} from "../filter/mod.ts";
import type { History } from "./histories.ts";

/** So many rules make a list of a text, whatever else is in it: no further line is read. */
export const RULES_ENOUGH = 16;
/** Lines that are read for them; whoever sends more without a list in it sends none. */
const LINES_MAX = 1_000_000;

const [LF, BANG, HASH] = [0x0a, 0x21, 0x23];
const BOM = [0xef, 0xbb, 0xbf];
/**
 * A word by itself, with a full stop, or a path: in a file of one's own a name or a pattern, from a
 * server the whole of a message.
 */
const WORD = /^(?:[^\s.*^|/@$]+|[^\s*^|/@$]*[.-]|[.-][^\s*^|/@$]*|\/[\w./-]*\/)$/;

const decoder = new TextDecoder();

/** Counts the rules at the beginning of a text, which comes piece by piece. */
export class RuleCount {
  #rules = 0;
  #words = 0;
  #lines = 0;
  readonly #skipped = Object.fromEntries(SKIP_REASONS.map((reason) => [reason, 0])) as Record<
    SkipReason,
    number
  >;
  /** What has come of a line without its end; what is over its bounds is not kept. */
  readonly #line = new Uint8Array(LINE_LENGTH_MAX + 1);
  #lineBytes = 0;

  /** Lines that were meant as rules and are none that are read. */
  get unsupported(): number {
    return unsupportedCount(this.#skipped);
  }

  add(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length && this.#isOpen;) {
      const newline = chunk.indexOf(LF, at);
      const end = newline < 0 ? chunk.length : newline;
      const room = this.#line.length - this.#lineBytes;
      const part = chunk.subarray(at, Math.min(end, at + room));
      this.#line.set(part, this.#lineBytes);
      this.#lineBytes += part.length;
      if (newline >= 0) this.#endLine();
      at = end + 1;
    }
  }

  /** Says why the text is no list, or returns `null`; `isOwn` if nobody but the user wrote it. */
  refusal(isOwn: boolean): string | null {
    if (this.#lineBytes > 0) this.#endLine();
    if (this.#rules >= RULES_ENOUGH) return null;
    if (this.#lines === 0) return "no rules in it: it is empty";
    const rules = this.#rules + (isOwn ? this.#words : 0);
    const left = this.unsupported + (isOwn ? 0 : this.#words);
    if (rules === 0) {
      return left === 0
        ? "no rules in it"
        : `no rules in it that can be read, but ${left} other lines`;
    }
    // A page or a message can hold a line that looks like a name.
    const prose = this.#skipped.bad_address + this.#words;
    if (isOwn || prose <= rules) return null;
    return `it is prose, not a list: ${prose} lines of words and ${rules} rules`;
  }

  get #isOpen(): boolean {
    return this.#rules < RULES_ENOUGH && this.#lines < LINES_MAX;
  }

  #endLine(): void {
    const bytes = this.#line.subarray(0, this.#lineBytes);
    this.#lineBytes = 0;
    if (!this.#isOpen) return;
    const start = this.#lines++ === 0 && BOM.every((byte, i) => bytes[i] === byte) ? 3 : 0;
    // Most lines before the first rule are these.
    if (bytes[start] === BANG || bytes[start] === HASH) return;
    const parsed = parseRule(decoder.decode(bytes.subarray(start)));
    if (parsed.kind === "skipped") this.#skipped[parsed.reason]++;
    else if (parsed.rules.length === 1 && WORD.test(parsed.rules[0].text)) this.#words++;
    else this.#rules += parsed.rules.length;
  }
}

/**
 * Notes in the list's history what is left out of a text that is refused.
 *
 * @throws {SvcError} If the text holds no list; `isOwn` if nobody but the user wrote it.
 */
export function checkRules(history: History, rules: RuleCount, isOwn: boolean): void {
  const refusal = rules.refusal(isOwn);
  if (refusal === null) return;
  history.refusedLines = rules.unsupported;
  throw new SvcError("invalid", refusal);
}
