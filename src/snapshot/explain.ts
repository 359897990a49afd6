import { formatIp, parseIp, unmapIpv4 } from "../addr/mod.ts";
import { formatName, HashedName, isAtOrBelow, parseName, Qtype, Rcode } from "../dns/mod.ts";
import { Kind, NO_RULE } from "../filter/mod.ts";
import { NO_CLIENT } from "./client_ids.ts";
import { Decision, NO_RCODE, OFF, Ruling } from "./decision.ts";
import { NO_RECORDS } from "./records.ts";
import { Canaries, NO_CANARY } from "./canaries.ts";
import { NO_ENGINE, SafeSearch } from "./safe_search.ts";
import type { AnyMatch } from "./rule_levels.ts";
import { BlockForm, type Snapshot } from "./snapshot.ts";

/** What a query would come to, before the cache and the upstreams have their say. */
export interface Explanation {
  readonly client: { readonly id: string; readonly name: string } | null;
  readonly group: { readonly id: string; readonly name: string };
  /** Whether queries of this client are logged, and counted in statistics. */
  readonly querylog: boolean;
  readonly statistics: boolean;
  readonly outcome: "local" | "blocked" | "rewritten" | "safe_search" | "forwarded";
  /** The deciding rule, and the ID of its list. */
  readonly rule: string | null;
  readonly list: string | null;
  /**
   * What answers in place of an upstream, in presentation form; a response code by its name. Empty
   * where there is nothing of the type.
   */
  readonly records: readonly string[];
  /** Every rule about the name, the deciding one first. */
  readonly matches: readonly {
    readonly rule: string;
    readonly list: string;
    readonly list_name: string;
    readonly effect: "block" | "allow" | "answer";
    /** Why it did not decide; `null` for the one that did, and for all that answer. */
    readonly lost: string | null;
  }[];
}

/** The bit of a rank that exceptions have. */
const EXCEPTION_BIT = 1;
const IPV4_BYTES = 4;
const OWN_ZONE = parseName("svc.test")!;

/**
 * Says who asks, in which group, and which rule of which list decides about a name. `client` is an
 * address, a client ID or the ID of a client; `null` is a client not known. In place of a name goes an address: then it
 * is about responses with this address. `groupId` is of the group that the client would be in; `null`:
 * its own. Returns `null` for what is neither, and for a group that is not there.
 */
export function explain(
  snapshot: Snapshot,
  name: string,
  qtype: number,
  client: string | null,
  groupId: string | null = null,
): Explanation | null {
  const who = findClient(snapshot, client);
  const group = groupId === null ? snapshot.groupOf(who) : snapshot.groupNumber(groupId);
  if (group === null) return null;
  const common = {
    client: who === NO_CLIENT ? null : snapshot.client(who),
    group: snapshot.group(group),
    querylog: snapshot.logs(group),
    statistics: snapshot.counts(group),
  };
  const address = parseIp(name);
  if (address !== null) return { ...common, ...explainAddress(snapshot, address, group) };
  const packet = parseName(name);
  if (packet === null) return null;
  const hashed = new HashedName();
  hashed.read(packet, 0, packet.length, snapshot.data.overlay.seed);
  const all = snapshot.matchAll(packet, hashed, group);
  const set = snapshot.records.find(packet, hashed);
  if (isAtOrBelow(packet, 0, OWN_ZONE, 0) || set !== NO_RECORDS) {
    const records = set === NO_RECORDS ? [] : recordTexts(snapshot, set, qtype);
    const matches = all.map((match) => ({
      ...shown(match),
      lost: "a local record answers before the filter",
    }));
    return { ...common, outcome: "local", rule: null, list: null, records, matches };
  }
  if (snapshot.isOff(group)) {
    const matches = all.map((match) => ({ ...shown(match), lost: OFF.rule }));
    const { rule, list: { id: list } } = OFF;
    const records = blockTexts(snapshot, qtype);
    return { ...common, outcome: "blocked", rule, list, records, matches };
  }
  const decision = new Decision();
  const ruling = snapshot.decide(packet, hashed, group, decision);
  if (ruling === Ruling.None || ruling === Ruling.Block) {
    const canaries = new Canaries(snapshot.data.overlay.seed);
    const rcode = canaries.rcode(packet, hashed);
    if (rcode !== NO_CANARY) {
      const matches = all.map((match) => ({
        ...shown(match),
        lost: "the name keeps clients from going around the filter: it is answered here",
      }));
      const records = rcode === Rcode.NoError ? [] : [rcodeText(rcode)];
      return { ...common, outcome: "local", rule: null, list: null, records, matches };
    }
  }
  const safe = ruling === Ruling.None || ruling === Ruling.Allow
    ? safeTexts(snapshot, packet, hashed, qtype, group)
    : null;
  if (safe !== null) {
    const exception = all.find(({ ref }) => ref === decision.rule);
    const matches = all.map((match) => ({
      ...shown(match),
      lost: match === exception
        ? "safe search answers what is let through"
        : lost(match, exception, true),
    }));
    return { ...common, outcome: "safe_search", rule: null, list: null, records: safe, matches };
  }
  const answers = ruling === Ruling.Answer;
  const answering = answers ? snapshot.answeringRules(decision) : [];
  const deciding = answers && decision.rcode === NO_RCODE ? answering : [decision.rule];
  // The rule that the query log names comes before others that answer with it.
  deciding.sort((a, b) => Number(b === decision.rule) - Number(a === decision.rule));
  return {
    ...common,
    outcome: OUTCOMES[ruling],
    records: answers
      ? answerTexts(decision, qtype)
      : ruling === Ruling.Block
      ? blockTexts(snapshot, qtype)
      : [],
    ...verdict(all, deciding, snapshot.filters(group), answering),
  };
}

