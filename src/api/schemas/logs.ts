import { z } from "zod";
import { DNSSEC_NAMES, OUTCOME_NAMES, PROTOCOL_NAMES } from "../../logqueue/mod.ts";
import { answer, count, limit, queryInteger, type Shown, timestamp } from "./common.ts";

const HOURS_MAX = 720;
const HOURS_DEFAULT = 24;
const CURSOR_LENGTH_MAX = 256;

const Outcome = z.enum(OUTCOME_NAMES);
const Protocol = z.enum(PROTOCOL_NAMES);
const [, ...VALIDATED_NAMES] = DNSSEC_NAMES;

/** Which entries are asked for. */
const filter = {
  outcome: Outcome.optional(),
  client: z.string().min(1).max(128).optional()
    .describe("an address; or a client's name, or the client ID of its queries"),
  name: z.string().min(1).max(255).optional().describe("text to search for in names"),
  since: z.iso.datetime({ offset: true }).optional().describe("after then"),
  until: z.iso.datetime({ offset: true }).optional().describe("before then"),
};
export const QuerylogFilter = z.strictObject(filter);
export type QuerylogFilter = z.infer<typeof QuerylogFilter>;

export const EXPORT_FORMATS = ["csv", "ndjson"] as const;
export const QuerylogExport = z.strictObject({
  format: z.enum(EXPORT_FORMATS).default("csv"),
  ...filter,
});
export type QuerylogExport = z.infer<typeof QuerylogExport>;

export const QuerylogQuery = z.strictObject({
  limit,
  ...filter,
  next: z.string().regex(/^[\w.:-]+$/, "is no cursor").max(CURSOR_LENGTH_MAX).optional()
    .describe("the cursor of the previous answer"),
});
export type QuerylogQuery = z.infer<typeof QuerylogQuery>;

export const QuerylogEntry = answer(
  "QuerylogEntry",
  z.object({
    time: timestamp.describe("when it was answered; RFC 3339 in UTC with fractional seconds"),
    client: z.string().nullable().describe("the address"),
    client_name: z.string().nullable(),
    client_id: z.string().nullable().describe("the client ID that came with the query"),
    group: z.string().nullable().describe("the ID of the client's group"),
    protocol: Protocol,
    name: z.string(),
    type: z.string(),
    outcome: Outcome,
    rcode: z.string(),
    rule: z.string().nullable().describe("the rule that decided, an exception among them"),
    list: z.string().nullable().describe("a list's ID, rules, or service:<id>"),
    answers: z.array(z.string()).describe("RDATA in presentation form"),
    upstream: z.string().nullable().describe("the one that answered"),
    cached: z.boolean(),
    dnssec: z.enum(VALIDATED_NAMES).nullable(),
    duration_us: count,
    node: z.string(),
  }),
);
export type QuerylogEntry = Shown<z.infer<typeof QuerylogEntry>>;
export const QuerylogPage = answer(
  "QuerylogPage",
  z.object({
    entries: z.array(QuerylogEntry).describe("newest first"),
    next: z.string().nullable(),
  }),
);
export type QuerylogPage = Shown<z.infer<typeof QuerylogPage>>;

export const StatisticsQuery = z.strictObject({
  hours: queryInteger(1, HOURS_MAX).default(HOURS_DEFAULT),
  scope: z.enum(["node", "cluster"]).default("node"),
});
export type StatisticsQuery = z.infer<typeof StatisticsQuery>;

/** Counts by outcome, each named, also where it is 0. */
export const outcomeCounts = Object.fromEntries(
  OUTCOME_NAMES.map((name) => [name, count]),
) as Record<
  typeof OUTCOME_NAMES[number],
  typeof count
>;
const Top = z.array(z.object({ name: z.string(), count }));
export const Statistics = answer(
  "Statistics",
  z.object({
    hours: z.int().min(1).max(HOURS_MAX),
    scope: z.enum(["node", "cluster"]),
    total: count,
    outcomes: z.object(outcomeCounts),
    series: z.array(z.object({ time: timestamp, ...outcomeCounts })).describe("one an hour"),
    top: z.object({ names: Top, blocked: Top, clients: Top }),
    nodes: z.array(z.string()),
    unreachable: z.array(z.string()),
  }),
);
export type Statistics = Shown<z.infer<typeof Statistics>>;

export const AuditQuery = z.strictObject({ limit });
export const AuditLog = answer(
  "AuditLog",
  z.object({
    items: z.array(z.object({
      id: z.string(),
      time: timestamp,
      actor: z.object({
        kind: z.string().describe("new values may appear"),
        name: z.string().nullable(),
        address: z.string().nullable(),
      }),
      action: z.string().describe("new values may appear"),
      resource: z.object({ type: z.string(), id: z.string().nullable() }),
      before: z.unknown(),
      after: z.unknown(),
      node: z.string(),
    })).describe("newest first"),
  }),
);

export const LeakTest = answer(
  "LeakTest",
  z.object({
    id: z.string(),
    names: z.array(z.string()).describe("8 names that only this service answers"),
    created_at: timestamp,
    reached: count.describe("how many of the names were asked for"),
    lookups: z.array(
      z.object({ address: z.string(), protocol: Protocol, client: z.string().nullable() }),
    ),
  }),
);
export type LeakTest = Shown<z.infer<typeof LeakTest>>;
export const LeakTests = answer("LeakTests", z.object({ items: z.array(LeakTest) }));
