/** Pausing a group or a client: replicated, unlike the node's own pause. */
import { t } from "../text/mod.ts";
import { moment } from "../parts/format.ts";
import { change } from "./collections.ts";

/** When a pause ends that is not over; `null`: there is none. */
export function pauseEnd(paused: string | null | undefined, nowMs: number): Date | null {
  return paused && Date.parse(paused) > nowMs ? new Date(paused) : null;
}

/** Pauses until then, or not any more (`null`). */
export async function pauseOne(
  collection: "groups" | "clients",
  id: string,
  name: string,
  until: Date | null,
): Promise<void> {
  const said = until === null ? t.groups.resumed(name) : t.groups.pausedUntil(name, moment(until));
  const paused_until = until?.toISOString() ?? null;
  await change(collection, id, (spec) => ({ ...spec, paused_until }), { said });
}
