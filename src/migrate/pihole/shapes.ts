import * as z from "zod";
import { many, text } from "../ask_source.ts";
import {
  CLIENTS_MAX,
  DEVICES_MAX,
  ENTRIES_MAX,
  GROUPS_MAX,
  LISTS_MAX,
  RECORDS_MAX,
  RULES_MAX,
} from "../limits.ts";

/** What Pi-hole 6 answers below `/api`, as far as it is looked at. */
export const Session = z.object({
  session: z.object({
    valid: z.boolean(),
    sid: z.string().max(256).nullish(),
    totp: z.boolean().nullish(),
  }),
});

const comment = text.nullish().transform((said) => said ?? "");
const groups = many(z.int(), GROUPS_MAX);
const number = z.number().finite();

export const Groups = z.object({
  groups: many(z.object({ id: z.int(), name: text, enabled: z.boolean() }), GROUPS_MAX),
});

export const Lists = z.object({
  lists: many(
    z.object({
      address: text,
      type: z.string().max(16).nullish().transform((type) => type ?? "block"),
      comment,
      groups,
      enabled: z.boolean(),
    }),
    LISTS_MAX,
  ),
});

export const Domains = z.object({
  domains: many(
    z.object({
      domain: text,
      type: z.string().max(16),
      kind: z.string().max(16),
      comment,
      groups,
      enabled: z.boolean(),
    }),
    RULES_MAX,
  ),
});

export const Clients = z.object({
  clients: many(
    z.object({ client: text, name: text.nullish(), comment, groups }),
    CLIENTS_MAX,
  ),
});

export const Devices = z.object({
  devices: many(
    z.object({
      hwaddr: text,
      ips: many(z.object({ ip: text, name: text.nullish() }), ENTRIES_MAX),
    }),
    DEVICES_MAX,
  ),
});

const BlockingReply = z.object({
  force4: z.boolean().nullish(),
  force6: z.boolean().nullish(),
  IPv4: text.nullish(),
  IPv6: text.nullish(),
});

export const Dns = z.object({
  upstreams: many(text, ENTRIES_MAX),
  hosts: many(text, RECORDS_MAX),
  cnameRecords: many(text, RECORDS_MAX),
  revServers: many(text, ENTRIES_MAX),
  expandHosts: z.boolean().nullish(),
  domain: z.object({ name: text.nullish() }).nullish().or(text),
  blockTTL: number.nullish(),
  blocking: z.object({ active: z.boolean().nullish(), mode: text.nullish() }).nullish(),
  reply: z.object({ blocking: BlockingReply.nullish() }).nullish(),
  dnssec: z.boolean().nullish(),
  port: z.int().min(0).max(65_535).nullish(),
  cache: z.object({ size: number.nullish(), optimizer: number.nullish() }).nullish(),
  rateLimit: z.object({ count: number.nullish(), interval: number.nullish() }).nullish(),
  hostRecord: text.nullish(),
  dot: z.boolean().nullish(),
  doh: z.boolean().nullish(),
});
const Dhcp = z.object({ active: z.boolean().nullish(), hosts: many(text, DEVICES_MAX) });
const Misc = z.object({
  privacylevel: number.nullish(),
  dnsmasq_lines: many(text, ENTRIES_MAX),
});
const Database = z.object({ maxDBdays: number.nullish() });
const Webserver = z.object({
  api: z.object({
    excludeClients: many(text, ENTRIES_MAX),
    excludeDomains: many(text, ENTRIES_MAX),
  }).nullish(),
});

export const Config = z.object({
  config: z.object({
    dns: Dns,
    dhcp: Dhcp.nullish(),
    misc: Misc.nullish(),
    database: Database.nullish(),
    webserver: Webserver.nullish(),
  }),
});

export const Version = z.object({
  version: z.object({
    ftl: z.object({ local: z.object({ version: z.string().max(64).nullish() }).nullish() })
      .nullish(),
  }),
});
