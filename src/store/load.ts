import { SvcError } from "../errors.ts";
import {
  type Collection,
  type CredentialKind,
  emptyState,
  type LiveState,
  type Session,
  SETTINGS_KEY,
  type Write,
} from "../model/mod.ts";
import {
  APPLIED_KEY,
  AUDIT_PREFIX,
  AUDIT_RANGE_KEY,
  CREDENTIAL_PREFIX,
  type Key,
  keyText,
  numberText,
  PROPOSAL_PREFIX,
  RESOURCE_PREFIX,
  SCHEMA_KEY,
  SESSION_PREFIX,
  USER_PREFIX,
} from "./keys.ts";
import { isRemembered, type Remembered } from "./proposals.ts";
import { type Counts, countsOf, restore } from "./restore.ts";
import { commitWhole, recover } from "./transaction.ts";
import { damaged, decodeValue, encodeValue, readKey } from "./values.ts";

/** The schema that this program reads and writes. */
export const SCHEMA_VERSION = 4;

/** What brings a store of one schema to the next; it only reads. */
export type Migration = (kv: Deno.Kv) => Promise<readonly Write[]>;

/**
 * By the schema they start from. Schema 3 had neither tokens nor webhooks; schema 2 had neither users nor sessions nor a number of them;
 * schema 1 differed in nothing that is stored.
 */
export const MIGRATIONS: ReadonlyMap<number, Migration> = new Map<number, Migration>([
  [1, () => Promise.resolve([])],
  [2, (kv) => addCounts(kv, { users: 0 })],
  [3, (kv) => addCounts(kv, { tokens: 0, webhooks: 0 })],
]);

async function addCounts(kv: Deno.Kv, added: Counts): Promise<readonly Write[]> {
  const applied = await readKey(kv, APPLIED_KEY);
  if (applied === null) throw damaged(keyText(APPLIED_KEY), "is missing");
  const record = applied.value as AppliedRecord;
  const counts = { ...record.counts, ...added };
  return [{ key: APPLIED_KEY, value: { ...record, counts } }];
}

/** The value of `APPLIED_KEY`. */
export interface AppliedRecord {
  readonly index: number;
  /** Which configuration this is: another one has another. Left out: 0, that of a new store. */
  readonly epoch?: number;
  /** How many of each there are: a lost key shows. */
  readonly counts: Counts;
}

export function appliedRecord(state: LiveState, epoch: number): AppliedRecord {
  return { index: state.appliedIndex, epoch, counts: countsOf(state) };
}

/** Which entries the audit log has: from `first`, before `next`. */
export interface AuditRange {
  readonly first: number;
  readonly next: number;
}

/** All that the store has, but for the audit log. */
export interface Loaded {
  readonly state: LiveState;
  readonly epoch: number;
  readonly proposals: readonly Remembered[];
  /** Of `APPLIED_KEY`. */
  readonly versionstamp: string;
  readonly audit: AuditRange;
  readonly sessions: readonly Session[];
}

/**
 * Reads and checks all of a store, brings an older one to this schema, and makes one of an empty
 * file. Nothing of a damaged store is changed.
 *
 * @throws {SvcError} `unavailable`: another schema, or damage, with the key.
 */
export async function load(
  kv: Deno.Kv,
  program: string,
  migrations: ReadonlyMap<number, Migration>,
): Promise<Loaded> {
  await prepareSchema(kv, program, migrations);
  const applied = await readKey(kv, APPLIED_KEY);
  if (applied === null) throw damaged(keyText(APPLIED_KEY), "is missing");
  if (!isAppliedRecord(applied.value)) {
    throw damaged(keyText(APPLIED_KEY), "is no record of what was applied");
  }
  const { index, epoch = 0, counts } = applied.value;
  const resources = await readResources(kv);
  const users = await readBelow(kv, USER_PREFIX);
  const credentials = await readCredentials(kv);
  const settings = (await readKey(kv, SETTINGS_KEY))?.value;
  const parts = { resources, users, credentials, settings, appliedIndex: index };
  const restored = restore(parts, counts);
  if (!restored.ok) throw damaged(restored.key, restored.message);
  return {
    state: restored.state,
    epoch,
    proposals: await readProposals(kv),
    versionstamp: applied.versionstamp,
    audit: await readAuditRange(kv),
    sessions: await readSessions(kv),
  };
}

async function prepareSchema(
  kv: Deno.Kv,
  program: string,
  migrations: ReadonlyMap<number, Migration>,
): Promise<void> {
  let schema = await readKey(kv, SCHEMA_KEY);
  if (schema === null) {
    for await (const { key } of kv.list({ prefix: [] }, { limit: 1 })) {
      throw damaged(keyText(SCHEMA_KEY), `is missing, but there is ${keyText(key)}`);
    }
    await initialise(kv, program);
    return;
  }
  const { version: stored, svc } = (schema.value ?? {}) as Record<string, unknown>;
  if (typeof stored !== "number") throw damaged(keyText(SCHEMA_KEY), "has no version");
  let version = stored;
  if (version > SCHEMA_VERSION) {
    throw new SvcError(
      "unavailable",
      `store: has schema ${version}, and this svc ${program} knows ${SCHEMA_VERSION}: ` +
        `run svc ${svc} or newer, which wrote it`,
    );
  }
  await recover(kv);
  while (version < SCHEMA_VERSION) {
    const migration = migrations.get(version);
    if (migration === undefined) {
      throw new SvcError("unavailable", `store: schema ${version} is none that svc ever had`);
    }
    const next = { key: SCHEMA_KEY, value: { version: version + 1, svc: program } };
    const guard = { key: SCHEMA_KEY, versionstamp: schema.versionstamp };
    const versionstamp = await commitWhole(kv, [...await migration(kv), next], guard);
    if (versionstamp === null) throw new SvcError("unavailable", "store: is in use elsewhere");
    schema = { value: next.value, versionstamp };
    version = next.value.version;
  }
}

