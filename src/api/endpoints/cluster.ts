import { type Call, type Endpoint, endpoint } from "../endpoint.ts";
import { ClusterReport, Takeover } from "../schemas/cluster.ts";

function report({ deps }: Call) {
  return { body: deps.cluster.report() };
}

const takeover = {
  tag: "cluster",
  need: "admin",
  body: Takeover,
  isBodyOptional: true,
  answer: ClusterReport,
  errors: ["conflict", "unavailable"],
} as const;

export const clusterEndpoints: readonly Endpoint[] = [
  endpoint("GET /api/v1/cluster", {
    operationId: "getCluster",
    tag: "cluster",
    summary: "The cluster as this node sees it",
    need: "viewer",
    answer: ClusterReport,
    handle: report,
  }),
  endpoint("POST /api/v1/cluster/promote", {
    operationId: "promoteNode",
    ...takeover,
    summary: "Leave the cluster and start a new one with this node's configuration",
    handle: async (call) => {
      await call.deps.cluster.promote(call.body.force, call.caller.actor);
      return report(call);
    },
  }),
  endpoint("POST /api/v1/cluster/demote", {
    operationId: "demoteNode",
    ...takeover,
    summary: "Leave the cluster and join the other one",
    handle: async (call) => {
      await call.deps.cluster.demote(call.body.force, call.caller.actor);
      return report(call);
    },
  }),
  endpoint("DELETE /api/v1/cluster/members/{node}", {
    operationId: "removeMember",
    tag: "cluster",
    summary: "Remove a member from the cluster",
    need: "admin",
    errors: ["conflict", "not_found", "unavailable"],
    handle: async ({ deps, param, caller }) => {
      await deps.cluster.removeMember(param, caller.actor);
      return {};
    },
  }),
];
