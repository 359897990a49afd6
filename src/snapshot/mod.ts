/**
 * The compiled state that queries are decided by: the base (rules of lists and services, large) and
 * the overlay (custom rules, records, clients, groups, settings, small), both immutable and shared.
 * A dns isolate swaps the whole of it between two queries; schedules and a pause then only switch
 * bits. Scope: none. @module
 */
export { BlockForm, DEFAULT_GROUP, memoryOf, REEVALUATE_MS } from "./snapshot.ts";
export { Snapshot, type SnapshotData } from "./snapshot.ts";
export { Access, type AccessData, compileAccess } from "./access.ts";
export { NO_RULE } from "../filter/mod.ts";
export { ADDRESSES_MAX, Decision, NO_RCODE, OFF, OFF_RULE, Ruling } from "./decision.ts";
export { Canaries, NO_CANARY } from "./canaries.ts";
export { NO_CLIENT } from "./client_ids.ts";
export { explain, type Explanation } from "./explain.ts";
export { type Base, SERVICE_PREFIX } from "./base.ts";
export {
  type CustomRules,
  CustomRulesCompiler,
  RECENT_MAX,
  type Settling,
} from "./custom_rules.ts";
export { OverlayCompiler, type OverlayData, type PolicyState } from "./overlay.ts";
export { CHAIN_MAX, LocalRecords, NO_RECORDS } from "./records.ts";
export { CUSTOM_LIST } from "./rule_levels.ts";
export { NO_ENGINE, SafeSearch, SEARCH_ENGINES, type SearchEngine } from "./safe_search.ts";
export { Schedule } from "./schedule.ts";
