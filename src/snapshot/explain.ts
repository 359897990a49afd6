import { parseIp, unmapIpv4 } from "../addr/mod.ts";
import { HashedName, isAtOrBelow, parseName, Qtype } from "../dns/mod.ts";
import { NO_RULE } from "../filter/mod.ts";
import { NO_CLIENT } from "./client_ids.ts";
import { NO_RECORDS } from "./records.ts";
import type { AnyMatch, Snapshot } from "./snapshot.ts";

/** What a query would come to, before the cache and the upstreams have their say. */
export interface Explanation {
  readonly client: { readonly id: string; readonly name: string } | null;
  readonly group: { readonly id: string; readonly name: string };
  readonly outcome: "local" | "blocked" | "forwarded";
  /** The deciding rule, and the ID of its list. */
  readonly rule: string | null;
  readonly list: string | null;
  /** Local records that answer, in presentation form. */
  readonly records: readonly string[];
  /** Every rule about the name, the deciding one first. */
  readonly matches: readonly {
    readonly rule: string;
    readonly list: string;
    readonly list_name: string;
    readonly effect: "block" | "allow";
    /** Why it did not decide; `null` for the one that did. */
    readonly lost: string | null;
  }[];
}

/** The bit of a rank that exceptions have. */
const EXCEPTION_BIT = 1;
const OWN_ZONE = parseName("svc.test")!;

/**
 * Says who asks, in which group, and which rule of which list decides about a name. `client` is an
 * address or a client ID; `null` is a client not known. Returns `null` for what is no name.
 */
export function explain(
  snapshot: Snapshot,
  name: string,
  qtype: number,
  client: string | null,
): Explanation | null {
  const packet = parseName(name);
  if (packet === null) return null;
  const hashed = new HashedName();
  hashed.read(packet, 0, packet.length, snapshot.data.overlay.seed);
  const who = findClient(snapshot, client);
  const group = snapshot.groupOf(who);
  const common = {
    client: who === NO_CLIENT ? null : snapshot.client(who),
    group: snapshot.group(group),
  };
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
  const deciding = snapshot.match(packet, hashed, group);
  const winner = deciding !== NO_RULE
    ? all.find(({ ref }) => ref === deciding)
    : all.find((match) => match.applies && !match.turnedOff && isException(match));
  const isFiltered = snapshot.filters(group);
  const decided = isFiltered ? winner : undefined;
  const ordered = decided === undefined
    ? all
    : [decided, ...all.filter((match) => match !== decided)];
  return {
    ...common,
    outcome: deciding !== NO_RULE ? "blocked" : "forwarded",
    rule: decided?.rule ?? null,
    list: decided?.list.id ?? null,
    records: [],
    matches: ordered.map((match) => ({ ...shown(match), lost: lost(match, decided, isFiltered) })),
  };
}

function findClient(snapshot: Snapshot, client: string | null): number {
  if (client === null) return NO_CLIENT;
  const ip = parseIp(client);
  if (ip === null) {
    const id = new TextEncoder().encode(client);
    return snapshot.clientWithId(id, 0, id.length);
  }
  const address = unmapIpv4(ip);
  return snapshot.clientAt(address, 0, address.length);
}

function recordTexts({ records }: Snapshot, set: number, qtype: number): string[] {
  const first = records.first(set);
  const all = Array.from({ length: records.count(set) }, (_, i) => first + i);
  return all.filter((record) => [qtype, Qtype.CNAME].includes(records.type(record)))
    .map((record) => records.text(record));
}

function isException({ rank, isService }: AnyMatch): boolean {
  return !isService && (rank & EXCEPTION_BIT) !== 0;
}

function shown({ rule, list, rank }: AnyMatch) {
  const effect = (rank & EXCEPTION_BIT) !== 0 ? "allow" : "block";
  return { rule, list: list.id, list_name: list.name, effect } as const;
}

function lost(match: AnyMatch, winner: AnyMatch | undefined, isFiltered: boolean): string | null {
  if (match === winner) return null;
  if (!match.applies) {
    return `the group does not use this ${match.isService ? "service" : "list"} now`;
  }
  if (!isFiltered) return "queries of this client are not filtered now";
  if (match.turnedOff) return "a custom $badfilter turns it off";
  if (winner === undefined) return "no rule decides";
  if (winner.isService && !match.isService) return "a blocked service outranks every list and rule";
  if (winner.rank > match.rank) {
    return `${RANK_TEXT[winner.rank]} outranks ${RANK_TEXT[match.rank]}`;
  }
  return winner.nameLengthBytes > match.nameLengthBytes
    ? "a rule of the same rank is about a longer name"
    : "another rule of the same rank comes first";
}

const RANK_TEXT = ["a block", "an exception", "an important block", "an important exception"];
