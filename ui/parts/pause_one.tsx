import { mayChange, nowMs } from "../data/node.ts";
import { pauseEnd, pauseOne } from "../data/pauses.ts";
import { t } from "../text/mod.ts";
import { Button, Tag } from "./basics.tsx";
import { attempt } from "./errors.tsx";
import { moment } from "./format.ts";
import { PeriodMenu } from "./period_menu.tsx";

/** Whether a group or client is paused, and what pauses or resumes it. */
export function PauseOne(
  { collection, id, name, paused, small = false }: {
    collection: "groups" | "clients";
    id: string;
    name: string;
    paused: string | null | undefined;
    small?: boolean;
  },
) {
  const end = pauseEnd(paused, nowMs.value);
  const set = (until: Date | null) => attempt(() => pauseOne(collection, id, name, until));
  if (end !== null) {
    return (
      <span class="row-actions">
        <Tag kind="warning" icon="pause">{t.groups.paused(moment(end))}</Tag>
        {mayChange.value && <Button small label={t.pause.resume} onClick={() => set(null)} />}
      </span>
    );
  }
  if (!mayChange.value) return null;
  return <PeriodMenu label={t.pause.pause} icon="pause" small={small} onPick={set} />;
}
