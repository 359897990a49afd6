import { z } from "zod";
import { answer, count, request, type Shown, timestamp } from "./common.ts";
import { ClusterReport } from "./cluster.ts";
import { ListEnvelope, ListStatus } from "./resources.ts";

/** Longest pause: one week. */
const PAUSE_SECONDS_MAX = 604_800;
const NAME_LENGTH_MAX = 255;

export const Health = answer("Health", z.object({ status: z.enum(["ok", "degraded"]) }));
export type Health = Shown<z.infer<typeof Health>>;

export const Status = answer(
  "Status",
  z.object({
    version: z.string(),
    node: z.string(),
    started_at: timestamp,
    protection: z.boolean(),
    paused_until: timestamp.nullable(),
    problems: z.array(z.string()),
    cluster: ClusterReport,
    api_docs: z.boolean().describe("whether /api/docs is served to loopback clients"),
    listeners: z.array(z.object({ protocol: z.string(), address: z.string() })),
    recursion: z.object({ enabled: z.boolean(), dnssec: z.boolean() }),
    filter: z.object({
      rules: count,
      generation: count,
      built_at: timestamp.nullable(),
      memory_bytes: count,
    }),
    cache: z.object({ entries: count, bytes: count, hits: count, misses: count }),
    upstreams: z.array(z.object({
      address: z.string(),
      healthy: z.boolean(),
      latency_ms: z.number().min(0).nullable(),
      failures: count,
    })),
    querylog: z.object({ entries: count, dropped: count }),
  }),
);
export type Status = Shown<z.infer<typeof Status>>;

export const PauseRequest = request(
  "PauseRequest",
  z.strictObject({ seconds: z.int().min(1).max(PAUSE_SECONDS_MAX) }),
);
export const Pause = answer(
  "Pause",
  z.object({ paused: z.boolean(), until: timestamp.nullable() }),
);

export const ExplainQuery = z.strictObject({
  name: z.string().min(1).max(NAME_LENGTH_MAX),
  type: z.string().regex(/^[A-Za-z0-9]{1,16}$/, "is no type of record").default("A"),
  client: z.string().min(1).max(64).optional()
    .describe("an address or a client ID; left out: the caller's address"),
});
export type ExplainQuery = z.infer<typeof ExplainQuery>;

const Reference = z.object({ id: z.string(), name: z.string() });
export const Explanation = answer(
  "Explanation",
  z.object({
    name: z.string(),
    type: z.string(),
    client: Reference.nullable().describe("null: a client not known"),
    group: Reference,
    outcome: z.string().describe("as in the query log"),
    rule: z.string().nullable().describe("the rule that decides"),
    list: z.string().nullable().describe("its list's ID, rules, or service:<id>"),
    records: z.array(z.string()).describe(
      "records that answer, local or by rules, or a response code",
    ),
    matches: z.array(z.object({
      rule: z.string(),
      list: z.string(),
      list_name: z.string(),
      effect: z.string().describe("block, allow or answer; new values may appear"),
      lost: z.string().nullable().describe(
        "why it does not decide; null for the one that does, and others that answer with it",
      ),
    })).describe("every rule about the name, the deciding one first"),
  }),
);
export type Explanation = Shown<z.infer<typeof Explanation>>;

export const UpdateCheck = answer(
  "UpdateCheck",
  z.object({
    current: z.string(),
    latest: z.string().nullable().describe("null where no release service is configured"),
    newer: z.boolean(),
    url: z.string().nullable(),
  }),
);
export type UpdateCheck = Shown<z.infer<typeof UpdateCheck>>;

export const Refresh = answer(
  "Refresh",
  z.object({
    finished: z.boolean().describe("false: some downloads go on; see each list's status"),
    started: z.array(z.string()).describe(
      "IDs of the lists that are asked for now, a few at a time; services: the catalogue",
    ),
    loading: z.array(z.string()).describe(
      "IDs of those that were being loaded already; they are asked once more behind that",
    ),
    items: z.array(ListEnvelope),
  }),
);

export const RecommendedCatalog = answer(
  "RecommendedCatalog",
  z.object({
    items: z.array(z.object({
      id: z.string(),
      name: z.string(),
      description: z.string(),
      category: z.string(),
      url: z.string(),
      homepage: z.string().nullable(),
      licence: z.string().describe("as its source states it"),
      non_commercial: z.boolean().describe("the licence forbids commercial use"),
      presets: z.array(z.string()),
    })),
    presets: z.array(z.object({ id: z.string(), name: z.string(), description: z.string() })),
  }),
);
export type RecommendedCatalog = Shown<z.infer<typeof RecommendedCatalog>>;

export const RecommendedSizes = answer(
  "RecommendedSizes",
  z.object({
    items: z.array(z.object({
      id: z.string(),
      rules: count.nullable().describe("null: this node has not fetched the list"),
      bytes: count,
    })),
  }),
);
export type RecommendedSizes = Shown<z.infer<typeof RecommendedSizes>>;

const DirectoryList = z.object({
  id: z.string(),
  name: z.string(),
  description: z.string(),
  url: z.string().nullable()
    .describe("null: ask for this list by its ID, the directory tells its address then"),
  homepage: z.string().nullable(),
  tags: z.array(z.string()),
});

export const Directory = answer(
  "Directory",
  z.object({ fetched_at: timestamp.nullable(), items: z.array(DirectoryList) }),
);
export type Directory = Shown<z.infer<typeof Directory>>;

export const DirectoryDetails = answer(
  "DirectoryDetails",
  DirectoryList.extend({
    urls: z.array(z.string()).describe("the list's address, or those of its parts in order"),
  }),
);
export type DirectoryDetails = Shown<z.infer<typeof DirectoryDetails>>;

export const Services = answer(
  "Services",
  z.object({
    items: z.array(z.object({
      id: z.string(),
      name: z.string(),
      group: z.string().nullable(),
      rules: z.array(z.string()),
    })),
    status: ListStatus.nullable().describe("of the catalogue; null: none is downloaded"),
  }),
);
export type Services = Shown<z.infer<typeof Services>>;
