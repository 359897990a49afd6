import { isLoopback, parseIp, unmapIpv4 } from "../addr/mod.ts";
import { Rcode } from "../dns/mod.ts";
import { normaliseName } from "./names.ts";
import { type Pattern, PATTERN_LENGTH_MIN, patternText } from "./pattern.ts";
import { parseRegex } from "./regex.ts";

/** Longest line that is read, in UTF-16 units here and in bytes when a list is compiled. */
export const LINE_LENGTH_MAX = 4_096;

/** Why a line is left out; a list's status counts each reason. */
export const SKIP_REASONS = [
  "blank",
  "comment",
  "too_long", // Over LINE_LENGTH_MAX.
  "cosmetic", // `name##.banner`: about a page's elements.
  "regex", // `/(?=ads)/`: broken, or with what an automaton does not decide.
  "regex_size", // `/.{0,999}/`
  "url", // `||name/path`, `://name`: about a URL.
  "broad", // `*`, `a*`: about too many names.
  "crowded", // One name or pattern more than are kept, or than share a piece of text.
  "unknown_modifier",
  "rewrite", // `$dnsrewrite` with another value than an address or one of three response codes.
  "address_rule", // `|10.1*`, `|2001:db8:*`: about other addresses than those of whole octets.
  "too_many", // One address more than are kept of a name.
  "bad_address", // Several words, the first of which is no address.
  "local_name", // localhost and its kind, in a hosts line.
  "bad_name",
] as const;
export type SkipReason = typeof SKIP_REASONS[number];

/** What each reason is, for whoever wrote the line: `the rule is left out: …`. */
export const SKIP_TEXTS: Readonly<Record<SkipReason, string>> = {
  blank: "it is blank",
  comment: "it is a comment",
  too_long: `it is longer than ${LINE_LENGTH_MAX} bytes`,
  cosmetic: "it is about elements of a page, which no DNS answer holds",
  regex: "the regular expression is broken or looks around (lookahead, \\b, \\1): write it without",
  regex_size: "the regular expression is too large: split it, or count less",
  url: "it is about a URL, and queries have names alone: write ||name^",
  broad: `a pattern has ${PATTERN_LENGTH_MIN} characters at least`,
  crowded: "there are too many names, or patterns, or too many of these with the same text",
  unknown_modifier: "only the modifiers $important, $badfilter and $dnsrewrite are supported",
  rewrite: "$dnsrewrite takes an IP address, NXDOMAIN, REFUSED or NOERROR",
  address_rule: "addresses are whole ones or whole octets of IPv4, as |10.* or |2001:db8::1",
  too_many: "the name has too many addresses",
  bad_address: "it has several words, and the first is no IP address",
  local_name: "localhost and its kind are left alone",
  bad_name: "it holds no domain name",
};

/**
 * The form a rule is written in: `name`, `||name^`, `|name^`, `*.name`, `ADDRESS name`, a pattern or
 * `/regular expression/`.
 */
export type RuleForm = "plain" | "domain" | "exact" | "below" | "hosts" | "pattern" | "regex";

/**
 * What a rule does: `name` blocks or lets a name through, `rewrite` answers it or, an exception,
 * keeps rewrites from it, `hosts_address` is a hosts line that answers, and `address` blocks or
 * protects responses with an address.
 */
export type RuleKind = "name" | "rewrite" | "hosts_address" | "address";

