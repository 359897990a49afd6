/**
 * What the filter means, slowly and plainly: a rule is an object, a name a text, and every rule is
 * tried on every name. The compiled filter has to agree with it. Beside it the packets and sets of
 * sources that filter tests ask with. @module
 */
import { HashedName } from "../src/dns/mod.ts";

export interface ReferenceRule {
  readonly source: number;
  readonly form: "plain" | "domain" | "exact" | "below" | "hosts";
  readonly name: string;
  readonly exception: boolean;
  readonly important: boolean;
  readonly badfilter: boolean;
}

/** The rule as a list has it. */
export function ruleLine(rule: ReferenceRule): string {
  if (rule.form === "hosts") return `0.0.0.0 ${rule.name}`;
  const pattern = {
    plain: rule.name,
    domain: `||${rule.name}^`,
    exact: `|${rule.name}^`,
    below: `*.${rule.name}`,
  }[rule.form];
  const modifiers = [rule.important ? "important" : "", rule.badfilter ? "badfilter" : ""];
  const behind = modifiers.filter((modifier) => modifier !== "").join(",");
  return (rule.exception ? "@@" : "") + pattern + (behind === "" ? "" : `$${behind}`);
}

function covers(rule: ReferenceRule, name: string): boolean {
  const itself = name === rule.name;
  const below = name.endsWith(`.${rule.name}`);
  if (rule.form === "domain") return itself || below;
  return rule.form === "below" ? below : itself;
}

/** Important exception, important block, exception, block: the later ones yield. */
function rank(rule: ReferenceRule): number {
  return (rule.important ? 2 : 0) + (rule.exception ? 1 : 0);
}

/** The rules that cover the name in a group of sources, none of them turned off. */
export function referenceHits(
  rules: readonly ReferenceRule[],
  sources: ReadonlySet<number>,
  name: string,
): ReferenceRule[] {
  const turnedOff = new Set(
    rules.filter((rule) => rule.badfilter).map((rule) => ruleLine({ ...rule, badfilter: false })),
  );
  return rules.filter((rule) =>
    !rule.badfilter && !turnedOff.has(ruleLine(rule)) && sources.has(rule.source) &&
    covers(rule, name)
  );
}

/** The verdict: the highest rank among the rules that cover the name, -1 where none does. */
export function referenceRank(hits: readonly ReferenceRule[]): number {
  return hits.reduce((best, rule) => Math.max(best, rank(rule)), -1);
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
