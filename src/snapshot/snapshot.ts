import { NO_VALUE, parseIp, PrefixTable } from "../addr/mod.ts";
import { NO_RULE } from "../filter/mod.ts";
import type { HashedName } from "../dns/mod.ts";
import { invariant } from "../errors.ts";
import type { Settings } from "../model/mod.ts";
import { Access } from "./access.ts";
import { SERVICE_PREFIX } from "./base.ts";
import { ClientIds, NO_CLIENT } from "./client_ids.ts";
import { type ClientDetails, clientTexts } from "./client_tables.ts";
import { type Decision, OFF, OFF_RULE, Ruling } from "./decision.ts";
import {
  ENTRY_WORDS,
  GroupFlag,
  type GroupParts,
  NO_INTERNET,
  type OverlayData,
  overlayMemory,
  TEXTS_EACH,
} from "./overlay.ts";
import { LocalRecords } from "./records.ts";
import { type AnyMatch, RuleLevels } from "./rule_levels.ts";
import { Schedule } from "./schedule.ts";
import { unpackText } from "./shared.ts";

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
  return rules === null ? overlayMemory(overlay) : [rules, ...overlayMemory(overlay)];
}

/** What a blocked name is answered with. */
export const BlockForm = { Address: 0, NxDomain: 1, Refused: 2 } as const;
export type BlockForm = typeof BlockForm[keyof typeof BlockForm];

/** The longest that nobody looks whether schedules and clock still agree: clocks are set, too. */
export const REEVALUATE_MS = 30_000;
/** The number of the default group. */
export const DEFAULT_GROUP = 0;
/** Texts of deciding rules that are kept ready for extended errors. */
const TEXTS_MAX = 4_096;

/** A group as a query meets it. */
interface Group {
  /** The setting of the group… */
  readonly isFiltered: boolean;
  /** …and whether that is so now: it is not paused. */
  filtering: boolean;
  readonly safeSearch: boolean;
  /** Bits of the base sources that apply now, and of the custom rules, which always do. */
  readonly lists: Uint32Array;
  readonly services: Uint32Array;
  /** Rules about addresses in answers hold for it. */
  hasAddressRules: boolean;
  /** It has no Internet now. */
  isOff: boolean;
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

  readonly #rules: RuleLevels;
  readonly #groupParts: GroupParts;
  readonly #clients: ClientDetails;
  readonly #sources: OverlayData["sources"];
  readonly #prefixes: PrefixTable;
  readonly #ids: ClientIds;
  readonly #groups: readonly Group[];
  readonly #schedules: readonly Schedule[];
  /** Whether each schedule was active when it was last looked at. */
  readonly #active: boolean[];
  /** Whether each time at which something ends had come then. */
  readonly #reached: boolean[];
  /** Queries are filtered: protection is on, and not paused. */
  #filtering = false;
  readonly #texts = new Map<number, Uint8Array>();

  constructor(data: SnapshotData, nowMs: number) {
    const { generation, rules, overlay } = data;
    const { settings, clients, groups } = overlay;
    this.data = data;
    this.generation = generation;
    this.#rules = new RuleLevels(rules, overlay.custom, overlay.limited, overlay.sources);
    this.#groupParts = groups.parts;
    this.#clients = clients.details.parts;
    this.#sources = overlay.sources;
    this.#prefixes = new PrefixTable(clients.networks.parts);
    this.#ids = new ClientIds(clients.ids.parts);
    this.records = new LocalRecords(overlay.records.parts);
    this.access = new Access(overlay.access);
    this.#schedules = overlay.schedules.map((spec) => new Schedule(spec));
    this.#active = this.#schedules.map(() => false);
    this.#reached = overlay.times.map(() => false);
    const words = ((overlay.sources.length + overlay.limitedSources) >> 5) + 1;
    this.#groups = Array.from(groups.parts.groupFlags, (flags) => ({
      isFiltered: (flags & GroupFlag.Filtering) !== 0,
      filtering: false,
      safeSearch: (flags & GroupFlag.SafeSearch) !== 0,
      lists: new Uint32Array(words),
      services: new Uint32Array(words),
      hasAddressRules: false,
      isOff: false,
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
   * Brings schedules, pauses and ends of rules in step with the clock. Returns when that is due
   * again, in the same milliseconds, or `Infinity` where nothing depends on the time.
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
    for (const [i, ms] of this.data.overlay.times.entries()) {
      const reached = nowMs >= ms;
      changed ||= reached !== this.#reached[i];
      this.#reached[i] = reached;
      if (!reached) nextMs = Math.min(nextMs, ms, lookAgainMs);
    }
    if (changed) this.#setSources();
    return nextMs;
  }

