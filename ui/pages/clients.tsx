import { useEffect } from "preact/hooks";
import { useComputed, useSignal } from "@preact/signals";
import { change, create, keptOf, useCollection } from "../data/collections.ts";
import { isReadOnly, nowMs } from "../data/node.ts";
import { useLoaded } from "../data/poll.ts";
import { readSeen } from "../data/seen.ts";
import { isAdmin } from "../data/session.ts";
import type { Resource, Seen, Specs } from "../data/types.ts";
import { Button, Empty, Name, PageHead, Tag } from "../parts/basics.tsx";
import { groupOptions } from "../parts/choices.ts";
import { ClientFields, NEW_CLIENT, prepareClient } from "../parts/client_fields.tsx";
import { ClientRun, type ClientRuns, useClientRuns } from "../parts/client_runs.tsx";
import { AddButton, Collected, PageSearch, ResourceDialog } from "../parts/collection.tsx";
import { Select, Tabs } from "../parts/controls.tsx";
import { attempt, Shown } from "../parts/errors.tsx";
import { ago, compact, percent } from "../parts/format.ts";
import { DEFAULT_GROUP, groupName } from "../parts/names.ts";
import { Pieces } from "../parts/pieces.tsx";
import { useMedia } from "../parts/use_media.ts";
import { VirtualRows } from "../parts/virtual_rows.tsx";
import { pauseEnd } from "../data/pauses.ts";
import { toast } from "../parts/toasts.tsx";
import { hrefOf, navigate, param, setParams } from "../router.ts";
import { t } from "../text/mod.ts";

type Client = Resource<"clients">;
const ROW_PX = { wide: 48, phone: 68 };
const SEEN_MS = 15_000;

export default function Clients() {
  const clients = useCollection("clients");
  useCollection("groups");
  const seen = useLoaded(readSeen, [], SEEN_MS);
  const adding = useSignal<Specs["clients"] | null>(null);
  const tab = param("tab") === "new" ? "new" : "known";
  const fresh = useComputed(() => unknownOf(seen.data.value ?? [], clients.items.value ?? []));
  const add = param("add");
  useEffect(() => {
    if (add === "") return;
    adding.value = { ...NEW_CLIENT, addresses: [add] };
    setParams({ add: null });
  }, [add]);
  return (
    <>
      <PageHead title={t.pages.clients} lead={t.clients.lead}>
        <PageSearch />
        <AddButton label={t.clients.add} onClick={() => adding.value = NEW_CLIENT} />
      </PageHead>
      <Tabs
        label={t.pages.clients}
        value={tab}
        tabs={[
          {
            value: "known",
            label: t.clients.known,
            href: "/clients",
            count: clients.items.value?.length ?? null,
          },
          {
            value: "new",
            label: t.clients.new,
            href: hrefOf("/clients", { tab: "new" }),
            count: fresh.value.length,
          },
        ]}
      />
      {tab === "new"
        ? (
          <Shown of={seen}>
            {() => <NewClients seen={fresh.value} onSaved={() => void seen.reload()} />}
          </Shown>
        )
        : (
          <Collected of={clients}>
            {(items) =>
              items.length === 0
                ? (
                  <Empty text={t.clients.empty} icon="monitor-smartphone">
                    <a class="button primary" href="/clients?tab=new">{t.clients.new}</a>
                  </Empty>
                )
                : <Known items={items} seen={seen.data.value ?? []} />}
          </Collected>
        )}
      {adding.value !== null && (
        <ResourceDialog
          title={t.clients.add}
          collection="clients"
          resource={null}
          initial={adding.value}
          nameOf={({ name }) => name}
          prepare={prepareClient}
          onClose={() => adding.value = null}
          onDone={() => void seen.reload()}
        >
          {(draft) => <ClientFields {...draft} />}
        </ResourceDialog>
      )}
    </>
  );
}

/** Addresses that are no client's. */
function unknownOf(seen: readonly Seen[], clients: readonly Client[]): Seen[] {
  const names = new Set(clients.map(({ spec }) => spec.name));
  const addresses = new Set(clients.flatMap(({ spec }) => spec.addresses));
  return seen.filter(({ client, address }) =>
    client === null && !names.has(address) && !addresses.has(address)
  );
}

interface Activity {
  queries: number;
  blocked: number;
  last: string;
}

