import { parseIp } from "../addr/mod.ts";
import { Matcher, NO_RULE } from "../filter/mod.ts";
import type { HashedName } from "../dns/mod.ts";
import { invariant } from "../errors.ts";
import type { Settings } from "../model/mod.ts";

/** What travels to a dns isolate; the rules are shared memory and not copied. */
export interface SnapshotData {
  /** Grows with each snapshot. */
  readonly generation: number;
  /** The filter's compiled rules; `null` filters nothing. */
  readonly rules: SharedArrayBuffer | null;
  /** Where rules come from, by the number the compiled rules name. */
  readonly sources: readonly { readonly id: string; readonly name: string }[];
  readonly settings: Settings;
}

/** What a blocked name is answered with. */
export const BlockForm = { Address: 0, NxDomain: 1, Refused: 2 } as const;
export type BlockForm = typeof BlockForm[keyof typeof BlockForm];

/** Texts of deciding rules that are kept ready for extended errors. */
const TEXTS_MAX = 4_096;

export class Snapshot {
  readonly generation: number;
  readonly blockForm: BlockForm;
  /** Seconds that clients keep a blocked answer. */
  readonly blockTtl: number;
  /** RDATA of a blocked A and AAAA answer. */
  readonly blockIpv4: Uint8Array;
  readonly blockIpv6: Uint8Array;

  readonly #matcher: Matcher | null;
  readonly #sources: SnapshotData["sources"];
  /** Sources of the default group: every one. */
  readonly #defaultGroup: Uint32Array;
  readonly #texts = new Map<number, Uint8Array>();

  constructor({ generation, rules, sources, settings }: SnapshotData) {
    this.generation = generation;
    const filtering = rules !== null && settings.protection;
    this.#matcher = filtering ? new Matcher(rules) : null;
    this.#sources = sources;
    this.#defaultGroup = new Uint32Array((sources.length + 31) >> 5).fill(0xffffffff);
    const custom = settings.block_response === "custom_ip";
    this.blockForm = settings.block_response === "nxdomain"
      ? BlockForm.NxDomain
      : settings.block_response === "refused"
      ? BlockForm.Refused
      : BlockForm.Address;
    this.blockTtl = settings.block_ttl;
    this.blockIpv4 = address(custom ? settings.blocking_ipv4 : undefined, "0.0.0.0");
    this.blockIpv6 = address(custom ? settings.blocking_ipv6 : undefined, "::");
  }

  /** The rule that blocks the name for the default group's clients, or `NO_RULE`. */
  match(packet: Uint8Array, name: HashedName): number {
    const matcher = this.#matcher;
    if (matcher === null) return NO_RULE;
    const rule = matcher.match(packet, name, this.#defaultGroup);
    return rule !== NO_RULE && matcher.isBlock(rule) ? rule : NO_RULE;
  }

  /** The rule as its list has it, and the list's name. */
  decidedBy(rule: number): { rule: string; list: string } {
    invariant(this.#matcher !== null, "a rule comes from a matcher");
    const source = this.#sources[this.#matcher.source(rule)];
    return { rule: this.#matcher.ruleText(rule), list: source.name };
  }

  /** What an extended error says of a blocked name: the rule and the list it stands in. */
  blockedText(rule: number): Uint8Array {
    const known = this.#texts.get(rule);
    if (known !== undefined) return known;
    const decided = this.decidedBy(rule);
    const text = new TextEncoder().encode(`${decided.rule} (${decided.list})`);
    if (this.#texts.size >= TEXTS_MAX) this.#texts.clear();
    this.#texts.set(rule, text);
    return text;
  }
}

function address(text: string | null | undefined, otherwise: string): Uint8Array {
  const ip = parseIp(text ?? otherwise);
  invariant(ip !== null, "settings hold addresses");
  return ip;
}
