import type { AuditEntry } from "../model/mod.ts";
import { AUDIT_PREFIX, type Key, keyText } from "./keys.ts";
import { damaged, decodeValue } from "./values.ts";

/** Most entries of one answer. */
export const AUDIT_ANSWER_MAX = 1_000;
/** Most entries that one answer looks at; the next one goes on behind them. */
export const AUDIT_SCAN_MAX = 10_000;
/** Entries read in one turn of the main isolate, which serves others in between. */
const SLICE_ENTRIES = 50;

/** Which entries of the audit log are asked for. */
export interface AuditQuery {
  readonly limit: number;
  /** The cursor of the answer before: entries older than those that it looked at. */
  readonly next?: string | undefined;
  /** RFC 3339; after and before then. */
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  /** The type of the resource. */
  readonly type?: string | undefined;
  /** The kind or the name of who did it. */
  readonly actor?: string | undefined;
}

/** Newest first. There may be none of them, and yet more behind the cursor. */
export interface AuditPage {
  readonly entries: readonly AuditEntry[];
  /** `null`: there are no older ones. */
  readonly next: string | null;
}

/**
 * Reads entries newest first, from `oldest` on.
 *
 * @throws {SvcError} `unavailable`, naming the key of a damaged entry.
 */
export async function readAudit(
  kv: Deno.Kv,
  query: AuditQuery,
  oldest: string,
): Promise<AuditPage> {
  const limit = Math.min(Math.max(Math.trunc(query.limit), 0), AUDIT_ANSWER_MAX);
  const passes = passing(query);
  const entries: AuditEntry[] = [];
  let cursor = query.next ?? null;
  if (limit === 0) return { entries, next: cursor };
  for (let scanned = 0; scanned < AUDIT_SCAN_MAX;) {
    const end: Key | null = cursor === null ? null : [...AUDIT_PREFIX, cursor];
    const slice = kv.list(
      end === null ? { prefix: AUDIT_PREFIX } : { prefix: AUDIT_PREFIX, end },
      { limit: SLICE_ENTRIES, batchSize: SLICE_ENTRIES, reverse: true },
    );
    const before = scanned;
    for await (const { key, value } of slice) {
      const entry = decodeValue(key, value);
      if (!isAuditEntry(entry)) throw damaged(keyText(key), "is no audit entry");
      scanned++;
      cursor = entry.id;
      if (passes(entry)) entries.push(entry);
      if (entries.length === limit) return { entries, next: cursor > oldest ? cursor : null };
    }
    if (scanned - before < SLICE_ENTRIES) return { entries, next: null };
    await new Promise((resolve) => setTimeout(resolve)); // The database is fast: no turn by itself.
  }
  return { entries, next: cursor };
}

function passing({ since, until, type, actor }: AuditQuery): (entry: AuditEntry) => boolean {
  const afterMs = since === undefined ? -Infinity : Date.parse(since);
  const beforeMs = until === undefined ? Infinity : Date.parse(until);
  return (entry) => {
    if (type !== undefined && entry.resource.type !== type) return false;
    if (actor !== undefined && entry.actor.kind !== actor && entry.actor.name !== actor) {
      return false;
    }
    if (since === undefined && until === undefined) return true;
    const atMs = Date.parse(entry.time);
    return atMs > afterMs && atMs < beforeMs;
  };
}

function isAuditEntry(json: unknown): json is AuditEntry {
  if (typeof json !== "object" || json === null) return false;
  const { id, time, action, actor, resource } = json as Record<string, unknown>;
  return [id, time, action].every((text) => typeof text === "string") &&
    [actor, resource].every((part) => typeof part === "object" && part !== null);
}