async function initialise(kv: Deno.Kv, program: string): Promise<void> {
  const state = emptyState();
  const result = await kv.atomic()
    .check({ key: SCHEMA_KEY, versionstamp: null })
    .set(SCHEMA_KEY, encodeValue({ version: SCHEMA_VERSION, svc: program }))
    .set(APPLIED_KEY, encodeValue(appliedRecord(state, 0)))
    .set(AUDIT_RANGE_KEY, encodeValue({ first: 0, next: 0 } satisfies AuditRange))
    .set(SETTINGS_KEY, encodeValue(state.settings))
    .commit();
  if (!result.ok) throw new SvcError("unavailable", "store: is in use elsewhere");
}

function isAppliedRecord(json: unknown): json is AppliedRecord {
  if (typeof json !== "object" || json === null) return false;
  const { index, epoch = 0, counts } = json as Record<string, unknown>;
  return Number.isSafeInteger(index) && Number.isSafeInteger(epoch) &&
    typeof counts === "object" && counts !== null;
}

async function readProposals(kv: Deno.Kv): Promise<Remembered[]> {
  const proposals: Remembered[] = [];
  for (const [slot, json] of await readBelow(kv, PROPOSAL_PREFIX)) {
    if (!isRemembered(json)) throw damaged(keyText([...PROPOSAL_PREFIX, slot]), "is no proposal");
    proposals.push(json);
  }
  return proposals;
}

async function readResources(kv: Deno.Kv) {
  const read = async (collection: Collection) => {
    return await readBelow(kv, [RESOURCE_PREFIX, collection]);
  };
  return {
    schedules: await read("schedules"),
    lists: await read("lists"),
    rules: await read("rules"),
    records: await read("records"),
    groups: await read("groups"),
    clients: await read("clients"),
  };
}

async function readCredentials(kv: Deno.Kv) {
  const read = async (kind: CredentialKind) => await readBelow(kv, [CREDENTIAL_PREFIX, kind]);
  return { tokens: await read("tokens"), webhooks: await read("webhooks") };
}

/** Values one step below a prefix, by that step. */
async function readBelow(kv: Deno.Kv, prefix: Key): Promise<Map<string, unknown>> {
  const values = new Map<string, unknown>();
  for await (const { key, value } of kv.list({ prefix })) {
    const id = key[prefix.length];
    if (typeof id !== "string" || key.length !== prefix.length + 1) {
      throw damaged(keyText(key), "is no key of ours");
    }
    values.set(id, decodeValue(key, value));
  }
  return values;
}

/** Checks the ends of the audit log; what lies between is decoded when it is read. */
async function readAuditRange(kv: Deno.Kv): Promise<AuditRange> {
  const stored = await readKey(kv, AUDIT_RANGE_KEY);
  const name = keyText(AUDIT_RANGE_KEY);
  if (stored === null) throw damaged(name, "is missing");
  const { first, next } = (stored.value ?? {}) as Partial<AuditRange>;
  if (!Number.isSafeInteger(first) || !Number.isSafeInteger(next)) {
    throw damaged(name, "is no range");
  }
  const range: AuditRange = { first: Number(first), next: Number(next) };
  const isEmpty = range.first === range.next;
  const want = isEmpty ? [undefined, undefined] : [range.first, range.next - 1].map(numberText);
  for (const [i, reverse] of [false, true].entries()) {
    let there: unknown;
    for await (const { key } of kv.list({ prefix: AUDIT_PREFIX }, { limit: 1, reverse })) {
      there = key[AUDIT_PREFIX.length];
    }
    if (there !== want[i]) throw damaged(name, `the log ends at ${there}, not at ${want[i]}`);
  }
  return range;
}

function isSession(json: unknown): json is Session {
  if (typeof json !== "object" || json === null) return false;
  const { sha256, userId, epoch, expiresAtMs } = json as Record<string, unknown>;
  return typeof sha256 === "string" && typeof userId === "string" &&
    Number.isSafeInteger(epoch) && typeof expiresAtMs === "number";
}

async function readSessions(kv: Deno.Kv): Promise<Session[]> {
  const sessions: Session[] = [];
  for (const [sha256, json] of await readBelow(kv, SESSION_PREFIX)) {
    if (!isSession(json) || json.sha256 !== sha256) {
      throw damaged(keyText([...SESSION_PREFIX, sha256]), "is no session");
    }
    sessions.push(json);
  }
  return sessions;
}
