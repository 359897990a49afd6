/**
 * What the filter means, slowly and plainly: a rule is an object, a name a text, and every rule is
 * tried on every name. The compiled filter has to agree with it. Beside it the packets and sets of
 * sources that filter tests ask with. @module
 */
import { formatIp, parseIp, unmapIpv4 } from "../src/addr/mod.ts";
import { HashedName } from "../src/dns/mod.ts";
import { parseRule } from "../src/filter/mod.ts";
import type { Prng } from "./prng.ts";

export interface ReferenceRule {
  readonly source: number;
  /** `address` is a rule about addresses in responses. */
  readonly form:
    | "plain"
    | "domain"
    | "exact"
    | "below"
    | "hosts"
    | "address"
    | "pattern"
    | "regex";
  /** Or the address or `10.*`, the pattern, or the expression with its slashes. */
  readonly name: string;
  readonly exception: boolean;
  readonly important: boolean;
  readonly badfilter: boolean;
  /** A rewrite's address or response code; empty for an exception to all rewrites. */
  readonly rewrite?: string;
  /** What a hosts line answers with, where it does not block. */
  readonly address?: string;
}

/** The rule as a list has it. */
export function ruleLine(rule: ReferenceRule): string {
  const { name, rewrite } = rule;
  if (rule.form === "hosts") return `${rule.address ?? "0.0.0.0"} ${name}`;
  const pattern = {
    plain: name,
    domain: `||${name}^`,
    exact: `|${name}^`,
    below: `*.${name}`,
    address: `|${name}`,
    pattern: name,
    regex: name,
  }[rule.form];
  const modifiers = [
    ...rule.important ? ["important"] : [],
    ...rewrite === undefined ? [] : [rewrite === "" ? "dnsrewrite" : `dnsrewrite=${rewrite}`],
    ...rule.badfilter ? ["badfilter"] : [],
  ];
  const behind = modifiers.join(",");
  return (rule.exception ? "@@" : "") + pattern + (behind === "" ? "" : `$${behind}`);
}

const expressions = new Map<string, RegExp>();

/** The names that a pattern or an expression with its slashes covers, as an expression. */
export function patternExpression(text: string): RegExp {
  const known = expressions.get(text);
  if (known !== undefined) return known;
  const [, begin, body, end] = /^(\|?\|?)(.*?)(\^?)$/.exec(text)!;
  const source = text.startsWith("/")
    ? text.slice(1, -1)
    : { "": "", "|": "^", "||": "(?:^|\\.)" }[begin] +
      body.replaceAll(".", "\\.").replaceAll("*", ".*") + (end === "" ? "" : "$");
  const expression = new RegExp(source, "i");
  expressions.set(text, expression);
  return expression;
}

function covers(rule: ReferenceRule, name: string): boolean {
  if (rule.form === "pattern" || rule.form === "regex") {
    return patternExpression(rule.name).test(name);
  }
  const itself = name === rule.name;
  const below = name.endsWith(`.${rule.name}`);
  if (rule.form === "domain") return itself || below;
  return rule.form === "below" ? below : itself;
}

/** Important exception, important block, exception, block: the later ones yield. */
function rank(rule: ReferenceRule): number {
  return (rule.important ? 2 : 0) + (rule.exception ? 1 : 0);
}

/**
 * The rules of active sources that no `$badfilter` of another active source turns off. `services`,
 * active or not, stand alone.
 */
export function rulesInForce(
  rules: readonly ReferenceRule[],
  active: ReadonlySet<number>,
  services: ReadonlySet<number> = new Set(),
): ReferenceRule[] {
  const scope = ({ source }: ReferenceRule) => services.has(source) ? source : "lists";
  const counting = rules.filter(({ source }) => active.has(source));
  const turnedOff = new Set(
    counting.filter((rule) => rule.badfilter)
      .map((rule) => `${scope(rule)}: ${ruleLine({ ...rule, badfilter: false })}`),
  );
  return counting.filter((rule) =>
    !rule.badfilter && !turnedOff.has(`${scope(rule)}: ${ruleLine(rule)}`)
  );
}

/** The blocks and exceptions that cover the name in a group of sources, none of them turned off. */
export function referenceHits(
  rules: readonly ReferenceRule[],
  sources: ReadonlySet<number>,
  name: string,
): ReferenceRule[] {
  return hits(rulesInForce(rules, sources), sources, name);
}

function hits(
  inForce: readonly ReferenceRule[],
  sources: ReadonlySet<number>,
  name: string,
): ReferenceRule[] {
  return inForce.filter((rule) =>
    sources.has(rule.source) && rule.form !== "address" && rule.rewrite === undefined &&
    rule.address === undefined && covers(rule, name)
  );
}

/** What comes of a name: who may have decided, and of answers what they say. */
export interface ReferenceDecision {
  readonly ruling: "none" | "block" | "allow" | "answer";
  /** The lines that may be named as the deciding rule. */
  readonly deciding: readonly string[];
  /** Response codes, any of which may answer; else addresses, which all answer. */
  readonly codes: readonly string[];
  readonly addresses: readonly string[];
}

