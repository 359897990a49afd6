import type { Draft } from "./draft.ts";
import { findConflict, refuse } from "./references.ts";
import {
  type Collection,
  COLLECTION_SIZE_MAX,
  isIdOf,
  RESOURCE_TYPE,
  type SpecOf,
} from "./resources.ts";
import type { Result } from "./result.ts";
import { takeSpec } from "./take_spec.ts";

/** Makes one resource, or refuses to: what may stand beside the rest of the state. */
export function create<C extends Collection>(
  draft: Draft,
  collection: C,
  id: string,
  given: SpecOf<C>,
  at: string,
): Result {
  if (!isIdOf(collection, id)) {
    return refuse("invalid", `id: ${id.slice(0, 64)} is no ID of ${collection}`);
  }
  const there = draft.state.collections[collection];
  if (there.has(id)) return refuse("conflict", `${id}: there is one already`);
  if (there.size >= COLLECTION_SIZE_MAX) {
    return refuse("conflict", `${collection}: there are ${COLLECTION_SIZE_MAX} already`);
  }
  const taken = takeSpec(collection, given);
  if (taken.kind === "refused") return taken;
  const { spec } = taken;
  const conflict = findConflict(draft.state, collection, id, spec);
  if (conflict !== null) return conflict;
  const envelope = { id, revision: 1, created_at: at, updated_at: at, spec };
  draft.put(collection, envelope);
  const resource = { type: RESOURCE_TYPE[collection], id };
  return { kind: "done", value: envelope, action: "create", resource, before: null, after: spec };
}
