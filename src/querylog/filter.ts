import { formatIp, parseIp, unmapIpv4 } from "../addr/mod.ts";
import { OUTCOME_NAMES, TEXT_SEPARATOR } from "../logqueue/mod.ts";
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
  const wanted = client.toLowerCase();
  return (text) =>
    text.split(TEXT_SEPARATOR, 2)[1] === wanted || clientLabel(text).toLowerCase() === wanted;
}

/** A text as names are kept: in lower case, without the dot at their end. */
export function foldedName(name: string): string {
  const lower = name.toLowerCase();
  return lower.length > 1 && lower.endsWith(".") ? lower.slice(0, -1) : lower;
}

/** What a filter lets pass, an entry at a time. */
export function entryTest(
  filter: LogFilter,
  isAnonymized: boolean,
): (entry: StoredEntry) => boolean {
  const { outcome, sinceMs = -Infinity, untilMs = Infinity } = filter;
  const number = outcome === undefined ? -1 : OUTCOME_NAMES.indexOf(outcome);
  const name = filter.name === undefined ? "" : foldedName(filter.name);
  const isClient = filter.client === undefined ? null : clientTest(filter.client, isAnonymized);
  return (entry) =>
    (number < 0 || entry.outcome === number) && entry.name.includes(name) &&
    entry.timeMs > sinceMs && entry.timeMs < untilMs &&
    (isClient === null || isClient(entry.client));
}
