import * as z from "zod";
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
import { DEFAULT_GROUP_ID, PRESET_GROUPS_MAX, RuleSpec } from "../../model/mod.ts";
import { ClusterReport } from "./cluster.ts";
import { ListStatus, RESOURCES } from "./resources.ts";

/** Longest pause: one week. */
const PAUSE_SECONDS_MAX = 604_800;
const NAME_LENGTH_MAX = 255;

export const Health = answer(
  "Health",
  z.object({ status: z.enum(["ok", "degraded"]).describe("degraded: the status names problems") }),
  { status: "ok" },
);
export type Health = Shown<z.infer<typeof Health>>;

/** Something that is wrong. */
export const ProblemItem = answer(
  "ProblemItem",
  z.object({
    code: z.string().describe("what kind of problem; new values may appear"),
    message: z.string().describe("as in problems: what is wrong, and how to mend it"),
    since: timestamp.describe("when this node first saw it"),
    resource: z.object({
      type: z.string().describe("what kind of thing it is about, as in the audit log; or upstream"),
      id: z.string().nullable().describe("which; null where there is one only"),
    }).nullable().describe("what it is about; null: the node"),
  }),
  {
    code: "list",
    message: "lists: Ads: the server does not answer: see its status",
    since: EXAMPLE_TIME,
    resource: { type: "list", id: `li_${EXAMPLE_DIGITS}` },
  },
);
export type ProblemItem = Shown<z.infer<typeof ProblemItem>>;

export const Status = answer(
  "Status",
  z.object({
    version: z.string().describe("of the program"),
    node: z.string().describe("this node's name"),
    started_at: timestamp,
    protection: z.boolean().describe("the setting: false filters for nobody"),
    paused_until: timestamp.nullable().describe("until when this node filters nothing"),
    problems: z.array(z.string()).describe("what is wrong, and how to mend it"),
    problem_items: z.array(ProblemItem).describe("the same, in the same order, for programs"),
    cluster: ClusterReport.describe("the cluster as this node sees it"),
    api_docs: z.boolean().describe("whether /api/docs is served to loopback clients"),
    listeners: z.array(z.object({
      protocol: z.string().describe("as in the query log"),
      address: z.string().describe("with the port"),
    })).describe("where queries are taken"),
    addresses: z.array(z.object({
      protocol: z.string().describe("as in the query log"),
      address: z.string().describe("with the port"),
    })).describe("the same, with this machine's own addresses in place of 0.0.0.0 and [::]"),
    encrypted: z.object({
      server_name: z.string().nullable().describe("the domain that client IDs stand before"),
      require_client_id: z.boolean().describe("queries without a known client ID are refused"),
      not_after: timestamp.nullable().describe("when the certificate ends; null: there is none"),
    }).nullable().describe("encrypted DNS; null: none is configured"),
    acme: z.object({
      certificate: z.enum(["issued", "stand_in"]).describe(
        "issued: the authority's; stand_in: one of the service's own, until there is one",
      ),
      directory: z.string().describe("the authority"),
      domains: z.array(z.string()).describe("the names of the certificate"),
      ordering: z.boolean().describe("whether one is ordered at this moment"),
      error: z.string().nullable().describe("why the last attempt came to nothing"),
      not_after: timestamp.nullable().describe("when the certificate ends; null: there is none"),
      next_try: timestamp.describe("when it is renewed, or tried again"),
    }).nullable().describe("the certificate that the service gets by itself; null: it gets none"),
    recursion: z.object({
      enabled: z.boolean().describe("resolves from the root servers itself"),
      dnssec: z.boolean().describe("validates what it resolves"),
      servers: count.describe("addresses of name servers that something is known of"),
    }).describe("how names are resolved"),
    filter: z.object({
      rules: count.describe("rules in force"),
      generation: count.describe("grows with each change that is in force"),
      built_at: timestamp.nullable().describe("when the lists' rules were built"),
      memory_bytes: count.describe("what the rules take"),
    }).describe("what queries are held against"),
    cache: z.object({
      entries: count.describe("answers at hand"),
      bytes: count.describe("what they take"),
      hits: count.describe("queries answered from it"),
      misses: count.describe("queries that were not"),
    }).describe("answers at hand"),
    forwarding: z.object({
      strategy: z.enum(["order", "fastest", "parallel"])
        .describe("how those are chosen among that serve a name"),
    }).describe("how upstreams are asked"),
    dns64: z.object({
      prefix: z.string().describe("behind which AAAA records are made of A records"),
    }).nullable().describe("null: none are made"),
    upstreams: z.array(z.object({
      address: z.string().describe("as it is configured"),
      name: z.string().nullable().describe("what groups call it by; null: by its address"),
      groups_only: z.boolean().describe("whether it is asked for groups that name it alone"),
      healthy: z.boolean().describe("whether it answers"),
      latency_ms: z.number().min(0).nullable().describe("smoothed time to its answer"),
      failures: count.describe("questions that it did not answer"),
    })).describe("who is asked"),
    querylog: z.object({
      entries: count.describe("what the log holds"),
      dropped: count.describe("entries it had no room for"),
    }).describe("the query log"),
    sandbox: z.object({
      user: z.string().nullable().describe("whom the process runs as"),
      capabilities: z.array(z.string()).describe("of the superuser's rights, those it has"),
      landlock: z.boolean().describe("the kernel shuts it in to the paths it needs"),
      seccomp: z.boolean().describe("the kernel denies it the calls that it never makes"),
    }).describe("what the process may do"),
  }),
  {
    version: "0.7.0",
    node: "node1",
    started_at: EXAMPLE_TIME,
    protection: true,
    paused_until: null,
    problems: [],
    problem_items: [],
    cluster: exampleOf(ClusterReport),
    api_docs: false,
    listeners: [{ protocol: "udp", address: "0.0.0.0:53" }],
    addresses: [{ protocol: "udp", address: "192.168.1.2:53" }],
    encrypted: {
      server_name: "dns.example",
      require_client_id: false,
      not_after: "2026-04-01T00:00:00.000Z",
    },
    acme: null,
    recursion: { enabled: false, dnssec: true, servers: 0 },
    filter: { rules: 120_345, generation: 7, built_at: EXAMPLE_TIME, memory_bytes: 4_194_304 },
    cache: { entries: 1_204, bytes: 262_144, hits: 9_120, misses: 1_500 },
    forwarding: { strategy: "order" },
    dns64: null,
    upstreams: [{
      address: "tls://9.9.9.9#dns.quad9.net",
      name: null,
      groups_only: false,
      healthy: true,
      latency_ms: 11.5,
      failures: 0,
    }],
    querylog: { entries: 10_620, dropped: 0 },
    sandbox: { user: "svc", capabilities: [], landlock: true, seccomp: true },
  },
);
export type Status = Shown<z.infer<typeof Status>>;

