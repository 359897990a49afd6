import * as z from "zod";
import { answer, count, request, type Shown, timestamp } from "./common.ts";

const MemberState = z.enum([
  "leader",
  "follower",
  "learner",
  "candidate",
  "unknown",
  "stopped",
]).describe("what it is doing in the cluster");
const ViewRole = z.enum(["primary", "replica"]);
const nodeName = z.string().describe("the member's name");
const reachable = z.boolean().describe("whether it answers this node");

export const ClusterReport = answer(
  "ClusterReport",
  z.object({
    node: z.string().describe("this node's name"),
    role: ViewRole.describe("the earlier view, kept for scripts: the leader is the primary"),
    state: MemberState,
    cluster: z.string().describe("the cluster's ID; empty on a node that is in none"),
    leader: z.string().nullable().describe("the leader's name, where one is known"),
    term: count.describe("the leader's term"),
    config: z.object({
      epoch: count.describe("grows with each takeover"),
      version: count.describe("number of the last change that is applied here"),
    }).describe("which configuration this node has"),
    writable: z.boolean().describe("whether changes can be made through this node"),
    members: z.array(z.object({
      node: nodeName,
      address: z.string().nullable().describe("where its cluster channel is"),
      this_node: z.boolean().describe("whether it is the node that answers"),
      membership: z.enum(["voter", "learner", "configured"])
        .describe("votes, learns, or stands in the configuration file alone"),
      witness: z.boolean().describe("votes only"),
      reachable,
      state: MemberState,
      version: z.string().nullable().describe("of its program, where it is known"),
      matched: count.optional().describe("on the leader: the last entry the member holds"),
    })).describe("every member that is known"),
    peer: z.object({
      node: nodeName,
      address: z.string().describe("where its cluster channel is"),
      reachable,
      role: ViewRole.describe("primary: it leads"),
    }).nullable().describe("the earlier view of two nodes"),
    sync: z.object({
      last_contact: timestamp.nullable().describe("when the leader was last heard"),
      last_copy: timestamp.nullable().describe("when a whole configuration was last taken over"),
    }).describe("how up to date this node is"),
    problems: z.array(z.string()).describe("what needs attention"),
  }),
  {
    node: "node1",
    role: "primary",
    state: "leader",
    cluster: "",
    leader: "node1",
    term: 0,
    config: { epoch: 0, version: 42 },
    writable: true,
    members: [{
      node: "node1",
      address: null,
      this_node: true,
      membership: "voter",
      witness: false,
      reachable: true,
      state: "leader",
      version: "0.7.0",
      matched: 42,
    }],
    peer: null,
    sync: { last_contact: null, last_copy: null },
    problems: [],
  },
);
export type ClusterReport = Shown<z.infer<typeof ClusterReport>>;

export const Takeover = request(
  "Takeover",
  z.strictObject({
    force: z.boolean().default(false).describe("goes ahead though the condition fails"),
  }),
  { force: false },
);
