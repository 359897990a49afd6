import * as z from "zod";
import { many, text } from "../ask_source.ts";
import {
  CLIENTS_MAX,
  DEVICES_MAX,
  ENTRIES_MAX,
  LISTS_MAX,
  RECORDS_MAX,
  RULES_MAX,
} from "../limits.ts";

/** What AdGuard Home 0.107 answers below `/control`, as far as it is looked at. */
export const Status = z.object({
  version: z.string().max(64),
  dns_port: z.int().min(0).max(65_535).default(53),
  protection_enabled: z.boolean().default(true),
});

const number = z.number().finite();

export const DnsInfo = z.object({
  upstream_dns: many(text, ENTRIES_MAX),
  upstream_dns_file: text.nullish(),
  bootstrap_dns: many(text, ENTRIES_MAX),
  fallback_dns: many(text, ENTRIES_MAX),
  upstream_mode: text.nullish(),
  upstream_timeout: number.nullish(),
  ratelimit: number.nullish(),
  ratelimit_whitelist: many(text, ENTRIES_MAX),
  blocking_mode: text.default("default"),
  blocking_ipv4: text.nullish(),
  blocking_ipv6: text.nullish(),
  blocked_response_ttl: number.nullish(),
  edns_cs_enabled: z.boolean().nullish(),
  disable_ipv6: z.boolean().nullish(),
  cache_enabled: z.boolean().nullish(),
  cache_size: number.nullish(),
  cache_ttl_min: number.nullish(),
  cache_ttl_max: number.nullish(),
  cache_optimistic: z.boolean().nullish(),
  use_private_ptr_resolvers: z.boolean().nullish(),
  local_ptr_upstreams: many(text, ENTRIES_MAX),
});

const Filter = z.object({ name: text, url: text, enabled: z.boolean() });

export const FilteringStatus = z.object({
  enabled: z.boolean(),
  interval: number.default(24),
  filters: many(Filter, LISTS_MAX),
  whitelist_filters: many(Filter, LISTS_MAX),
  user_rules: many(text, RULES_MAX),
});

const Range = z.object({ start: number.default(0), end: number.default(0) });
const day = Range.nullish();
export const Schedule = z.object({
  time_zone: z.string().max(64).default("Local"),
  sun: day,
  mon: day,
  tue: day,
  wed: day,
  thu: day,
  fri: day,
  sat: day,
});

export const SafeSearch = z.object({
  enabled: z.boolean(),
  bing: z.boolean().nullish(),
  duckduckgo: z.boolean().nullish(),
  ecosia: z.boolean().nullish(),
  google: z.boolean().nullish(),
  pixabay: z.boolean().nullish(),
  yandex: z.boolean().nullish(),
  youtube: z.boolean().nullish(),
});

const Client = z.object({
  name: text,
  ids: many(text, ENTRIES_MAX),
  use_global_settings: z.boolean().default(true),
  filtering_enabled: z.boolean().default(true),
  parental_enabled: z.boolean().default(false),
  safebrowsing_enabled: z.boolean().default(false),
  safesearch_enabled: z.boolean().default(false),
  safe_search: SafeSearch.nullish(),
  use_global_blocked_services: z.boolean().default(true),
  blocked_services: many(text, ENTRIES_MAX),
  blocked_services_schedule: Schedule.nullish(),
  upstreams: many(text, ENTRIES_MAX),
  tags: many(text, ENTRIES_MAX),
  ignore_querylog: z.boolean().nullish(),
  ignore_statistics: z.boolean().nullish(),
});
export type Client = z.output<typeof Client>;

export const Clients = z.object({ clients: many(Client, CLIENTS_MAX) });

export const Rewrites = many(
  z.object({ domain: text, answer: text, enabled: z.boolean().default(true) }),
  RECORDS_MAX,
);
export const Enabled = z.object({ enabled: z.boolean() });

export const BlockedServices = z.object({
  ids: many(text, ENTRIES_MAX),
  schedule: Schedule.nullish(),
});
/** As versions before 0.107.37 answer. */
export const BlockedServiceIds = many(text, ENTRIES_MAX);

export const Access = z.object({
  allowed_clients: many(text, ENTRIES_MAX),
  disallowed_clients: many(text, ENTRIES_MAX),
  blocked_hosts: many(text, ENTRIES_MAX),
});

export const QuerylogConfig = z.object({
  enabled: z.boolean().default(true),
  interval: number.nullish(),
  anonymize_client_ip: z.boolean().nullish(),
  ignored: many(text, ENTRIES_MAX),
});

const port = z.int().min(0).max(65_535).nullish();
export const Tls = z.object({
  enabled: z.boolean().default(false),
  server_name: text.nullish(),
  port_https: port,
  port_dns_over_tls: port,
  port_dns_over_quic: port,
  port_dnscrypt: port,
  certificate_path: text.nullish(),
  private_key_path: text.nullish(),
});

const Lease = z.object({ mac: text, ip: text });
export const Dhcp = z.object({
  enabled: z.boolean().default(false),
  leases: many(Lease, DEVICES_MAX),
  static_leases: many(Lease, DEVICES_MAX),
});