export const PauseRequest = request(
  "PauseRequest",
  z.strictObject({
    seconds: z.int().min(1).max(PAUSE_SECONDS_MAX).describe("how long; a week at most"),
  }),
  { seconds: 900 },
);
export const Pause = answer(
  "Pause",
  z.object({
    paused: z.boolean().describe("whether this node filters nothing"),
    until: timestamp.nullable().describe("when it filters again by itself"),
  }),
  { paused: true, until: EXAMPLE_TIME },
);

export type Pause = Shown<z.infer<typeof Pause>>;

/** Most rules of a draft, and most IDs that one leaves out. */
const DRAFT_MAX = 64;

const question = {
  name: z.string().min(1).max(NAME_LENGTH_MAX)
    .meta({
      description: "a name, or an address: about responses that hold it",
      example: "ads.example",
    }),
  type: z.string().regex(/^[A-Za-z0-9]{1,16}$/, "it is no type of record").default("A")
    .describe("the type that would be asked for"),
  client: z.string().min(1).max(128).optional().describe(
    "who would ask: an address, or the client ID, the name or the ID of a client; left out: the " +
      "caller's address, or with group a client not known",
  ),
  group: z.string().min(1).max(128).optional()
    .describe("the ID of the group that the client would be in; left out: its own"),
};
export const ExplainQuery = z.strictObject({
  ...question,
  trace: z.enum(["true", "false"]).default("false")
    .describe("has the name asked for anew and tells each step, where it is asked for elsewhere"),
});
export const ExplainDraft = request(
  "ExplainDraft",
  z.strictObject({
    ...question,
    draft: z.array(z.union([z.string(), RuleSpec])).max(DRAFT_MAX).default([])
      .describe("rules that there would be: texts, or specs as POST rules takes them"),
    without: z.array(z.string().max(128)).max(DRAFT_MAX).default([])
      .describe("IDs of rules and of lists that there would not be"),
  }),
  { name: "ads.example", type: "A", draft: ["@@||ads.example^"], without: [] },
);
export type ExplainQuery = z.infer<typeof ExplainQuery>;

