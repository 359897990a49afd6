import { formatIp, parseIp, unmapIpv4 } from "../addr/mod.ts";
import { formatName, HashedName, isAtOrBelow, parseName, Qtype, Rcode } from "../dns/mod.ts";
import { Kind, NO_RULE } from "../filter/mod.ts";
import { NO_CLIENT } from "./client_ids.ts";
import { Decision, NO_RCODE, OFF, Ruling } from "./decision.ts";
import { CHAIN_MAX, NO_RECORDS } from "./records.ts";
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
  readonly outcome: "local" | "blocked" | "rewritten" | "safe_search" | "forwarded" | "failed";
  /**
   * The name that it is all about: where CNAME records of the operator's own lead, which queries are
   * led by before the filter; `null`: the name itself.
   */
  readonly target: string | null;
  /** The deciding rule, and the ID of its list. */
  readonly rule: string | null;
  readonly list: string | null;
  /**
   * What answers in place of an upstream, in presentation form, behind the targets that lead there; a
   * response code by its name. Empty where there is nothing of the type.
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
/** Why no rule about a name with records of the operator's own decides. */
const LOCAL = "a local record answers before the filter";
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
  if (address !== null) {
    return { ...common, target: null, ...explainAddress(snapshot, address, group) };
  }
  const packet = parseName(name);
  if (packet === null) return null;
  const way = wayOf(snapshot, packet, qtype);
  const found = explainName(snapshot, way, qtype, group);
  const { targets } = way;
  if (targets.length === 0) return { ...common, target: null, ...found };
  const passed = snapshot.matchAll(packet, hashedOf(snapshot, packet), group).map(shown)
    .filter((a) => !found.matches.some((b) => a.rule === b.rule && a.list === b.list));
  return {
    ...common,
    ...found,
    target: targets[targets.length - 1],
    records: [...targets, ...found.records],
    matches: [...found.matches, ...passed.map((match) => ({ ...match, lost: LOCAL }))],
  };
}
/** Where CNAME records of the operator's own lead from a name, as queries for it go. */
interface Way {
  /** Of the last name. */
  readonly packet: Uint8Array;
  readonly hashed: HashedName;
  readonly set: number;
  readonly targets: readonly string[];
}

function wayOf(snapshot: Snapshot, name: Uint8Array, qtype: number): Way {
  const { records } = snapshot;
  const targets: string[] = [];
  for (let packet = name;;) {
    const hashed = hashedOf(snapshot, packet);
    const isOwn = isAtOrBelow(packet, 0, OWN_ZONE, 0);
    const set = isOwn ? NO_RECORDS : records.find(packet, hashed);
    const leads = set !== NO_RECORDS && qtype !== Qtype.CNAME && qtype !== Qtype.ANY;
    const cname = leads ? records.firstOfType(set, Qtype.CNAME) : -1;
    if (cname < 0 || targets.length >= CHAIN_MAX) return { packet, hashed, set, targets };
    const offset = records.rdataOffset(cname);
    packet = records.bytes.slice(offset, offset + records.rdataLength(cname));
    targets.push(formatName(packet));
  }
}

function hashedOf(snapshot: Snapshot, packet: Uint8Array): HashedName {
  const hashed = new HashedName();
  hashed.read(packet, 0, packet.length, snapshot.data.overlay.seed);
  return hashed;
}

/** What a query comes to at the end of its way. */
function explainName(
  snapshot: Snapshot,
  { packet, hashed, set, targets }: Way,
  qtype: number,
  group: number,
): Verdict & Pick<Explanation, "outcome" | "records"> {
  const all = snapshot.matchAll(packet, hashed, group);
  const none = { rule: null, list: null };
  if (isAtOrBelow(packet, 0, OWN_ZONE, 0) || set !== NO_RECORDS) {
    const matches = all.map((match) => ({ ...shown(match), lost: LOCAL }));
    const leadsOn = set !== NO_RECORDS && targets.length >= CHAIN_MAX &&
      snapshot.records.firstOfType(set, Qtype.CNAME) >= 0;
    if (leadsOn) {
      return { ...none, outcome: "failed", records: [rcodeText(Rcode.ServFail)], matches };
    }
    const records = set === NO_RECORDS ? [] : recordTexts(snapshot, set, qtype);
    return { ...none, outcome: "local", records, matches };
  }
  if (snapshot.isOff(group)) {
    const matches = all.map((match) => ({ ...shown(match), lost: OFF.rule }));
    const { rule, list: { id: list } } = OFF;
    const records = blockTexts(snapshot, qtype);
    return { outcome: "blocked", rule, list, records, matches };
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
      return { ...none, outcome: "local", records, matches };
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
    return { ...none, outcome: "safe_search", records: safe, matches };
  }
  const answers = ruling === Ruling.Answer;
  const answering = answers ? snapshot.answeringRules(decision) : [];
  const deciding = answers && decision.rcode === NO_RCODE ? answering : [decision.rule];
  // The rule that the query log names comes before others that answer with it.
  deciding.sort((a, b) => Number(b === decision.rule) - Number(a === decision.rule));
  return {
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
