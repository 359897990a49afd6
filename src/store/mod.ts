/**
 * The configuration, kept in Deno KV. The entries of a log go into the `Applier`, whoever writes the
 * log: it decides each (the same on every member), makes what they change durable in one step with
 * the audit entries, the IDs of the proposals and the index of the last entry, shows it to who
 * subscribed, and answers. An entry that is refused moves the index alone; a proposal whose ID was
 * applied lately is answered and not applied again. `replaceAll` puts another configuration in the
 * place of all that members agree on, whole or not at all; `Store.export` makes the parts of it.
 *
 * Changes come from a `Replicator`; the `LocalReplicator` of a node that is in no cluster makes the
 * entries itself. What acts on one node alone (sessions, notes in the audit log) goes to the
 * `LocalStore` and needs nobody else. `openStore` and `openNodeStore` hold the store for one process,
 * finish what a crash left, check everything, and change nothing of what is damaged.
 *
 * Keys: `schema`, `applied` (index, epoch, counts), `settings`, `resource/<collection>/<id>`,
 * `user/<id>`, `credential/<kind>/<id>`, `proposal/<n>`, `audit/<n>`, `audit_range`, `session/<sha256>`, `local/…`, `journal…`;
 * `raft/member` says which member of which cluster this is. What consensus must not forget is in
 * `raft.log` beside the store (`RaftStorage`), as SQLite would not tell a lost tail. Values are JSON in UTF-8. A change is one commit, and so are all that
 * wait together; what is too large for that goes through the journal. Scope: read, write: the store.
 * @module
 */
export type { LocalStore, Replicator, Shown } from "./ports.ts";
export { AUDIT_ANSWER_MAX, type AuditPage, type AuditQuery } from "./audit_log.ts";
export { AUDIT_ENTRIES_MAX, Store, type StoreOptions } from "./store.ts";
export { Applier, type Decision, type Entry } from "./applier.ts";
export { PROPOSAL_ID_LENGTH_MAX } from "./proposals.ts";
export { STATE_PART_BYTES_MAX } from "./replicated_state.ts";
export { LocalReplicator, valueOf } from "./local_replicator.ts";
export { type NodeStoreOptions, openNodeStore, type OpenStore, openStore } from "./open_store.ts";
export { denoRaftDisk } from "./raft_disk.ts";
export { LOG_FILE, type RaftDisk, type RaftFile } from "./raft_log.ts";
export {
  type Durable,
  type RaftMember,
  RaftStorage,
  type RaftStorageOptions,
} from "./raft_storage.ts";
export type { Spool } from "./spool.ts";
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
