import { change } from "../data/collections.ts";
import { mayChange } from "../data/node.ts";
import type { Resource, Specs } from "../data/types.ts";
import { t } from "../text/mod.ts";
import { Switch } from "./controls.tsx";

/** Whether a group is filtered, and searches safely. */
export function GroupSwitches({ group: { id, spec } }: { group: Resource<"groups"> }) {
  const save = (part: Partial<Specs["groups"]>, said: string) =>
    change("groups", id, (one) => ({ ...one, ...part }), { said });
  return (
    <>
      <Switch
        isOn={spec.filtering}
        label={t.groups.filtering}
        disabled={!mayChange.value}
        onChange={(filtering) =>
          save(
            { filtering },
            filtering ? t.groups.filteringOn(spec.name) : t.groups.filteringOff(spec.name),
          )}
      />
      <Switch
        isOn={spec.safe_search}
        label={t.groups.safeSearch}
        disabled={!mayChange.value}
        onChange={(safe_search) =>
          save(
            { safe_search },
            (safe_search ? t.common.turnedOn : t.common.turnedOff)(t.groups.safeSearch),
          )}
      />
    </>
  );
}
