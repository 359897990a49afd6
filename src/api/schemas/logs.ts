import * as z from "zod";
import { shownText } from "../../model/mod.ts";
import { DNSSEC_NAMES, OUTCOME_NAMES, PROTOCOL_NAMES } from "../../logqueue/mod.ts";
import {
  answer,
  count,
  EXAMPLE_DIGITS,
  EXAMPLE_TIME,
  exampleOf,
  limit,
  type Shown,
  span,
  timestamp,
} from "./common.ts";

const CURSOR_LENGTH_MAX = 256;
/** All outcomes, twice over. */
const OUTCOMES_LENGTH_MAX = 256;
export const ID_LENGTH_MAX = 128;
const ADDRESS_LENGTH_MAX = 512;
/** Longest text of an audit entry that is asked for. */
const AUDIT_TEXT_LENGTH_MAX = 256;

export const Outcome = z.enum(OUTCOME_NAMES);
const Protocol = z.enum(PROTOCOL_NAMES).describe("how it was asked");
const [, ...VALIDATED_NAMES] = DNSSEC_NAMES;
const EntryId = z.string();
const nextPage = z.string().nullable().describe(
  "the cursor of older entries; null: there are none",
);

/** Several outcomes with commas between them. */
const outcomes = z.string().max(OUTCOMES_LENGTH_MAX).transform((text, context) =>
  text.split(",").map((name) => {
    const parsed = Outcome.safeParse(name);
    if (parsed.success) return parsed.data;
    context.addIssue({ code: "custom", message: `${shownText(name)}: it is no outcome` });
    return z.NEVER;
  })
).meta({ example: "blocked,refused" });

/** Which entries are asked for. */
const filter = {
  outcome: outcomes.optional().describe("only entries with this outcome, or one of several: a,b"),
  type: z.string().regex(/^[A-Za-z0-9]{1,16}$/, "it is no type of record").optional()
    .describe("only queries for this type, such as AAAA"),
  protocol: Protocol.optional(),
  group: z.string().min(1).max(ID_LENGTH_MAX).optional().describe("only of this group, by its ID"),
  list: z.string().min(1).max(ID_LENGTH_MAX).optional()
    .describe("only those that a rule of this list decided: a list's ID, rules, or service:<id>"),
  upstream: z.string().min(1).max(ADDRESS_LENGTH_MAX).optional()
    .describe("only those that this upstream answered, as it is configured"),
  client: z.string().min(1).max(128).optional()
    .describe("an address; or a client's name, or the client ID of its queries"),
  name: z.string().min(1).max(255).optional().describe("text to search for in names"),
  ...span,
};
export const QuerylogFilter = z.strictObject(filter);
export type QuerylogFilter = z.infer<typeof QuerylogFilter>;

export const EXPORT_FORMATS = ["csv", "ndjson"] as const;
export const QuerylogExport = z.strictObject({
  format: z.enum(EXPORT_FORMATS).default("csv").describe("of the file"),
  ...filter,
});
export type QuerylogExport = z.infer<typeof QuerylogExport>;

export const QuerylogQuery = z.strictObject({
  limit,
  ...filter,
  distinct: z.enum(["name"]).optional()
    .describe("name: each name once, in names, of the newest 100,000 entries that pass"),
  next: z.string().regex(/^[\w.:-]+$/, "it is no cursor").max(CURSOR_LENGTH_MAX).optional()
    .describe("the cursor of the previous answer"),
});
export type QuerylogQuery = z.infer<typeof QuerylogQuery>;

