import * as z from "zod";
import {
  answer,
  count,
  EXAMPLE_DIGITS,
  EXAMPLE_TIME,
  queryInteger,
  type Shown,
  timestamp,
} from "./common.ts";

/** As long as the log is kept, if nothing else is configured. */
const HOURS_MAX = 168;
const HOURS_DEFAULT = 24;

export const ClientsSeenQuery = z.strictObject({
  hours: queryInteger(1, HOURS_MAX).default(HOURS_DEFAULT).describe(
    "how many hours to look at, this one among them",
  ),
  known: z.enum(["true", "false"]).transform((text) => text === "true").optional()
    .describe("only addresses of clients that are known, or of none"),
});
export type ClientsSeenQuery = z.infer<typeof ClientsSeenQuery>;

export const ClientsSeen = answer(
  "ClientsSeen",
  z.object({
    items: z.array(z.object({
      address: z.string().describe("who asked"),
      client: z.string().nullable().describe("the ID of the client; null: it is not known"),
      hostname: z.string().nullable()
        .describe("what the local network calls it; null: nobody said, or nobody was asked yet"),
      hostname_source: z.enum(["ptr", "record", "hosts", "lease"]).nullable().describe(
        "ptr: the upstream for its reverse zone; record: a local record; hosts and lease: files " +
          "of the node's own host",
      ),
      mac: z.string().nullable().describe(
        "the MAC address that the node knows it by; null: it is on no link of the node, nor in a " +
          "file of leases",
      ),
      first_seen: timestamp.describe("its first query that the log still has"),
      last_seen: timestamp.describe("its last query"),
      queries: count.describe("in these hours"),
      blocked: count.describe("of them, those that were blocked"),
    })).describe("the one that asked last first; 10,000 at most"),
  }),
  {
    items: [{
      address: "192.168.1.20",
      client: `cl_${EXAMPLE_DIGITS}`,
      hostname: "tablet.home.arpa",
      hostname_source: "ptr",
      mac: "02:00:5e:10:00:01",
      first_seen: EXAMPLE_TIME,
      last_seen: EXAMPLE_TIME,
      queries: 420,
      blocked: 31,
    }],
  },
);
export type ClientsSeen = Shown<z.infer<typeof ClientsSeen>>;

/** Clients whose rows a large screen shows at once. */
const SERIES_CLIENTS_MAX = 100;
const SERIES_HOURS_MAX = 24;
const ID_LENGTH_MAX = 64;

export const ClientSeriesQuery = z.strictObject({
  clients: z.string().max(SERIES_CLIENTS_MAX * (ID_LENGTH_MAX + 1))
    .transform((text) => [...new Set(text.split(","))])
    .pipe(z.array(z.string().min(1).max(ID_LENGTH_MAX)).max(SERIES_CLIENTS_MAX)).optional()
    .describe("IDs of clients with commas between them, 100 at most; left out: of none")
    .meta({ example: `cl_${EXAMPLE_DIGITS}` }),
  hours: queryInteger(1, SERIES_HOURS_MAX).default(HOURS_DEFAULT)
    .describe("how many hours to count, this one among them"),
});
export type ClientSeriesQuery = z.infer<typeof ClientSeriesQuery>;

export const ClientSeries = answer(
  "ClientSeries",
  z.object({
    since: timestamp.nullable().describe(
      "when the first of the hours begins; later than was asked for where older ones were not " +
        "counted by client; null: none is",
    ),
    active: z.array(count).describe("how many clients asked in each hour, known or not"),
    items: z.array(z.object({
      client: z.string().describe("the ID of the client"),
      queries: z.array(count).describe("in each hour"),
    })).describe("those that were asked for and are there"),
  }),
  {
    since: EXAMPLE_TIME,
    active: [3, 5, 4],
    items: [{ client: `cl_${EXAMPLE_DIGITS}`, queries: [12, 40, 31] }],
  },
);
export type ClientSeries = Shown<z.infer<typeof ClientSeries>>;
