import type { Change } from "./command.ts";
import {
  type Credential,
  CREDENTIAL_BYTES_MAX,
  CREDENTIAL_TYPE,
  type CredentialKind,
  CREDENTIALS_MAX,
  isCredentialId,
  type RestoredCredential,
} from "./credentials.ts";
import type { LiveState, Refused } from "./live_state.ts";
import { refuse } from "./references.ts";
import { isSame, nextOf, type RestoredKind, type Tally } from "./restore_report.ts";
import { jsonBytes } from "./result.ts";
import { nameKeys } from "./text.ts";

type Any = Credential<CredentialKind>;

/**
 * Tokens or webhooks as they are to be. Those of a backup with its secrets take the place of all.
 * Without them none can be made that would be of use: then those that are there, by ID, get what the
 * backup says of them, others of the backup are left out, and none is removed.
 */
export function credentialsAfter(
  kind: CredentialKind,
  state: LiveState,
  { credentials, hasSecrets }: Extract<Change, { type: "restore" }>,
  at: string,
  tally: Tally,
): Map<string, Any> | Refused {
  const there: ReadonlyMap<string, Any> = state.credentials[kind];
  const given: readonly RestoredCredential<CredentialKind>[] | undefined = credentials?.[kind];
  const isWhole = hasSecrets && given !== undefined;
  const after = new Map<string, Any>(isWhole ? [] : there);
  const noted = new Set<string>();
  const note = (what: RestoredKind, { id, spec }: Pick<Any, "id" | "spec">) => {
    noted.add(id);
    tally.add(kind, what, { type: CREDENTIAL_TYPE[kind], id, name: spec.name });
  };
  for (const [i, one] of (given ?? []).entries()) {
    const place = `${kind}[${i}]`;
    if (!isCredentialId(kind, one.id)) {
      return refuse("invalid", `${place}.id: ${one.id.slice(0, 64)} is no ID of ${kind}`);
    }
    if (noted.has(one.id)) return refuse("invalid", `${place}: is there twice`);
    const old = there.get(one.id);
    const next = restoredOf(old, one, at);
    if (next === null) {
      note("left_out", one);
      continue;
    }
    if (jsonBytes(next) > CREDENTIAL_BYTES_MAX) {
      return refuse("invalid", `${place}: is larger than ${CREDENTIAL_BYTES_MAX} bytes as JSON`);
    }
    after.set(next.id, next);
    note(old === undefined ? "added" : next === old ? "kept" : "changed", next);
  }
  for (const old of there.values()) if (!noted.has(old.id)) note(isWhole ? "removed" : "kept", old);
  return findProblem(kind, after) ?? after;
}

/** `null` where nobody knows what is secret of it. */
function restoredOf(
  old: Any | undefined,
  { secret: given, ...one }: RestoredCredential<CredentialKind>,
  at: string,
): Any | null {
  const secret = given ?? old?.secret;
  if (secret === undefined) return null;
  if (old === undefined) return { ...one, secret };
  if (isSame(old.spec, one.spec) && isSame(old.secret, secret)) return old;
  return { ...old, ...nextOf(old.revision, one.revision, at), spec: one.spec, secret };
}

function findProblem(kind: CredentialKind, after: ReadonlyMap<string, Any>): Refused | null {
  const most = CREDENTIALS_MAX[kind];
  if (after.size > most) return refuse("invalid", `${kind}: there are more than ${most}`);
  const byName = new Map<string, string>();
  for (const { id, spec } of after.values()) {
    for (const key of nameKeys(spec.name)) {
      const other = byName.get(key);
      if (other !== undefined && other !== id) {
        return refuse("conflict", `${kind}: ${other} and ${id} have names that read alike`);
      }
      byName.set(key, id);
    }
  }
  return null;
}
