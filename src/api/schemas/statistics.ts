import * as z from "zod";
import { OUTCOME_NAMES } from "../../logqueue/mod.ts";
import { answer, count, EXAMPLE_DIGITS, queryInteger, type Shown, timestamp } from "./common.ts";

const HOURS_DEFAULT = 24;
const TEXT_LENGTH_MAX = 128;

/** Steps of the series in milliseconds, and the most hours that each goes over. */
export const STEPS = {
  "1m": { ms: 60_000, hoursMax: 24 },
  "10m": { ms: 600_000, hoursMax: 168 },
  "1h": { ms: 3_600_000, hoursMax: 720 },
  "1d": { ms: 86_400_000, hoursMax: 8_784 },
} as const;

const hours = z.int().min(1).max(STEPS["1d"].hoursMax).describe("how many hours are counted");
const Scope = z.enum(["node", "cluster"]);
const Step = z.enum(["1m", "10m", "1h", "1d"]);
const asked = {
  hours: queryInteger(1, STEPS["1d"].hoursMax).default(HOURS_DEFAULT)
    .describe("how many hours to count; with step=1d as many days as have them"),
  scope: Scope.default("node").describe("of this node, or of all members of its cluster"),
  step: Step.default("1h").describe(
    "of the series: 1m takes 24 hours at most, 10m 168, 1h 720; 1d, a day from midnight to " +
      "midnight, 8784",
  ),
  client: z.string().min(1).max(TEXT_LENGTH_MAX).optional().describe(
    "only of this client: an address, a client ID, or the name or ID of a client",
  ),
  group: z.string().min(1).max(TEXT_LENGTH_MAX).optional()
    .describe("only of clients that were in this group then, by its ID"),
};
type Asked = { readonly hours: number; readonly step: keyof typeof STEPS };
const fits = ({ hours, step }: Asked) => hours <= STEPS[step].hoursMax;
const MISFIT = { message: "too many hours for such a step", path: ["step"] };
export const StatisticsQuery = z.strictObject(asked).refine(fits, MISFIT);
export type StatisticsQuery = z.infer<typeof StatisticsQuery>;

/** Parts of an answer that are tables. */
const TABLES = [
  "series",
  "names",
  "blocked",
  "clients",
  "blocked_clients",
  "lists",
  "upstreams",
] as const;
export const StatisticsExport = z.strictObject({
  format: z.enum(["csv", "json"]).default("csv").describe("of the file; json: all of the answer"),
  table: z.enum(TABLES).default("series").describe("which part of the answer is the CSV"),
  ...asked,
}).refine(fits, MISFIT);
export type StatisticsExport = z.infer<typeof StatisticsExport>;

/** Counts by outcome, each named, also where it is 0. */
const outcomeCounts = Object.fromEntries(
  OUTCOME_NAMES.map((name) => [name, count.describe("queries with this outcome")]),
) as Record<
  typeof OUTCOME_NAMES[number],
  typeof count
>;
const EXAMPLE_COUNTS = Object.fromEntries(
  OUTCOME_NAMES.map((name) => [name, name === "blocked" ? 120 : 0]),
) as Record<typeof OUTCOME_NAMES[number], number>;
const milliseconds = z.number().min(0).nullable();
const Latency = z.object({
  p50_ms: milliseconds.describe("half of them took no longer, about; null: there are none"),
  p95_ms: milliseconds.describe("95 of a hundred took no longer, about"),
  p99_ms: milliseconds.describe("99 of a hundred took no longer, about"),
});
const totals = {
  total: count.describe("all queries"),
  outcomes: z.object(outcomeCounts).describe("queries by outcome"),
  latency: Latency.describe("time from a query to its response"),
};
const TopNames = z.array(z.object({
  name: z.string().describe("a name, or the ID of a list, rules, or service:<id>"),
  count: count.describe("how often, about"),
}));
const TopClients = z.array(z.object({
  name: z.string().describe("what the client is called now, or else its address or client ID"),
  count: count.describe("how often, about"),
  client: z.string().nullable().describe("the ID of the client; null: it is not known"),
  address: z.string().nullable().describe("the one that asked most; null: none is kept"),
}));
export const Statistics = answer(
  "Statistics",
  z.object({
    hours,
    scope: Scope.describe("whose counts these are"),
    step: Step.describe("of the series"),
    ...totals,
    previous: z.object(totals).nullable()
      .describe("the same number of hours before; null: that is not kept so long"),
    series: z.array(z.object({
      time: timestamp.describe("the beginning of the step"),
      date: z.string().optional().describe("with step=1d: the day, by the node's time zone"),
      ...outcomeCounts,
      latency: Latency.describe("time from a query to its response"),
    })).describe("one a step"),
    top: z.object({
      names: TopNames.describe("names asked for most"),
      blocked: TopNames.describe("names blocked most"),
      clients: TopClients.describe("clients that asked most"),
      blocked_clients: TopClients.describe("clients of whom most was blocked"),
      lists: TopNames.describe("lists that blocked most"),
    }).describe("the most frequent; with step=1d names and lists of the last 30 days"),
    upstreams: z.array(z.object({
      address: z.string().describe("as it is configured"),
      series: z.array(z.object({
        time: timestamp.describe("the beginning of the step"),
        queries: count.describe("that it answered, or was the last one asked of"),
        failures: count.describe("of them, those that failed, SERVFAIL among them"),
        p50_ms: milliseconds.describe("half of them took no longer, about"),
        p95_ms: milliseconds.describe("95 of a hundred took no longer, about"),
      })).describe("one a step"),
    })).describe("those that were asked, the one that answered most first; none with step=1d"),
    nodes: z.array(z.string()).describe("members that are counted"),
    unreachable: z.array(z.string()).describe("members that could not be asked"),
  }),
  {
    hours: 24,
    scope: "node",
    step: "1h",
    total: 120,
    outcomes: EXAMPLE_COUNTS,
    latency: { p50_ms: 0.05, p95_ms: 12, p99_ms: 41.5 },
    previous: {
      total: 120,
      outcomes: EXAMPLE_COUNTS,
      latency: { p50_ms: 0.05, p95_ms: 12, p99_ms: 41.5 },
    },
    series: [{
      time: "2026-01-02T03:00:00.000Z",
      ...EXAMPLE_COUNTS,
      latency: { p50_ms: 0.05, p95_ms: 12, p99_ms: 41.5 },
    }],
    top: {
      names: [{ name: "ads.example", count: 120 }],
      blocked: [{ name: "ads.example", count: 120 }],
      clients: [{
        name: "Tablet",
        count: 120,
        client: `cl_${EXAMPLE_DIGITS}`,
        address: "192.168.1.20",
      }],
      blocked_clients: [],
      lists: [{ name: `li_${EXAMPLE_DIGITS}`, count: 120 }],
    },
    upstreams: [{
      address: "tls://9.9.9.9#dns.quad9.net",
      series: [{
        time: "2026-01-02T03:00:00.000Z",
        queries: 60,
        failures: 0,
        p50_ms: 11,
        p95_ms: 30,
      }],
    }],
    nodes: ["node1"],
    unreachable: [],
  },
);
export type Statistics = Shown<z.infer<typeof Statistics>>;
