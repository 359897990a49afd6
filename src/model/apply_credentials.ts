import type { Change, Command } from "./command.ts";
import {
  type Credential,
  CREDENTIAL_BYTES_MAX,
  CREDENTIAL_SCHEMAS,
  CREDENTIAL_TYPE,
  type CredentialKind,
  CREDENTIALS_MAX,
  isCredentialId,
} from "./credentials.ts";
import type { Draft } from "./draft.ts";
import { found } from "./found.ts";
import type { LiveState, Refused } from "./live_state.ts";
import { findNameClash } from "./names.ts";
import type { PersistentMap } from "./persistent_map.ts";
import { describeProblems, parseWith } from "./problems.ts";
import { refuse } from "./references.ts";
import { copyWithin, type Result } from "./result.ts";

type Of<T extends Change["type"]> = Extract<Change, { type: T }>;

function credential(
  { credentials }: LiveState,
  kind: CredentialKind,
  id: string,
  ifMatch: number | null,
): Credential<CredentialKind> | Refused {
  const all: PersistentMap<Credential<CredentialKind>> = credentials[kind];
  return found(all, CREDENTIAL_TYPE[kind], id, ifMatch);
}

/** A copy, once it has been seen that it could be read again. */
function take(kind: CredentialKind, made: unknown): Credential<CredentialKind> | Refused {
  const read = parseWith(CREDENTIAL_SCHEMAS[kind], made);
  // Problems tell of places and never of values, which are secrets.
  if (!read.ok) return refuse("invalid", describeProblems(read.problems, CREDENTIAL_TYPE[kind]));
  return copyWithin<Credential<CredentialKind>>(read.value, CREDENTIAL_BYTES_MAX) ??
    refuse("invalid", `${CREDENTIAL_TYPE[kind]}: is larger than ${CREDENTIAL_BYTES_MAX} bytes`);
}

/** Stores it where nothing is in the way; the audit log is told nothing that is secret. */
function put(
  draft: Draft,
  kind: CredentialKind,
  made: unknown,
  before: Credential<CredentialKind> | null,
): Result {
  const taken = take(kind, made);
  if ("kind" in taken) return taken;
  const { id, spec } = taken;
  const clash = findNameClash(draft.state, kind, id, spec.name);
  if (clash !== null) return clash;
  draft.putCredential(kind, taken);
  return {
    kind: "done",
    value: taken,
    action: before === null ? "create" : "update",
    resource: { type: CREDENTIAL_TYPE[kind], id },
    before: before?.spec ?? null,
    after: spec,
  };
}

export function createCredential(
  draft: Draft,
  { kind, id, spec, secret }: Of<"credential_create">,
  { at }: Command,
): Result {
  if (!isCredentialId(kind, id)) {
    return refuse("invalid", `id: ${id.slice(0, 64)} is no ID of ${kind}`);
  }
  const there = draft.state.credentials[kind];
  if (there.has(id)) return refuse("conflict", `${id}: there is one already`);
  const most = CREDENTIALS_MAX[kind];
  if (there.size >= most) {
    return refuse("conflict", `${kind}: there are ${most}, which is the most: remove one first`);
  }
  return put(draft, kind, { id, revision: 1, created_at: at, updated_at: at, spec, secret }, null);
}

export function replaceCredential(
  draft: Draft,
  { kind, id, spec, secret, ifMatch }: Of<"credential_replace">,
  { at }: Command,
): Result {
  const before = credential(draft.state, kind, id, ifMatch);
  if ("kind" in before) return before;
  const made = {
    ...before,
    revision: before.revision + 1,
    updated_at: at,
    spec,
    secret: { ...before.secret, ...secret },
  };
  return put(draft, kind, made, before);
}

export function deleteCredential(
  draft: Draft,
  { kind, id, ifMatch }: Of<"credential_delete">,
): Result {
  const before = credential(draft.state, kind, id, ifMatch);
  if ("kind" in before) return before;
  draft.removeCredential(kind, id);
  return {
    kind: "done",
    value: null,
    action: "delete",
    resource: { type: CREDENTIAL_TYPE[kind], id },
    before: before.spec,
    after: null,
  };
}
