/** Does it work, and what was blocked just now? */
import { useComputed } from "@preact/signals";
import { get } from "../data/api.ts";
import { useCollection } from "../data/collections.ts";
import { hasCluster, status } from "../data/node.ts";
import { apiPath, type Span, spanOf, SPANS, statsParams } from "../data/paths.ts";
import { useLoaded } from "../data/poll.ts";
import { isAdmin, isOpen } from "../data/session.ts";
import { readSeries } from "../data/seen.ts";
import { type BlockedClient, readBlockedJustNow, readStats } from "../data/stats.ts";
import type { Seen, Stats } from "../data/types.ts";
import { Button, Card, Empty, Name, PageHead, Popover } from "../parts/basics.tsx";
import { OverTime, pointsOf, Sparkline } from "../parts/chart.tsx";
import { Segmented } from "../parts/controls.tsx";
import { Shown } from "../parts/errors.tsx";
import {
  clock,
  compact,
  fullTime,
  milliseconds,
  number,
  percent,
  upstreamName,
} from "../parts/format.ts";
import { Icon } from "../parts/icon.tsx";
import { deciderName } from "../parts/names.ts";
import { OUTCOME_NAMES, OutcomeTag } from "../parts/outcome.tsx";
import { isPrinting } from "../parts/printing.ts";
import { Top } from "../parts/top.tsx";
import { hrefOf, param, setParams } from "../router.ts";
import { UpstreamHealth } from "../parts/upstream_health.tsx";
import { t } from "../text/mod.ts";

const STATS_MS = 10_000;

export default function Overview() {
  const hours = spanOf(param("hours"));
  const scope = hasCluster.value && param("scope") === "cluster" ? "cluster" : "node";
  const stats = useLoaded(
    (signal) => readStats({ hours, scope }, signal),
    [hours, scope],
    STATS_MS,
  );
  const blocked = useLoaded(readBlockedJustNow, [], STATS_MS);
  const fresh = useLoaded(
    () => get<{ items: readonly Seen[] }>("clients/seen", { hours: 24, known: false }),
    [],
    60_000,
  );
  // Of one day and node, as it is kept.
  const isOfDay = hours === 24 && scope === "node";
  const devices = useLoaded(
    (signal) => isOfDay ? readSeries([], signal) : Promise.resolve(null),
    [isOfDay],
    60_000,
  );
  useCollection("lists");
  const newCount = useComputed(() => fresh.data.value?.items.length ?? null);
  return (
    <div class="overview">
      <PageHead title={t.pages.overview}>
        <Segmented
          label={t.overview.span}
          value={String(hours)}
          onChange={(value) => setParams({ hours: value === "24" ? null : value })}
          choices={SPANS.map((span) => ({ value: String(span), label: t.overview.spans[span] }))}
        />
        {hasCluster.value && (
          <Segmented
            label={t.overview.scope}
            value={scope}
            onChange={(value) => setParams({ scope: value === "node" ? null : value })}
            choices={[
              { value: "node", label: t.overview.thisNode },
              { value: "cluster", label: t.pages.cluster },
            ]}
          />
        )}
        <Popover label={t.log.export} icon="download" kind="quiet">
          {(close) => (
            <div class="menu">
              {(["csv", "json"] as const).map((format) => (
                <a
                  key={format}
                  href={apiPath("stats/export", { ...statsParams({ hours, scope }), format })}
                  download
                  onClick={close}
                >
                  {format.toUpperCase()}
                </a>
              ))}
            </div>
          )}
        </Popover>
        <Button
          kind="quiet"
          icon="printer"
          iconOnly
          label={t.overview.print}
          class="print-button"
          onClick={() => print()}
        />
      </PageHead>
      <Origin hours={hours} />
      <Begin stats={stats.data.value} />
      <Shown of={stats} rows={8}>
        {(data) => (
          <>
            {data.unreachable.length > 0 && (
              <p class="muted">{t.overview.unreachable(data.unreachable.join(", "))}</p>
            )}
            <Tiles
              stats={data}
              hours={hours}
              newCount={newCount.value}
              active={devices.data.value?.active ?? []}
            />
            <div class="grid two-one">
              <Card
                title={t.overview.overTime}
                actions={stats.at.value !== null && (
                  <span class="muted small">{t.overview.asOf(clock(stats.at.value))}</span>
                )}
              >
                {data.total === 0
                  ? <Empty text={t.overview.noQueries} icon="activity" />
                  : <OverTime series={data.series} />}
                <Outcomes stats={data} hours={hours} />
              </Card>
              <Card
                title={t.overview.blockedNow}
                class="blocked-now"
                actions={<a href="/log?outcome=blocked">{t.common.all}</a>}
              >
                <Shown of={blocked}>{(clients) => <BlockedNow clients={clients} />}</Shown>
              </Card>
            </div>
            <div class="grid four">
              <Tops stats={data} />
              <Upstreams stats={data} />
            </div>
          </>
        )}
      </Shown>
    </div>
  );
}

