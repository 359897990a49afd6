/** Whether queries of a group or a device are logged, and counted in statistics. */
import { change } from "../data/collections.ts";
import type { Blockable } from "../data/internet.ts";
import { mayChange } from "../data/node.ts";
import type { Specs } from "../data/types.ts";
import { t } from "../text/mod.ts";
import { Popover } from "./basics.tsx";
import { Switch } from "./controls.tsx";

const RECORDS = ["querylog", "statistics"] as const;

export function Recorded(
  { collection, id, spec }: { collection: Blockable; id: string; spec: Specs[Blockable] },
) {
  const set = async (part: Partial<Record<typeof RECORDS[number], boolean>>, said: string) => {
    if (collection === "groups") {
      await change("groups", id, (one) => ({ ...one, ...part }), { said });
    } else await change("clients", id, (one) => ({ ...one, ...part }), { said });
  };
  const isRecorded = RECORDS.every((record) => spec[record] !== false);
  return (
    <Popover label={isRecorded ? t.recorded.is : t.recorded.isNot} icon="eye">
      {() => (
        <div class="menu">
          {RECORDS.map((record) => (
            <Switch
              key={record}
              isOn={spec[record] !== false}
              label={t.recorded[record]}
              disabled={!mayChange.value}
              onChange={(on) =>
                set(
                  { [record]: on },
                  (on ? t.common.turnedOn : t.common.turnedOff)(t.recorded[record]),
                )}
            />
          ))}
        </div>
      )}
    </Popover>
  );
}
