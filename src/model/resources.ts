import { z } from "zod";
import { formatPrefix, parseIp, parsePrefix, unmapIpv4 } from "../addr/mod.ts";
import { DAYS, DEFAULT_GROUP_ID } from "./constants.ts";

/** The collections of resources, in the order in which one may refer to the next. */
export const COLLECTIONS = [
  "schedules",
  "lists",
  "rules",
  "records",
  "groups",
  "clients",
] as const;
export type Collection = typeof COLLECTIONS[number];

/** What the IDs of a collection begin with. */
export const ID_PREFIX = {
  lists: "li_",
  rules: "ru_",
  records: "re_",
  groups: "gr_",
  clients: "cl_",
  schedules: "sc_",
} as const satisfies Record<Collection, string>;
export const USER_ID_PREFIX = "us_";
/** Lists that came from the configuration file; see `configListId`. */
export const CONFIG_LIST_PREFIX = "li_cfg_";

/** A stored spec, as JSON, stays below this, so that an audit entry holds it twice. */
export const SPEC_BYTES_MAX = 24 * 1024;

/** What `managed_by` says of what came from the configuration file. */
export const MANAGED_BY_CONFIG = "config";
/** Most lists of one group. */
export const GROUP_LISTS_MAX = 256;

const TEXT_LENGTH_MAX = 128;
const COMMENT_LENGTH_MAX = 1_024;

const name = z.string().min(1).max(TEXT_LENGTH_MAX);
const comment = z.string().max(COMMENT_LENGTH_MAX).default("");
const enabled = z.boolean().default(true);
/** An earlier version took `terraform`; it reads as `api`. */
const managedBy = z.string().max(TEXT_LENGTH_MAX).default("api")
  .transform((by) => by === "terraform" ? "api" : by);

function id(prefix: string) {
  return z.string().regex(new RegExp(`^${prefix}(cfg_)?[0-9a-f]{16}$`), `no ID of ${prefix}…`);
}

/** A list of rules: from a URL or from a path, never both. */
export const ListSpec = z.strictObject({
  name,
  url: z.string().max(2_048).optional(),
  path: z.string().min(1).max(1_024).optional(),
  enabled,
  comment,
  managed_by: managedBy,
}).refine((list) => (list.url === undefined) !== (list.path === undefined), {
  message: "give exactly one of url and path",
  path: ["url"],
});
export type ListSpec = z.infer<typeof ListSpec>;

/** A custom rule, for every group whose filtering is on. */
export const RuleSpec = z.strictObject({
  rule: z.string().min(1).max(4_096),
  enabled,
  comment,
  managed_by: managedBy,
});
export type RuleSpec = z.infer<typeof RuleSpec>;

/** Most rules that one change adds and removes. */
export const RULES_BATCH_MAX = 10_000;

/** Rules that come and go in one change. */
export const RulesBatch = z.strictObject({
  add: z.array(RuleSpec).max(RULES_BATCH_MAX).default([]),
  remove: z.array(id(ID_PREFIX.rules)).max(RULES_BATCH_MAX).default([]),
});
export type RulesBatch = z.infer<typeof RulesBatch>;

/** An answer of your own: an exact name, or `*.domain` for every name below it. */
export const RecordSpec = z.strictObject({
  name: z.string().min(1).max(255),
  type: z.enum(["A", "AAAA", "CNAME"]),
  value: z.string().min(1).max(255),
  ttl: z.int().min(0).max(2_147_483_647).default(300),
  enabled,
  comment,
  managed_by: managedBy,
});
export type RecordSpec = z.infer<typeof RecordSpec>;

const schedule = id(ID_PREFIX.schedules).optional();
/** What a set of clients gets. Lists and services are counted by ID. */
export const GroupSpec = z.strictObject({
  name,
  filtering: z.boolean().default(true),
  safe_search: z.boolean().default(false),
  lists: z.array(z.strictObject({ list: id(ID_PREFIX.lists), schedule })).max(GROUP_LISTS_MAX)
    .default([]),
  blocked_services: z.array(
    z.strictObject({ service: z.string().regex(/^[a-z0-9_-]{1,64}$/), schedule }),
  ).max(256).default([]),
});
export type GroupSpec = z.infer<typeof GroupSpec>;

/** What an IPv4-mapped IPv6 address has before the IPv4 address. */
const MAPPED_BITS = 96;