  /** Sets the bits of the sources that apply now. */
  #setSources(): void {
    const { groupEntries, groupPauses, entries } = this.#groupParts;
    const has = (time: number) => time === 0 || this.#reached[time - 1];
    const own = this.#sources.length;
    for (const [number, group] of this.#groups.entries()) {
      group.filtering = group.isFiltered && has(groupPauses[number]);
      group.lists.fill(0);
      group.lists[own >> 5] = 1 << (own & 31);
      group.services.fill(0);
      group.isOff = false;
      for (let i = groupEntries[number]; i < groupEntries[number + 1]; i++) {
        const source = entries[i * ENTRY_WORDS];
        const schedule = entries[i * ENTRY_WORDS + 1];
        if (schedule !== 0 && !this.#active[schedule - 1]) continue;
        const until = entries[i * ENTRY_WORDS + 3];
        if (!has(entries[i * ENTRY_WORDS + 2]) || (until !== 0 && has(until))) continue;
        if (source === NO_INTERNET) {
          group.isOff = true;
          continue;
        }
        const isService = this.#sources.at(source)?.id.startsWith(SERVICE_PREFIX) ?? false;
        const bits = isService ? group.services : group.lists;
        bits[source >> 5] |= 1 << (source & 31);
      }
      group.hasAddressRules = this.#rules.hasAddressRules(group.lists);
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
    return client === NO_CLIENT ? DEFAULT_GROUP : this.#clients.clientGroups[client];
  }

  /** Says whether queries of a group are logged. */
  logs(group: number): boolean {
    return (this.#groupParts.groupFlags[group] & GroupFlag.NoLog) === 0;
  }

  /** Says whether queries of a group are counted in statistics. */
  counts(group: number): boolean {
    return (this.#groupParts.groupFlags[group] & GroupFlag.NoStatistics) === 0;
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
   * Says what comes of a name that clients of a group ask for, and fills in the decision: no Internet
   * at all, then rewrites, then blocked services, then rules by rank. Leaves no garbage.
   */
  decide(packet: Uint8Array, name: HashedName, group: number, decision: Decision): Ruling {
    decision.clear();
    if (this.#groups[group].isOff) {
      decision.rule = OFF_RULE;
      return Ruling.Block;
    }
    if (!this.filters(group)) return Ruling.None;
    return this.#rules.decide(packet, name, this.#groups[group], decision);
  }

  /**
   * The rule that blocks a name met in an answer (the target of a CNAME record), or `NO_RULE`.
   * Rewrites and addresses of hosts lines are about names asked for.
   */
  match(packet: Uint8Array, name: HashedName, group: number): number {
    if (!this.filters(group)) return NO_RULE;
    return this.#rules.match(packet, name, this.#groups[group]);
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
    return this.#rules.matchAddress(bytes, offset, lengthBytes, this.#groups[group].lists);
  }

  /**
   * Says whether a rule of any source at all is about a name, whoever has that source and whenever:
   * if none is, the name passes for every client as long as the snapshot lasts.
   */
  mentions(packet: Uint8Array, name: HashedName): boolean {
    return this.#rules.mentions(packet, name);
  }

  /** As `mentions`, of an address of 4 or 16 bytes. */
  mentionsAddress(bytes: Uint8Array, offset: number, lengthBytes: number): boolean {
    return this.#rules.mentionsAddress(bytes, offset, lengthBytes);
  }

  /** Says whether a group has no Internet now. */
  isOff(group: number): boolean {
    return this.#groups[group].isOff;
  }

  /** The rule as its list has it, and the list. */
  decidedBy(rule: number): { rule: string; list: { id: string; name: string } } {
    return rule === OFF_RULE ? OFF : this.#rules.decidedBy(rule);
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
    return this.#rules.answering(decision);
  }

  /** Every rule about the name, in whatever list, the highest rank first; for explanations. */
  matchAll(packet: Uint8Array, name: HashedName, group: number): AnyMatch[] {
    return this.#rules.matchAll(packet, name, this.#groups[group]);
  }

  /** Every rule about an address, in whatever list, the highest rank first; for explanations. */
  matchAllAddress(address: Uint8Array, group: number): AnyMatch[] {
    return this.#rules.matchAllAddress(address, this.#groups[group]);
  }

  /** ID and name of a group. */
  group(number: number): { id: string; name: string } {
    const { groupTextOffsets: offsets, groupTextBytes: bytes } = this.#groupParts;
    const at = number * TEXTS_EACH;
    return { id: unpackText({ offsets, bytes }, at), name: unpackText({ offsets, bytes }, at + 1) };
  }

  /** The group with this ID, or `null`; looks at each. */
  groupNumber(id: string): number | null {
    for (let number = 0; number < this.#groups.length; number++) {
      if (this.group(number).id === id) return number; // Those made for clients are behind it.
    }
    return null;
  }

  /** ID and name of a client. */
  client(number: number): { id: string; name: string } {
    return clientTexts(this.#clients, number);
  }

  /** The client whose resource has this ID, or `NO_CLIENT`; looks at each. */
  clientNumber(id: string): number {
    const { clientGroups } = this.#clients;
    for (let number = 0; number < clientGroups.length; number++) {
      if (this.client(number).id === id) return number;
    }
    return NO_CLIENT;
  }
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