/** What each client did, over all of its addresses. */
function activityOf(seen: readonly Seen[], clients: readonly Client[]): Map<string, Activity> {
  const byName = new Map(clients.map(({ id, spec }) => [spec.name, id]));
  const byAddress = new Map(
    clients.flatMap(({ id, spec }) => spec.addresses.map((one) => [one, id])),
  );
  const activity = new Map<string, Activity>();
  for (const { client, address, queries, blocked, last_seen } of seen) {
    const id = client ?? byAddress.get(address) ?? byName.get(address);
    if (id === undefined) continue;
    const one = activity.get(id) ?? { queries: 0, blocked: 0, last: "" };
    one.queries += queries;
    one.blocked += blocked;
    if (last_seen > one.last) one.last = last_seen;
    activity.set(id, one);
  }
  return activity;
}

function Known({ items, seen }: { items: readonly Client[]; seen: readonly Seen[] }) {
  const active = useSignal(0);
  const marked = useSignal<ReadonlySet<string>>(new Set());
  const isPhone = useMedia("(max-width: 639px)");
  const runs = useClientRuns();
  const words = param("q").toLowerCase();
  const activity = activityOf(seen, items);
  const shown = items.filter(({ spec }) =>
    [spec.name, ...spec.addresses, ...spec.ids, groupName(spec.group)]
      .some((one) => one.toLowerCase().includes(words))
  ).sort((a, b) => (activity.get(b.id)?.queries ?? 0) - (activity.get(a.id)?.queries ?? 0));
  const mark = (id: string, on: boolean) => {
    const next = new Set(marked.value);
    if (on) next.add(id);
    else next.delete(id);
    marked.value = next;
  };
  if (shown.length === 0) return <Empty text={t.common.nothingFound} icon="search" />;
  return (
    <>
      {marked.value.size > 0 && (
        <Many
          ids={[...marked.value]}
          onDone={() => marked.value = new Set()}
        />
      )}
      <div class="clients-grid">
        <VirtualRows
          rows={shown}
          total={shown.length + 1}
          rowPx={isPhone ? ROW_PX.phone : ROW_PX.wide}
          keyOf={({ id }) => id}
          label={t.pages.clients}
          columns={6}
          active={active}
          onOpen={(index) => void navigate(`/clients/${shown[index].id}`)}
          onMark={isAdmin.value
            ? (index) => mark(shown[index].id, !marked.value.has(shown[index].id))
            : undefined}
          head={<Head />}
          row={(client) => (
            <Row
              client={client}
              activity={activity.get(client.id)}
              runs={isPhone ? null : runs}
              isMarked={marked.value.has(client.id)}
              onMark={(on) => mark(client.id, on)}
            />
          )}
        />
      </div>
    </>
  );
}

function Head() {
  return (
    <>
      <span role="columnheader" class="k-name">{t.common.name}</span>
      <span role="columnheader" class="k-address">{t.clients.addresses}</span>
      <span role="columnheader" class="k-group">{t.clients.group}</span>
      <span role="columnheader" class="k-queries">{t.clients.queries}</span>
      <span role="columnheader" class="k-blocked">{t.outcomes.blocked}</span>
      <span role="columnheader" class="k-last">{t.clients.last}</span>
    </>
  );
}

function Row(
  { client: { id, spec }, activity, runs, isMarked, onMark }: {
    client: Client;
    activity: Activity | undefined;
    /** `null`: there is no room for them. */
    runs: ClientRuns | null;
    isMarked: boolean;
    onMark: (on: boolean) => void;
  },
) {
  const addresses = [...spec.addresses, ...spec.ids];
  const isPaused = pauseEnd(spec.paused_until, nowMs.value) !== null;
  const stay = (event: Event) => event.stopPropagation();
  return (
    <>
      <span role="gridcell" class="k-name">
        {isAdmin.value && (
          <input
            type="checkbox"
            tabIndex={-1}
            aria-label={t.clients.mark(spec.name)}
            checked={isMarked}
            onClick={stay}
            onChange={(event) => onMark(event.currentTarget.checked)}
          />
        )}
        <a href={`/clients/${id}`} tabIndex={-1} onClick={stay}>
          <Name text={spec.name} />
        </a>
        {isPaused && <Tag kind="warning" icon="pause">{t.clients.paused}</Tag>}
      </span>
      <span role="gridcell" class="k-address muted mono">
        {addresses[0]}
        {addresses.length > 1 && ` +${addresses.length - 1}`}
      </span>
      <span role="gridcell" class="k-group" onClick={stay}>
        {isAdmin.value
          ? (
            <Select
              aria-label={t.clients.groupOf(spec.name)}
              disabled={isReadOnly.value}
              value={spec.group}
              choices={groupOptions()}
              onChange={(group) =>
                void attempt(() =>
                  change("clients", id, (one) => ({ ...one, group }), {
                    said: t.clients.moved(spec.name, groupName(group)),
                  })
                )}
            />
          )
          : <Name text={groupName(spec.group)} />}
      </span>
      <span role="gridcell" class="k-queries">
        {activity !== undefined && runs !== null && <ClientRun of={runs} id={id} />}
        {activity === undefined ? "–" : compact(activity.queries)}
      </span>
      <span role="gridcell" class="k-blocked">
        {activity === undefined ? "–" : percent(activity.blocked, activity.queries, 0)}
      </span>
      <span role="gridcell" class="k-last muted">
        {activity?.last ? ago(new Date(activity.last), nowMs.value) : "–"}
      </span>
    </>
  );
}