/** Where safe search leads; `null` for what it leaves alone. */
function safeTexts(
  snapshot: Snapshot,
  packet: Uint8Array,
  name: HashedName,
  qtype: number,
  group: number,
): string[] | null {
  if (!snapshot.safeSearch(group)) return null;
  const safeSearch = new SafeSearch(snapshot.data.overlay.seed);
  const engine = safeSearch.find(packet, name, qtype);
  if (engine === NO_ENGINE) return null;
  const host = safeSearch.target(engine);
  if (host !== null) return [formatName(host)];
  const address = safeSearch.address(engine);
  return address === null || qtype !== Qtype.A ? [] : [formatIp(address)];
}

const OUTCOMES = {
  [Ruling.None]: "forwarded",
  [Ruling.Allow]: "forwarded",
  [Ruling.Block]: "blocked",
  [Ruling.Answer]: "rewritten",
} as const;

type Verdict = Pick<Explanation, "rule" | "list" | "matches">;

/** Says which rule decides about responses with an address. */
function explainAddress(
  snapshot: Snapshot,
  address: Uint8Array,
  group: number,
): Verdict & Pick<Explanation, "outcome" | "records"> {
  const all = snapshot.matchAllAddress(address, group);
  const blocking = snapshot.matchAddress(address, 0, address.length, group);
  const isFiltered = snapshot.filters(group);
  const qtype = unmapIpv4(address).length === IPV4_BYTES ? Qtype.A : Qtype.AAAA;
  const exception = all.find((match) => isFiltered && counts(match) && effectOf(match) === "allow");
  const deciding = blocking !== NO_RULE ? blocking : exception?.ref ?? NO_RULE;
  return {
    outcome: blocking === NO_RULE ? "forwarded" : "blocked",
    records: blocking === NO_RULE ? [] : blockTexts(snapshot, qtype),
    ...verdict(all, [deciding], isFiltered),
  };
}

/** The rules with the deciding ones first, and why the others are none. */
function verdict(
  all: readonly AnyMatch[],
  deciding: readonly number[],
  isFiltered: boolean,
  answering: readonly number[] = [],
): Verdict {
  const winners = deciding.flatMap((ref) => all.find((match) => match.ref === ref) ?? []);
  const others = all.filter((match) => !winners.includes(match));
  const winner = winners.at(0);
  const why = (match: AnyMatch) =>
    answering.includes(match.ref)
      ? "a response code outranks addresses, and the first one others"
      : lost(match, winner, isFiltered);
  return {
    rule: winner?.rule ?? null,
    list: winner?.list.id ?? null,
    matches: [
      ...winners.map((match) => ({ ...shown(match), lost: null })),
      ...others.map((match) => ({ ...shown(match), lost: why(match) })),
    ],
  };
}

