/**
 * The management API: one table of endpoints routes requests, checks them, answers, and describes
 * itself as OpenAPI 3.1. What it works on it is handed as ports; what it adds is HTTP: limits,
 * browser protections, envelopes, revisions, error objects. Scope: net, the API's addresses.
 * RFC 9110, 9112, 6265; OpenAPI 3.1. @module
 */
export { type ApiHandler, type ApiOptions, createApi } from "./app.ts";
export { openApiDocument } from "./endpoints.ts";
export type { OpenApiDocument } from "./openapi.ts";
export type {
  Accounts,
  ApiDeps,
  ClusterPort,
  ListsPort,
  LogsPort,
  LogWatcher,
  MigrationPort,
  NewUser,
  NodePort,
  ProfilesPort,
  SignIn,
  WebhooksPort,
} from "./ports.ts";
export {
  API_LIMITS,
  type ApiLimits,
  ApiServer,
  type ApiServerOptions,
  type ApiSockets,
  type TlsPem,
} from "./server.ts";
export type { UiFile, UiFiles } from "./ui_files.ts";
export { aloneReport } from "./alone.ts";
export { EventFeed } from "./event_feed.ts";
export type {
  ClientSpec,
  Envelope,
  GroupSpec,
  ListSpec,
  RecordSpec,
  RuleSpec,
  ScheduleSpec,
  Settings,
} from "../model/mod.ts";
export { emptyLogs, NO_SERIES } from "./empty_logs.ts";
export type { Me } from "./schemas/accounts.ts";
export type { ChangeEvent, StatusEvent } from "./schemas/events.ts";
export type { ListStatus } from "./schemas/resources.ts";
export type { Profile, ProfileRequest } from "./schemas/profiles.ts";
export { STEPS } from "./schemas/statistics.ts";
export { LeakTests, type SavedLeakTest } from "./leak_tests.ts";
export type { BackupFile } from "../backup/mod.ts";
export type { MigrateBody, Migrated } from "./schemas/migrate.ts";
export type { Restored } from "./schemas/backup.ts";
export type { ClientSeries, ClientsSeen } from "./schemas/clients_seen.ts";
export type { ClusterReport } from "./schemas/cluster.ts";
export type { ErrorAnswer } from "./schemas/common.ts";
export type {
  LeakTest,
  QuerylogEntry,
  QuerylogFilter,
  QuerylogPage,
  QuerylogQuery,
} from "./schemas/logs.ts";
export type { Webhook, WebhookDelivery } from "./schemas/webhooks.ts";
export type { NewToken, Token } from "./schemas/tokens.ts";
export type { Statistics, StatisticsQuery } from "./schemas/statistics.ts";
export type {
  Directory,
  DirectoryDetails,
  Explanation,
  Health,
  Pause,
  RecommendedCatalog,
  RecommendedSizes,
  Services,
  Status,
  UpdateCheck,
} from "./schemas/node.ts";