/** On paper, of what and when it is: to write a day in words takes time, which the first view lacks. */
function Origin({ hours }: { hours: Span }) {
  if (!isPrinting.value) return null;
  return (
    <p class="for-paper">
      {`${status.value?.node ?? ""}, ${t.overview.spans[hours]}, ${fullTime(new Date())}`}
    </p>
  );
}

/** Reminds whoever skipped the beginning of what is left of it. */
function Begin({ stats }: { stats: Stats | null }) {
  if (!isAdmin.value || stats === null || stats.total > 0) return null;
  return (
    <Card class="begin">
      <p>
        <strong>{t.overview.begin}</strong> {t.overview.beginText}
      </p>
      <div class="row-actions">
        <a class="button primary" href="/connect">{t.pages.connect}</a>
        {isOpen.value && <a class="button plain" href="/setup">{t.shell.setUp}</a>}
      </div>
    </Card>
  );
}

function since(hours: number): string {
  return new Date(Date.now() - hours * 3_600_000).toISOString();
}

function Tile(
  { label, value, change, values, href, more }: {
    label: string;
    value: string;
    change?: string | null;
    values: readonly number[];
    href: string;
    more?: preact.ComponentChildren;
  },
) {
  return (
    <div class="tile">
      <a href={href}>
        <span class="tile-label">{label}</span>
        <span class="tile-value">{value}</span>
      </a>
      <span class="tile-more">
        {change && <span class="muted">{change}</span>}
        {more}
      </span>
      <Sparkline values={values} />
    </div>
  );
}

function signed(share: number): string {
  if (!Number.isFinite(share) || Math.abs(share) < 0.005) return "";
  return `${share > 0 ? "+" : "−"}${percent(Math.abs(share), 1, 0)}`;
}

function Tiles(
  { stats, hours, newCount, active }: {
    stats: Stats;
    hours: number;
    newCount: number | null;
    /** Devices that asked, by the hour. */
    active: readonly number[];
  },
) {
  const points = pointsOf(stats.series);
  const { total, outcomes, previous, latency } = stats;
  const byBefore = previous && previous.total > 0 ? signed(total / previous.total - 1) : "";
  const share = total === 0 ? 0 : outcomes.blocked / total;
  const shareBefore = previous && previous.total > 0
    ? signed(share - previous.outcomes.blocked / previous.total)
    : "";
  const devices = stats.top.clients.length;
  const [busiest] = stats.top.clients;
  const speeds = stats.series.map((row) => row.latency.p50_ms ?? 0);
  return (
    <div class="tiles">
      <Tile
        label={t.overview.queries}
        value={compact(total)}
        change={byBefore}
        values={points.map((point) => point.total)}
        href={hrefOf("/log", { since: since(hours) })}
      />
      <Tile
        label={t.overview.blocked}
        value={percent(outcomes.blocked, total)}
        change={shareBefore}
        more={
          <span class="muted">
            {t.overview.ofQueries(outcomes.blocked, compact(outcomes.blocked))}
          </span>
        }
        values={points.map((point) => point.bands.blocked)}
        href={hrefOf("/log", { outcome: "blocked", since: since(hours) })}
      />
      <Tile
        label={t.overview.devices}
        value={devices >= 100 ? "100+" : number(devices)}
        more={
          <>
            {newCount !== null && newCount > 0 && (
              <a href="/clients?tab=new">{t.overview.newDevices(newCount)}</a>
            )}
            {busiest !== undefined && (
              <span class="muted">
                {t.overview.busiest}{" "}
                <a href={hrefOf("/log", { client: busiest.name, since: since(hours) })}>
                  <Name text={busiest.name} />
                </a>
              </span>
            )}
          </>
        }
        values={active}
        href="/clients"
      />
      <Tile
        label={t.overview.latency}
        value={latency.p50_ms === null ? "–" : milliseconds(latency.p50_ms)}
        more={latency.p95_ms !== null && (
          <span class="muted">{t.overview.slowest(milliseconds(latency.p95_ms))}</span>
        )}
        values={speeds}
        href="/log"
      />
    </div>
  );
}

