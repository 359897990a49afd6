import { formatIp, formatPrefix, parseIp, parsePrefix } from "../../addr/mod.ts";
import { findNameProblem, type ScheduleSpec } from "../../model/mod.ts";
import { firstName, macOf, withoutHostBits } from "../identities.ts";
import { GROUPS_MADE_MAX } from "../limits.ts";
import { windowsOf } from "../schedules.ts";
import {
  type Item,
  joined,
  lost,
  type Place,
  type WishedClient,
  type WishedGroup,
  type WishedRecord,
  type WishedRule,
  type WishedService,
  type WishedSetting,
  type Wishes,
} from "../wishes.ts";
import { adguardFilePart } from "./file_part.ts";
import type { AdguardData } from "./read.ts";
import type { Client, SafeSearch, Schedule } from "./shapes.ts";
import type { z } from "zod";

const DEFAULT = "default";
/** What the times are called at which services are blocked. */
const SCHEDULE_NAME = "Blocked services";
/** What every instance refuses where nobody changed it: questions about the server itself. */
const BLOCKED_HOSTS_DEFAULT = ["version.bind", "id.server", "hostname.bind"];

type WeekSchedule = z.output<typeof Schedule>;

/** What a set of its clients gets, in its own words. */
interface Effective {
  readonly filtering: boolean;
  readonly safeSearch: z.output<typeof SafeSearch>;
  readonly services: readonly string[];
  readonly schedule: WeekSchedule | null;
}

/** Says in words of ours what an AdGuard Home has. */
export function adguardWishes(data: AdguardData, place: Place): Wishes {
  const items: Item[] = [];
  const { filtering } = data;
  const lists = [
    ...filtering.filters.map((list) => ({ ...list, allows: false, comment: "" })),
    ...filtering.whitelist_filters.map((list) => ({ ...list, allows: true, comment: "" })),
  ];
  const urls = lists.filter(({ enabled }) => enabled).map(({ url }) => url);
  const { groups, clients } = groupsOf(data, urls, place, items);
  const rules = rulesOf(data);
  if (!filtering.enabled) {
    items.push(lost("setting", "filtering is off", "it stays on here: turn it off in the group"));
  }
  if (!data.status.protection_enabled) {
    items.push(lost("setting", "protection is off", "it stays on here: turn it off in Settings"));
  }
  const fragment = adguardFilePart(data, items);
  return {
    lists,
    groups,
    clients,
    rules,
    records: recordsOf(data, items),
    settings: settingsOf(data, items),
    access: accessOf(data, items),
    items,
    fragment,
  };
}

