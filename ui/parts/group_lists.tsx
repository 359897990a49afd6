import { change, useCollection } from "../data/collections.ts";
import { mayChange } from "../data/node.ts";
import type { Resource } from "../data/types.ts";
import { t } from "../text/mod.ts";
import { Empty, Name } from "./basics.tsx";
import { timeOptions } from "./choices.ts";
import { Collected } from "./collection.tsx";
import { Select } from "./controls.tsx";
import { attempt } from "./errors.tsx";
import { number } from "./format.ts";

/** Which lists hold for a group: never, always, or by a schedule. */
export function GroupLists({ group: { id, spec } }: { group: Resource<"groups"> }) {
  const lists = useCollection("lists");
  const set = (list: string, name: string, time: string) => {
    const entry = time === "always" ? { list } : { list, schedule: time };
    return attempt(() =>
      change("groups", id, (one) => {
        const others = one.lists.filter((other) => other.list !== list);
        return { ...one, lists: time === "off" ? others : [...others, entry] };
      }, { said: t.common.saved(name) })
    );
  };
  return (
    <Collected of={lists}>
      {(items) =>
        items.length === 0
          ? (
            <Empty text={t.lists.empty} icon="list-checks">
              <a class="button primary" href="/lists?tab=recommended">{t.lists.tabs.recommended}</a>
            </Empty>
          )
          : (
            <ul class="rows card">
              {items.map((list) => {
                const used = spec.lists.find((one) => one.list === list.id);
                return (
                  <li key={list.id}>
                    <div class="row-flat">
                      <span class="row-main">
                        <Name text={list.spec.name} />
                        <span class="muted small">
                          {list.spec.enabled
                            ? t.lists.rules(number(list.status?.rules ?? 0))
                            : t.lists.isOff}
                        </span>
                      </span>
                      <Select
                        class="time-select"
                        aria-label={t.groups.whenOf(list.spec.name)}
                        value={used === undefined ? "off" : used.schedule ?? "always"}
                        choices={timeOptions(true)}
                        disabled={!mayChange.value}
                        onChange={(time) => set(list.id, list.spec.name, time)}
                      />
                    </div>
                  </li>
                );
              })}
            </ul>
          )}
    </Collected>
  );
}
