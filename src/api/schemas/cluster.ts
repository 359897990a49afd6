import { z } from "zod";
import { answer, count, request, type Shown, timestamp } from "./common.ts";

const MemberState = z.enum([
  "leader",
  "follower",
  "learner",
  "candidate",
  "unknown",
  "stopped",
]);
const ViewRole = z.enum(["primary", "replica"]);

export const ClusterReport = answer(
  "ClusterReport",
  z.object({
    node: z.string(),
    role: ViewRole.describe("the earlier view, kept for scripts: the leader is the primary"),
    state: MemberState,
    cluster: z.string().describe("the cluster's ID; empty on a node that is in none"),
    leader: z.string().nullable(),
    term: count,
    config: z.object({ epoch: count, version: count }),
    writable: z.boolean(),
    members: z.array(z.object({
      node: z.string(),
      address: z.string().nullable(),
      this_node: z.boolean(),
      membership: z.enum(["voter", "learner", "configured"]),
      witness: z.boolean(),
      reachable: z.boolean(),
      state: MemberState,
      version: z.string().nullable(),
      matched: count.optional().describe("on the leader: the last entry the member holds"),
    })),
    peer: z.object({
      node: z.string(),
      address: z.string(),
      reachable: z.boolean(),
      role: ViewRole,
    }).nullable().describe("the earlier view of two nodes"),
    sync: z.object({ last_contact: timestamp.nullable(), last_copy: timestamp.nullable() }),
    problems: z.array(z.string()),
  }),
);
export type ClusterReport = Shown<z.infer<typeof ClusterReport>>;

export const Takeover = request(
  "Takeover",
  z.strictObject({
    force: z.boolean().default(false).describe("goes ahead though the condition fails"),
  }),
);
