import * as z from "zod";
import { formatPrefix, parseIp, parseMac, parsePrefix, unmapIpv4 } from "../addr/mod.ts";
import { DAYS, DEFAULT_GROUP_ID, isTimeZone } from "./constants.ts";
import { DEFAULT_SETTINGS } from "./settings.ts";

/** The collections of resources, in the order in which one may refer to the next. */
export const COLLECTIONS = [
  "schedules",
  "lists",
  "records",
  "groups",
  "clients",
  "rules",
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

/** What the audit log calls a resource of each collection. */
export const RESOURCE_TYPE = {
  lists: "list",
  rules: "rule",
  records: "record",
  groups: "group",
  clients: "client",
  schedules: "schedule",
} as const satisfies Record<Collection, string>;

/** Most resources of one collection: what one node can hold in memory, index and show. */
export const COLLECTION_SIZE_MAX = 100_000;

/** Says whether a resource of a collection may have this ID. */
export function isIdOf(collection: Collection, id: string): boolean {
  const prefix = ID_PREFIX[collection];
  return id.startsWith(prefix) && /^(cfg_)?[0-9a-f]{16}$/.test(id.slice(prefix.length));
}

/** What `managed_by` says of what came from the configuration file. */
export const MANAGED_BY_CONFIG = "config";
/** Most lists of one group. */
export const GROUP_LISTS_MAX = 256;
/** Upstreams that one group names. */
const GROUP_UPSTREAMS_MAX = 16;

const TEXT_LENGTH_MAX = 128;
const COMMENT_LENGTH_MAX = 1_024;

/** What a name of any collection is like; `decodeSpec` says more of it. */
const NAME_PATTERN = "^[^\\p{Cc}\\p{Bidi_Control}\\p{Zl}\\p{Zp}]+$";

/** The schema of a name. */
export function name(what: string) {
  return z.string().min(1).max(TEXT_LENGTH_MAX).meta({ pattern: NAME_PATTERN, description: what });
}

const comment = z.string().max(COMMENT_LENGTH_MAX).default("").describe("for people");
const enabled = z.boolean().default(true).describe("false: kept, and without effect");
/** An earlier version took `terraform`; it reads as `api`. */
const managedBy = z.string().max(TEXT_LENGTH_MAX).default("api")
  .transform((by) => by === "terraform" ? "api" : by)
  .describe("who looks after it; config: the configuration file");

function id(prefix: string) {
  return z.string().regex(
    new RegExp(`^${prefix}(cfg_)?[0-9a-f]{16}$`),
    `it is no ID of ${prefix}…`,
  );
}

/** Runs a check of an object even where a field of it is bad: all that is wrong is told at once. */
const always = {
  when: ({ value }: { readonly value: unknown }) => typeof value === "object" && value !== null,
};

/** A list of rules: from a URL or from a path, never both. */
export const ListSpec = z.strictObject({
  name: name("what people call it"),
  url: z.string().max(2_048).optional()
    .meta({ format: "uri", description: "https; http for this machine only; without credentials" }),
  path: z.string().min(1).max(1_024).optional()
    .describe("a file of filter.local_lists_dir"),
  allows: z.boolean().optional()
    .describe("true: what it names is let through; left out or false: it is blocked"),
  enabled,
  comment,
  managed_by: managedBy,
}).refine((list) => (list.url === undefined) !== (list.path === undefined), {
  message: "give exactly one of url and path",
  path: ["url"],
  ...always,
}).meta({ allOf: [{ oneOf: [{ required: ["url"] }, { required: ["path"] }] }] });
export type ListSpec = z.infer<typeof ListSpec>;

/** Most groups, and most clients, that one rule is for. */
const RULE_REFERENCES_MAX = 64;

/** A moment, in its one form; `null` for never. */
export const moment = z.iso.datetime({ offset: true })
  .transform((time) => new Date(time).toISOString()).nullable();
const until = moment.default(null);

/** A custom rule, for every group whose filtering is on, or for some groups and clients. */
export const RuleSpec = z.strictObject({
  rule: z.string().min(1).max(4_096)
    .describe("one line of a list's syntax, such as ||ads.example^ or @@||ads.example^$important"),
  enabled,
  comment,
  managed_by: managedBy,
  expires_at: until.describe(
    "when it ends to hold, on every node; it is deleted then. null: it holds for good",
  ),
  groups: z.array(id(ID_PREFIX.groups)).max(RULE_REFERENCES_MAX).default([])
    .describe("IDs of groups that it holds for; with no client either: for everybody"),
  clients: z.array(id(ID_PREFIX.clients)).max(RULE_REFERENCES_MAX).default([])
    .describe("IDs of clients that it holds for beside those of the groups"),
});
export type RuleSpec = z.infer<typeof RuleSpec>;

/** Most rules that one change adds and removes. */
export const RULES_BATCH_MAX = 10_000;

/** Rules that come and go in one change. */
export const RulesBatch = z.strictObject({
  add: z.array(RuleSpec).max(RULES_BATCH_MAX).default([])
    .describe("rules to make; with those to remove at most 10,000"),
  remove: z.array(id(ID_PREFIX.rules)).max(RULES_BATCH_MAX).default([])
    .describe("IDs of rules to remove, each once"),
});
export type RulesBatch = z.infer<typeof RulesBatch>;

/** Types that records of yours may have. */
export const RECORD_TYPES = [
  "A",
  "AAAA",
  "CNAME",
  "TXT",
  "MX",
  "SRV",
  "PTR",
  "HTTPS",
  "SVCB",
  "CAA",
  "SOA",
] as const;

/** An answer of your own: an exact name, or `*.domain` for every name below it. */
export const RecordSpec = z.strictObject({
  name: z.string().min(1).max(255)
    .describe("an exact name, or *.domain for every name below it; none at or below svc.test"),
  type: z.enum(RECORD_TYPES).describe("what value is"),
  value: z.string().min(1).max(2_048).describe(
    "an address of the family of type, a name, or what a record of type has in a zone file: " +
      "10 mail.example for MX, 0 0 389 ldap.example for SRV. With an SOA record a name is a zone of yours: " +
      "names below it without records do not exist, and nobody else is asked for them",
  ),
  ttl: z.int().min(0).max(2_147_483_647).default(300).describe("seconds"),
  enabled,
  comment,
  managed_by: managedBy,
});
export type RecordSpec = z.infer<typeof RecordSpec>;

const schedule = id(ID_PREFIX.schedules).optional()
  .describe("the ID of the schedule by which it holds; left out: always");
/** When a group or a client has no Internet at all. */
const blocked = {
  blocked: z.boolean().optional()
    .describe("true: it gets answers of local records only, also while nothing is filtered"),
  blocked_schedule: schedule.describe(
    "the ID of the schedule by which blocked holds, such as bedtime; left out: always",
  ),
  blocked_paused_until: moment.optional()
    .describe("until when it has the Internet all the same; null or left out: it has not"),
};

/** Who leaves no trace. */
const recorded = {
  querylog: z.boolean().optional().describe(
    "false: its queries are in no query log, no stream, no export and no trace; left out or true: " +
      "they are logged",
  ),
  statistics: z.boolean().optional().describe(
    "false: its queries are in no statistics; metrics count them; left out or true: they are counted",
  ),
};

/** What a set of clients gets. Lists and services are counted by ID. */
export const GroupSpec = z.strictObject({
  name: name("what people call it; no two groups have names that read alike"),
  filtering: z.boolean().default(true)
    .describe("false: no lists, no custom rules, no safe search, no blocked services"),
  safe_search: z.boolean().default(false).describe("search engines are led to their safe hosts"),
  lists: z.array(
    z.strictObject({ list: id(ID_PREFIX.lists).describe("the ID of a list"), schedule }),
  ).max(GROUP_LISTS_MAX).default([]).describe("lists whose rules hold for the group"),
  blocked_services: z.array(
    z.strictObject({
      service: z.string().regex(/^[a-z0-9_-]{1,64}$/, "it is no ID of a service")
        .describe("the ID of a service of the catalogue"),
      schedule,
      paused_until: moment.optional()
        .describe("until when the group gets it all the same; null or left out: it does not"),
    }),
  ).max(256).default([]).describe("services that the group does not get"),
  paused_until: until.describe("until when nothing is filtered for it; null: it is now"),
  upstreams: z.array(z.string().min(1).max(1_024)).max(GROUP_UPSTREAMS_MAX).optional().describe(
    "names or addresses of upstreams in each node's configuration file that its queries go to in " +
      "place of those for everybody; left out or empty: to those",
  ),
  ...blocked,
  ...recorded,
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
      message: bare ? "it has host bits or no such length" : "it is no address or network",
    });
    return z.NEVER;
  }
  // A query's address is looked up without its mapping into IPv6 (RFC 4291 §2.5.5.2).
  if (prefix.ip.length !== 16 || prefix.lengthBits < MAPPED_BITS) return formatPrefix(prefix);
  const ip = Uint8Array.from(unmapIpv4(prefix.ip));
  const lengthBits = prefix.lengthBits - (ip.length === 4 ? MAPPED_BITS : 0);
  return formatPrefix({ ip, lengthBits });
}

