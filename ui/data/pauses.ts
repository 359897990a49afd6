/** Pausing a group or a client: replicated, unlike the node's own pause. */
import { t } from "../text/mod.ts";
import { moment } from "../parts/format.ts";
import { change } from "./collections.ts";
import { endOf, type Period } from "./periods.ts";

/** When a pause ends that is not over; `null`: there is none. */
export function pauseEnd(paused: string | null | undefined, nowMs: number): Date | null {
  return paused && Date.parse(paused) > nowMs ? new Date(paused) : null;
}

/** Pauses for a while, or not any more (`null`). */
export async function pauseOne(
  collection: "groups" | "clients",
  id: string,
  name: string,
  period: Exclude<Period, "ever"> | null,
): Promise<void> {
  const end = period === null ? null : endOf(period);
  const said = end === null ? t.groups.resumed(name) : t.groups.pausedUntil(name, moment(end));
  if (collection === "groups") {
    await change("groups", id, (spec) => ({ ...spec, paused_until: end?.toISOString() ?? null }), {
      said,
    });
  } else {
    await change("clients", id, (spec) => ({ ...spec, paused_until: end?.toISOString() ?? null }), {
      said,
    });
  }
}
