import { invariant } from "../errors.ts";
import { allowingText } from "./allowing.ts";
import {
  canonicalText,
  Flag,
  flagsOf,
  Form,
  formFlags,
  hasTail,
  SOURCES_MAX,
  subjectAt,
} from "./layout.ts";
import { NameReader } from "./names.ts";
import {
  LINE_LENGTH_MAX,
  parseRule,
  type Rule,
  SKIP_REASONS,
  type SkipReason,
} from "./parse_rule.ts";
import { PatternTable } from "./pattern_table.ts";
import { Added, RuleTable, tailOf } from "./rule_table.ts";

export interface CompileInput {
  /** 32 bits of chance that names are hashed with; the same that QNAMEs are. */
  readonly seed: number;
  /** A source's number is its index; lists and services are `SOURCES_MAX` at most. */
  readonly sources: readonly CompileSource[];
  /** Nothing of a source's text is needed any more. */
  readonly onRead?: (source: number) => void;
}

/** A text to compile. */
export interface CompileSource {
  readonly bytes: Uint8Array;
  /** It is a blocked service: no `$badfilter` of another source concerns its rules. */
  readonly isService?: boolean;
  /** What it names is let through, not blocked. */
  readonly allows?: boolean;
}

/** What became of a source's lines. */
export interface SourceStats {
  /** Rules in force. */
  rules: number;
  /** Rules the source has more than once; counted here from the second on. */
  duplicates: number;
  /** `$badfilter` rules, which are not among `rules`. */
  badfilters: number;
  /** Rules that a `$badfilter` of the same source turned off. */
  disabled: number;
  /** Lines by the reason they, or the first name left out of a hosts line, make no rule. */
  readonly skipped: Record<SkipReason, number>;
}

export interface CompileResult {
  readonly rules: SharedArrayBuffer;
  /** By source number. */
  readonly stats: SourceStats[];
  /** The `$badfilter` rules of sources that are no services, for who compiles others on their own. */
  readonly badfilters: SourcedRule[];
}

/** A rule as written, and the number of its source. */
export interface SourcedRule {
  readonly source: number;
  readonly text: string;
}

/** Most `$badfilter` rules that are handed on; lists have a few hundred all told. */
export const BADFILTERS_MAX = 65_536;

/** Compiles list text, as downloaded, into one block of memory. Takes any bytes as text. */
export function compile(input: CompileInput): CompileResult {
  invariant(input.sources.length <= SOURCES_MAX + 1, "a source number has 16 bits");
  const texts = input.sources.map(({ bytes, allows }) => allows ? allowingText(bytes) : bytes);
  let lines = 0;
  for (const bytes of texts) lines += countLines(bytes);
  const table = new RuleTable(lines);
  const patterns = new PatternTable();
  const stats: SourceStats[] = [];
  const badfilters: SourcedRule[] = [];
  const services = input.sources.map(({ isService = false }) => isService);
  for (let source = 0; source < input.sources.length; source++) {
    const scanner = new SourceScanner(texts[source], source, input.seed, table, patterns);
    scanner.scan();
    input.onRead?.(source);
    stats.push(scanner.stats);
    if (services[source]) continue;
    for (const text of scanner.badfilters) badfilters.push({ source, text });
  }
  const { rules, disabled } = table.finish(input.seed, services, patterns);
  for (let source = 0; source < stats.length; source++) {
    stats[source].disabled = disabled[source];
    stats[source].rules -= disabled[source];
  }
  badfilters.length = Math.min(badfilters.length, BADFILTERS_MAX);
  return { rules, stats, badfilters };
}

/** ASCII of what the scanner looks for. */
const Byte = {
  Tab: 0x09,
  Newline: 0x0a,
  Return: 0x0d,
  Space: 0x20,
  Bang: 0x21,
  Hash: 0x23,
  Star: 0x2a,
  Hyphen: 0x2d,
  Dot: 0x2e,
  Zero: 0x30,
  One: 0x31,
  At: 0x40,
  Caret: 0x5e,
  Bar: 0x7c,
} as const;

const BOM = [0xef, 0xbb, 0xbf] as const;
const ZERO_ADDRESS = new TextEncoder().encode("0.0.0.0");
const LOOPBACK_ADDRESS = new TextEncoder().encode("127.0.0.1");
/** How the last label of a name for the host itself can begin, besides lone labels. */
const LOCAL_PREFIX = new TextEncoder().encode("local");

/** The line is not of the common forms: `parseRule` reads it. */
const ODD_LINE = -1;
/** The rule's text is not there in one piece. */
const UNKNOWN = -1;

