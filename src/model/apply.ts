import { SvcError } from "../errors.ts";
import { createCredential, deleteCredential, replaceCredential } from "./apply_credentials.ts";
import { applyMigration } from "./apply_migration.ts";
import { applyPreset } from "./apply_preset.ts";
import { applyRestore } from "./apply_restore.ts";
import { applySeed } from "./apply_seed.ts";
import { changeUser, createUser, deleteUser } from "./apply_users.ts";
import type { Actor, Change, Command, NewAuditEntry, Note, Settled } from "./command.ts";
import { create } from "./create.ts";
import { Draft } from "./draft.ts";
import { found, mismatch } from "./found.ts";
import {
  type Applied,
  type LiveState,
  type Refused,
  SETTINGS_ID,
  settingsEnvelope,
} from "./live_state.ts";
import { findConflict, findUsers, refuse } from "./references.ts";
import {
  type Collection,
  COLLECTION_SIZE_MAX,
  type Envelope,
  RESOURCE_TYPE,
  RULES_BATCH_MAX,
  SPEC_BYTES_MAX,
  type SpecOf,
} from "./resources.ts";
import { copyWithin, jsonBytes, type Result, TOO_LARGE } from "./result.ts";
import { takeSettings, takeSpec } from "./take_spec.ts";

/** Longest texts of an audit entry, in UTF-16 units; what is longer is cut. */
const AUDIT_TEXT_LENGTH_MAX = 256;
/** Most bytes of the rules that an audit entry names on either side; their number is all of them. */
const AUDIT_RULES_BYTES_MAX = SPEC_BYTES_MAX - 1_024;

/**
 * Makes one change, or refuses it; the same for the same state and command wherever it runs. The
 * state it is given stays as it is. `index` is the command's place in the log, at which the next
 * state is; a refused command moves nothing else.
 *
 * Values of what is done: the envelope (create, replace, settings), the envelopes of what was added
 * (`rules_batch`), the user (`user_create`, `user_change`), the credential, `null` (the deletions, `migrate`), counts
 * (`seed`), a `RestoreReport` (`restore`).
 * What a spec means must have been decoded; its shape, and what only the rest of the state can tell,
 * is checked here.
 */
export function apply(
  state: LiveState,
  command: Command,
  index: number = state.appliedIndex + 1,
): Applied {
  const draft = new Draft(state);
  const result = dispatch(draft, command);
  if (result.kind === "refused") {
    return { kind: "refused", settled: result, state: { ...state, appliedIndex: index } };
  }
  draft.setIndex(index);
  return {
    kind: "made",
    settled: { kind: "done", value: result.value } satisfies Settled,
    state: draft.state,
    writes: draft.writes,
    audit: auditOf(result, command),
  };
}

/**
 * The audit entry of what one node does by itself.
 *
 * @throws {SvcError} `invalid`, if it says too much.
 */
export function noteEntry(note: Note, by: Omit<Command, "change">): NewAuditEntry {
  const given = note.after ?? null;
  const after = copyWithin(given, SPEC_BYTES_MAX);
  if (after === null && given !== null) throw new SvcError(TOO_LARGE.code, TOO_LARGE.message);
  return auditOf({ ...note, before: null, after }, by);
}

function auditOf(
  { action, resource: { type, id }, before, after }: Note & { readonly before: unknown },
  { at, actor, node }: Omit<Command, "change">,
): NewAuditEntry {
  return {
    time: at,
    actor: cutActor(actor),
    action: cut(action),
    resource: { type: cut(type), id: id === null ? null : cut(id) },
    before,
    after,
    node: cut(node),
  };
}

function cut(text: string): string {
  return text.slice(0, AUDIT_TEXT_LENGTH_MAX);
}

function cutActor({ kind, name, address }: Actor): Actor {
  return {
    kind,
    name: name === null ? null : cut(name),
    address: address === null ? null : cut(address),
  };
}

function dispatch(draft: Draft, command: Command): Result {
  const { change, at } = command;
  switch (change.type) {
    case "create":
      return create(draft, change.collection, change.id, change.spec, at);
    case "replace":
      return replace(draft, change.collection, change.id, change.spec, change.ifMatch, at);
    case "delete":
      return remove(draft, change.collection, change.id, change.ifMatch);
    case "rules_batch":
      return changeRules(draft, change, at);
    case "lists_preset":
      return applyPreset(draft, change, at, COLLECTION_SIZE_MAX);
    case "settings":
      return changeSettings(draft, change, at);
    case "user_create":
      return createUser(draft, change, command);
    case "user_change":
      return changeUser(draft, change, command);
    case "user_delete":
      return deleteUser(draft, change, command);
    case "credential_create":
      return createCredential(draft, change, command);
    case "credential_replace":
      return replaceCredential(draft, change, command);
    case "credential_delete":
      return deleteCredential(draft, change);
    case "seed":
      return applySeed(draft, change, at);
    case "migrate":
      return applyMigration(draft, change, at);
    case "restore":
      return applyRestore(draft, change, command);
  }
}