/** How a blocked name is answered. */
function blockTexts(
  { blockForm, blockIpv4, blockIpv6 }: Snapshot,
  qtype: number,
): string[] {
  if (blockForm === BlockForm.NxDomain) return [rcodeText(Rcode.NXDomain)];
  if (blockForm === BlockForm.Refused) return [rcodeText(Rcode.Refused)];
  if (qtype === Qtype.A) return [formatIp(blockIpv4)];
  return qtype === Qtype.AAAA ? [formatIp(blockIpv6)] : [];
}

function rcodeText(rcode: number): string {
  const [name] = Object.entries(Rcode).find(([, code]) => code === rcode) ?? [];
  return (name ?? `RCODE${rcode}`).toUpperCase();
}

function answerTexts(decision: Decision, qtype: number): string[] {
  if (decision.rcode !== NO_RCODE) return [rcodeText(decision.rcode)];
  const address = new Uint8Array(qtype === Qtype.A ? 4 : 16);
  return Array.from({ length: decision.count(qtype) }, (_, i) => {
    decision.copyAddress(qtype, i, address, 0);
    return formatIp(address);
  });
}

function findClient(snapshot: Snapshot, client: string | null): number {
  if (client === null) return NO_CLIENT;
  const ip = parseIp(client);
  if (ip === null) {
    const id = new TextEncoder().encode(client);
    const found = snapshot.clientWithId(id, 0, id.length);
    return found === NO_CLIENT ? snapshot.clientNumber(client) : found;
  }
  const address = unmapIpv4(ip);
  return snapshot.clientAt(address, 0, address.length);
}

function recordTexts({ records }: Snapshot, set: number, qtype: number): string[] {
  if (records.isAbsent(set)) return [rcodeText(Rcode.NXDomain)];
  const first = records.first(set);
  const all = Array.from({ length: records.count(set) }, (_, i) => first + i);
  return all.filter((record) => [qtype, Qtype.CNAME].includes(records.type(record)))
    .map((record) => records.text(record));
}

function effectOf({ kind, rank }: AnyMatch): "block" | "allow" | "answer" {
  if ((rank & EXCEPTION_BIT) !== 0) return "allow";
  return kind === Kind.Rewrite || kind === Kind.HostsAddress ? "answer" : "block";
}

function shown(match: AnyMatch) {
  const { rule, list } = match;
  return { rule, list: list.id, list_name: list.name, effect: effectOf(match) };
}

/** Says whether a rule holds for the group now. */
function counts({ applies, turnedOffBy }: AnyMatch): boolean {
  return applies && turnedOffBy === null;
}

function lost(match: AnyMatch, winner: AnyMatch | undefined, isFiltered: boolean): string {
  if (!match.applies) {
    if (match.isLimited) return "it is not for this client, or has come to its end";
    return `the group does not use this ${match.isService ? "service" : "list"} now`;
  }
  if (!isFiltered) return "queries of this client are not filtered now";
  if (match.turnedOffBy !== null) return `${match.turnedOffBy} turns it off`;
  if (match.kind === Kind.Rewrite) {
    return effectOf(match) === "allow"
      ? "it is about rewrites only"
      : "an exception to rewrites disables it";
  }
  if (winner === undefined) return "no rule decides";
  if (winner.kind === Kind.Rewrite) return "a rewrite comes before every other rule";
  if (winner.isService && !match.isService) return "a blocked service outranks every list and rule";
  if (match.kind === Kind.HostsAddress) {
    return `${RANK_TEXT[winner.rank]} outranks addresses of hosts lines`;
  }
  if (winner.rank > match.rank) {
    return `${RANK_TEXT[winner.rank]} outranks ${RANK_TEXT[match.rank]}`;
  }
  if (winner.nameLengthBytes > match.nameLengthBytes) {
    return match.nameLengthBytes === 0
      ? "a rule of the same rank is about the name, not a pattern"
      : "a rule of the same rank is about a longer name";
  }
  return "another rule of the same rank comes first";
}

const RANK_TEXT = ["a block", "an exception", "an important block", "an important exception"];