function rulesOf({ filtering, access }: AdguardData): WishedRule[] {
  const common = { enabled: true, comment: "", groups: null };
  const written = filtering.user_rules.map((line) => line.trim())
    .filter((line) => line !== "" && !/^[!#]/.test(line))
    .map((rule) => ({ ...common, rule, name: null, adapted: null }));
  const hosts = access.blocked_hosts.map((host) => host.trim())
    .filter((host) => host !== "" && !BLOCKED_HOSTS_DEFAULT.includes(host))
    .map((host) => ({
      ...common,
      rule: host,
      name: `blocked host ${host}`,
      adapted: "a rule, so that it is answered as blocked and not dropped",
    }));
  return [...written, ...hosts];
}

function recordsOf({ rewrites, areRewritesOn }: AdguardData, items: Item[]): WishedRecord[] {
  const off = areRewritesOn ? null : "off, as all rewrites are off there";
  return rewrites.flatMap(({ domain, answer, enabled }): WishedRecord[] => {
    const name = `${domain} → ${answer}`;
    const value = answer.trim();
    if (value === "A" || value === "AAAA") {
      items.push(lost("record", name, "a name with a record of its own is never asked elsewhere"));
      return [];
    }
    if (value.toLowerCase() === domain.trim().toLowerCase()) {
      items.push(lost("record", name, "an exception from a wildcard: give it a record of its own"));
      return [];
    }
    const ip = parseIp(value);
    return [{
      name: domain.trim(),
      type: ip === null ? "CNAME" : ip.length === 4 ? "A" : "AAAA",
      value,
      ttl: null,
      enabled: enabled && areRewritesOn,
      adapted: off,
    }];
  });
}

function settingsOf({ dns, filtering }: AdguardData, items: Item[]): WishedSetting[] {
  const wished: WishedSetting[] = [];
  const modes = { default: "null_ip", null_ip: "null_ip", nxdomain: "nxdomain" } as const;
  const rest = { refused: "refused", custom_ip: "custom_ip" } as const;
  const mode = { ...modes, ...rest }[dns.blocking_mode as keyof typeof modes | keyof typeof rest];
  if (mode === undefined) {
    items.push(lost("setting", `block_response ${dns.blocking_mode}`, "it is not known"));
  } else wished.push({ field: "block_response", value: mode, adapted: null });
  if (mode === "custom_ip") {
    for (const field of ["blocking_ipv4", "blocking_ipv6"] as const) {
      if ((dns[field] ?? "") !== "") wished.push({ field, value: dns[field]!, adapted: null });
    }
  }
  const ttl = dns.blocked_response_ttl ?? null;
  if (ttl !== null) wished.push({ field: "block_ttl", value: ttl, adapted: null });
  const { interval } = filtering;
  if (interval > 0) {
    wished.push({
      field: "list_update_interval",
      value: Math.round(interval * 3_600),
      adapted: null,
    });
  } else items.push(lost("setting", "lists are never renewed", "here they are, once a day"));
  return wished;
}

function accessOf({ access }: AdguardData, items: Item[]): Wishes["access"] {
  const { allowed_clients: allowed, disallowed_clients: disallowed } = access;
  if (allowed.length === 0) {
    const detail = "who may ask stays as it is here: a fresh node lets in the local networks alone";
    items.push({ type: "access", name: "everybody may ask", outcome: "adapted", detail });
    return { allowed, disallowed };
  }
  for (const client of disallowed) {
    const reason = "it is not looked at there while allowed clients are set";
    items.push(lost("access", `disallowed ${client}`, reason));
  }
  return { allowed, disallowed: [] };
}

/** The sets of clients that get the same: each is a group. */
function groupsOf(
  data: AdguardData,
  urls: readonly string[],
  place: Place,
  items: Item[],
): { readonly groups: readonly WishedGroup[]; readonly clients: readonly WishedClient[] } {
  const global: Effective = {
    filtering: true,
    safeSearch: data.safeSearch,
    services: data.services.ids,
    schedule: data.services.schedule ?? null,
  };
  const groups = new Map<string, WishedGroup>();
  const add = (effective: Effective, name: string | null): string | null => {
    const group = groupOf(effective, name, urls, place);
    const { filtering, safe_search, services } = group;
    const identity = JSON.stringify([filtering, safe_search, services, group.lists.length === 0]);
    const there = groups.get(identity);
    if (there !== undefined) return there.key;
    if (groups.size >= GROUPS_MADE_MAX) return null;
    const key = name === null ? DEFAULT : identity;
    groups.set(identity, { ...group, key, identity });
    return key;
  };
  add(global, null);
  const leases = leasesOf(data);
  const clients = data.clients.clients.flatMap((client): WishedClient[] => {
    const effective: Effective = {
      ...(client.use_global_settings ? global : {
        filtering: client.filtering_enabled,
        safeSearch: client.safe_search ?? { enabled: client.safesearch_enabled },
      }),
      services: client.use_global_blocked_services ? global.services : client.blocked_services,
      schedule: client.use_global_blocked_services
        ? global.schedule
        : client.blocked_services_schedule ?? null,
    };
    tellOfClient(client, items);
    const wished = clientOf(client, leases, items);
    if (wished === null) return [];
    const group = add(effective, client.name);
    if (group !== null) return [{ ...wished, group }];
    const reason = `one move makes ${GROUPS_MADE_MAX} groups, and its settings would be one more`;
    items.push(lost("client", wished.name, reason));
    return [];
  });
  return { groups: [...groups.values()], clients };
}

function groupOf(
  { filtering, safeSearch, services, schedule }: Effective,
  name: string | null,
  urls: readonly string[],
  place: Place,
): WishedGroup {
  const engines = Object.entries(safeSearch)
    .filter(([engine, isOn]) => engine !== "enabled" && isOn === false).map(([engine]) => engine);
  // Its clients without filtering still get safe search and no blocked services.
  const isFiltered = filtering || safeSearch.enabled || services.length > 0;
  const [windows, zone] = [windowsOf(schedule ?? {}), zoneOf(schedule, place)];
  const spec: ScheduleSpec | null = windows === null || windows.length === 0
    ? null
    : { name: SCHEDULE_NAME, time_zone: zone.name, windows };
  return {
    key: "",
    name: name === null ? null : firstName([name]),
    identity: "",
    isNamed: false,
    filtering: isFiltered,
    safe_search: safeSearch.enabled,
    lists: filtering ? urls : [],
    services: windows?.length === 0 ? [] : services.map((service): WishedService => ({
      service,
      schedule: spec,
      adapted: windows === null ? null : zone.adapted,
    })),
    adapted: joined(
      !filtering && isFiltered && "custom rules hold for it as well",
      windows?.length === 0 && "without its blocked services, which are paused at all times there",
    ),
    safe_search_adapted: safeSearch.enabled && engines.length > 0
      ? `all engines are led, ${engines.join(", ")} too`
      : null,
  };
}

function zoneOf(schedule: WeekSchedule | null, { timeZone }: Place) {
  const zone = schedule?.time_zone ?? "";
  if (zone !== "Local" && zone !== "") return { name: zone, adapted: null };
  return { name: timeZone, adapted: `its local time zone is taken for ${timeZone}` };
}

/** The addresses that were given to a MAC address. */
function leasesOf({ dhcp }: AdguardData): ReadonlyMap<string, readonly string[]> {
  const leases = new Map<string, string[]>();
  for (const { mac, ip } of [...dhcp?.static_leases ?? [], ...dhcp?.leases ?? []]) {
    const [key, address] = [macOf(mac), parseIp(ip)];
    if (key === null || address === null) continue;
    const all = leases.get(key) ?? [];
    if (!all.includes(formatIp(address))) leases.set(key, [...all, formatIp(address)]);
  }
  return leases;
}

function clientOf(
  { name, ids: written, ignore_querylog, ignore_statistics }: Client,
  leases: ReadonlyMap<string, readonly string[]>,
  items: Item[],
): Omit<WishedClient, "group"> | null {
  const [addresses, ids, notes]: string[][] = [[], [], []];
  const gone: string[] = [];
  for (const id of written) {
    const prefix = parsePrefix(id) ?? withoutHostBits(id);
    const mac = macOf(id);
    if (prefix !== null) {
      addresses.push(formatPrefix(prefix));
      if (parsePrefix(id) === null) notes.push(`${id} is written as ${formatPrefix(prefix)}`);
    } else if (mac !== null) {
      const known = leases.get(mac) ?? [];
      addresses.push(mac, ...known);
      if (known.length > 0) {
        notes.push(`${id} is ${known.join(", ")} by its leases: that is taken as well`);
      }
    } else if (/^[a-z0-9-]{1,63}$/i.test(id)) ids.push(id.toLowerCase());
    else gone.push(id);
  }
  if (gone.length > 0) {
    const reason = "clients are told by address, MAC address or client ID";
    items.push(lost("client", `${name}: ${gone.join(", ")}`, reason));
  }
  if (addresses.length + ids.length === 0) return null;
  const shown = firstName([name, ...addresses, ...ids]);
  if (shown !== name) notes.push(`its name is written as ${shown}`);
  return {
    name: shown,
    addresses: [...new Set(addresses)],
    ids: [...new Set(ids)],
    recorded: {
      ...(ignore_querylog === true && { querylog: false }),
      ...(ignore_statistics === true && { statistics: false }),
    },
    adapted: joined(...notes),
  };
}

/** What a client has there, and can't have here. */
function tellOfClient(client: Client, items: Item[]): void {
  const own = !client.use_global_settings;
  const rows: readonly (readonly [boolean, string, string])[] = [
    [client.upstreams.length > 0, "upstreams of its own", "upstreams are the same for all clients"],
    [client.tags.length > 0, `tags ${client.tags.join(", ")}`, "use groups"],
    [own && client.parental_enabled, "parental control", "give its group a list of adult sites"],
    [own && client.safebrowsing_enabled, "safe browsing", "give its group a list against malware"],
  ];
  const name = findNameProblem(client.name) === null ? client.name : client.ids.join(", ");
  for (const [is, what, reason] of rows) {
    if (is) items.push(lost("client", `${name}: ${what}`, reason));
  }
}
