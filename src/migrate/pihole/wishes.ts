import { formatIp, formatPrefix, parseIp, parsePrefix } from "../../addr/mod.ts";
import { GROUPS_MADE_MAX } from "../limits.ts";
import { firstName, macOf, withoutHostBits } from "../identities.ts";
import {
  type Item,
  joined,
  lost,
  type WishedClient,
  type WishedGroup,
  type WishedRecord,
  type WishedRule,
  type WishedSetting,
  type Wishes,
} from "../wishes.ts";
import { piholeFilePart } from "./file_part.ts";
import type { PiholeData } from "./read.ts";

/** The group of every client that no other is for. */
const DEFAULT_ID = 0;
const DEFAULT_KEY = keyOf([DEFAULT_ID]);
const MANY_GROUPS = `one move makes ${GROUPS_MADE_MAX} groups, and a set of groups is one`;
const COMMENT_LENGTH_MAX = 1_024;

/** Clients are in many groups there, and get what any of them gets: each set of groups is one here. */
function keyOf(ids: readonly number[]): string {
  return ids.toSorted((a, b) => a - b).join(",");
}

/** Says in words of ours what a Pi-hole has. */
export function piholeWishes(data: PiholeData): Wishes {
  const items: Item[] = [];
  const on = new Map(
    data.groups.filter(({ enabled }) => enabled).map(({ id, name }) => [id, name]),
  );
  for (const { id, name, enabled } of data.groups) {
    if (!enabled) {
      const what = id === DEFAULT_ID ? "clients of it" : "clients of it alone";
      items.push(lost("group", name, `it is off there: ${what} get no lists here either`));
    }
  }
  const clients = clientsOf(data, on, items);
  const sets = new Map<string, readonly number[]>([[DEFAULT_KEY, [DEFAULT_ID]]]);
  for (const [id, name] of on) {
    if (sets.size < GROUPS_MADE_MAX) sets.set(keyOf([id]), [id]);
    else items.push(lost("group", name, MANY_GROUPS));
  }
  const kept = clients.filter(({ client, group, ids }) => {
    const fits = sets.has(group) || sets.size < GROUPS_MADE_MAX;
    if (fits) sets.set(group, ids);
    else items.push(lost("client", client.name, MANY_GROUPS));
    return fits;
  });
  const groups = Array.from(sets, ([key, ids]) => groupOf(data, on, key, ids));
  const rules = rulesOf(data, sets, on, items);
  const blocking = data.config.dns.blocking;
  if (blocking?.active === false) {
    items.push(lost("setting", "blocking is off", "it stays on here: turn it off in Settings"));
  }
  const fragment = piholeFilePart(data, items);
  return {
    lists: data.lists.map(({ address, type, comment, enabled }) => ({
      url: address,
      name: firstName([comment, listName(address), address]),
      enabled,
      allows: type === "allow",
      comment: comment.slice(0, COMMENT_LENGTH_MAX),
    })),
    groups,
    clients: kept.map(({ client }) => client),
    rules,
    records: recordsOf(data, items),
    settings: settingsOf(data, items),
    access: { allowed: [], disallowed: [] },
    items,
    fragment,
  };
}

/** The host and the last word of a URL: lists have no names there. */
function listName(address: string): string | null {
  const url = URL.parse(address);
  if (url === null) return null;
  return `${url.hostname} ${url.pathname.split("/").findLast((part) => part !== "") ?? ""}`.trim();
}

function groupOf(
  { lists }: PiholeData,
  on: ReadonlyMap<number, string>,
  key: string,
  ids: readonly number[],
): WishedGroup {
  const members = ids.filter((id) => on.has(id));
  const name = key === DEFAULT_KEY
    ? null
    : firstName([members.map((id) => on.get(id)!).join(" + "), "Without groups"]);
  return {
    key,
    name: members.length === 0 && name !== null ? "Without groups" : name,
    identity: JSON.stringify(members.map((id) => on.get(id)!).sort()),
    isNamed: true,
    // Who is in no group gets nothing of what is blocked.
    filtering: members.length > 0 || key === DEFAULT_KEY,
    safe_search: false,
    lists: lists.filter(({ enabled, groups }) =>
      enabled && groups.some((id) => members.includes(id))
    )
      .map(({ address }) => address),
    services: [],
    adapted: members.length > 1 ? "a client is in one group here, which has what these have" : null,
    safe_search_adapted: null,
  };
}

