import { z } from "zod";
import { type Collection, SettingsSpec, SPECS } from "../../model/mod.ts";
import { answer, count, request, timestamp } from "./common.ts";

/** What each collection is called in the document: one resource, in the singular. */
const NAMES = {
  lists: "List",
  rules: "Rule",
  records: "Record",
  groups: "Group",
  clients: "Client",
  schedules: "Schedule",
} as const satisfies Record<Collection, string>;

const head = {
  id: z.string().describe("a prefix that tells the collection, and 16 hexadecimal digits"),
  revision: z.int().min(1).describe("grows with each change; also the ETag"),
  created_at: timestamp,
  updated_at: timestamp,
};

/** What this node has of a list. */
export const ListStatus = answer(
  "ListStatus",
  z.object({
    state: z.enum(["ok", "pending", "failed", "skipped"])
      .describe("how the last try ended; a download under way leaves it as it is"),
    message: z.string().nullable().describe("what is wrong and how to mend it"),
    rules: count.describe("in force on this node"),
    unsupported: count.describe("lines left out as no rule of ours"),
    refreshed_at: timestamp.nullable(),
    downloading: z.object({
      bytes: count.describe("received so far, as on the wire"),
      total_bytes: count.nullable().describe("null: the server does not say"),
      started_at: timestamp,
    }).nullable().describe("how far the download under way is; null: there is none"),
  }),
);

/** An envelope around a spec. */
export function envelope<S extends z.ZodType>(spec: S) {
  return z.object({ ...head, spec });
}

for (const [collection, spec] of Object.entries(SPECS)) {
  request(`${NAMES[collection as Collection]}Spec`, spec);
}
request("Settings", SettingsSpec);

export const ListEnvelope = envelope(SPECS.lists).extend({ status: ListStatus });
const ENVELOPES = {
  lists: ListEnvelope,
  rules: envelope(SPECS.rules),
  records: envelope(SPECS.records),
  groups: envelope(SPECS.groups),
  clients: envelope(SPECS.clients),
  schedules: envelope(SPECS.schedules),
} as const satisfies Record<Collection, z.ZodType>;

/** The answers of a collection: one resource and all of them. */
export interface ResourceSchemas {
  readonly name: string;
  readonly one: z.ZodType;
  readonly all: z.ZodType;
}

export const RESOURCES: Readonly<Record<Collection, ResourceSchemas>> = (() => {
  const entries = Object.entries(ENVELOPES).map(([collection, schema]) => {
    const name = NAMES[collection as Collection];
    const one = answer(name, schema as z.ZodType);
    const all = answer(`${name}Collection`, z.object({ items: z.array(one) }));
    return [collection, { name, one, all }];
  });
  return Object.fromEntries(entries);
})();

/** The same object as in a request, with every default filled in. */
export const SettingsAnswer = answer("SettingsAnswer", SettingsSpec);
