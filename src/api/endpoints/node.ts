import type { Note } from "../../model/mod.ts";
import { type Call, type Endpoint, endpoint } from "../endpoint.ts";
import { findAsker } from "../find_asker.ts";
import {
  ExplainQuery,
  Explanation,
  Health,
  METRICS_TYPE,
  Pause,
  PauseRequest,
  Status,
  UpdateCheck,
} from "../schemas/node.ts";

/** Has the audit log tell what this node alone is about to do; without it, it isn't done. */
export async function note(
  { deps, caller }: Call,
  action: string,
  resource: Note["resource"],
  after: unknown,
): Promise<void> {
  await deps.local.note({ action, resource, after }, caller.actor);
}

function timestampOf(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

async function pauseUntil(call: Call, untilMs: number | null) {
  const { node } = call.deps;
  const until = timestampOf(untilMs);
  const resource = { type: "node", id: node.name };
  await note(call, untilMs === null ? "resume" : "pause", resource, { until });
  await node.pause(untilMs);
  return { body: { paused: untilMs !== null, until } };
}

export const nodeEndpoints: readonly Endpoint[] = [
  endpoint("GET /api/v1/health", {
    operationId: "getHealth",
    tag: "node",
    summary: "Whether the node is well",
    need: "nothing",
    answer: Health,
    handle: ({ deps }) => ({ body: { status: deps.node.health() } }),
  }),
  endpoint("GET /api/v1/status", {
    operationId: "getStatus",
    tag: "node",
    summary: "What the node is doing",
    need: "viewer",
    answer: Status,
    handle: ({ deps }) => {
      const { node, replicator, cluster, docs } = deps;
      return {
        body: {
          version: node.version,
          node: node.name,
          started_at: new Date(node.startedAtMs).toISOString(),
          protection: replicator.state.settings.spec.protection,
          paused_until: timestampOf(node.pausedUntilMs()),
          cluster: cluster.report(),
          api_docs: docs,
          ...node.status(),
        },
      };
    },
  }),
  endpoint("PUT /api/v1/pause", {
    operationId: "pauseFiltering",
    tag: "node",
    summary: "Filter nothing on this node for a while",
    need: "admin",
    body: PauseRequest,
    answer: Pause,
    errors: ["unavailable"],
    handle: (call) => {
      // A whole second later is as good, and every form of the time says the same.
      return pauseUntil(call, call.deps.clock.nowMs() + call.body.seconds * 1_000);
    },
  }),
  endpoint("DELETE /api/v1/pause", {
    operationId: "resumeFiltering",
    tag: "node",
    summary: "Filter again now",
    need: "admin",
    answer: Pause,
    errors: ["unavailable"],
    handle: (call) => pauseUntil(call, null),
  }),
  endpoint("POST /api/v1/cache/flush", {
    operationId: "flushCache",
    tag: "node",
    summary: "Forget every cached answer",
    need: "admin",
    errors: ["unavailable"],
    handle: async (call) => {
      await note(call, "flush", { type: "cache", id: null }, null);
      await call.deps.node.flushCache();
      return {};
    },
  }),
  endpoint("POST /api/v1/update/check", {
    operationId: "checkUpdate",
    tag: "node",
    summary: "Ask the release service whether there is a newer release",
    need: "admin",
    answer: UpdateCheck,
    errors: ["unavailable"],
    handle: async ({ deps }) => ({ body: await deps.node.checkUpdate() }),
  }),
  endpoint("GET /api/v1/explain", {
    operationId: "explainName",
    tag: "node",
    summary: "What a query would be answered, and which rule decides",
    need: "viewer",
    query: ExplainQuery,
    answer: Explanation,
    errors: ["unavailable"],
    handle: async ({ deps, query: { name, type, client, trace }, address }) => {
      const who = client === undefined ? address : findAsker(deps.replicator.state, client);
      return {
        body: await deps.node.explain({ name, type, client: who, trace: trace === "true" }),
      };
    },
  }),
  endpoint("GET /metrics", {
    operationId: "getMetrics",
    tag: "node",
    summary: "Counters for a scraper",
    need: "viewer",
    text: METRICS_TYPE,
    handle: async ({ deps }) => ({ body: await deps.node.metrics() as never }),
  }),
];
