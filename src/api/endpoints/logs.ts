import { SvcError } from "../../errors.ts";
import { shownText } from "../../model/mod.ts";
import { type Endpoint, endpoint } from "../endpoint.ts";
import { EVENT_STREAM } from "../event_stream.ts";
import { CSV, exportLog, JSON_FILE, NDJSON, watchLog } from "../log_streams.ts";
import {
  AuditLog,
  AuditQuery,
  LeakTest,
  LeakTests,
  QuerylogExport,
  QuerylogFilter,
  QuerylogPage,
  QuerylogQuery,
} from "../schemas/logs.ts";
import { Statistics, StatisticsExport, StatisticsQuery } from "../schemas/statistics.ts";
import { exportStatistics } from "../statistics_file.ts";

export const logEndpoints: readonly Endpoint[] = [
  endpoint("GET /api/v1/querylog", {
    operationId: "searchQuerylog",
    tag: "logs",
    summary: "Queries and what became of them, newest first",
    need: "viewer",
    query: QuerylogQuery,
    answer: QuerylogPage,
    errors: ["unavailable"],
    handle: async ({ deps, query }) => ({ body: await deps.logs.search(query) }),
  }),
  endpoint("GET /api/v1/querylog/export", {
    operationId: "exportQuerylog",
    tag: "logs",
    summary: "Every entry that passes, newest first, as a file: CSV, or a JSON object a line",
    need: "viewer",
    query: QuerylogExport,
    streams: [CSV, NDJSON],
    errors: ["unavailable"],
    handle: async ({ deps, query }) => ({ stream: await exportLog(deps.logs, query) }),
  }),
  endpoint("GET /api/v1/querylog/stream", {
    operationId: "watchQuerylog",
    tag: "logs",
    summary: "New entries as server-sent events with the entry's ID, first those behind " +
      "Last-Event-ID; an event skipped has the number of those left out",
    need: "viewer",
    query: QuerylogFilter,
    streams: [EVENT_STREAM],
    takesLastEventId: true,
    errors: ["unavailable"],
    handle: async ({ deps, query, lastEventId }) => ({
      stream: await watchLog(deps.logs, query, lastEventId),
    }),
  }),
  endpoint("GET /api/v1/stats", {
    operationId: "getStatistics",
    tag: "logs",
    summary: "Counts by the hour or another step, and the most frequent names, clients and lists",
    need: "viewer",
    query: StatisticsQuery,
    answer: Statistics,
    errors: ["unavailable"],
    handle: async ({ deps, query }) => ({ body: await deps.logs.statistics(query) }),
  }),
  endpoint("GET /api/v1/stats/export", {
    operationId: "exportStatistics",
    tag: "logs",
    summary: "Statistics as a file: one table of them as CSV, or all as JSON",
    need: "viewer",
    query: StatisticsExport,
    streams: [CSV, JSON_FILE],
    errors: ["unavailable"],
    handle: async ({ deps, query }) => ({ stream: await exportStatistics(deps.logs, query) }),
  }),
  endpoint("GET /api/v1/audit", {
    operationId: "listAudit",
    tag: "logs",
    summary: "Who changed what, newest first",
    need: "viewer",
    query: AuditQuery,
    answer: AuditLog,
    errors: ["unavailable"],
    handle: async ({ deps, query }) => {
      const { entries, next } = await deps.local.audit(query);
      return { body: { items: entries, next } };
    },
  }),
  endpoint("POST /api/v1/leak-tests", {
    operationId: "startLeakTest",
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
    operationId: "listLeakTests",
    tag: "logs",
    summary: "Every leak test of the last hour",
    need: "viewer",
    answer: LeakTests,
    handle: ({ deps }) => ({ body: { items: deps.logs.leakTests() } }),
  }),
  endpoint("GET /api/v1/leak-tests/{id}", {
    operationId: "getLeakTest",
    tag: "logs",
    summary: "Who asked for the names of a leak test",
    need: "viewer",
    answer: LeakTest,
    errors: ["not_found"],
    handle: ({ deps, param }) => {
      const test = deps.logs.leakTest(param);
      if (test === null) {
        throw new SvcError("not_found", `${shownText(param)}: there is no such leak test`);
      }
      return { body: test };
    },
  }),
];
