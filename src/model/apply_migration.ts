import type { Change } from "./command.ts";
import { create } from "./create.ts";
import type { Draft } from "./draft.ts";
import { type Refused, settingsEnvelope } from "./live_state.ts";
import { findConflict, refuse } from "./references.ts";
import { COLLECTIONS, type SpecOf } from "./resources.ts";
import type { Result } from "./result.ts";
import { takeSettings, takeSpec } from "./take_spec.ts";
import { shownText } from "./text.ts";

/** Most resources of one migration: they are one change, stored whole or not at all. */
export const MIGRATION_ITEMS_MAX = 20_000;

type Migration = Extract<Change, { type: "migrate" }>;

/**
 * Adds what another product has: all of it, or nothing. Whoever planned it looked at a state that may
 * have moved since; what does not fit any more is refused, and planned anew.
 */
export function applyMigration(draft: Draft, change: Migration, at: string): Result {
  const size = COLLECTIONS.reduce((sum, one) => sum + change.add[one].length, 0);
  if (size + change.join.length > MIGRATION_ITEMS_MAX) {
    return refuse("invalid", `add: one change takes ${MIGRATION_ITEMS_MAX} resources`);
  }
  const added: Record<string, number> = {};
  for (const collection of COLLECTIONS) {
    // Groups that are there get lists and schedules of this change, and clients go into groups.
    if (collection === "groups") {
      const refusal = joinAll(draft, change.join, at);
      if (refusal !== null) return refusal;
    }
    for (const [i, { id, spec }] of change.add[collection].entries()) {
      const result = create(draft, collection, id, spec, at);
      if (result.kind === "done") continue;
      return { ...result, message: `add.${collection}[${i}].${result.message}` };
    }
    added[collection] = change.add[collection].length;
  }
  const refusal = changeSettings(draft, change.settings, at);
  if (refusal !== null) return refusal;
  return {
    kind: "done",
    value: null,
    action: "migrate",
    resource: { type: "config", id: null },
    before: null,
    after: {
      from: change.from,
      added,
      joined: change.join.length,
      settings: change.settings !== null,
    },
  };
}

function joinAll(draft: Draft, join: Migration["join"], at: string): Refused | null {
  for (const [i, { group: id, lists, blocked_services, safe_search }] of join.entries()) {
    const before = draft.state.collections.groups.get(id);
    if (before === undefined) {
      return refuse("not_found", `join[${i}]: ${shownText(id)}: there is no such group`);
    }
    const { spec } = before;
    const joined: SpecOf<"groups"> = {
      ...spec,
      safe_search: spec.safe_search || safe_search,
      lists: withMissing(spec.lists, lists, ({ list }) => list),
      blocked_services: withMissing(
        spec.blocked_services,
        blocked_services,
        ({ service }) => service,
      ),
    };
    const taken = takeSpec("groups", joined);
    if (taken.kind === "refused") return taken;
    const conflict = findConflict(draft.state, "groups", id, taken.spec);
    if (conflict !== null) return conflict;
    const revision = before.revision + 1;
    draft.put("groups", { ...before, revision, updated_at: at, spec: taken.spec });
  }
  return null;
}

/** `there`, and behind it those of `more` that it has not. */
function withMissing<T>(there: readonly T[], more: readonly T[], keyOf: (one: T) => string): T[] {
  const known = new Set(there.map(keyOf));
  return [...there, ...more.filter((one) => !known.has(keyOf(one)))];
}

function changeSettings(draft: Draft, change: Migration["settings"], at: string): Refused | null {
  if (change === null) return null;
  const before = draft.state.settings;
  if (before.revision !== change.revision) {
    const message = `settings: has revision ${before.revision}, not ${change.revision}`;
    return refuse("revision_mismatch", message);
  }
  const taken = takeSettings(change.spec);
  if (taken.kind === "refused") return taken;
  const createdAt = before.revision === 0 ? at : before.created_at;
  draft.putSettings(settingsEnvelope(before.revision + 1, createdAt, at, taken.spec));
  return null;
}
