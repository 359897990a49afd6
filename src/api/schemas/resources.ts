import * as z from "zod";
import { type Collection, ID_PREFIX, RulesBatch, SettingsSpec, SPECS } from "../../model/mod.ts";
import {
  answer,
  count,
  EXAMPLE_DIGITS,
  EXAMPLE_TIME,
  exampleOf,
  request,
  type Shown,
  timestamp,
} from "./common.ts";

/** What each collection is called in the document: one resource, in the singular. */
const NAMES = {
  lists: "List",
  rules: "Rule",
  records: "Record",
  groups: "Group",
  clients: "Client",
  schedules: "Schedule",
} as const satisfies Record<Collection, string>;

type SpecInput = { readonly [C in Collection]: z.input<typeof SPECS[C]> };

/** What is sent to make one of each. */
const EXAMPLES: SpecInput = {
  lists: { name: "Ads", url: "https://lists.example/ads.txt" },
  rules: { rule: "||ads.example^", comment: "asked for by Ann" },
  records: { name: "nas.home.arpa", type: "A", value: "192.168.1.5" },
  groups: {
    name: "Kids",
    safe_search: true,
    lists: [{ list: ID_PREFIX.lists + EXAMPLE_DIGITS }],
    blocked_services: [{ service: "tiktok", schedule: ID_PREFIX.schedules + EXAMPLE_DIGITS }],
  },
  clients: {
    name: "Tablet",
    addresses: ["192.168.1.20", "2001:db8::/64"],
    ids: ["tablet"],
    group: ID_PREFIX.groups + EXAMPLE_DIGITS,
  },
  schedules: {
    name: "School",
    time_zone: "Europe/Berlin",
    windows: [{ days: ["mon", "tue", "wed", "thu", "fri"], start: "08:00", end: "13:00" }],
  },
};

const head = {
  id: z.string().describe("a prefix that tells the collection, and 16 hexadecimal digits"),
  revision: z.int().min(1).describe("grows with each change; also the ETag"),
  created_at: timestamp,
  updated_at: timestamp,
};

/** The example of an envelope, beside its spec. */
export function exampleHead(prefix: string) {
  return {
    id: prefix + EXAMPLE_DIGITS,
    revision: 1,
    created_at: EXAMPLE_TIME,
    updated_at: EXAMPLE_TIME,
  };
}

/** What this node has of a list. */
export const ListStatus = answer(
  "ListStatus",
  z.object({
    state: z.enum(["ok", "pending", "failed", "skipped"])
      .describe("what became of it last; a download under way leaves it as it is"),
    message: z.string().nullable().describe("what is wrong and how to mend it"),
    rules: count.describe("rules of it in force"),
    unsupported: count.describe("lines left out as no rule of ours"),
    refreshed_at: timestamp.nullable().describe("when its text was last fetched or read"),
    downloading: z.object({
      bytes: count.describe("received so far, as on the wire"),
      total_bytes: count.nullable().describe("of all of it; null: the server does not say"),
      started_at: timestamp.describe("when it was begun"),
    }).nullable().describe("how far the download under way is; null: there is none"),
  }),
  {
    state: "ok",
    message: null,
    rules: 52_341,
    unsupported: 12,
    refreshed_at: EXAMPLE_TIME,
    downloading: null,
  },
);

export type ListStatus = Shown<z.infer<typeof ListStatus>>;

/** An envelope around a spec. */
export function envelope<S extends z.ZodType>(spec: S) {
  return z.object({ ...head, spec: spec.describe("what can be changed of it") });
}

/** The answers of a collection: one resource and all of them. */
export interface ResourceSchemas {
  readonly name: string;
  readonly one: z.ZodType;
  readonly all: z.ZodType;
}

/** Names the schemas of a collection; `more` is what its envelopes have beside the spec. */
function nameSchemas<C extends Collection>(collection: C, more: z.ZodRawShape, example: object) {
  const name = NAMES[collection];
  const spec: z.ZodType = SPECS[collection];
  request(`${name}Spec`, spec, EXAMPLES[collection]);
  const filled = spec.parse(EXAMPLES[collection]);
  answer(`${name}SpecAnswer`, spec, filled);
  const shown = { ...exampleHead(ID_PREFIX[collection]), spec: filled, ...example };
  const one: z.ZodType = answer(name, envelope(spec).extend(more), shown);
  const items = z.array(one).describe("oldest first");
  const all = answer(
    `${name}Collection`,
    z.object({
      items,
      next: z.string().nullable().optional()
        .describe("with limit or q: the cursor of younger ones; null: there are none"),
    }),
    { items: [shown] },
  );
  return { name, one, all };
}

export const RESOURCES: Readonly<Record<Collection, ResourceSchemas>> = {
  schedules: nameSchemas("schedules", {}, {}),
  lists: nameSchemas("lists", { status: ListStatus.describe("what this node has of it") }, {
    status: exampleOf(ListStatus),
  }),
  rules: nameSchemas("rules", {}, {}),
  records: nameSchemas("records", {}, {}),
  groups: nameSchemas("groups", {}, {}),
  clients: nameSchemas("clients", {}, {}),
};

const FRESH_SETTINGS = SettingsSpec.parse({});
request("Settings", SettingsSpec, { block_response: "nxdomain", access: FRESH_SETTINGS.access });
/** The same object as in a request, with every default filled in. */
export const SettingsAnswer = answer("SettingsAnswer", SettingsSpec, FRESH_SETTINGS);

const RULE_EXAMPLE = `${ID_PREFIX.rules}${EXAMPLE_DIGITS}`;
request("RulesBatch", RulesBatch, { add: [EXAMPLES.rules], remove: [RULE_EXAMPLE] });
/** What a batch of rules came to. */
export const RulesBatchAnswer = answer(
  "RulesBatchAnswer",
  z.object({
    added: z.array(RESOURCES.rules.one).describe("in the order they were sent"),
    removed: count.describe("rules that are gone"),
  }),
  { added: [exampleOf(RESOURCES.rules.one)], removed: 1 },
);
