import { isLoopback, parseIp, unmapIpv4 } from "../addr/mod.ts";
import { normaliseName } from "./names.ts";

/** Longest line that is read, in UTF-16 units here and in bytes when a list is compiled. */
export const LINE_LENGTH_MAX = 4_096;

/** Why a line is left out; a list's status counts each reason. */
export const SKIP_REASONS = [
  "blank",
  "comment",
  "too_long", // Over LINE_LENGTH_MAX.
  "cosmetic", // `name##.banner`: about a page's elements.
  "regex", // `/ads[0-9]/`
  "url", // `||name/path`, `://name`: about a URL.
  "wildcard", // `||ads*.name^`
  "pattern", // `-banner-`, `|ads.`, `name^`: about a piece of a name.
  "unknown_modifier",
  "rewrite", // `$dnsrewrite`
  "address_rule", // `|10.*`
  "hosts_address", // A hosts line with a real address.
  "bad_address", // Several words, the first of which is no address.
  "local_name", // localhost and its kind, in a hosts line.
  "bad_name",
] as const;
export type SkipReason = typeof SKIP_REASONS[number];

/** The form a rule is written in: `name`, `||name^`, `|name^`, `*.name`, `ADDRESS name`. */
export type RuleForm = "plain" | "domain" | "exact" | "below" | "hosts";

/** One rule about one name. */
export interface Rule {
  readonly form: RuleForm;
  /** Lower case, A-labels, no dot at the end. */
  readonly name: string;
  /** The address of a hosts line as it stands there; empty in the other forms. */
  readonly address: string;
  readonly exception: boolean;
  readonly important: boolean;
  /** Is no rule of its own: it turns off the rule that differs from it in this only. */
  readonly badfilter: boolean;
  /** What the rule looks like: as written, without blanks around it and without comment. */
  readonly text: string;
}

export type ParsedRule =
  | {
    readonly kind: "rules";
    /** One rule at least; more for a hosts line with several names. */
    readonly rules: readonly Rule[];
    /** Why the first name of a hosts line that makes no rule does not; else `null`. */
    readonly leftOut: SkipReason | null;
  }
  | { readonly kind: "skipped"; readonly reason: SkipReason; readonly column: number };

/** Lines that were meant as rules but are not read: a list's `unsupported`. */
export function unsupportedCount(skipped: Readonly<Record<SkipReason, number>>): number {
  let count = 0;
  for (const reason of SKIP_REASONS) count += skipped[reason];
  return count - skipped.blank - skipped.comment - skipped.local_name;
}

