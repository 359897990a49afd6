/** Which upstreams a group's queries go to. */
import { change } from "../data/collections.ts";
import { mayChange, status } from "../data/node.ts";
import type { Resource } from "../data/types.ts";
import { t } from "../text/mod.ts";
import { Popover } from "./basics.tsx";
import { Switch } from "./controls.tsx";

export function GroupUpstreams({ group: { id, spec } }: { group: Resource<"groups"> }) {
  const own = spec.upstreams ?? [];
  const here = (status.value?.upstreams ?? []).map(({ address, name }) => name ?? address);
  // Another node may have those that this one lacks.
  const all = [...here, ...own.filter((name) => !here.includes(name))];
  const set = (name: string, on: boolean) =>
    change("groups", id, (one) => {
      const others = (one.upstreams ?? []).filter((other) => other !== name);
      return { ...one, upstreams: on ? [...others, name] : others };
    }, { said: (on ? t.common.turnedOn : t.common.turnedOff)(name) });
  return (
    <Popover label={own.length > 0 ? t.groups.ownUpstreams : t.groups.upstreams} icon="network">
      {() => (
        <div class="menu">
          <p class="muted small">{t.groups.upstreamsHint}</p>
          {all.map((name) => (
            <Switch
              key={name}
              isOn={own.includes(name)}
              label={name}
              disabled={!mayChange.value}
              onChange={(on) => set(name, on)}
            />
          ))}
        </div>
      )}
    </Popover>
  );
}