/** Gives an address, a network or a MAC address its one form. */
function readWhere(text: string, context: z.RefinementCtx): string {
  return parseMac(text) ?? readNetwork(text, context);
}

/** Every address and network is of this form; not all of this form is one. */
const NETWORK_PATTERN = "[0-9A-Fa-f:.]+(/[0-9]{1,3})?";
const CLIENT_ID = /^[a-z0-9-]{1,63}$/;

const MAC_PATTERN = "[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}";

/** Where a device is: by address, network or MAC address. */
const where = z.string().max(64).transform(readWhere)
  .meta({ pattern: `^(${NETWORK_PATTERN}|${MAC_PATTERN})$` });
/** Labels that a client may carry in its DoH path or TLS server name. */
export const ClientId = z.string().regex(
  CLIENT_ID,
  "it has other than 1 to 63 lower-case letters, digits and hyphens",
);
/** Who is let in or not: an address, a network or a client ID. */
const access = z.string().max(64).transform((text, context) =>
  CLIENT_ID.test(text) ? text : readNetwork(text, context)
).meta({ pattern: `^(${NETWORK_PATTERN}|[a-z0-9-]{1,63})$` });

/** Who asks: by address, network, MAC address or client ID. */
export const ClientSpec = z.strictObject({
  name: name("what people call it"),
  addresses: z.array(where).max(256).default([]).meta({
    uniqueItems: true,
    description:
      "addresses, networks without host bits, and MAC addresses of devices on a node's " +
      "own links; each is one client's",
  }),
  ids: z.array(ClientId).max(16).default([]).meta({
    uniqueItems: true,
    description: "client IDs that its encrypted queries carry; each is one client's",
  }),
  group: id(ID_PREFIX.groups).default(DEFAULT_GROUP_ID).describe("the ID of its group"),
  paused_until: until.describe("until when nothing is filtered for it; null: it is now"),
  ...blocked,
  ...recorded,
}).refine((client) => [client.addresses, client.ids].some((all) => all?.length !== 0), {
  message: "give at least one address or ID",
  path: ["addresses"],
  ...always,
}).meta({
  allOf: [{
    anyOf: ["addresses", "ids"].map((field) => ({
      required: [field],
      properties: { [field]: { minItems: 1 } },
    })),
  }],
});
export type ClientSpec = z.infer<typeof ClientSpec>;
/** What groups and clients have in common about it. */
export type BlockedSpec = Pick<
  GroupSpec & ClientSpec,
  "blocked" | "blocked_schedule" | "blocked_paused_until"
