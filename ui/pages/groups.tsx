import { useComputed, useSignal } from "@preact/signals";
import { useCollection } from "../data/collections.ts";
import { nowMs } from "../data/node.ts";
import { pauseEnd } from "../data/pauses.ts";
import { useLoaded } from "../data/poll.ts";
import { readServices } from "../data/services.ts";
import type { Resource, Specs } from "../data/types.ts";
import { Name, PageHead, Tag } from "../parts/basics.tsx";
import { AddButton, Found, PageSearch, ResourceDialog } from "../parts/collection.tsx";
import { TextField } from "../parts/controls.tsx";
import { moment } from "../parts/format.ts";
import { GroupSwitches } from "../parts/group_switches.tsx";
import { Pieces } from "../parts/pieces.tsx";
import { PauseOne } from "../parts/pause_one.tsx";
import { ServiceChip } from "../parts/service_chip.tsx";
import { navigate } from "../router.ts";
import { t } from "../text/mod.ts";

type Group = Resource<"groups">;
const NEW: Specs["groups"] = {
  name: "",
  filtering: true,
  safe_search: false,
  lists: [],
  blocked_services: [],
  paused_until: null,
};

export default function Groups() {
  const groups = useCollection("groups");
  const clients = useCollection("clients");
  useCollection("schedules");
  const isAdding = useSignal(false);
  useLoaded(readServices, []);
  const sizes = useComputed(() => Map.groupBy(clients.items.value ?? [], ({ spec }) => spec.group));
  return (
    <>
      <PageHead title={t.pages.groups} lead={t.groups.lead}>
        {(groups.items.value?.length ?? 0) > 6 && <PageSearch />}
        <AddButton label={t.groups.add} onClick={() => isAdding.value = true} />
      </PageHead>
      <Found of={groups} textOf={({ name }) => name}>
        {(found) => (
          <Pieces of={found} step={48}>
            {(some) => (
              <div class="group-cards">
                {some.map((group) => (
                  <GroupCard
                    key={group.id}
                    group={group}
                    size={sizes.value.get(group.id)?.length ?? 0}
                  />
                ))}
              </div>
            )}
          </Pieces>
        )}
      </Found>
      {isAdding.value && (
        <ResourceDialog
          title={t.groups.add}
          collection="groups"
          resource={null}
          initial={NEW}
          nameOf={({ name }) => name}
          onClose={() => isAdding.value = false}
          onDone={({ id }) => void navigate(`/groups/${id}`)}
        >
          {({ value, set, problem }) => (
            <TextField
              label={t.common.name}
              error={problem("name")}
              value={value.name}
              onText={(name) => set({ name })}
            />
          )}
        </ResourceDialog>
      )}
    </>
  );
}

function GroupCard({ group, size }: { group: Group; size: number }) {
  const { id, spec } = group;
  const paused = pauseEnd(spec.paused_until, nowMs.value);
  return (
    <section class="card group-card">
      <header class="card-head">
        <h2>
          <a href={`/groups/${id}`}>
            <Name text={spec.name} />
          </a>
        </h2>
        <PauseOne collection="groups" id={id} name={spec.name} paused={spec.paused_until} small />
      </header>
      <div class="switches">
        <GroupSwitches group={group} />
      </div>
      {paused !== null && (
        <p class="muted small">{t.groups.pausedUntil(spec.name, moment(paused))}</p>
      )}
      <p class="links">
        <a href={`/groups/${id}?tab=lists`}>{t.lists.count(spec.lists.length)}</a>
        <a href={`/groups/${id}?tab=services`}>{t.groups.services(spec.blocked_services.length)}</a>
        <a href={`/groups/${id}?tab=clients`}>{t.groups.clients(size)}</a>
      </p>
      {spec.blocked_services.length > 0 && (
        <div class="chips">
          {spec.blocked_services.slice(0, 12).map((one) => (
            <ServiceChip key={one.service} group={id} blocked={one} />
          ))}
          {spec.blocked_services.length > 12 && (
            <Tag>{`+${spec.blocked_services.length - 12}`}</Tag>
          )}
        </div>
      )}
    </section>
  );
}
