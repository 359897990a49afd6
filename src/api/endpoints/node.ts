import type { z } from "zod";
import { type AuditAction, decodeSpec, type Note, type RuleSpec } from "../../model/mod.ts";
import { type Call, type Endpoint, endpoint } from "../endpoint.ts";
import { ProblemsError } from "../errors.ts";
import { EVENT_STREAM } from "../event_stream.ts";
import { findAsker } from "../find_asker.ts";
import { ChangeEvent, StatusEvent } from "../schemas/events.ts";
import {
  ExplainDraft,
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
  action: AuditAction,
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
  const resource = { type: "node", id: node.name } as const;
  await note(call, untilMs === null ? "resume" : "pause", resource, { until });
  await node.pause(untilMs);
  return { body: { paused: untilMs !== null, until } };
}

/** Who would ask: the caller, unless somebody else or a group is named. */
function askerOf(
  { deps, address }: Call,
  { client, group }: { readonly client?: string | undefined; readonly group?: string | undefined },
): string | null {
  if (client !== undefined) return findAsker(deps.replicator.state, client);
  return group === undefined ? address : null;
}

/** @throws {SvcError} `invalid`, for what is no rule. */
function draftedRule(given: z.output<typeof ExplainDraft>["draft"][number], i: number): RuleSpec {
  const decoded = decodeSpec("rules", typeof given === "string" ? { rule: given } : given);
  if (decoded.ok) return decoded.spec;
  const [first, ...more] = decoded.problems.map(({ path, message }) => ({
    path: `draft[${i}].${path}`,
    message,
  }));
  throw new ProblemsError("invalid", [first, ...more], "body");
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
  endpoint("GET /api/v1/events", {
    operationId: "watchEvents",
    tag: "node",
    summary: "Changes and the status as server-sent events: change has what was changed, status " +
      "how the node is, at first and when that is other than before; who is too slow is dropped",
    need: "viewer",
    streams: [EVENT_STREAM],
    events: { change: ChangeEvent, status: StatusEvent },
    errors: ["unavailable"],
    handle: ({ deps }) => ({ stream: deps.events.read() }),
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
    handle: async (call) => {
      const { name, type, group = null, trace } = call.query;
      const client = askerOf(call, call.query);
      const isTraced = trace === "true";
      return {
        body: await call.deps.node.explain({ name, type, client, group, draft: null, isTraced }),
      };
    },
  }),
  endpoint("POST /api/v1/explain", {
    operationId: "explainDraft",
    tag: "node",
    summary: "What a query would come to with other rules; nothing is changed",
    need: "viewer",
    body: ExplainDraft,
    answer: Explanation,
    errors: ["unavailable"],
    handle: async (call) => {
      const { name, type, group = null, draft, without } = call.body;
      const client = askerOf(call, call.body);
      const rules = draft.map(draftedRule);
      return {
        body: await call.deps.node.explain({
          name,
          type,
          client,
          group,
          draft: { rules, without },
          isTraced: false,
        }),
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