const NO_VALUE = new Uint8Array(0);

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function countLines(bytes: Uint8Array): number {
  let lines = 1;
  for (let i = 0; i < bytes.length; i++) if (bytes[i] === Byte.Newline) lines++;
  return lines;
}

/**
 * Reads a source line by line. Common lines in a plain spelling are read as bytes, without
 * making a string; every other line goes to `parseRule`, which reads the common ones alike.
 */
class SourceScanner {
  readonly stats: SourceStats = {
    rules: 0,
    duplicates: 0,
    badfilters: 0,
    disabled: 0,
    skipped: Object.fromEntries(SKIP_REASONS.map((reason) => [reason, 0])) as Record<
      SkipReason,
      number
    >,
  };
  readonly badfilters: string[] = [];
  readonly #bytes: Uint8Array;
  readonly #source: number;
  readonly #seed: number;
  readonly #table: RuleTable;
  readonly #patterns: PatternTable;
  readonly #name = new NameReader();

  constructor(
    bytes: Uint8Array,
    source: number,
    seed: number,
    table: RuleTable,
    patterns: PatternTable,
  ) {
    this.#bytes = bytes;
    this.#source = source;
    this.#seed = seed;
    this.#table = table;
    this.#patterns = patterns;
  }

  scan(): void {
    const bytes = this.#bytes;
    const end = bytes.length;
    let at = startsWith(bytes, 0, BOM) ? BOM.length : 0;
    while (at < end) {
      const next = this.#commonLine(at);
      at = next === ODD_LINE ? this.#oddLine(at) : next;
    }
  }

  /** Reads the line at `start`; returns where the next one starts, or `ODD_LINE`. */
  #commonLine(start: number): number {
    const bytes = this.#bytes;
    const end = bytes.length;
    let at = skipBlanks(bytes, start, end);
    const lineEnd = endOfLine(bytes, at, end);
    if (lineEnd >= 0) return this.#skip(start, lineEnd, "blank");
    if (bytes[at] === Byte.Bang || bytes[at] === Byte.Hash) {
      return this.#skip(start, nextLine(bytes, at, end), "comment");
    }

    let ruleAt = at;
    let form: Form = Form.Plain;
    let flags = 0;
    if (bytes[at] === Byte.At) {
      if (bytes[at + 1] !== Byte.At) return ODD_LINE;
      flags = Flag.Exception;
      at += 2;
    }
    if (bytes[at] === Byte.Bar) {
      form = bytes[at + 1] === Byte.Bar ? Form.Domain : Form.Exact;
      at += form === Form.Domain ? 2 : 1;
    } else if (bytes[at] === Byte.Star) {
      if (bytes[at + 1] !== Byte.Dot) return ODD_LINE;
      form = Form.Below;
      at += 2;
    } else if (flags === 0) {
      const behind = addressEnd(bytes, at);
      const nextAt = skipBlanks(bytes, behind, end);
      if (nextAt > behind && behind > at) {
        form = bytes[at] === Byte.Zero ? Form.HostsZero : Form.HostsLoopback;
        // Looked at only if the name is odd; more blanks than one are not kept.
        ruleAt = nextAt === behind + 1 && bytes[behind] === Byte.Space ? at : UNKNOWN;
        at = nextAt;
      }
    }

    const nameAt = at;
    at = this.#name.read(bytes, at, end);
    if (at < 0) return ODD_LINE;
    switch (form) {
      case Form.Domain:
      case Form.Exact:
        if (bytes[at++] !== Byte.Caret) return ODD_LINE;
        break;
      case Form.Plain:
        // A lone label can be a piece of a name, and what no host's name begins or ends with is one.
        if (this.#name.count === 1) return ODD_LINE;
        if (bytes[nameAt] === Byte.Hyphen || bytes[at - 1] === Byte.Hyphen) return ODD_LINE;
        break;
      case Form.HostsZero:
      case Form.HostsLoopback:
        if (this.#mayBeLocal()) return ODD_LINE;
        break;
    }
    const blanksEnd = skipBlanks(bytes, at, end);
    const next = blanksEnd > at && bytes[blanksEnd] === Byte.Hash
      ? nextLine(bytes, blanksEnd, end)
      : endOfLine(bytes, blanksEnd, end);
    if (next < 0 || next - start > LINE_LENGTH_MAX) return ODD_LINE;
    const hash = this.#name.hash(this.#seed);
    const { wire, lengthBytes, folded } = this.#name;
    let tail: Uint8Array | undefined;
    if (folded) {
      if (ruleAt === UNKNOWN) return ODD_LINE;
      flags |= Flag.Odd;
      tail = tailOf(flags, NO_VALUE, bytes.subarray(ruleAt, at));
    }
    flags |= formFlags(form);
    const added = this.#table.add(wire, lengthBytes, hash, this.#source, flags, tail);
    if (added === Added.Yes) this.stats.rules++;
    else if (added === Added.Full) this.stats.skipped.crowded++;
    else this.stats.duplicates++;
    return next;
  }

  /** Counts the line from `start` to before `next`. */
  #skip(start: number, next: number, reason: SkipReason): number {
    if (next - start > LINE_LENGTH_MAX) return ODD_LINE;
    this.stats.skipped[reason]++;
    return next;
  }