/** The resource, if it is there at the revision that is asked for; else why not. */
function resource<C extends Collection>(
  { state }: Draft,
  collection: C,
  id: string,
  ifMatch: number | null,
): Envelope<SpecOf<C>> | Refused {
  const all: ReadonlyMap<string, Envelope<SpecOf<C>>> = state.collections[collection];
  return found(all, RESOURCE_TYPE[collection], id, ifMatch);
}

function replace<C extends Collection>(
  draft: Draft,
  collection: C,
  id: string,
  given: SpecOf<C>,
  ifMatch: number | null,
  at: string,
): Result {
  const before = resource(draft, collection, id, ifMatch);
  if ("kind" in before) return before;
  const taken = takeSpec(collection, given);
  if (taken.kind === "refused") return taken;
  const { spec } = taken;
  const conflict = findConflict(draft.state, collection, id, spec);
  if (conflict !== null) return conflict;
  const envelope = { ...before, revision: before.revision + 1, updated_at: at, spec };
  draft.put(collection, envelope);
  return {
    kind: "done",
    value: envelope,
    action: "update",
    resource: { type: RESOURCE_TYPE[collection], id },
    before: before.spec,
    after: spec,
  };
}

function remove(
  draft: Draft,
  collection: Collection,
  id: string,
  ifMatch: number | null,
): Result {
  const before = resource(draft, collection, id, ifMatch);
  if ("kind" in before) return before;
  const users = findUsers(draft.state, collection, id);
  if (users !== null) return users;
  draft.remove(collection, id);
  return {
    kind: "done",
    value: null,
    action: "delete",
    resource: { type: RESOURCE_TYPE[collection], id },
    before: before.spec,
    after: null,
  };
}

/** Removes rules and adds others, in this order: all of it, or nothing. */
function changeRules(
  draft: Draft,
  { add, remove: ids }: Extract<Change, { type: "rules_batch" }>,
  at: string,
): Result {
  if (add.length + ids.length > RULES_BATCH_MAX) {
    return refuse("invalid", `add: one change takes ${RULES_BATCH_MAX} rules`);
  }
  const [removed, added]: AuditedRule[][] = [[], []];
  for (const [i, id] of ids.entries()) {
    const gone = draft.state.collections.rules.get(id);
    const result = remove(draft, "rules", id, null);
    if (result.kind === "refused") return { ...result, message: `remove[${i}]: ${result.message}` };
    if (gone !== undefined) removed.push({ id, rule: gone.spec.rule });
  }
  const envelopes: Envelope<SpecOf<"rules">>[] = [];
  for (const [i, { id, spec }] of add.entries()) {
    const result = create(draft, "rules", id, spec, at);
    if (result.kind === "refused") return { ...result, message: `add[${i}].${result.message}` };
    const envelope = draft.state.collections.rules.get(id)!;
    envelopes.push(envelope);
    added.push({ id, rule: envelope.spec.rule });
  }
  return {
    kind: "done",
    value: envelopes,
    action: "batch",
    resource: { type: RESOURCE_TYPE.rules, id: null },
    before: removed.length === 0 ? null : { removed: removed.length, rules: cutRules(removed) },
    after: added.length === 0 ? null : { added: added.length, rules: cutRules(added) },
  };
}

/** A rule of many in an entry of the audit log. */
interface AuditedRule {
  readonly id: string;
  readonly rule: string;
}

/** The first rules, as many as an audit entry has room for. */
function cutRules(rules: readonly AuditedRule[]): readonly AuditedRule[] {
  let bytes = 0;
  const end = rules.findIndex((rule) => (bytes += jsonBytes(rule) + 1) > AUDIT_RULES_BYTES_MAX);
  return end < 0 ? rules : rules.slice(0, end);
}

function changeSettings(
  draft: Draft,
  change: Extract<Change, { type: "settings" }>,
  at: string,
): Result {
  const before = draft.state.settings;
  const refusal = mismatch(SETTINGS_ID, before.revision, change.ifMatch);
  if (refusal !== null) return refusal;
  const taken = takeSettings(change.spec);
  if (taken.kind === "refused") return taken;
  const { spec } = taken;
  const createdAt = before.revision === 0 ? at : before.created_at;
  const envelope = settingsEnvelope(before.revision + 1, createdAt, at, spec);
  draft.putSettings(envelope);
  return {
    kind: "done",
    value: envelope,
    action: "update",
    resource: { type: "settings", id: null },
    before: before.spec,
    after: spec,
  };
}
