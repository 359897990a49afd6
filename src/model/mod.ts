/**
 * What the service is configured to do at run time: the replicated objects with their JSON
 * spelling and their defaults, and what a change makes of them. Untrusted JSON goes into
 * `decodeSpec`; a state and a command go into `apply`, and the next state comes out with what has
 * to be stored for it, or a refusal. All of it is deterministic: IDs, times and hashes are drawn
 * by whoever proposes a change. Scope: none. @module
 */
export {
  type Credential,
  CREDENTIAL_BYTES_MAX,
  CREDENTIAL_PREFIX,
  CREDENTIAL_SECRETS,
  CREDENTIAL_SPECS,
  CREDENTIAL_TYPE,
  type CredentialKind,
  CREDENTIALS,
  CREDENTIALS_MAX,
  type CredentialSecret,
  type CredentialSpec,
  type RestoredCredential,
  WEBHOOK_EVENTS,
  WEBHOOK_KEY_LENGTH,
  WEBHOOK_URL_LENGTH_MAX,
  type WebhookEvent,
} from "./credentials.ts";
export { type Day, DAYS, DEFAULT_GROUP_ID } from "./constants.ts";
export {
  type AccessSettings,
  BlockResponse,
  DEFAULT_SETTINGS,
  FRESH_NODE_ALLOWED,
  type Settings,
} from "./settings.ts";
export {
  type BlockedSpec,
  ClientId,
  ClientSpec,
  type Collection,
  COLLECTION_SIZE_MAX,
  COLLECTIONS,
  CONFIG_LIST_PREFIX,
  type Envelope,
  GROUP_LISTS_MAX,
  GroupSpec,
  ID_PREFIX,
  ListSpec,
  MANAGED_BY_CONFIG,
  type RecordedSpec,
  RecordSpec,
  RESOURCE_TYPE,
  RULES_BATCH_MAX,
  RulesBatch,
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
  NewAuditEntry,
  Note,
  RestoredUser,
  Role,
  Settled,
  State,
  StoredUser,
} from "./command.ts";
export { AUDIT_ACTIONS, AUDIT_TYPES, type AuditAction } from "./audit_words.ts";
export { apply, noteEntry } from "./apply.ts";
export type { Session } from "./session.ts";
export { MIGRATION_ITEMS_MAX } from "./apply_migration.ts";
export { PRESET_GROUPS_MAX } from "./apply_preset.ts";
export type { RestoreReport } from "./restore_report.ts";
export { SEED_ITEMS_MAX } from "./apply_seed.ts";
export { isSameUserName, USER_NAME_LENGTH_MAX, USERS_MAX } from "./apply_users.ts";
export {
  type Decoded,
  decodeRulesBatch,
  decodeSettings,
  decodeSpec,
  findRuleProblem,
  placedAt,
} from "./decode.ts";
export { findNameProblem, nameKeys, shownText } from "./text.ts";
export {
  describeProblems,
  parseWith,
  PROBLEMS_MAX,
  type SpecProblem,
  type SpecProblems,
} from "./problems.ts";
export { findListUrlProblem } from "./list_url.ts";
export {
  type Applied,
  emptyState,
  isSeeded,
  type LiveState,
  type Made,
  type Refused,
  resourceKey,
  SETTINGS_ID,
  SETTINGS_KEY,
  userKey,
  type Write,
  writesOf,
} from "./live_state.ts";
export { LIMITED_RULES_MAX } from "./references.ts";
export { PersistentMap } from "./persistent_map.ts";
export { type Restored, restoreState, type StoredParts } from "./restore.ts";
