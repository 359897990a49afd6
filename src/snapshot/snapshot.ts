import { NO_VALUE, parseIp, PrefixTable } from "../addr/mod.ts";
import { type Hit, type Kind, kindOf, Matcher, NO_RULE } from "../filter/mod.ts";
import type { HashedName } from "../dns/mod.ts";
import { invariant } from "../errors.ts";
import type { Settings } from "../model/mod.ts";
import { Access } from "./access.ts";
import { ClientIds, NO_CLIENT } from "./client_ids.ts";
import { AnswerRules } from "./answer_rules.ts";
import { type Decision, Ruling } from "./decision.ts";
import {
  ENTRY_WORDS,
  GroupFlag,
  type OverlayData,
  type OverlayParts,
  SERVICE_PREFIX,
  TEXTS_EACH,
} from "./overlay.ts";
import { LocalRecords } from "./records.ts";
import { Schedule } from "./schedule.ts";
import { type Texts, unpackText } from "./shared.ts";

/** What travels to a dns isolate; rules and tables are shared memory and not copied. */
export interface SnapshotData {
  /** Grows with each snapshot. */
  readonly generation: number;
  /** The base: compiled rules of lists and services; `null` where there are none. */
  readonly rules: SharedArrayBuffer | null;
  readonly overlay: OverlayData;
  /** Until when nothing is filtered, in milliseconds since 1970; 0 where filtering is not paused. */
  readonly pausedUntilMs: number;
}

/** The memory of a snapshot that can be given back after it. */
export function memoryOf({ rules, overlay }: SnapshotData): SharedArrayBuffer[] {
  const { customRules, memory, clientMemory, access } = overlay;
  return [rules, customRules, memory, clientMemory, access.memory].filter((one) => one !== null);
}

/** What a blocked name is answered with. */
export const BlockForm = { Address: 0, NxDomain: 1, Refused: 2 } as const;
export type BlockForm = typeof BlockForm[keyof typeof BlockForm];

/** The longest that nobody looks whether schedules and clock still agree: clocks are set, too. */
export const REEVALUATE_MS = 30_000;
/** The number of the default group. */
export const DEFAULT_GROUP = 0;
/** The bit that tells a custom rule's reference from one of the base. */
const CUSTOM = 1 << 30;
/** The custom rules are one source, the first. */
const CUSTOM_SOURCES = Uint32Array.of(1);
/** The custom rules that others turn off are gone when they are compiled. */
const NONE: Int32Array = new Int32Array(0);
export const CUSTOM_LIST: { readonly id: string; readonly name: string } = {
  id: "rules",
  name: "custom rules",
};

/** Texts of deciding rules that are kept ready for extended errors. */
const TEXTS_MAX = 4_096;

/** A group as a query meets it. */
interface Group {
  readonly filtering: boolean;
  readonly safeSearch: boolean;
  /** Bits of the base sources that apply now. */
  readonly lists: Uint32Array;
  readonly services: Uint32Array;
  /** Rules about addresses in answers hold for it. */
  hasAddressRules: boolean;
}

export class Snapshot {
  readonly generation: number;
  readonly blockForm: BlockForm;
  /** Seconds that clients keep a blocked answer. */
  readonly blockTtl: number;
  /** RDATA of a blocked A and AAAA answer. */
  readonly blockIpv4: Uint8Array;
  readonly blockIpv6: Uint8Array;
  readonly records: LocalRecords;
  /** Who may ask. */
  readonly access: Access;
  readonly data: SnapshotData;

  readonly #base: Matcher | null;
  readonly #custom: Matcher | null;
  readonly #parts: OverlayParts;
  readonly #sources: OverlayData["sources"];
  readonly #prefixes: PrefixTable;
  readonly #ids: ClientIds;
  readonly #groups: readonly Group[];
  readonly #schedules: readonly Schedule[];
  /** The bits of all base sources. */
  readonly #everything: Uint32Array;
  /** Whether each schedule was active when it was last looked at. */
  readonly #active: boolean[];
  /** Queries are filtered: protection is on, and not paused. */
  #filtering = false;
  readonly #texts = new Map<number, Uint8Array>();
  readonly #answers = new AnswerRules();

