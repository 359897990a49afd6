/**
 * The query log and statistics, in an isolate of their own: takes records from the queues of those
 * who answer, keeps entries in SQLite (what repeats is stored once; names are found by any three
 * letters), removes what is too old or too many in small steps, and counts by the hour and the minute. Whatever
 * happens to the file, answering goes on: what can't be kept is counted. Whoever imports this loads
 * SQLite; others take types only. Scope: read, write: its folder. @module
 */
export type { LogEntry, LogFilter, OutcomeName, ProtocolName } from "./entry.ts";
export { anonymize } from "./filter.ts";
export type { LogExport } from "./log_exports.ts";
export type { LiveBatch } from "./live_feed.ts";
export { QueryLogStore } from "./query_log.ts";
export type { QueryLogOptions, QueryLogPorts } from "./options.ts";
export type { LogPage, NameCount, NamePage } from "./search.ts";
export type { HourSeries } from "./client_hours.ts";
export type { CountsQuery, SeenAddress, SeriesQuery } from "./log_counts.ts";
export type { Latency } from "./latency.ts";
export type { LogStatistics, OutcomeCounts } from "./log_statistics.ts";
export { HOURS_KEPT } from "./statistics.ts";
