/**
 * The compiled state that queries are decided by: rules, the groups' sources, settings. Immutable;
 * a dns isolate swaps the whole of it between two queries. Scope: none. @module
 */
export { BlockForm, Snapshot, type SnapshotData } from "./snapshot.ts";