  constructor(data: SnapshotData, nowMs: number) {
    const { generation, rules, overlay } = data;
    const { parts, settings } = overlay;
    this.data = data;
    this.generation = generation;
    this.#base = rules === null ? null : new Matcher(rules);
    this.#custom = overlay.customRules === null ? null : new Matcher(overlay.customRules);
    this.#parts = parts;
    this.#sources = overlay.sources;
    this.#prefixes = new PrefixTable(parts);
    this.#ids = new ClientIds(parts);
    this.records = new LocalRecords(parts);
    this.access = new Access(overlay.access);
    this.#schedules = overlay.schedules.map((spec) => new Schedule(spec));
    this.#active = this.#schedules.map(() => false);
    const words = Math.max(1, (overlay.sources.length + 31) >> 5);
    this.#everything = new Uint32Array(words).fill(0xffffffff);
    this.#groups = Array.from(parts.groupFlags, (flags) => ({
      filtering: (flags & GroupFlag.Filtering) !== 0,
      safeSearch: (flags & GroupFlag.SafeSearch) !== 0,
      lists: new Uint32Array(words),
      services: new Uint32Array(words),
      hasAddressRules: false,
    }));
    this.blockForm = blockForm(settings);
    this.blockTtl = settings.block_ttl;
    const custom = settings.block_response === "custom_ip";
    this.blockIpv4 = address(custom ? settings.blocking_ipv4 : null, "0.0.0.0");
    this.blockIpv6 = address(custom ? settings.blocking_ipv6 : null, "::");
    this.evaluate(nowMs);
    this.#setSources();
  }

  /**
   * Brings schedules and pause in step with the clock. Returns when that is due again, in the same
   * milliseconds, or `Infinity` where nothing depends on the time.
   */
  evaluate(nowMs: number): number {
    const { pausedUntilMs, overlay: { settings } } = this.data;
    const isPaused = nowMs < pausedUntilMs;
    this.#filtering = settings.protection && !isPaused;
    const lookAgainMs = nowMs + REEVALUATE_MS;
    let nextMs = isPaused ? Math.min(pausedUntilMs, lookAgainMs) : Infinity;
    let changed = false;
    for (const [i, schedule] of this.#schedules.entries()) {
      const active = schedule.activeAt(nowMs);
      changed ||= active !== this.#active[i];
      this.#active[i] = active;
      nextMs = Math.min(nextMs, schedule.nextChangeMs(nowMs, lookAgainMs));
    }
    if (changed) this.#setSources();
    return nextMs;
  }

  /** Sets the bits of the sources that apply now. */
  #setSources(): void {
    const { groupEntries, entries } = this.#parts;
    for (const [number, group] of this.#groups.entries()) {
      group.lists.fill(0);
      group.services.fill(0);
      for (let i = groupEntries[number]; i < groupEntries[number + 1]; i++) {
        const source = entries[i * ENTRY_WORDS];
        const schedule = entries[i * ENTRY_WORDS + 1];
        if (schedule !== 0 && !this.#active[schedule - 1]) continue;
        const isService = this.#sources[source].id.startsWith(SERVICE_PREFIX);
        const bits = isService ? group.services : group.lists;
        bits[source >> 5] |= 1 << (source & 31);
      }
      group.hasAddressRules = this.#base?.hasAddressRules(group.lists) === true ||
        this.#custom?.hasAddressRules(CUSTOM_SOURCES) === true;
    }
  }

  /** The client that an address of 4 or 16 bytes is of, or `NO_CLIENT`. */
  clientAt(bytes: Uint8Array, offset: number, lengthBytes: number): number {
    return this.#prefixes.find(bytes, offset, lengthBytes);
  }

  /**
   * The client that a query is of, or `NO_CLIENT`: the one with the ID that it carries, if that is
   * known; otherwise the one whose network holds the address. `lengthBytes` is 0 where there is none.
   */
  clientOf(bytes: Uint8Array, offset: number, lengthBytes: number, id: Uint8Array | null): number {
    if (id !== null) {
      const client = this.clientWithId(id, 0, id.length);
      if (client !== NO_CLIENT) return client;
    }
    return lengthBytes === 0 ? NO_CLIENT : this.clientAt(bytes, offset, lengthBytes);
  }

  /** The client with this ID, or `NO_CLIENT`. */
  clientWithId(bytes: Uint8Array, offset: number, lengthBytes: number): number {
    return this.#ids.find(bytes, offset, lengthBytes);
  }

  /** The group of a client, or of clients not known. */
  groupOf(client: number): number {
    return client === NO_CLIENT ? DEFAULT_GROUP : this.#parts.clientGroups[client];
  }

  /** Says whether queries of a group are filtered now. */
  filters(group: number): boolean {
    return this.#filtering && this.#groups[group].filtering;
  }

  /** Says whether queries of a group are sent to the safe hosts of search engines now. */
  safeSearch(group: number): boolean {
    return this.filters(group) && this.#groups[group].safeSearch;
  }

  /**
   * Says what comes of a name that clients of a group ask for, and fills in the decision: rewrites,
   * then blocked services, then rules by rank. Leaves no garbage.
   */
  decide(packet: Uint8Array, name: HashedName, group: number, decision: Decision): Ruling {
    decision.clear();
    if (!this.filters(group)) return Ruling.None;
    const listed = this.#matchBase(packet, name, group);
    const own = this.#matchCustom(packet, name);
    const base = this.#base;
    const custom = this.#custom;
    const mayAnswer = (base !== null && base.sawAnswers) || (custom !== null && custom.sawAnswers);
    const answers = this.#answers;
    if (mayAnswer) {
      answers.clear();
      if (custom !== null) answers.add(custom, CUSTOM, packet, name, CUSTOM_SOURCES, NONE);
      if (base !== null) {
        const { lists } = this.#groups[group];
        answers.add(base, 0, packet, name, lists, this.#parts.turnedOff);
      }
      if (answers.rewrite(decision)) return Ruling.Answer;
    }
    if (base !== null && base.service !== NO_RULE) {
      decision.rule = base.service;
      return Ruling.Block;
    }
    decision.rule = this.#decidingRule(listed, own);
    if (decision.rule !== NO_RULE) {
      return this.#isBlock(decision.rule) ? Ruling.Block : Ruling.Allow;
    }
    return mayAnswer && answers.hosts(decision) ? Ruling.Answer : Ruling.None;
  }

  /**
   * The rule that blocks a name met in an answer (the target of a CNAME record), or `NO_RULE`.
   * Rewrites and addresses of hosts lines are about names asked for.
   */
  match(packet: Uint8Array, name: HashedName, group: number): number {
    if (!this.filters(group)) return NO_RULE;
    const listed = this.#matchBase(packet, name, group);
    const base = this.#base;
    if (base !== null && base.service !== NO_RULE) return base.service;
    const rule = this.#decidingRule(listed, this.#matchCustom(packet, name));
    return rule !== NO_RULE && this.#isBlock(rule) ? rule : NO_RULE;
  }

  /** Says whether any rule about addresses in answers holds for a group now. */
  hasAddressRules(group: number): boolean {
    return this.filters(group) && this.#groups[group].hasAddressRules;
  }

  /**
   * The rule that blocks a response with this address of 4 or 16 bytes, or `NO_RULE`: none is about
   * it, or an exception protects it.
   */
  matchAddress(bytes: Uint8Array, offset: number, lengthBytes: number, group: number): number {
    if (!this.hasAddressRules(group)) return NO_RULE;
    const [base, custom] = [this.#base, this.#custom];
    const { lists } = this.#groups[group];
    const { turnedOff } = this.#parts;
    const listed = base === null
      ? NO_RULE
      : base.matchAddress(bytes, offset, lengthBytes, lists, turnedOff);
    const own = custom === null
      ? NO_RULE
      : custom.matchAddress(bytes, offset, lengthBytes, CUSTOM_SOURCES);
    const rule = this.#decidingRule(listed, own);
    return rule !== NO_RULE && this.#isBlock(rule) ? rule : NO_RULE;
  }

  #matchBase(packet: Uint8Array, name: HashedName, group: number): number {
    const base = this.#base;
    if (base === null) return NO_RULE;
    const { lists, services } = this.#groups[group];
    return base.match(packet, name, lists, this.#parts.turnedOff, services);
  }

  #matchCustom(packet: Uint8Array, name: HashedName): number {
    const custom = this.#custom;
    return custom === null ? NO_RULE : custom.match(packet, name, CUSTOM_SOURCES);
  }

  /**
   * Says whether a rule of any source at all is about a name, whoever has that source and whenever:
   * if none is, the name passes for every client as long as the snapshot lasts.
   */
  mentions(packet: Uint8Array, name: HashedName): boolean {
    const [base, custom] = [this.#base, this.#custom];
    return (base !== null && base.match(packet, name, this.#everything) !== NO_RULE) ||
      (custom !== null && custom.match(packet, name, CUSTOM_SOURCES) !== NO_RULE);
  }

  /** As `mentions`, of an address of 4 or 16 bytes. */
  mentionsAddress(bytes: Uint8Array, offset: number, lengthBytes: number): boolean {
    const [base, custom] = [this.#base, this.#custom];
    return (base !== null &&
      base.matchAddress(bytes, offset, lengthBytes, this.#everything) !== NO_RULE) ||
      (custom !== null &&
        custom.matchAddress(bytes, offset, lengthBytes, CUSTOM_SOURCES) !== NO_RULE);
  }

  #isBlock(rule: number): boolean {
    return (rule & CUSTOM) !== 0
      ? this.#custom!.isBlock(rule & ~CUSTOM)
      : this.#base!.isBlock(rule);
  }

  /** Which of a base rule and a custom rule decides; either may be `NO_RULE`. */
  #decidingRule(listed: number, own: number): number {
    if (own === NO_RULE) return listed;
    return listed === NO_RULE || this.#outranks(own, listed) ? own | CUSTOM : listed;
  }

  /** Says whether a custom rule decides before one of the base: of equal ones the longer name. */
  #outranks(own: number, listed: number): boolean {
    const [custom, base] = [this.#custom!, this.#base!];
    const [ownRank, listedRank] = [custom.rank(own), base.rank(listed)];
    if (ownRank !== listedRank) return ownRank > listedRank;
    return custom.nameLengthBytes(own) >= base.nameLengthBytes(listed);
  }

  /** The rule as its list has it, and the list. */
  decidedBy(rule: number): { rule: string; list: { id: string; name: string } } {
    const isCustom = (rule & CUSTOM) !== 0;
    const matcher = isCustom ? this.#custom : this.#base;
    invariant(matcher !== null, "a rule comes from a matcher");
    const ref = rule & ~CUSTOM;
    const list = isCustom ? CUSTOM_LIST : this.#sources[matcher.source(ref)];
    return { rule: matcher.ruleText(ref), list };
  }

  /** What an extended error says of a blocked name: the rule and the list it stands in. */
  blockedText(rule: number): Uint8Array {
    const known = this.#texts.get(rule);
    if (known !== undefined) return known;
    const decided = this.decidedBy(rule);
    const text = new TextEncoder().encode(`${decided.rule} (${decided.list.name})`);
    if (this.#texts.size >= TEXTS_MAX) this.#texts.clear();
    this.#texts.set(rule, text);
    return text;
  }

  /**
   * References of all rules that answer, or would but for a response code, where `decide` has just
   * said that rules do; for explanations.
   */
  answeringRules(decision: Decision): number[] {
    return this.#answers.answering(decision);
  }

  /** Every rule about the name, in whatever list, the highest rank first; for explanations. */
  matchAll(packet: Uint8Array, name: HashedName, group: number): AnyMatch[] {
    return this.#describe(
      group,
      (matcher, sources) => matcher.matchAll(packet, name, sources),
    );
  }

  /** Every rule about an address, in whatever list, the highest rank first; for explanations. */
  matchAllAddress(address: Uint8Array, group: number): AnyMatch[] {
    return this.#describe(group, (matcher, sources) => matcher.matchAllAddress(address, sources));
  }

  #describe(group: number, all: (matcher: Matcher, sources: Uint32Array) => Hit[]): AnyMatch[] {
    const { lists, services } = this.#groups[group];
    const everything = new Uint32Array(lists.length).fill(0xffffffff);
    const base = this.#base === null ? [] : all(this.#base, everything);
    const custom = this.#custom === null ? [] : all(this.#custom, CUSTOM_SOURCES);
    const matches = [
      ...custom.map(({ ref, rank }) => ({
        ...this.decidedBy(ref | CUSTOM),
        ref: ref | CUSTOM,
        kind: kindOf(this.#custom!.flags(ref)),
        rank,
        nameLengthBytes: this.#custom!.nameLengthBytes(ref),
        applies: true,
        turnedOff: false,
        isService: false,
      })),
      ...base.map(({ ref, rank }) => {
        const source = this.#base!.source(ref);
        const isService = this.#sources[source].id.startsWith(SERVICE_PREFIX);
        const bits = isService ? services : lists;
        return {
          ...this.decidedBy(ref),
          ref,
          kind: kindOf(this.#base!.flags(ref)),
          rank,
          nameLengthBytes: this.#base!.nameLengthBytes(ref),
          applies: ((bits[source >> 5] >>> (source & 31)) & 1) === 1,
          turnedOff: !isService && this.#parts.turnedOff.includes(ref),
          isService,
        };
      }),
    ];
    return matches.sort((a, b) =>
      Number(b.isService) - Number(a.isService) || b.rank - a.rank ||
      b.nameLengthBytes - a.nameLengthBytes
    );
  }

  /** ID and name of a group. */
  group(number: number): { id: string; name: string } {
    const { groupTextOffsets: offsets, groupTextBytes: bytes } = this.#parts;
    return idAndName({ offsets, bytes }, number);
  }

  /** ID and name of a client. */
  client(number: number): { id: string; name: string } {
    const { clientTextOffsets: offsets, clientTextBytes: bytes } = this.#parts;
    return idAndName({ offsets, bytes }, number);
  }

  /** The client whose resource has this ID, or `NO_CLIENT`; looks at each. */
  clientNumber(id: string): number {
    const { clientGroups } = this.#parts;
    for (let number = 0; number < clientGroups.length; number++) {
      if (this.client(number).id === id) return number;
    }
    return NO_CLIENT;
  }
}

function idAndName(texts: Texts, number: number): { id: string; name: string } {
  const at = number * TEXTS_EACH;
  return { id: unpackText(texts, at), name: unpackText(texts, at + 1) };
}

/** A rule about a name, whether it applies or not. */
export interface AnyMatch {
  readonly ref: number;
  readonly kind: Kind;
  readonly rule: string;
  readonly list: { readonly id: string; readonly name: string };
  /** Important exception 3, important block 2, exception 1, block 0. */
  readonly rank: number;
  readonly nameLengthBytes: number;
  /** The group has its list, and now. */
  readonly applies: boolean;
  /** A custom `$badfilter` turns it off. */
  readonly turnedOff: boolean;
  readonly isService: boolean;
}

function blockForm({ block_response }: Settings): BlockForm {
  switch (block_response) {
    case "nxdomain":
      return BlockForm.NxDomain;
    case "refused":
      return BlockForm.Refused;
    case "null_ip":
    case "custom_ip":
      return BlockForm.Address;
  }
}

function address(text: string | null, otherwise: string): Uint8Array {
  const ip = parseIp(text ?? otherwise);
  invariant(ip !== null, "settings hold addresses");
  return ip;
}

// One number says so for both: a network's clients and nobody's.
invariant(NO_VALUE === NO_CLIENT, "no network holds the address of an unknown client");