/** Decides about a name by rules in force: `sources` are lists, `services` those of the group. */
export function referenceDecision(
  inForce: readonly ReferenceRule[],
  sources: ReadonlySet<number>,
  services: ReadonlySet<number>,
  name: string,
): ReferenceDecision {
  const listed = inForce.filter((rule) => sources.has(rule.source));
  const about = listed.filter((rule) => rule.rewrite !== undefined && covers(rule, name));
  const exceptions = about.filter((rule) => rule.exception);
  const rewrites = about.filter((rule) =>
    !rule.exception && !exceptions.some((exception) =>
      (exception.important || !rule.important) &&
      (exception.rewrite === "" || exception.rewrite === rule.rewrite)
    )
  );
  if (rewrites.length > 0) {
    const coded = rewrites.filter(({ rewrite }) => parseIp(rewrite!) === null);
    const answering = coded.length > 0 ? coded : rewrites;
    const said = [...new Set(answering.map(({ rewrite }) => rewrite!))];
    return {
      ruling: "answer",
      deciding: answering.map(ruleLine),
      codes: coded.length > 0 ? said : [],
      addresses: coded.length > 0 ? [] : said,
    };
  }
  const none = { codes: [], addresses: [] };
  const blocked = [...services].flatMap((service) => {
    const own = hits(inForce, new Set([service]), name);
    return decidingOf(own).filter((rule) => !rule.exception);
  });
  if (blocked.length > 0) return { ruling: "block", deciding: blocked.map(ruleLine), ...none };
  const winners = decidingOf(hits(listed, sources, name));
  if (winners.length > 0) {
    const ruling = winners[0].exception ? "allow" : "block";
    return { ruling, deciding: winners.map(ruleLine), ...none };
  }
  const hosts = listed.filter((rule) => rule.address !== undefined && rule.name === name);
  return {
    ruling: hosts.length > 0 ? "answer" : "none",
    deciding: hosts.map(ruleLine),
    codes: [],
    addresses: [...new Set(hosts.map(({ address }) => address!))],
  };
}

/** The rules of the highest rank. */
function decidingOf(hits: readonly ReferenceRule[]): ReferenceRule[] {
  return hits.filter((rule) => rank(rule) === referenceRank(hits));
}

/** The rules that decide about a response with an address; of one rank. */
export function referenceAddress(
  inForce: readonly ReferenceRule[],
  sources: ReadonlySet<number>,
  address: Uint8Array,
): ReferenceRule[] {
  const text = formatIp(unmapIpv4(address));
  return decidingOf(inForce.filter(({ form, source, name }) => {
    if (form !== "address" || !sources.has(source)) return false;
    return name.endsWith(".*") ? text.startsWith(name.slice(0, -1)) : text === name;
  }));
}

/** The verdict: the highest rank among the rules that cover the name, -1 where none does. */
export function referenceRank(hits: readonly ReferenceRule[]): number {
  return hits.reduce((best, rule) => Math.max(best, rank(rule)), -1);
}

const BEGINNINGS = ["", "|", "||"];
const PIECES = ["ads", "b.", "b", "w", "www.", "-1", "x-", "_y", ".", "exa", "est", "t", "*", "*"];
const EXPRESSIONS = [
  "/^ads\\./",
  "/(^|\\.)b\\.?/",
  "/x-[0-9]/",
  "/^[a-z]{3}\\.(test|example)$/",
  "/_y|www/",
  "/^.{1,9}$/",
  "/[^st]\\.te/",
  "/S.*w/",
];

/** A pattern or an expression, as a rule's name, about some of the names that filter tests ask for. */
export function randomPattern(prng: Prng): { form: "pattern" | "regex"; name: string } {
  if (prng.chance(0.25)) return { form: "regex", name: prng.pick(EXPRESSIONS) };
  for (;;) {
    const body = Array.from({ length: 1 + prng.int(4) }, () => prng.pick(PIECES)).join("");
    const line = prng.pick(BEGINNINGS) + body + (prng.chance(0.4) ? "^" : "");
    const parsed = parseRule(line);
    // Another guise of a pattern is not what the rule is named by.
    if (parsed.kind !== "rules" || parsed.rules[0].name !== line) continue;
    if (parsed.rules[0].form === "pattern") return { form: "pattern", name: line };
  }
}

/** The name in wire format: labels split at dots, one byte a character. */
export function wireName(name: string): Uint8Array<ArrayBuffer> {
  const bytes: number[] = [];
  for (const label of name.split(".")) {
    bytes.push(label.length, ...Array.from(label, (c) => c.charCodeAt(0)));
  }
  return new Uint8Array([...bytes, 0]);
}

/** A question as the matcher takes it: a packet that is a name only, and its hashes. */
export function question(name: string, seed: number): { packet: Uint8Array; hashed: HashedName } {
  const packet = wireName(name);
  const hashed = new HashedName();
  const end = hashed.read(packet, 0, packet.length, seed);
  if (end !== packet.length) throw new Error(`${name}: no name`);
  return { packet, hashed };
}

/** A set of sources as the matcher takes it. */
export function sourceBits(sources: Iterable<number>, count: number): Uint32Array {
  const words = new Uint32Array(Math.max(1, Math.ceil(count / 32)));
  for (const source of sources) words[source >>> 5] |= 1 << (source & 31);
  return words;
}