function Outcomes({ stats: { outcomes }, hours }: { stats: Stats; hours: number }) {
  return (
    <ul class="outcome-row">
      {OUTCOME_NAMES.filter((outcome) => outcomes[outcome] > 0).map((outcome) => (
        <li key={outcome}>
          <a href={hrefOf("/log", { outcome, since: since(hours) })}>
            <OutcomeTag outcome={outcome} />
            <span class="figure">{compact(outcomes[outcome])}</span>
          </a>
        </li>
      ))}
    </ul>
  );
}

function BlockedNow({ clients }: { clients: readonly BlockedClient[] }) {
  if (clients.length === 0) return <Empty text={t.overview.noneBlocked} icon="check" />;
  return (
    <ul class="rows">
      {clients.slice(0, 8).map(({ name, count, last }) => (
        <li key={name}>
          <a href={hrefOf("/log", { outcome: "blocked", client: name })}>
            <span class="row-main">
              <Name text={name} />
              <span class="muted small">
                <Name text={last.name} mono />
              </span>
            </span>
            <span class="figure">{number(count)}</span>
            <Icon name="chevron-right" />
          </a>
        </li>
      ))}
    </ul>
  );
}

function Tops({ stats }: { stats: Stats }) {
  const { top, total, outcomes } = stats;
  const about =
    (field: "name" | "client", outcome?: string) => (row: { name: string; count: number }) => ({
      ...row,
      href: hrefOf("/log", { [field]: row.name, outcome }),
    });
  return (
    <>
      <Top
        title={t.overview.topBlocked}
        rows={top.blocked.map(about("name", "blocked"))}
        total={outcomes.blocked}
        all="/log?outcome=blocked"
        empty={t.overview.noneBlocked}
        mono
      />
      <Top
        title={t.overview.topNames}
        rows={top.names.map(about("name"))}
        total={total}
        all="/log"
        empty={t.overview.noQueries}
        mono
      />
      <Top
        title={t.overview.topClients}
        rows={top.clients.map(about("client"))}
        total={total}
        all="/clients"
        empty={t.overview.noQueries}
      />
      <Top
        title={t.overview.topLists}
        rows={top.lists.map(({ name, count }) => ({
          name: deciderName(name),
          count,
          href: hrefOf("/log", { list: name }),
        }))}
        total={outcomes.blocked}
        all="/lists"
        empty={t.overview.noneBlocked}
      />
    </>
  );
}

function Upstreams({ stats }: { stats: Stats }) {
  const askedOf = (address: string) =>
    stats.upstreams.find((one) => one.address === address)?.series
      .reduce((sum, { queries }) => sum + queries, 0) ?? 0;
  const { upstreams = [], recursion } = status.value ?? {};
  return (
    <Card
      title={t.overview.upstreams}
      actions={<a href="/settings#upstreams">{t.common.details}</a>}
    >
      {recursion?.enabled ? <Empty text={t.overview.recursing} icon="network" /> : (
        <ul class="rows">
          {upstreams.map(({ address, healthy, latency_ms, failures }) => (
            <li key={address}>
              <div class="row-flat">
                <span class="row-main">
                  <Name text={upstreamName(address)} mono />
                  <span class="muted small">
                    {t.overview.ofQueries(askedOf(address), compact(askedOf(address)))},{" "}
                    {t.overview.failures(failures, number(failures))}
                  </span>
                </span>
                <UpstreamHealth latencyMs={latency_ms} isHealthy={healthy} />
              </div>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}