/** Gives an address or network its one form. */
function readNetwork(text: string, context: z.RefinementCtx): string {
  const prefix = parsePrefix(text);
  if (prefix === null) {
    const bare = parseIp(text.split("/")[0]) !== null;
    context.addIssue({
      code: "custom",
      message: bare ? "has host bits or no such length" : "is no address or network",
    });
    return z.NEVER;
  }
  // A query's address is looked up without its mapping into IPv6 (RFC 4291 §2.5.5.2).
  if (prefix.ip.length !== 16 || prefix.lengthBits < MAPPED_BITS) return formatPrefix(prefix);
  const ip = Uint8Array.from(unmapIpv4(prefix.ip));
  const lengthBits = prefix.lengthBits - (ip.length === 4 ? MAPPED_BITS : 0);
  return formatPrefix({ ip, lengthBits });
}

const network = z.string().max(64).transform(readNetwork);
const CLIENT_ID = /^[a-z0-9-]{1,63}$/;
/** Labels that a client may carry in its DoH path or TLS server name. */
export const ClientId = z.string().regex(
  CLIENT_ID,
  "1 to 63 lower-case letters, digits and hyphens",
);
/** Who is let in or not: an address, a network or a client ID. */
const access = z.string().max(64).transform((text, context) =>
  CLIENT_ID.test(text) ? text : readNetwork(text, context)
);

/** Who asks: by address, network or client ID. */
export const ClientSpec = z.strictObject({
  name,
  addresses: z.array(network).max(256).default([]),
  ids: z.array(ClientId).max(16).default([]),
  group: id(ID_PREFIX.groups).default(DEFAULT_GROUP_ID),
}).refine((client) => client.addresses.length + client.ids.length > 0, {
  message: "give at least one address or ID",
  path: ["addresses"],
});
export type ClientSpec = z.infer<typeof ClientSpec>;

const start = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, "HH:MM");
const end = z.string().regex(/^(([01]\d|2[0-3]):[0-5]\d|24:00)$/, "HH:MM, or 24:00");

/** When something holds. A window that ends before it starts runs past midnight. */
export const ScheduleSpec = z.strictObject({
  name,
  time_zone: z.string().max(64).refine(isTimeZone, "no IANA time zone"),
  windows: z.array(
    z.strictObject({ days: z.array(z.enum(DAYS)).min(1).max(7), start, end }).refine(
      (window) => window.start !== window.end,
      { message: "is when it starts, so it never holds: 00:00 to 24:00 is all day", path: ["end"] },
    ),
  ).min(1).max(64),
});
export type ScheduleSpec = z.infer<typeof ScheduleSpec>;

function isTimeZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: zone });
    return zone !== "" && !/^[+-]/.test(zone);
  } catch {
    return false;
  }
}

const blockingAddress = (bytes: 4 | 16) =>
  z.string().max(64).refine((text) => parseIp(text)?.length === bytes, "no such address")
    .nullable().default(null);

/** `/api/v1/settings`; PUT replaces the whole of it. */
export const SettingsSpec = z.strictObject({
  protection: z.boolean().default(true),
  block_response: z.enum(["null_ip", "nxdomain", "refused", "custom_ip"]).default("null_ip"),
  blocking_ipv4: blockingAddress(4),
  blocking_ipv6: blockingAddress(16),
  block_ttl: z.int().min(0).max(86_400).default(10),
  list_update_interval: z.int().min(3_600).max(2_592_000).default(86_400),
  access: z.strictObject({
    allowed: z.array(access).max(512).default([]),
    disallowed: z.array(access).max(512).default([]),
  }).default({ allowed: [], disallowed: [] }),
});

export const SPECS = {
  lists: ListSpec,
  rules: RuleSpec,
  records: RecordSpec,
  groups: GroupSpec,
  clients: ClientSpec,
  schedules: ScheduleSpec,
} as const satisfies Record<Collection, z.ZodType>;

/** The spec of each collection, decoded. */
export type SpecOf<C extends Collection> = z.infer<typeof SPECS[C]>;

/** A resource as the store keeps it and the API shows it. */
export interface Envelope<S> {
  readonly id: string;
  /** Grows with each change of this resource, from 1. */
  readonly revision: number;
  /** RFC 3339 in UTC with fractional seconds. */
  readonly created_at: string;
  readonly updated_at: string;
  readonly spec: S;
}