export const QuerylogEntry = answer(
  "QuerylogEntry",
  z.object({
    id: EntryId.describe("of the entry on its node; as a cursor it leads to older ones"),
    time: timestamp.describe("when it was answered; RFC 3339 in UTC with fractional seconds"),
    client: z.string().nullable().describe("the address"),
    client_name: z.string().nullable().describe("the name of the client that asked"),
    client_id: z.string().nullable().describe("the client ID that came with the query"),
    group: z.string().nullable().describe("the ID of the client's group"),
    protocol: Protocol,
    name: z.string().describe("the name that was asked for"),
    type: z.string().describe("the type that was asked for"),
    outcome: Outcome.describe("what became of it"),
    rcode: z.string().describe("the response code"),
    rule: z.string().nullable().describe("the rule that decided, an exception among them"),
    list: z.string().nullable().describe("a list's ID, rules, or service:<id>"),
    answers: z.array(z.string()).describe("RDATA in presentation form"),
    upstream: z.string().nullable().describe("the one that answered"),
    cached: z.boolean().describe("whether the answer was at hand"),
    dnssec: z.enum(VALIDATED_NAMES).nullable().describe("what validation came to"),
    dnssec_reason: z.string().nullable()
      .describe("why that is not secure; null where it is, and of answers that were cached"),
    duration_us: count.describe("microseconds from the query to the response"),
    node: z.string().describe("who answered"),
  }),
  {
    id: "1ex0r5jkhs",
    time: EXAMPLE_TIME,
    client: "192.168.1.20",
    client_name: "Tablet",
    client_id: null,
    group: "gr_0000000000000000",
    protocol: "udp",
    name: "ads.example",
    type: "A",
    outcome: "blocked",
    rcode: "NOERROR",
    rule: "||ads.example^",
    list: `li_${EXAMPLE_DIGITS}`,
    answers: ["0.0.0.0"],
    upstream: null,
    cached: false,
    dnssec: null,
    dnssec_reason: null,
    duration_us: 41,
    node: "node1",
  },
);
export type QuerylogEntry = Shown<z.infer<typeof QuerylogEntry>>;
export const QuerylogPage = answer(
  "QuerylogPage",
  z.object({
    entries: z.array(QuerylogEntry).describe("newest first; none with distinct"),
    names: z.array(z.object({
      name: z.string().describe("the name that was asked for"),
      count: count.describe("entries with it"),
      first: timestamp.describe("of the first of them"),
      last: timestamp.describe("of the last of them"),
    })).optional().describe("with distinct=name: the one that was asked for last first"),
    next: nextPage,
  }),
  { entries: [exampleOf(QuerylogEntry)], next: "1767323045678-9" },
);
export type QuerylogPage = Shown<z.infer<typeof QuerylogPage>>;

export const AuditQuery = z.strictObject({
  limit,
  next: z.string().regex(/^[0-9a-f]{16}$/, "it is no cursor").optional()
    .describe("the cursor of the previous answer"),
  ...span,
  type: z.string().min(1).max(AUDIT_TEXT_LENGTH_MAX).optional()
    .describe("only entries about a resource of this type, such as rule or user"),
  actor: z.string().min(1).max(AUDIT_TEXT_LENGTH_MAX).optional()
    .describe("only entries of an actor of this kind, such as token, or of this name"),
});
export const AuditLog = answer(
  "AuditLog",
  z.object({
    items: z.array(z.object({
      id: z.string().describe("grows with each entry"),
      time: timestamp,
      actor: z.object({
        kind: z.string().describe("new values may appear"),
        name: z.string().nullable().describe("of a user"),
        address: z.string().nullable().describe("where the request came from"),
      }).describe("who did it"),
      action: z.string().describe("such as create, update, sign_in; new values may appear"),
      resource: z.object({
        type: z.string().describe("what kind of thing it was done to"),
        id: z.string().nullable().describe("null where there is one only, or none is known"),
      }).describe("what it was done to"),
      before: z.unknown().describe("its fields before; null where there were none"),
      after: z.unknown().describe("its fields after; null where there are none"),
      node: z.string().describe("the member that it came through"),
    })).describe(
      "newest first; where few of many entries pass there may be none, and more behind next",
    ),
    next: nextPage,
  }),
  {
    items: [{
      id: "000000000000002a",
      time: EXAMPLE_TIME,
      actor: { kind: "user", name: "ann", address: "192.168.1.20" },
      action: "update",
      resource: { type: "rule", id: `ru_${EXAMPLE_DIGITS}` },
      before: { rule: "||ads.example^", enabled: true, comment: "", managed_by: "api" },
      after: { rule: "||ads.example^", enabled: false, comment: "", managed_by: "api" },
      node: "node1",
    }],
    next: "000000000000002a",
  },
);

export const LeakTest = answer(
  "LeakTest",
  z.object({
    id: z.string().describe("of the test"),
    names: z.array(z.string()).describe("8 names that only this service answers"),
    created_at: timestamp,
    reached: count.describe("how many of the names were asked for"),
    lookups: z.array(z.object({
      address: z.string().describe("who asked"),
      protocol: Protocol,
      client: z.string().nullable().describe("the name of the client, where it is known"),
    })).describe("who asked for them"),
  }),
  {
    id: `lt_${EXAMPLE_DIGITS}`,
    names: Array.from({ length: 8 }, (_, i) => `${i}-${EXAMPLE_DIGITS}.leak.svc.test`),
    created_at: EXAMPLE_TIME,
    reached: 1,
    lookups: [{ address: "192.168.1.20", protocol: "udp", client: "Tablet" }],
  },
);
export type LeakTest = Shown<z.infer<typeof LeakTest>>;
export const LeakTests = answer(
  "LeakTests",
  z.object({ items: z.array(LeakTest).describe("of the last hour") }),
  { items: [exampleOf(LeakTest)] },
);
