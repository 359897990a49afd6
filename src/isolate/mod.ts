/**
 * The isolates of `svc run`: what each may touch, what is said between them, and who starts them
 * again. Scope: each entry's own. @module
 */
export { CheckSupervisor } from "./check/supervisor.ts";
export { type CompiledRules, compileRules } from "./compile/compile.ts";
export {
  type CompileRequest,
  type DnsRecursion,
  type DnsReport,
  type DnsTls,
  type DnsTrust,
  type DnsUpstream,
  type LeakLookup,
  STREAM_PROTOCOLS,
} from "./messages.ts";
export { fullestOf } from "./dns/occupancy.ts";
export { type Isolate, SCOPES } from "./scopes.ts";
export type { SlowQuery, SlowSample } from "./dns/slow_queries.ts";
export {
  type QuerylogFigures,
  type QuerylogOptions,
  QuerylogSupervisor,
  type Watcher,
} from "./querylog/supervisor.ts";
export {
  type ExportFigures,
  type ExportOptions,
  ExportSupervisor,
} from "./logexport/supervisor.ts";
export type { DnsSeats } from "./seats.ts";
export type { DnsListener, DnsOptions, FormerDns } from "./dns/options.ts";
export { DnsSupervisor, PARKED_MS } from "./dns/supervisor.ts";
export { pause } from "./pause.ts";
