import { SvcError } from "../../errors.ts";
import { type Endpoint, endpoint } from "../endpoint.ts";
import { CSV, EVENT_STREAM, exportLog, NDJSON, watchLog } from "../log_streams.ts";
import {
  AuditLog,
  AuditQuery,
  LeakTest,
  LeakTests,
  QuerylogExport,
  QuerylogFilter,
  QuerylogPage,
  QuerylogQuery,
  Statistics,
  StatisticsQuery,
} from "../schemas/logs.ts";

export const logEndpoints: readonly Endpoint[] = [
  endpoint("GET /api/v1/querylog", {
    tag: "logs",
    summary: "Queries and what became of them, newest first",
    need: "viewer",
    query: QuerylogQuery,
    answer: QuerylogPage,
    errors: ["unavailable"],
    handle: async ({ deps, query }) => ({ body: await deps.logs.search(query) }),
  }),
  endpoint("GET /api/v1/querylog/export", {
    tag: "logs",
    summary: "Every entry that passes, newest first, as a file: CSV, or a JSON object a line",
    need: "viewer",
    query: QuerylogExport,
    streams: [CSV, NDJSON],
    errors: ["unavailable"],
    handle: async ({ deps, query }) => ({ stream: await exportLog(deps.logs, query) }),
  }),
  endpoint("GET /api/v1/querylog/stream", {
    tag: "logs",
    summary: "New entries as server-sent events; an event skipped has the number of those left out",
    need: "viewer",
    query: QuerylogFilter,
    streams: [EVENT_STREAM],
    errors: ["unavailable"],
    handle: ({ deps, query }) => ({ stream: watchLog(deps.logs, query) }),
  }),
  endpoint("GET /api/v1/stats", {
    tag: "logs",
    summary: "Counts by the hour, and the most frequent names and clients",
    need: "viewer",
    query: StatisticsQuery,
    answer: Statistics,
    errors: ["unavailable"],
    handle: async ({ deps, query }) => ({ body: await deps.logs.statistics(query) }),
  }),
  endpoint("GET /api/v1/audit", {
    tag: "logs",
    summary: "Who changed what, newest first",
    need: "viewer",
    query: AuditQuery,
    answer: AuditLog,
    errors: ["unavailable"],
    handle: async ({ deps, query }) => ({
      body: { items: await deps.local.audit(query.limit) },
    }),
  }),
  endpoint("POST /api/v1/leak-tests", {
    tag: "logs",
    summary: "Begin a leak test: names that only this service answers",
    need: "viewer",
    status: 201,
    answer: LeakTest,
    handle: ({ deps }) => {
      const test = deps.logs.startLeakTest();
      return { body: test, location: `/api/v1/leak-tests/${test.id}` };
    },
  }),
  endpoint("GET /api/v1/leak-tests", {
    tag: "logs",
    summary: "Every leak test of the last hour",
    need: "viewer",
    answer: LeakTests,
    handle: ({ deps }) => ({ body: { items: deps.logs.leakTests() } }),
  }),
  endpoint("GET /api/v1/leak-tests/{id}", {
    tag: "logs",
    summary: "Who asked for the names of a leak test",
    need: "viewer",
    answer: LeakTest,
    errors: ["not_found"],
    handle: ({ deps, param }) => {
      const test = deps.logs.leakTest(param);
      if (test === null) throw new SvcError("not_found", `${param}: there is no such leak test`);
      return { body: test };
    },
  }),
];