  #mayBeLocal(): boolean {
    const { count, lastLabel, wire } = this.#name;
    return count === 1 || startsWith(wire, lastLabel + 1, LOCAL_PREFIX);
  }

  #oddLine(start: number): number {
    const bytes = this.#bytes;
    const next = nextLine(bytes, start, bytes.length);
    const lineEnd = bytes[next - 1] === Byte.Newline ? next - 1 : next;
    const { stats } = this;
    if (lineEnd - start > LINE_LENGTH_MAX) {
      stats.skipped.too_long++;
      return next;
    }
    // A copy: text in shared memory can't be decoded where it stands.
    const parsed = parseRule(decoder.decode(bytes.slice(start, lineEnd)));
    if (parsed.kind === "skipped") {
      stats.skipped[parsed.reason]++;
      return next;
    }
    if (parsed.leftOut !== null) stats.skipped[parsed.leftOut]++;
    for (const rule of parsed.rules) this.#addRule(rule);
    return next;
  }

  #addRule(rule: Rule): void {
    const name = this.#name;
    const isRegex = rule.form === "regex";
    if (rule.kind === "address") name.readAddress(rule.value, 0, rule.value.length);
    else if (isRegex || rule.form === "pattern") {
      const problem = rule.badfilter
        ? null
        : this.#patterns.admit(rule.name, isRegex, this.#source);
      if (problem !== null) {
        this.stats.skipped[problem]++;
        return;
      }
      name.readPattern(rule.name);
    } else {
      const ascii = encoder.encode(rule.name);
      const end = name.read(ascii, 0, ascii.length);
      invariant(end === ascii.length, "what parseRule takes for a name is one");
    }
    let flags = flagsOf(rule);
    // The text of a $badfilter rule is never shown: what it names is gone.
    const odd = !rule.badfilter &&
      canonicalText(flags, subjectAt(flags, name.wire, 0), rule.value) !== rule.text;
    if (rule.badfilter) flags |= Flag.Badfilter;
    if (odd) flags |= Flag.Odd;
    const tail = hasTail(flags)
      ? tailOf(flags, rule.value, odd ? encoder.encode(rule.text) : NO_VALUE)
      : undefined;
    const hash = name.hash(this.#seed);
    switch (this.#table.add(name.wire, name.lengthBytes, hash, this.#source, flags, tail)) {
      case Added.Duplicate:
        this.stats.duplicates++;
        return;
      case Added.Full:
        this.stats.skipped.crowded++;
        return;
      case Added.TooMany:
        this.stats.skipped.too_many++;
        return;
    }
    if (!rule.badfilter) {
      this.stats.rules++;
      return;
    }
    this.stats.badfilters++;
    if (this.badfilters.length < BADFILTERS_MAX) this.badfilters.push(rule.text);
  }
}

function startsWith(bytes: Uint8Array, offset: number, prefix: ArrayLike<number>): boolean {
  for (let i = 0; i < prefix.length; i++) if (bytes[offset + i] !== prefix[i]) return false;
  return true;
}

/** Where the blocking address that the line starts with ends; `at` if it starts with none. */
function addressEnd(bytes: Uint8Array, at: number): number {
  if (bytes[at] === Byte.Zero && startsWith(bytes, at, ZERO_ADDRESS)) {
    return at + ZERO_ADDRESS.length;
  }
  if (bytes[at] === Byte.One && startsWith(bytes, at, LOOPBACK_ADDRESS)) {
    return at + LOOPBACK_ADDRESS.length;
  }
  return at;
}

function skipBlanks(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  while (at < end && (bytes[at] === Byte.Space || bytes[at] === Byte.Tab)) at++;
  return at;
}

/** Where the next line starts if this one ends at `at`, or -1. */
function endOfLine(bytes: Uint8Array, at: number, end: number): number {
  if (at >= end) return end;
  if (bytes[at] === Byte.Newline) return at + 1;
  if (bytes[at] !== Byte.Return) return -1;
  if (at + 1 === end) return end;
  return bytes[at + 1] === Byte.Newline ? at + 2 : -1;
}

function nextLine(bytes: Uint8Array, start: number, end: number): number {
  const newline = bytes.indexOf(Byte.Newline, start);
  return newline < 0 ? end : newline + 1;
}