function reference(thing: string) {
  return z.object({
    id: z.string().describe(`the ID of the ${thing}`),
    name: z.string().describe(`the name of the ${thing}`),
  });
}
export const Explanation = answer(
  "Explanation",
  z.object({
    name: z.string().describe("as it was asked for"),
    type: z.string().describe("as it was asked for"),
    client: reference("client").nullable().describe("null: a client not known"),
    group: reference("group").describe("the client's"),
    querylog: z.boolean().describe("whether queries of this client are logged"),
    statistics: z.boolean().describe("whether statistics count them"),
    outcome: z.string().describe("as in the query log"),
    target: z.string().nullable().optional().describe(
      "where CNAME records of your own lead from the name: what is said here is about this name; " +
        "null: they lead nowhere",
    ),
    rule: z.string().nullable().describe("the rule that decides"),
    list: z.string().nullable().describe("its list's ID, rules, or service:<id>"),
    records: z.array(z.string()).describe(
      "records that answer, local or by rules, behind the targets that lead there, or a response code",
    ),
    matches: z.array(z.object({
      rule: z.string().describe("its text"),
      list: z.string().describe("a list's ID, rules, or service:<id>"),
      list_name: z.string().describe("what people call that"),
      effect: z.string().describe("block, allow or answer; new values may appear"),
      lost: z.string().nullable().describe(
        "why it does not decide; null for the one that does, and others that answer with it",
      ),
    })).describe("every rule about the name, the deciding one first"),
    upstreams: z.array(z.object({
      address: z.string().describe("as configured"),
      name: z.string().nullable().describe("what groups call it; null: by its address"),
    })).nullable().optional().describe(
      "who would be asked, of the group's own upstreams or of those for everybody, as configured; " +
        "empty: this node has none of them; null: nobody, or name servers",
    ),
    dnssec: z.object({
      result: z.enum(["secure", "insecure", "bogus", "indeterminate"])
        .describe("of the answer as it comes at this moment"),
      reason: z.string().nullable().describe("why it is not secure; null where it is"),
    }).nullable().describe("null: it is answered here, or answers are not validated"),
    trace: z.object({
      rcode: z.string().nullable().describe("of the answer; null: there was none"),
      records: z.array(z.string()).describe("of the answer"),
      failure: z.string().nullable().describe("why there is no answer"),
      took_ms: z.number().describe("milliseconds to the answer"),
      steps: z.array(z.object({
        at_ms: z.number().describe("milliseconds since the question"),
        depth: count.describe("0 of the question; more of what it depends on: addresses, keys"),
        event: z.string().describe(
          "asked, referral, answered, alias, failed, cached, local or validated; new values may appear",
        ),
        question: z.string().nullable().describe("what was asked, as much of the name as was told"),
        zone: z.string().nullable().describe("whose server it is, or what a referral leads to"),
        server: z.string().nullable().describe("by name, where it has one, and address"),
        detail: z.string().nullable().describe("in words"),
      })).describe("in order"),
      dropped: count.describe("steps that found no room"),
    }).nullable().describe("null: it was not asked for, or the name is answered here"),
  }),
  {
    name: "ads.example",
    type: "A",
    client: { id: `cl_${EXAMPLE_DIGITS}`, name: "Tablet" },
    group: { id: "gr_0000000000000000", name: "Default" },
    querylog: true,
    statistics: true,
    outcome: "blocked",
    rule: "||ads.example^",
    list: "rules",
    records: ["0.0.0.0"],
    matches: [{
      rule: "||ads.example^",
      list: "rules",
      list_name: "custom rules",
      effect: "block",
      lost: null,
    }],
    upstreams: null,
    dnssec: null,
    trace: null,
  },
);
export type Explanation = Shown<z.infer<typeof Explanation>>;

export const UpdateCheck = answer(
  "UpdateCheck",
  z.object({
    current: z.string().describe("the version that runs"),
    latest: z.string().nullable().describe("null where no release service is configured"),
    newer: z.boolean().describe("whether latest is newer than current"),
    url: z.string().nullable().describe("where to read about it"),
  }),
  {
    current: "0.7.0",
    latest: "0.8.0",
    newer: true,
    url: "https://releases.example/svc/0.8.0",
  },
);
export type UpdateCheck = Shown<z.infer<typeof UpdateCheck>>;