/** What is known of the network: addresses by MAC address and by name. */
function knownAddresses({ devices, config: { dhcp } }: PiholeData) {
  const [byMac, byName] = [new Map<string, Set<string>>(), new Map<string, Set<string>>()];
  const add = (map: Map<string, Set<string>>, key: string | null, text: string) => {
    const ip = parseIp(text);
    if (key === null || key === "" || ip === null) return;
    map.set(key, (map.get(key) ?? new Set()).add(formatIp(ip)));
  };
  for (const { hwaddr, ips } of devices) {
    for (const { ip, name } of ips) {
      add(byMac, macOf(hwaddr), ip);
      add(byName, (name ?? "").toLowerCase(), ip);
    }
  }
  for (const line of dhcp?.hosts ?? []) {
    const parts = line.split(",").map((part) => part.trim().replace(/^\[|\]$/g, ""));
    const address = parts.find((part) => parseIp(part) !== null);
    if (address !== undefined) { for (const part of parts) add(byMac, macOf(part), address); }
  }
  return { byMac, byName };
}

interface FoundClient {
  readonly client: WishedClient;
  /** The key of its groups, and which they are. */
  readonly group: string;
  readonly ids: readonly number[];
}

function clientsOf(
  data: PiholeData,
  on: ReadonlyMap<number, string>,
  items: Item[],
): readonly FoundClient[] {
  const { byMac, byName } = knownAddresses(data);
  return data.clients.flatMap(({ client, name, comment, groups }): FoundClient[] => {
    const written = client.trim();
    const prefix = parsePrefix(written) ?? withoutHostBits(written);
    const mac = macOf(written);
    const known = prefix !== null
      ? [formatPrefix(prefix)]
      : mac !== null
      ? [mac, ...byMac.get(mac) ?? []]
      : [...byName.get(written.toLowerCase()) ?? []];
    if (known.length === 0) {
      const reason = written.startsWith(":")
        ? "clients are told by address or client ID, not by interface: name its network"
        : "clients are told by address or client ID, and no address of it is known there";
      items.push(lost("client", comment === "" ? written : `${written} (${comment})`, reason));
      return [];
    }
    const ids = groups.filter((id) => on.has(id));
    const group = keyOf(ids);
    const where = known.filter((text) => text !== mac).join(", ");
    const shown = prefix === null
      ? where === "" ? null : `${written} is ${where} as far as is known there` +
        (mac === null ? ": keep that address fixed" : ": that is taken as well")
      : formatPrefix(prefix) === written.toLowerCase()
      ? null
      : `${written} is written as ${formatPrefix(prefix)}`;
    return [{
      group,
      ids,
      client: {
        name: firstName([comment, name, written]),
        addresses: known,
        ids: [],
        group,
        recorded: {},
        adapted: joined(shown),
      },
    }];
  });
}

/** `(^|\.)name$` and its kin: a name and all below it. */
const BELOW = /^\(\^\|\\\.\)((?:[a-z0-9_-]|\\[.-])+)\$$/i;
/** Behind `;`, what a regular expression there is narrowed by. */
const OPTIONS = /;(querytype|invert|reply)\b/i;