const COMMENT = /^[!#]|^\[.*\]$/;
const INLINE_COMMENT = /[ \t]#/;
const COSMETIC = /^[^#]*[^# \t]#@?[$?%]*#/;
const NO_HOSTS_LINE = /^(?:@@|\||\*|\/)/;
const BLANKS = /[ \t]+/;

/**
 * Parses one line of a list or one custom rule. Lists hold much that is no rule, so that is a
 * value. Never throws, whatever the line.
 */
export function parseRule(line: string): ParsedRule {
  if (line.length > LINE_LENGTH_MAX) return skipped("too_long", LINE_LENGTH_MAX);
  const text = line.trim();
  const start = line.length - line.trimStart().length;
  if (text === "") return skipped("blank", 0);
  if (COMMENT.test(text)) return skipped("comment", start);
  if (COSMETIC.test(text)) return skipped("cosmetic", start + text.indexOf("#"));
  const comment = text.search(INLINE_COMMENT);
  const bare = comment < 0 ? text : text.slice(0, comment).trimEnd();
  const words = bare.split(BLANKS);
  if (words.length > 1 && !NO_HOSTS_LINE.test(bare)) return parseHosts(words, start);
  return parsePattern(bare, start);
}

/** Names that hosts files define for the host itself; blocking them would break programs. */
const LOCAL_NAMES: ReadonlySet<string> = new Set([
  "localhost",
  "localhost4",
  "localhost6",
  "localhost.localdomain",
  "localhost4.localdomain4",
  "localhost6.localdomain6",
  "local",
  "broadcasthost",
  "ip6-localhost",
  "ip6-loopback",
  "ip6-localnet",
  "ip6-mcastprefix",
  "ip6-allnodes",
  "ip6-allrouters",
  "ip6-allhosts",
  "0.0.0.0", // StevenBlack's lists open with `0.0.0.0 0.0.0.0`.
]);

function parseHosts(words: readonly string[], start: number): ParsedRule {
  const address = words[0];
  const ip = parseIp(address);
  if (ip === null) return skipped("bad_address", start);
  if (!blocks(ip)) return skipped("hosts_address", start);
  const rules: Rule[] = [];
  let leftOut: SkipReason | null = null;
  for (const word of words.slice(1)) {
    const name = normaliseName(word);
    if (LOCAL_NAMES.has(name ?? word)) leftOut ??= "local_name";
    else if (name === null) leftOut ??= "bad_name";
    else rules.push({ ...HOSTS_RULE, name, address, text: `${address} ${word}` });
  }
  if (rules.length > 0) return { kind: "rules", rules, leftOut };
  return skipped(leftOut ?? "bad_name", start + address.length + 1);
}

const HOSTS_RULE = { form: "hosts", exception: false, important: false, badfilter: false } as const;

/** Says whether a hosts line with this address blocks: 0.0.0.0, ::, 127.0.0.0/8 and ::1. */
function blocks(ip: Uint8Array): boolean {
  return isLoopback(ip) || unmapIpv4(ip).every((byte) => byte === 0);
}

function parsePattern(bare: string, start: number): ParsedRule {
  const exception = bare.startsWith("@@");
  const patternAt = exception ? 2 : 0;
  if (bare.startsWith("/", patternAt)) {
    const close = bare.lastIndexOf("/");
    const whole = close > patternAt && (close === bare.length - 1 || bare[close + 1] === "$");
    return skipped(whole ? "regex" : "url", start + patternAt);
  }
  const dollar = bare.indexOf("$", patternAt);
  const pattern = bare.slice(patternAt, dollar < 0 ? bare.length : dollar);
  const [form, prefix] = formAt(pattern);
  const closed = pattern.endsWith("^");
  const written = pattern.slice(prefix.length, closed ? -1 : undefined);
  const named = parseName(form, written, closed);
  if (named.reason !== null) return skipped(named.reason, start + patternAt);

  const modifiers = dollar < 0 ? [] : bare.slice(dollar + 1).split(",");
  let [important, badfilter, rewrite] = [false, false, false];
  for (const modifier of modifiers) {
    if (modifier === "important") important = true;
    else if (modifier === "badfilter") badfilter = true;
    else if (/^dnsrewrite(?:=|$)/.test(modifier)) rewrite = true;
    else return skipped("unknown_modifier", start + dollar);
  }
  if (rewrite) return skipped("rewrite", start + dollar);
  const { name } = named;
  const rule = { form, name, address: "", exception, important, badfilter, text: bare };
  return { kind: "rules", rules: [rule], leftOut: null };
}

function formAt(pattern: string): [RuleForm, prefix: string] {
  if (pattern.startsWith("||")) return ["domain", "||"];
  if (pattern.startsWith("|")) return ["exact", "|"];
  if (pattern.startsWith("*.")) return ["below", "*."];
  return ["plain", ""];
}

type Named =
  | { readonly name: string; readonly reason: null }
  | { readonly reason: SkipReason };

const ADDRESS_PREFIX = /^[0-9.]+\*?$/;
/** A lone label that is no word, such as `-468x60-`: whoever wrote it meant a piece of a URL. */
const LABEL_PIECE = /^(?:[-_][^.]*|[^.]*[-_]|[^.]*\.)$/;

/** Reads the name between a form's marks; `closed` says whether a `^` stood behind it. */
function parseName(form: RuleForm, written: string, closed: boolean): Named {
  if (parseIp(written) !== null) return { reason: "address_rule" };
  if (form === "exact" && ADDRESS_PREFIX.test(written)) return { reason: "address_rule" };
  if (written.includes("*")) return { reason: "wildcard" };
  if (/[/:?=&]/.test(written)) return { reason: "url" };
  // `|ads.` and `||ads.` begin a longer name, `name^` and `.name` end one.
  if (form === "exact" && !closed) return { reason: "pattern" };
  if (form === "domain" && !closed && written.endsWith(".")) return { reason: "pattern" };
  if (form === "plain" && (closed || LABEL_PIECE.test(written))) return { reason: "pattern" };
  if (written.startsWith(".")) return { reason: "pattern" };
  const name = normaliseName(written);
  return name === null ? { reason: "bad_name" } : { name, reason: null };
}

function skipped(reason: SkipReason, column: number): ParsedRule {
  return { kind: "skipped", reason, column };
}
