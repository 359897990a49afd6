/**
 * The configuration, kept in Deno KV: a change becomes one transaction of the resource, its
 * revision, its audit entry and the number of the last change, all there or none. Changes go in at
 * a `Replicator`; the state comes out of it, and each change to who subscribed. A store is checked
 * when it is opened, and nothing of a damaged one is changed. Sessions and the audit log are this
 * node's alone.
 *
 * Keys: `schema`, `applied`, `settings`, `resource/<collection>/<id>`, `user/<id>`, `audit/<n>`,
 * `audit_range`, `session/<sha256>`, `local/…`, `journal…`. Values are JSON in UTF-8.
 * Scope: read, write: the store. @module
 */
export type { Applied, Clock, LocalStore, Replicator, Session } from "./ports.ts";
export { AUDIT_ANSWER_MAX, type AuditPage, type AuditQuery } from "./audit_log.ts";
export { AUDIT_ENTRIES_MAX, Store, type StoreOptions } from "./store.ts";
export { Applier, type Decision, type Entry } from "./applier.ts";
export { PROPOSAL_ID_LENGTH_MAX } from "./proposals.ts";
export { STATE_PART_BYTES_MAX } from "./replicated_state.ts";
export { LocalReplicator, valueOf } from "./local_replicator.ts";
export { holdStore, type StoreHold } from "./hold.ts";
export { type NodeStoreOptions, openNodeStore, type OpenStore, openStore } from "./open_store.ts";
export { SCHEMA_VERSION } from "./load.ts";
export {
  type DefaultList,
  importSeed,
  seedChange,
  type Seeding,
  type SeedList,
  type SeedSource,
  seedStore,
} from "./seed.ts";
