/**
 * What the service is configured to do at run time: the replicated objects with their JSON
 * spelling and their defaults. Scope: none. @module
 */
export {
  type AccessSettings,
  BlockResponse,
  DEFAULT_SETTINGS,
  FRESH_NODE_ALLOWED,
  FRESH_NODE_SETTINGS,
  type Settings,
} from "./settings.ts";
export {
  ClientId,
  ClientSpec,
  type Collection,
  COLLECTIONS,
  CONFIG_LIST_PREFIX,
  type Day,
  DAYS,
  DEFAULT_GROUP_ID,
  type Envelope,
  GroupSpec,
  ID_PREFIX,
  ListSpec,
  RecordSpec,
  RuleSpec,
  ScheduleSpec,
  SettingsSpec,
  SPEC_BYTES_MAX,
  type SpecOf,
  SPECS,
  USER_ID_PREFIX,
} from "./resources.ts";
export type {
  Actor,
  AuditEntry,
  Change,
  Command,
  Outcome,
  Role,
  State,
  StoredUser,
} from "./command.ts";
