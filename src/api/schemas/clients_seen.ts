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
