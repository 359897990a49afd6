import { useSignal } from "@preact/signals";
import { change } from "../data/collections.ts";
import { mayChange } from "../data/node.ts";
import { useLoaded } from "../data/poll.ts";
import { readServices } from "../data/services.ts";
import type { Resource, Services } from "../data/types.ts";
import { t } from "../text/mod.ts";
import { Empty, Name } from "./basics.tsx";
import { timeOptions } from "./choices.ts";
import { SearchBox, Select } from "./controls.tsx";
import { attempt, Shown } from "./errors.tsx";
import { ServiceChip } from "./service_chip.tsx";

type Service = Services["items"][number];

/** Services that a group does not get, whatever its lists and rules say. */
export function GroupServices({ group }: { group: Resource<"groups"> }) {
  const services = useLoaded(readServices, []);
  const words = useSignal("");
  const category = useSignal("");
  return (
    <Shown of={services} rows={8}>
      {({ items, status }) => {
        if (items.length === 0) {
          return <Empty text={status?.message ?? t.groups.noServices} icon="ban" />;
        }
        const categories = [...new Set(items.map((item) => item.group ?? ""))].filter(Boolean)
          .sort();
        const blocked = new Map(group.spec.blocked_services.map((one) => [one.service, one]));
        const shown = items.filter((item) =>
          item.name.toLowerCase().includes(words.value.toLowerCase()) &&
          (category.value === "" ||
            (category.value === "blocked" ? blocked.has(item.id) : item.group === category.value))
        ).sort((a, b) =>
          Number(blocked.has(b.id)) - Number(blocked.has(a.id)) || a.name.localeCompare(b.name)
        );
        return (
          <>
            <div class="toolbar">
              <SearchBox
                value={words.value}
                label={t.common.search}
                onInput={(text) => words.value = text}
              />
              <Select
                aria-label={t.groups.category}
                value={category.value}
                onChange={(value) => category.value = value}
                choices={[
                  { value: "", label: t.groups.allCategories },
                  { value: "blocked", label: t.groups.onlyBlocked },
                  ...categories.map((one) => ({ value: one, label: categoryName(one) })),
                ]}
              />
            </div>
            {shown.length === 0
              ? <Empty text={t.common.nothingFound} icon="search" />
              : (
                <ul class="service-tiles">
                  {shown.map((item) => (
                    <Tile key={item.id} item={item} group={group} blocked={blocked.get(item.id)} />
                  ))}
                </ul>
              )}
          </>
        );
      }}
    </Shown>
  );
}

function categoryName(category: string): string {
  return (t.groups.categories as Readonly<Record<string, string>>)[category] ??
    category.replaceAll("_", " ");
}

function initials(name: string): string {
  const words = name.split(/[\s.()-]+/).filter((word) => word !== "");
  const letters = words.length > 1 ? words[0][0] + words[1][0] : name.slice(0, 2);
  return letters.toUpperCase();
}

function Tile(
  { item, group: { id }, blocked }: {
    item: Service;
    group: Resource<"groups">;
    blocked: Resource<"groups">["spec"]["blocked_services"][number] | undefined;
  },
) {
  const set = (time: string) =>
    attempt(() =>
      change("groups", id, (one) => {
        const others = one.blocked_services.filter(({ service }) => service !== item.id);
        const entry = time === "always"
          ? { service: item.id }
          : { service: item.id, schedule: time };
        return { ...one, blocked_services: time === "off" ? others : [...others, entry] };
      }, { said: t.common.saved(item.name) })
    );
  return (
    <li class={blocked === undefined ? "service" : "service blocked"}>
      <span class="initials" aria-hidden="true">{initials(item.name)}</span>
      <span class="row-main">
        <Name text={item.name} />
      </span>
      <Select
        aria-label={t.groups.whenOf(item.name)}
        value={blocked === undefined ? "off" : blocked.schedule ?? "always"}
        choices={timeOptions(true).map((choice) =>
          choice.value === "off" ? { ...choice, label: t.groups.allowed } : choice
        )}
        disabled={!mayChange.value}
        onChange={set}
      />
      {blocked !== undefined && <ServiceChip group={id} blocked={blocked} isNamed={false} />}
    </li>
  );
}