function rulesOf(
  { domains }: PiholeData,
  sets: ReadonlyMap<string, readonly number[]>,
  on: ReadonlyMap<number, string>,
  items: Item[],
): WishedRule[] {
  return domains.flatMap(({ domain, type, kind, comment, groups, enabled }): WishedRule[] => {
    const name = `${type} ${kind} ${domain}`;
    const held = groups.filter((id) => on.has(id));
    const keys = [...sets].filter(([, ids]) => ids.some((id) => held.includes(id)))
      .map(([key]) => key);
    if (keys.length === 0) {
      items.push(lost("rule", name, "it is in no group there that is on, so it holds for nobody"));
      return [];
    }
    const exception = type === "allow" ? "@@" : "";
    const isRegex = kind === "regex";
    if (isRegex && OPTIONS.test(domain)) {
      const reason = "rules are not narrowed by type, inverted or given answers of their own";
      items.push(lost("rule", name, reason));
      return [];
    }
    const below = isRegex ? BELOW.exec(domain)?.[1].replaceAll("\\", "") ?? null : null;
    const pattern = below !== null
      ? `||${below}^`
      : isRegex
      ? `/${domain.replaceAll("/", "\\/")}/`
      : `|${domain}^`;
    // Those for whoever has any group at all are for everybody here.
    const isForAll = [...sets.values()].every((ids) =>
      ids.length === 0 || !ids.some((id) => on.has(id)) || ids.some((id) => held.includes(id))
    );
    return [{
      rule: exception + pattern,
      enabled,
      comment: comment.slice(0, COMMENT_LENGTH_MAX),
      groups: isForAll ? null : keys,
      name,
      adapted: null,
    }];
  });
}

function recordsOf({ config: { dns } }: PiholeData, items: Item[]): WishedRecord[] {
  const domain = typeof dns.domain === "string" ? dns.domain : dns.domain?.name ?? "";
  const common = { ttl: null, enabled: true, adapted: null };
  const hosts = dns.hosts.flatMap((line): WishedRecord[] => {
    const [address = "", ...names] = line.split("#", 1)[0].trim().split(/\s+/);
    const ip = parseIp(address);
    if (ip === null || names.length === 0) {
      items.push(lost("record", line, "it is no address with names"));
      return [];
    }
    // A name without a dot is known with the domain as well.
    const all = names.flatMap((name) =>
      dns.expandHosts === true && domain !== "" && !name.includes(".")
        ? [name, `${name}.${domain}`]
        : [name]
    );
    const type = ip.length === 4 ? "A" as const : "AAAA" as const;
    return all.map((name) => ({ ...common, name, type, value: formatIp(ip) }));
  });
  const aliases = dns.cnameRecords.flatMap((line): WishedRecord[] => {
    const parts = line.split(",").map((part) => part.trim());
    const last = parts.at(-1) ?? "";
    const ttl = parts.length > 2 && /^\d{1,9}$/.test(last) ? Number(last) : null;
    const names = ttl === null ? parts : parts.slice(0, -1);
    const target = names.at(-1) ?? "";
    if (names.length < 2 || target === "") {
      items.push(lost("record", line, "it is no alias with its target"));
      return [];
    }
    return names.slice(0, -1).map((name) => ({
      ...common,
      name,
      type: "CNAME" as const,
      value: target,
      ttl,
    }));
  });
  return [...hosts, ...aliases];
}

function settingsOf({ config: { dns } }: PiholeData, items: Item[]): WishedSetting[] {
  const wished: WishedSetting[] = [];
  const mode = (dns.blocking?.mode ?? "NULL").toUpperCase();
  const reply = dns.reply?.blocking;
  const own = { v4: reply?.force4 === true, v6: reply?.force6 === true };
  const response = (value: "null_ip" | "nxdomain" | "custom_ip", adapted: string | null = null) =>
    wished.push({ field: "block_response", value, adapted });
  switch (mode) {
    case "NULL":
      response("null_ip");
      break;
    case "NX":
    case "NXDOMAIN":
      response("nxdomain");
      break;
    case "IP":
    case "IP_NODATA_AAAA":
    case "IP-NODATA-AAAA":
      if (!own.v4 && !own.v6) response("null_ip", "the null address in place of its own");
      else {
        response("custom_ip", mode === "IP" ? null : "IPv6 is answered with the null address");
        if (own.v4 && reply?.IPv4) {
          wished.push({ field: "blocking_ipv4", value: reply.IPv4, adapted: null });
        }
        if (own.v6 && mode === "IP" && reply?.IPv6) {
          wished.push({ field: "blocking_ipv6", value: reply.IPv6, adapted: null });
        }
      }
      break;
    case "NODATA":
      response("null_ip", "the null address in place of no address");
      break;
    default:
      items.push(lost("setting", `block_response ${mode}`, "it is not known"));
  }
  if (typeof dns.blockTTL === "number") {
    wished.push({ field: "block_ttl", value: dns.blockTTL, adapted: null });
  }
  return wished;
}
