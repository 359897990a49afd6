import type { Write } from "../model/mod.ts";

export type Key = Write["key"];

/** Which schema the store has, and which program gave it that. */
export const SCHEMA_KEY: Key = ["schema"];
/** The last command that is in, and what has to be there with it. Written by each commit. */
export const APPLIED_KEY: Key = ["applied"];
/** First audit entry that is kept, and the one that comes next. */
export const AUDIT_RANGE_KEY: Key = ["audit_range"];
/** There while a change that is too large for one transaction is written; see `transaction.ts`. */
export const JOURNAL_KEY: Key = ["journal"];
/** What this node alone keeps: the SHA-256 of the `[filter]` table it was seeded from, and others. */
export type LocalName = "filter_digest" | "token_uses" | "clients_told" | "problems_told";
/** Before the name of each. */
export const LOCAL_PREFIX: Key = ["local"];

/** Which member of which cluster this store is. */
export const RAFT_KEY: Key = ["raft", "member"];

/** Written to find out whether anything can be. */
export const PROBE_KEY: Key = ["local", "probe"];

export const AUDIT_PREFIX: Key = ["audit"];
export const JOURNAL_PART_PREFIX: Key = ["journal_part"];
export const SESSION_PREFIX: Key = ["session"];
export const RESOURCE_PREFIX = "resource";
export const USER_PREFIX: Key = ["user"];
export const CREDENTIAL_PREFIX = "credential";
export const PROPOSAL_PREFIX: Key = ["proposal"];
/** What members agree on lies below these, and in `settings`; all else is this node's alone. */
export const REPLICATED_PREFIXES: readonly Key[] = [
  [RESOURCE_PREFIX],
  USER_PREFIX,
  [CREDENTIAL_PREFIX],
  PROPOSAL_PREFIX,
];

const NUMBER_DIGITS = 16;

/** A number so that text order is its order: what entries of the audit log are called. */
export function numberText(n: number): string {
  return n.toString(16).padStart(NUMBER_DIGITS, "0");
}

export function auditKey(n: number): Key {
  return [...AUDIT_PREFIX, numberText(n)];
}

export function sessionKey(sha256: string): Key {
  return [...SESSION_PREFIX, sha256];
}

export function proposalKey(slot: number): Key {
  return [...PROPOSAL_PREFIX, numberText(slot)];
}

export function journalPartKey(n: number): Key {
  return [...JOURNAL_PART_PREFIX, numberText(n)];
}

/** A key as messages name it. */
export function keyText(key: readonly unknown[]): string {
  return key.join("/");
}