/** Puts many into one group. */
function Many({ ids, onDone }: { ids: readonly string[]; onDone: () => void }) {
  const move = async (group: string) => {
    const before = ids.map((id) => keptOf("clients").byId.value.get(id)?.spec.group ?? group);
    const put = async (groups: readonly string[]) => {
      for (const [i, id] of ids.entries()) {
        await change("clients", id, (one) => ({ ...one, group: groups[i] }));
      }
    };
    await put(ids.map(() => group));
    onDone();
    toast(t.clients.movedMany(ids.length, groupName(group)), async () => {
      await put(before);
      toast(t.common.undone);
    });
  };
  return (
    <div class="toolbar marked">
      <strong>{t.clients.marked(ids.length)}</strong>
      <Select
        aria-label={t.clients.moveTo}
        disabled={isReadOnly.value}
        value=""
        choices={[{ value: "", label: t.clients.moveTo }, ...groupOptions()]}
        onChange={(group) => group !== "" && void attempt(() => move(group))}
      />
      <Button kind="quiet" label={t.common.cancel} onClick={onDone} />
    </div>
  );
}

function NewClients({ seen, onSaved }: { seen: readonly Seen[]; onSaved: () => void }) {
  if (seen.length === 0) return <Empty text={t.clients.noneNew} icon="check" />;
  return (
    <Pieces of={seen} step={50}>
      {(some) => (
        <ul class="new-clients">
          {some.map((one) => (
            <NewClient key={one.address} of={one} mac={ownMac(one, seen)} onSaved={onSaved} />
          ))}
        </ul>
      )}
    </Pieces>
  );
}

/** The MAC address of a device by itself; that of a repeater or a router stands for several. */
function ownMac({ mac }: Seen, seen: readonly Seen[]): string | null {
  const isIpv4 = (text: string) => !text.includes(":");
  const others = seen.filter((one) => one.mac === mac && isIpv4(one.address));
  return others.length <= 1 ? mac : null;
}

function NewClient(
  { of: { address, hostname, queries, last_seen }, mac, onSaved }: {
    of: Seen;
    mac: string | null;
    onSaved: () => void;
  },
) {
  const name = useSignal(hostname ?? "");
  const group = useSignal(DEFAULT_GROUP);
  const save = async () => {
    const spec = {
      ...NEW_CLIENT,
      name: name.value.trim() || address,
      addresses: mac === null ? [address] : [address, mac],
      group: group.value,
    };
    await create("clients", spec, { said: t.common.added(spec.name) });
    onSaved();
  };
  return (
    <li class="card new-client">
      <span class="row-main">
        <span class="mono">{address}</span>
        <span class="muted small">
          {[
            hostname,
            mac,
            t.overview.ofQueries(queries, compact(queries)),
            ago(new Date(last_seen), nowMs.value),
          ]
            .filter(Boolean).join(", ")}
        </span>
      </span>
      <a class="button quiet small" href={hrefOf("/log", { client: address })}>{t.pages.log}</a>
      {isAdmin.value && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void attempt(save);
          }}
        >
          <input
            aria-label={t.clients.nameOf(address)}
            placeholder={t.common.name}
            value={name.value}
            maxLength={128}
            onInput={(event) => name.value = event.currentTarget.value}
          />
          <Select
            aria-label={t.clients.groupOf(address)}
            value={group.value}
            choices={groupOptions()}
            onChange={(value) => group.value = value}
          />
          <Button
            kind="primary"
            type="submit"
            label={t.common.save}
            disabled={isReadOnly.value}
          />
        </form>
      )}
    </li>
  );
}
