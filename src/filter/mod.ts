/**
 * The filter: which rule, if any, decides about a name. Rule text of every source (a list, a
 * blocked service, the custom rules) goes in as bytes and comes out as one immutable
 * `SharedArrayBuffer`; each DNS isolate puts a `Matcher` on it and asks with the hashes of QNAME.
 *
 * Forms read: hosts lines that block or answer, plain names, `||name^`, `|name^`, `*.name`, patterns
 * (`||ads*.example^`, `|ads.`, `-ads.`), `/regular expressions/`, addresses (`|10.*`, `|192.0.2.1`,
 * `|2001:db8::1`), `@@` before them, and behind them `$important`, `$badfilter` and `$dnsrewrite` with
 * an address or a response code. What else a list holds is skipped and counted by reason.
 *
 * A name is looked up by its hashes, whatever the number of names. Patterns are found by four letters
 * that a name must have for them, and an expression is an automaton: neither makes a query dear,
 * whoever wrote them. Scope: none. RFC 1035, 4343, UTS 46. @module
 */
export {
  compile,
  type CompileInput,
  type CompileResult,
  type CompileSource,
  type SourcedRule,
  type SourceStats,
} from "./compile.ts";
export { findRegexProblem } from "./automaton.ts";
export { type Hit, Matcher, Met, NO_RULE, ruleText } from "./matcher.ts";
export { Flag, Kind, kindOf, ruleIdentity, SOURCES_MAX } from "./layout.ts";
export {
  LINE_LENGTH_MAX,
  type ParsedRule,
  parseRule,
  type Rule,
  type RuleForm,
  type RuleKind,
  SKIP_REASONS,
  SKIP_TEXTS,
  type SkipReason,
  unsupportedCount,
} from "./parse_rule.ts";
export { normaliseName } from "./names.ts";