const { one: ListEnvelope } = RESOURCES.lists;
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
    items: z.array(ListEnvelope).describe("every list, with its status"),
  }),
  {
    finished: true,
    started: [`li_${EXAMPLE_DIGITS}`],
    loading: [],
    items: [exampleOf(ListEnvelope)],
  },
);
export const RecommendedCatalog = answer(
  "RecommendedCatalog",
  z.object({
    items: z.array(z.object({
      id: z.string().describe("by which presets and sizes name it"),
      name: z.string().describe("what people call it"),
      description: z.string().describe("what it is about"),
      category: z.string().describe("what it is filed under"),
      url: z.string().describe("where it is downloaded from"),
      homepage: z.string().nullable().describe("where to read about it"),
      licence: z.string().describe("as its source states it"),
      non_commercial: z.boolean().describe("the licence forbids commercial use"),
      presets: z.array(z.string()).describe("IDs of the presets it belongs to"),
    })).describe("checked lists"),
    presets: z.array(z.object({
      id: z.string().describe("of the preset"),
      name: z.string().describe("what people call it"),
      description: z.string().describe("whom it is for"),
    })).describe("sets of them that go together"),
  }),
  {
    items: [{
      id: "ads",
      name: "Ads",
      description: "Advertising of every kind",
      category: "ads",
      url: "https://lists.example/ads.txt",
      homepage: "https://lists.example/",
      licence: "MIT",
      non_commercial: false,
      presets: ["balanced"],
    }],
    presets: [{ id: "balanced", name: "Balanced", description: "For most" }],
  },
);
export type RecommendedCatalog = Shown<z.infer<typeof RecommendedCatalog>>;

export const PresetRequest = request(
  "PresetRequest",
  z.strictObject({
    preset: z.string().min(1).max(64).describe("the ID of a preset of the recommended catalogue"),
    groups: z.array(z.string().max(64)).min(1).max(PRESET_GROUPS_MAX).default([DEFAULT_GROUP_ID])
      .describe("IDs of the groups that get it; left out: the default group"),
  }),
  { preset: "balanced", groups: [DEFAULT_GROUP_ID] },
);
export const PresetAnswer = answer(
  "PresetAnswer",
  z.object({
    lists: z.array(ListEnvelope).describe("the lists of the preset"),
    groups: z.array(RESOURCES.groups.one).describe("the groups, as they are now"),
  }),
  { lists: [exampleOf(ListEnvelope)], groups: [exampleOf(RESOURCES.groups.one)] },
);

export const RecommendedSizes = answer(
  "RecommendedSizes",
  z.object({
    items: z.array(z.object({
      id: z.string().describe("of a recommended list"),
      rules: count.nullable().describe("null: this node has not fetched the list"),
      bytes: count.describe("length of its text"),
    })).describe("one a list whose size is known"),
  }),
  { items: [{ id: "ads", rules: 52_341, bytes: 1_204_001 }] },
);
export type RecommendedSizes = Shown<z.infer<typeof RecommendedSizes>>;

const DirectoryList = z.object({
  id: z.string().describe("by which the directory knows it"),
  name: z.string().describe("what people call it"),
  description: z.string().describe("what it is about"),
  url: z.string().nullable()
    .describe("null: ask for this list by its ID, the directory tells its address then"),
  homepage: z.string().nullable().describe("where to read about it"),
  tags: z.array(z.string()).describe("what it is filed under"),
});
const EXAMPLE_DIRECTORY_LIST = {
  id: "17",
  name: "Ads",
  description: "Advertising of every kind",
  url: "https://lists.example/ads.txt",
  homepage: null,
  tags: ["ads"],
};

export const Directory = answer(
  "Directory",
  z.object({
    fetched_at: timestamp.nullable().describe("when the directory was last fetched"),
    items: z.array(DirectoryList).describe("lists in a syntax that is read"),
  }),
  { fetched_at: EXAMPLE_TIME, items: [EXAMPLE_DIRECTORY_LIST] },
);
export type Directory = Shown<z.infer<typeof Directory>>;

export const DirectoryDetails = answer(
  "DirectoryDetails",
  DirectoryList.extend({
    urls: z.array(z.string()).describe("the list's address, or those of its parts in order"),
  }),
  { ...EXAMPLE_DIRECTORY_LIST, urls: ["https://lists.example/ads.txt"] },
);
export type DirectoryDetails = Shown<z.infer<typeof DirectoryDetails>>;

export const Services = answer(
  "Services",
  z.object({
    items: z.array(z.object({
      id: z.string().describe("by which groups block it"),
      name: z.string().describe("what people call it"),
      group: z.string().nullable().describe("what it is filed under"),
      rules: z.array(z.string()).describe("what blocks it"),
    })).describe("services that can be blocked"),
    status: ListStatus.nullable().describe("of the catalogue; null: none is downloaded"),
  }),
  {
    items: [{ id: "tiktok", name: "TikTok", group: "social", rules: ["||tiktok.example^"] }],
    status: exampleOf(ListStatus),
  },
);
export type Services = Shown<z.infer<typeof Services>>;

/** The content type of the text exposition (Prometheus, version 0.0.4). */
export const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

export const Document = answer(
  "Document",
  z.record(z.string(), z.unknown()).describe("an OpenAPI 3.1 document"),
  { openapi: "3.1.0", info: { title: "svc", version: "1.0.0" }, paths: {} },
);