/** One rule about one name, the names of a pattern, or addresses. */
export interface Rule {
  readonly kind: RuleKind;
  readonly form: RuleForm;
  /**
   * Lower case, A-labels, no dot at the end; of a pattern its text (see `PatternText`), an expression
   * with its slashes; empty for rules about addresses.
   */
  readonly name: string;
  /**
   * Of a rewrite the address (4 or 16 bytes), the response code (1 byte) or nothing, which means
   * every rewrite; of a hosts line the address that it answers with; of a rule about addresses
   * their first octets (1 to 4) or the 16 of an IPv6 address. Empty for other rules.
   */
  readonly value: Uint8Array;
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
  if (BLANKS.test(bare) && !NO_HOSTS_LINE.test(bare)) {
    // There a comment needs no blank before it: see hosts(5).
    return parseHosts(bare.replace(/#.*/, "").split(BLANKS), start);
  }
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

const NOTHING: Uint8Array = new Uint8Array(0);

function parseHosts(words: readonly string[], start: number): ParsedRule {
  const address = words[0];
  const ip = parseIp(address);
  if (ip === null) return skipped("bad_address", start);
  const common = blocks(ip)
    ? { kind: "name", value: NOTHING } as const
    : { kind: "hosts_address", value: unmapIpv4(ip) } as const;
  const rules: Rule[] = [];
  let leftOut: SkipReason | null = null;
  for (const word of words.slice(1)) {
    const name = normaliseName(word);
    if (LOCAL_NAMES.has(name ?? word)) leftOut ??= "local_name";
    else if (name === null) leftOut ??= "bad_name";
    else rules.push({ ...HOSTS_RULE, ...common, name, address, text: `${address} ${word}` });
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
  const regexEnd = endOfRegex(bare, patternAt);
  const dollar = regexEnd < 0 ? bare.indexOf("$", patternAt) : bare.indexOf("$", regexEnd);
  const pattern = bare.slice(patternAt, dollar < 0 ? bare.length : dollar);
  const target = regexEnd < 0 ? parseTarget(pattern) : regexTarget(pattern);
  if (target.reason !== null) return skipped(target.reason, start + patternAt);

  const modifiers = dollar < 0 ? [] : bare.slice(dollar + 1).split(",");
  let [important, badfilter] = [false, false];
  let rewrite: string | null = null;
  for (const modifier of modifiers) {
    if (modifier === "important") important = true;
    else if (modifier === "badfilter") badfilter = true;
    else if (!REWRITE.test(modifier)) return skipped("unknown_modifier", start + dollar);
    else if (rewrite !== null) return skipped("rewrite", start + dollar);
    else rewrite = modifier.replace(REWRITE, "");
  }
  const { form, name, octets } = target;
  const common = { form, name, address: "", exception, important, badfilter, text: bare };
  let rule: Rule;
  if (rewrite !== null) {
    const value = parseRewrite(rewrite);
    // Without a value it is about every rewrite, which only an exception can be.
    const says = value !== null && (value.length > 0 || exception) && octets === null;
    if (!says) return skipped("rewrite", start + dollar);
    rule = { ...common, kind: "rewrite", value };
  } else if (octets !== null) rule = { ...common, kind: "address", value: octets };
  else rule = { ...common, kind: "name", value: NOTHING };
  return { kind: "rules", rules: [rule], leftOut: null };
}

/** Where the regular expression that stands at `at` ends, behind its slash; -1 where none stands. */
function endOfRegex(bare: string, at: number): number {
  if (!bare.startsWith("/", at)) return -1;
  const close = bare.lastIndexOf("/");
  const isWhole = close > at && (close === bare.length - 1 || bare[close + 1] === "$");
  return isWhole ? close + 1 : -1;
}

const REWRITE = /^dnsrewrite(?:=|$)/;

const REWRITE_CODES: ReadonlyMap<string, number> = new Map([
  ["NOERROR", Rcode.NoError],
  ["NXDOMAIN", Rcode.NXDomain],
  ["REFUSED", Rcode.Refused],
]);

/** Reads what stands behind `dnsrewrite=`: see `Rule.value`. `null` for what is not supported. */
function parseRewrite(text: string): Uint8Array | null {
  if (text === "") return NOTHING;
  const rcode = REWRITE_CODES.get(text);
  return rcode === undefined ? parseIp(text) : Uint8Array.of(rcode);
}

/** What a rule is about: a name, the names of a pattern, or addresses that begin with these octets. */
type Target =
  | {
    readonly form: RuleForm;
    readonly name: string;
    readonly octets: Uint8Array | null;
    readonly reason: null;
  }
  | { readonly reason: SkipReason };

function regexTarget(name: string): Target {
  const { problem } = parseRegex(name.slice(1, -1));
  return problem === null
    ? { form: "regex", name, octets: null, reason: null }
    : { reason: problem };
}

/** What a pattern begins with: behind a scheme stands the start of a name, as behind `|`. */
const OPENING = /^(?:\|\|?|(?:http)?:\/\/)?/;
/** What ends a name: its separator, whatever that may match, or the mark of an end. */
const CLOSING = /\^[*^]*\|?$|\|$|\/\*$/;
/** The same where the pattern is about URLs of a name. */
const URL_CLOSING = /\^[*^]*\|?$|\|$|\/\*?$/;

/** Of a URL, not of a name. */
const URL_BYTES = /[/:?=&;]|\^./;
/** What no name ends with: further letters follow. */
const OPEN_END = /[.*_-]$/;
/** What stands before a name that the rule does not cover itself. */
const BELOW = /^\*?\.(?=.)/;
/** What is no host's name, such as `-468x60-`: whoever wrote it meant a piece of one. */
const NAME_PIECE = /^(?:-.*|.*-|[^.]*[_.])$/;
/** A file's name begins so, and no host's. */
const PATH_PIECE = /^_[^.]*[-_.]?$/;

/** Reads what a rule is about, without its modifiers. */
function parseTarget(pattern: string): Target {
  const [opening] = OPENING.exec(pattern)!;
  const isUrl = opening.endsWith("/");
  const begin = isUrl ? "|" : opening as Pattern["begin"];
  const closing = begin === "||" ? URL_CLOSING : CLOSING;
  const [mark = ""] = closing.exec(pattern.slice(opening.length)) ?? [];
  const isClosed = mark !== "";
  const written = pattern.slice(opening.length, pattern.length - mark.length);
  const address = addressTarget(begin, written, isClosed);
  if (address !== null) return address;
  if (written.includes("|")) return { reason: "bad_name" };
  // `://name` begins a URL.
  const beginsUrl = isUrl && !isClosed && !written.includes("*") && !OPEN_END.test(written);
  const isPath = pattern === written && PATH_PIECE.test(written);
  if (beginsUrl || isPath || URL_BYTES.test(written)) return { reason: "url" };
  const [above = ""] = BELOW.exec(written) ?? [];
  const isBelow = above === "*."
    ? isClosed || begin === ""
    : above !== "" && isClosed && begin === "";
  const bare = isBelow ? written.slice(above.length) : written;
  if (bare.includes("*") || (!isBelow && isPiece(begin, bare, isClosed))) {
    return patternTarget({ begin, body: written, isClosed }, pattern.length);
  }
  const form = isBelow ? "below" : begin === "||" ? "domain" : begin === "|" ? "exact" : "plain";
  const name = normaliseName(bare);
  return name === null ? { reason: "bad_name" } : { form, name, octets: null, reason: null };
}

/** Says whether what stands between a pattern's marks is a piece of a name, not the whole. */
function isPiece(begin: Pattern["begin"], bare: string, isClosed: boolean): boolean {
  switch (begin) {
    case "||":
      return !isClosed && OPEN_END.test(bare);
    case "|":
      return !isClosed;
    default:
      return bare !== "" && (isClosed || bare.startsWith(".") || NAME_PIECE.test(bare));
  }
}

function patternTarget(pattern: Pattern, writtenLength: number): Target {
  const name = patternText(pattern);
  if (name === null) return { reason: "bad_name" };
  if (writtenLength < PATTERN_LENGTH_MIN) return { reason: "broad" };
  return { form: "pattern", name, octets: null, reason: null };
}

const ADDRESS_PREFIX = /^[0-9.]+\*?$/;
const IPV6_WILDCARD = /^[0-9a-f:]*:[0-9a-f:]*\*$/i;
/** Octets and wildcards alone: of a name these would be a piece of many. */
const ADDRESS_PIECE = /^(?=.*[0-9])(?:[0-9.]*\*[0-9.*]*|[0-9]+\.)$/;

/** What is about addresses, or was meant to be; `null`: it is about names. */
function addressTarget(begin: Pattern["begin"], written: string, isClosed: boolean): Target | null {
  const ip = parseIp(written);
  if (ip !== null) {
    // `192.0.2.1^` is about a piece of an address, or of a name.
    if (begin === "" && isClosed) return { reason: "address_rule" };
    const form = begin === "||" ? "domain" : begin === "|" ? "exact" : "plain";
    return { form, name: "", octets: unmapIpv4(ip), reason: null };
  }
  if (begin === "|" && (ADDRESS_PREFIX.test(written) || IPV6_WILDCARD.test(written))) {
    const octets = isClosed ? null : parseOctets(written);
    if (octets === null) return { reason: "address_rule" };
    return { form: "exact", name: "", octets, reason: null };
  }
  const isPiece = ADDRESS_PIECE.test(written) && (begin !== "||" || written.includes("*"));
  return isPiece ? { reason: "address_rule" } : null;
}

/** The octets of `10.*`, `192.168.*` or `192.0.2.*`, or `null`. */
function parseOctets(text: string): Uint8Array | null {
  if (!text.endsWith(".*")) return null;
  const written = text.slice(0, -2);
  const missing = 4 - written.split(".").length;
  const ip = missing < 1 ? null : parseIp(written + ".0".repeat(missing));
  return ip === null ? null : ip.subarray(0, 4 - missing);
}

function skipped(reason: SkipReason, column: number): ParsedRule {
  return { kind: "skipped", reason, column };
}