>;
/** The same about who leaves no trace. */
export type RecordedSpec = Pick<GroupSpec & ClientSpec, "querylog" | "statistics">;

const start = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, "it is no time of HH:MM")
  .describe("HH:MM");
const end = z.string().regex(
  /^(([01]\d|2[0-3]):[0-5]\d|24:00)$/,
  "it is no time of HH:MM, or 24:00",
)
  .describe("HH:MM, or 24:00; earlier than start: on the next day");

/** When something holds. A window that ends before it starts runs past midnight. */
export const ScheduleSpec = z.strictObject({
  name: name("what people call it"),
  time_zone: z.string().max(64).refine(isTimeZone, "it is no IANA time zone")
    .describe("the name of an IANA time zone, such as Europe/Berlin"),
  windows: z.array(
    z.strictObject({
      days: z.array(z.enum(DAYS)).min(1).max(7).describe("the days on which it starts"),
      start,
      end,
    }).refine(
      (window) => window.start !== window.end,
      {
        message: "it is when it starts, so it never holds: 00:00 to 24:00 is all day",
        path: ["end"],
      },
    ),
  ).min(1).max(64).describe("when it holds"),
});
export type ScheduleSpec = z.infer<typeof ScheduleSpec>;

function blockingAddress(bytes: 4 | 16) {
  const family = bytes === 4 ? "IPv4" : "IPv6";
  return z.string().max(64)
    .refine((text) => parseIp(text)?.length === bytes, `it is no ${family} address`)
    .meta({ format: family.toLowerCase() }).nullable().default(null)
    .describe(`what custom_ip answers; null: the null address of ${family}`);
}

const { access: freshAccess, ...fresh } = DEFAULT_SETTINGS;

function accessList(from: readonly string[], what: string) {
  return z.array(access).max(512).default(() => [...from])
    .meta({ default: from, description: what });
}

/** `/api/v1/settings`; PUT replaces the whole of it, and a field left out is a fresh node's. */
export const SettingsSpec = z.strictObject({
  protection: z.boolean().default(fresh.protection)
    .describe("false: no query of any client is filtered"),
  block_response: z.enum(["null_ip", "nxdomain", "refused", "custom_ip"])
    .default(fresh.block_response).describe("how a blocked name is answered"),
  blocking_ipv4: blockingAddress(4),
  blocking_ipv6: blockingAddress(16),
  block_ttl: z.int().min(0).max(86_400).default(fresh.block_ttl)
    .describe("seconds for which a client keeps the answer for a blocked name"),
  list_update_interval: z.int().min(3_600).max(2_592_000).default(fresh.list_update_interval)
    .describe("seconds between two looks at a list's server"),
  access: z.strictObject({
    allowed: accessList(
      freshAccess.allowed,
      "who may ask: addresses, networks, client IDs; empty: everybody. Loopback always may",
    ),
    disallowed: accessList(freshAccess.disallowed, "who may not, whatever allowed says"),
  }).default(() => ({
    allowed: [...freshAccess.allowed],
    disallowed: [...freshAccess.disallowed],
  })).meta({ default: freshAccess, description: "who may ask this resolver" }),
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
