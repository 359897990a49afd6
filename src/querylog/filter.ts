import {
  compilePrefixes,
  formatIp,
  NO_VALUE,
  parseIp,
  parsePrefix,
  prefixHolds,
  PrefixTable,
  unmapIpv4,
} from "../addr/mod.ts";
import { OUTCOME_NAMES, PROTOCOL_NAMES, TEXT_SEPARATOR } from "../logqueue/mod.ts";
import { clientLabel, type LogFilter, type StoredEntry } from "./entry.ts";

/** What is left of an anonymised address, in bytes: 24 bits of IPv4, 56 of IPv6. */
const KEPT_IPV4_BYTES = 3;
const KEPT_IPV6_BYTES = 7;
const IPV4_BYTES = 4;

/** Clears what an anonymised address does not keep. */
export function anonymize(bytes: Uint8Array, offset: number, lengthBytes: number): void {
  const kept = lengthBytes === IPV4_BYTES ? KEPT_IPV4_BYTES : KEPT_IPV6_BYTES;
  bytes.fill(0, offset + kept, offset + lengthBytes);
}

/** The start of the texts of clients with an address; `null` for what is no address. */
export function clientStart(client: string, isAnonymized: boolean): string | null {
  const parsed = parseIp(client);
  if (parsed === null) return null;
  const ip = unmapIpv4(parsed).slice();
  if (isAnonymized) anonymize(ip, 0, ip.length);
  return formatIp(ip) + TEXT_SEPARATOR;
}

/** Says whether a client's text is of the address, the name or the client ID that is asked for. */
export function clientTest(client: string, isAnonymized: boolean): (text: string) => boolean {
  const start = clientStart(client, isAnonymized);
  if (start !== null) return (text) => text.startsWith(start);
  const network = client.includes("/") ? parsePrefix(client) : null;
  if (network !== null) {
    return (text) => {
      const ip = parseIp(text.slice(0, text.indexOf(TEXT_SEPARATOR)));
      return ip !== null && prefixHolds(network, unmapIpv4(ip));
    };
  }
  const wanted = client.toLowerCase();
  return (text) =>
    text.split(TEXT_SEPARATOR, 2)[1] === wanted || clientLabel(text).toLowerCase() === wanted;
}

/**
 * Says which of some clients, each by its addresses, networks, client IDs and name, a client's text is
 * of; -1: of none. For many texts and clients at once: the narrowest network counts.
 */
export function clientNumber(
  clients: readonly (readonly string[])[],
): (text: string) => number {
  const byName = new Map<string, number>();
  const prefixes = clients.flatMap((keys, value) =>
    keys.flatMap((key) => {
      const prefix = parsePrefix(key);
      if (prefix === null) byName.set(key.toLowerCase(), value);
      return prefix === null ? [] : [{ prefix, value }];
    })
  );
  const table = new PrefixTable(compilePrefixes(prefixes));
  return (text) => {
    const [address, id] = text.split(TEXT_SEPARATOR, 2);
    const named = byName.get(id) ?? byName.get(clientLabel(text).toLowerCase());
    const parsed = named === undefined ? parseIp(address) : null;
    if (parsed === null) return named ?? -1;
    const ip = unmapIpv4(parsed);
    const number = table.find(ip, 0, ip.length);
    return number === NO_VALUE ? -1 : number;
  };
}

/** Says whether a client's text is of one of these, and in the group; `null`: all are asked for. */
export function subjectTest(
  { clients, group }: { readonly clients?: readonly string[]; readonly group?: string },
  isAnonymized: boolean,
): ((text: string) => boolean) | null {
  if (clients === undefined && group === undefined) return null;
  const tests = clients?.map((client) => clientTest(client, isAnonymized));
  return (text) =>
    (tests === undefined || tests.some((test) => test(text))) &&
    (group === undefined || text.split(TEXT_SEPARATOR, 3)[2] === group);
}

/** A text as names are kept: in lower case, without the dot at their end. */
export function foldedName(name: string): string {
  const lower = name.toLowerCase();
  return lower.length > 1 && lower.endsWith(".") ? lower.slice(0, -1) : lower;
}

/** Says whether what many entries share is of the type, the protocol and the upstream asked for. */
function kindTest({ type, protocol, upstream }: LogFilter): (kind: string) => boolean {
  if (type === undefined && protocol === undefined && upstream === undefined) return () => true;
  const number = protocol === undefined ? "" : String(PROTOCOL_NAMES.indexOf(protocol));
  return (kind) => {
    const [ofType, , ofProtocol, , , ofUpstream] = kind.split(TEXT_SEPARATOR);
    return (type === undefined || ofType === type) && (number === "" || ofProtocol === number) &&
      (upstream === undefined || ofUpstream === upstream);
  };
}

/** A text in a pattern of SQLite's GLOB. */
function literal(text: string): string {
  return text.replaceAll(/[*?[]/g, "[$&]");
}

/**
 * The pattern (GLOB) of the texts that `kindTest` lets pass; `null` where all do. No field but the
 * last one can hold a separator, and each of three has one digit.
 */
export function kindPattern({ type, protocol, upstream }: LogFilter): string | null {
  if (type === undefined && protocol === undefined && upstream === undefined) return null;
  const number = protocol === undefined ? "?" : String(PROTOCOL_NAMES.indexOf(protocol));
  const [first, last] = [type, upstream].map((text) => text === undefined ? "*" : literal(text));
  return [first, "*", number, "?", "?", last].join(TEXT_SEPARATOR);
}

/** What a filter lets pass, an entry at a time. */
export function entryTest(
  filter: LogFilter,
  isAnonymized: boolean,
): (entry: StoredEntry) => boolean {
  const { outcomes, group, list, sinceMs = -Infinity, untilMs = Infinity } = filter;
  const numbers = outcomes?.map((outcome) => OUTCOME_NAMES.indexOf(outcome));
  const isKind = kindTest(filter);
  const name = filter.name === undefined ? "" : foldedName(filter.name);
  const isClient = filter.client === undefined ? null : clientTest(filter.client, isAnonymized);
  return (entry) =>
    (numbers === undefined || numbers.includes(entry.outcome)) && isKind(entry.kind) &&
    (group === undefined || entry.client.split(TEXT_SEPARATOR, 3)[2] === group) &&
    (list === undefined || entry.rule.startsWith(list + TEXT_SEPARATOR)) &&
    entry.name.includes(name) &&
    entry.timeMs > sinceMs && entry.timeMs < untilMs &&
    (isClient === null || isClient(entry.client));
}
