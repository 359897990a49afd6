/** One device: what it asks, what is blocked for it, and who it is. */
import { useSignal } from "@preact/signals";
import { get } from "../data/api.ts";
import { useCollection } from "../data/collections.ts";
import { isReadOnly } from "../data/node.ts";
import { useLoaded } from "../data/poll.ts";
import { isAdmin } from "../data/session.ts";
import { readStats } from "../data/stats.ts";
import type { EntryPage, Resource } from "../data/types.ts";
import { Button, Card, Empty, Name, PageHead } from "../parts/basics.tsx";
import { OverTime } from "../parts/chart.tsx";
import { ClientFields, prepareClient } from "../parts/client_fields.tsx";
import { Collected, removeNow, ResourceDialog } from "../parts/collection.tsx";
import { Shown } from "../parts/errors.tsx";
import { clock, compact, percent } from "../parts/format.ts";
import { deciderName, groupName } from "../parts/names.ts";
import { ListedOutcome } from "../parts/outcome.tsx";
import { Internet } from "../parts/internet.tsx";
import { PauseOne } from "../parts/pause_one.tsx";
import { Recorded } from "../parts/recorded.tsx";
import { Top } from "../parts/top.tsx";
import { hrefOf, navigate, route } from "../router.ts";
import { t } from "../text/mod.ts";

const POLL_MS = 10_000;
/** Figures of one client are counted anew, of all of its entries. */
const FIGURES_MS = 30_000;

export default function ClientPage() {
  const clients = useCollection("clients");
  useCollection("groups");
  useCollection("lists");
  useCollection("schedules");
  const { id } = route.value;
  return (
    <Collected of={clients}>
      {(items) => {
        const client = items.find((one) => one.id === id);
        return client === undefined
          ? (
            <>
              <PageHead title={t.clients.gone} />
              <Empty text={t.clients.gone}>
                <a class="button primary" href="/clients">{t.pages.clients}</a>
              </Empty>
            </>
          )
          : <One key={client.id} client={client} />;
      }}
    </Collected>
  );
}

function One({ client }: { client: Resource<"clients"> }) {
  const { id, spec } = client;
  const isEditing = useSignal(false);
  const onRemove = async () => {
    if (await removeNow("clients", client, spec.name)) await navigate("/clients");
  };
  return (
    <>
      <PageHead
        title={<Name text={spec.name} />}
        lead={<span class="mono">{[...spec.addresses, ...spec.ids].join(", ")}</span>}
      >
        <Internet collection="clients" id={id} spec={spec} />
        <PauseOne collection="clients" id={id} name={spec.name} paused={spec.paused_until} />
        <Recorded collection="clients" id={id} spec={spec} />
        <a class="button plain" href={hrefOf("/connect", { client: id })}>{t.pages.connect}</a>
        {isAdmin.value && (
          <>
            <Button icon="pencil" label={t.common.edit} onClick={() => isEditing.value = true} />
            <Button
              kind="quiet"
              icon="trash"
              iconOnly
              label={t.common.remove}
              disabled={isReadOnly.value}
              onClick={onRemove}
            />
          </>
        )}
      </PageHead>
      <p class="lead-line">
        {t.clients.group}:{" "}
        <a href={`/groups/${spec.group}`}>
          <Name text={groupName(spec.group)} />
        </a>
      </p>
      <Figures client={client} />
      <Latest name={spec.name} />
      {isEditing.value && (
        <ResourceDialog
          title={t.clients.edit}
          collection="clients"
          resource={client}
          initial={spec}
          nameOf={({ name }) => name}
          prepare={prepareClient}
          onClose={() => isEditing.value = false}
        >
          {(draft) => <ClientFields {...draft} />}
        </ResourceDialog>
      )}
    </>
  );
}

function Figures({ client: { id, spec } }: { client: Resource<"clients"> }) {
  const stats = useLoaded(
    (signal) => readStats({ hours: 24, client: id }, signal),
    [id],
    FIGURES_MS,
  );
  const link = (name: string, outcome?: string) =>
    hrefOf("/log", { client: spec.name, name, outcome });
  return (
    <Shown of={stats}>
      {({ total, outcomes, series, top }) => (
        <>
          <Card title={t.clients.today(compact(total), percent(outcomes.blocked, total))}>
            {total === 0
              ? <Empty text={t.overview.noQueries} icon="activity" />
              : <OverTime series={series} />}
          </Card>
          <div class="grid halves">
            <Top
              title={t.overview.topBlocked}
              rows={top.blocked.map((row) => ({ ...row, href: link(row.name, "blocked") }))}
              total={outcomes.blocked}
              empty={t.overview.noneBlocked}
              mono
            />
            <Top
              title={t.overview.topNames}
              rows={top.names.map((row) => ({ ...row, href: link(row.name) }))}
              total={total}
              empty={t.overview.noQueries}
              mono
            />
          </div>
        </>
      )}
    </Shown>
  );
}

function Latest({ name }: { name: string }) {
  const latest = useLoaded(
    (signal) => get<EntryPage>("querylog", { client: name, limit: 20 }, signal),
    [name],
    POLL_MS,
  );
  return (
    <Card
      title={t.clients.latest}
      actions={<a href={hrefOf("/log", { client: name })}>{t.common.all}</a>}
    >
      <Shown of={latest}>{({ entries }) => <Entries of={entries} client={name} />}</Shown>
    </Card>
  );
}

function Entries({ of, client }: { of: EntryPage["entries"]; client: string }) {
  if (of.length === 0) return <Empty text={t.log.nothing} icon="scroll-text" />;
  return (
    <ul class="rows">
      {of.map((entry) => (
        <li key={entry.id}>
          <a href={hrefOf("/log", { client, name: entry.name })}>
            <ListedOutcome outcome={entry.outcome} iconOnly />
            <span class="row-main">
              <Name text={entry.name} mono />
            </span>
            <span class="muted small">{deciderName(entry.list)}</span>
            <span class="muted small">{clock(new Date(entry.time))}</span>
          </a>
        </li>
      ))}
    </ul>
  );
}
