import type { CredentialKind } from "./credentials.ts";
import type { LiveState, Refused } from "./live_state.ts";
import { nameKeys, shownText } from "./text.ts";

/** What is told apart by its name: users sign in by it, others are chosen by it or told of. */
export type Named = "groups" | "users" | CredentialKind;

function keysOf(kind: Named, name: string): string[] {
  return nameKeys(name).map((key) => `${kind} ${key}`);
}

/** The index with the name of `id`. */
export function withName(
  index: LiveState["nameKeys"],
  kind: Named,
  name: string,
  id: string,
): LiveState["nameKeys"] {
  let next = index;
  for (const key of keysOf(kind, name)) next = next.with(key, [...next.get(key) ?? [], id]);
  return next;
}

/** The index without the name of `id`; others that have it keep it. */
export function withoutName(
  index: LiveState["nameKeys"],
  kind: Named,
  name: string,
  id: string,
): LiveState["nameKeys"] {
  let next = index;
  for (const key of keysOf(kind, name)) {
    const left = (next.get(key) ?? []).filter((owner) => owner !== id);
    next = left.length === 0 ? next.without(key) : next.with(key, left);
  }
  return next;
}

/** Refuses a name that reads as another's; one's own may stay as it is. */
export function findNameClash(
  state: LiveState,
  kind: Named,
  id: string,
  name: string,
): Refused | null {
  const nameOf = (owner: string) =>
    kind === "users"
      ? state.users.get(owner)?.name
      : kind === "groups"
      ? state.collections.groups.get(owner)?.spec.name
      : state.credentials[kind].get(owner)?.spec.name;
  if (nameOf(id) === name) return null;
  for (const key of keysOf(kind, name)) {
    const owner = state.nameKeys.get(key)?.find((other) => other !== id);
    if (owner === undefined) continue;
    const called = shownText(nameOf(owner) ?? "");
    const message = `name: ${owner} is called ${called}, which reads alike`;
    return { kind: "refused", code: "conflict", message };
  }
  return null;
}
