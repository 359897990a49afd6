import { useSignal } from "@preact/signals";
import { useCollection } from "../data/collections.ts";
import { isReadOnly } from "../data/node.ts";
import { isAdmin } from "../data/session.ts";
import type { Resource } from "../data/types.ts";
import { Button, Empty, Name, PageHead } from "../parts/basics.tsx";
import { Collected, removeNow, ResourceDialog } from "../parts/collection.tsx";
import { Tabs, TextField } from "../parts/controls.tsx";
import { GroupClients } from "../parts/group_clients.tsx";
import { GroupLists } from "../parts/group_lists.tsx";
import { GroupServices } from "../parts/group_services.tsx";
import { DEFAULT_GROUP } from "../parts/names.ts";
import { GroupSwitches } from "../parts/group_switches.tsx";
import { GroupUpstreams } from "../parts/group_upstreams.tsx";
import { Internet } from "../parts/internet.tsx";
import { PauseOne } from "../parts/pause_one.tsx";
import { Recorded } from "../parts/recorded.tsx";
import { hrefOf, navigate, param, route } from "../router.ts";
import { t } from "../text/mod.ts";

const TABS = ["lists", "services", "clients"] as const;

export default function GroupPage() {
  const groups = useCollection("groups");
  const { id } = route.value;
  return (
    <Collected of={groups}>
      {(items) => {
        const group = items.find((one) => one.id === id);
        return group === undefined
          ? (
            <>
              <PageHead title={t.groups.gone} />
              <Empty text={t.groups.gone}>
                <a class="button primary" href="/groups">{t.pages.groups}</a>
              </Empty>
            </>
          )
          : <One key={group.id} group={group} />;
      }}
    </Collected>
  );
}

function One({ group }: { group: Resource<"groups"> }) {
  const { id, spec } = group;
  const clients = useCollection("clients");
  useCollection("schedules");
  const isRenaming = useSignal(false);
  const members = (clients.items.value ?? []).filter((one) => one.spec.group === id);
  const tab = TABS.find((one) => one === param("tab")) ?? "lists";
  const counts = {
    lists: spec.lists.length,
    services: spec.blocked_services.length,
    clients: clients.items.value === null ? null : members.length,
  };
  const onRemove = async () => {
    if (await removeNow("groups", group, spec.name)) await navigate("/groups");
  };
  return (
    <>
      <PageHead
        title={<Name text={spec.name} />}
        {...(id === DEFAULT_GROUP && { lead: t.groups.defaultLead })}
      >
        <GroupSwitches group={group} />
        <Internet collection="groups" id={id} spec={spec} />
        <PauseOne collection="groups" id={id} name={spec.name} paused={spec.paused_until} />
        <Recorded collection="groups" id={id} spec={spec} />
        <GroupUpstreams group={group} />
        {isAdmin.value && (
          <Button
            icon="pencil"
            iconOnly
            kind="quiet"
            label={t.groups.rename}
            onClick={() => isRenaming.value = true}
          />
        )}
        {isAdmin.value && id !== DEFAULT_GROUP && (
          <Button
            icon="trash"
            iconOnly
            kind="quiet"
            label={t.common.remove}
            disabled={isReadOnly.value}
            onClick={onRemove}
          />
        )}
      </PageHead>
      <Tabs
        label={spec.name}
        value={tab}
        tabs={TABS.map((value) => ({
          value,
          label: t.groups.tabs[value],
          href: hrefOf(`/groups/${id}`, { tab: value === "lists" ? null : value }),
          count: counts[value],
        }))}
      />
      {tab === "lists" && <GroupLists group={group} />}
      {tab === "services" && <GroupServices group={group} />}
      {tab === "clients" && <GroupClients group={group} members={members} />}
      {isRenaming.value && (
        <ResourceDialog
          title={t.groups.rename}
          collection="groups"
          resource={group}
          initial={spec}
          nameOf={({ name }) => name}
          onClose={() => isRenaming.value = false}
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
