/** Whether a group or a device has the Internet, by which times it has not, and more time for it. */
import { type Blockable, blockBy, blockedTime, giveTime } from "../data/internet.ts";
import { mayChange, nowMs } from "../data/node.ts";
import { pauseEnd } from "../data/pauses.ts";
import type { Specs } from "../data/types.ts";
import { t } from "../text/mod.ts";
import { Button, Tag } from "./basics.tsx";
import { timeOptions } from "./choices.ts";
import { Select } from "./controls.tsx";
import { attempt } from "./errors.tsx";
import { moment } from "./format.ts";
import { PeriodMenu } from "./period_menu.tsx";

export function Internet(
  { collection, id, spec }: { collection: Blockable; id: string; spec: Specs[Blockable] },
) {
  const { name } = spec;
  const time = blockedTime(spec);
  const end = time === "off" ? null : pauseEnd(spec.blocked_paused_until, nowMs.value);
  const choices = timeOptions(true).map(({ value, label }) => ({
    value,
    label: value === "off"
      ? t.internet.on
      : value === "always"
      ? t.internet.off
      : t.internet.offBy(label),
  }));
  const set = (time: string) =>
    attempt(() =>
      blockBy(
        collection,
        id,
        time,
        time === "off" ? t.internet.given(name) : t.internet.taken(name),
      )
    );
  const give = (until: Date) =>
    attempt(() =>
      giveTime(collection, id, spec, until, t.internet.givenUntil(name, moment(until)))
    );
  return (
    <span class="row-actions">
      <Select
        aria-label={t.internet.of(name)}
        value={time}
        choices={choices}
        disabled={!mayChange.value}
        onChange={set}
      />
      {end !== null && <Tag kind="warning" icon="clock">{t.panel.until(moment(end))}</Tag>}
      {end !== null && mayChange.value && (
        <Button
          small
          label={t.internet.end}
          onClick={() =>
            attempt(() => giveTime(collection, id, spec, null, t.internet.taken(name)))}
        />
      )}
      {end === null && time !== "off" && mayChange.value && (
        <PeriodMenu label={t.internet.more} icon="clock" onPick={give} />
      )}
    </span>
  );
}
