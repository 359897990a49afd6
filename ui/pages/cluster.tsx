import { call } from "../data/api.ts";
import { hasCluster, isReadOnly, nowMs, readStatus, status } from "../data/node.ts";
import { ApiError } from "../data/api.ts";
import { isAdmin } from "../data/session.ts";
import type { ClusterReport } from "../data/types.ts";
import { Button, Card, Empty, Name, PageHead, Skeleton, Tag } from "../parts/basics.tsx";
import { confirm } from "../parts/dialog.tsx";
import { attempt } from "../parts/errors.tsx";
import { ago, number, visible } from "../parts/format.ts";
import { Icon } from "../parts/icon.tsx";
import { Table } from "../parts/table.tsx";
import { toast } from "../parts/toasts.tsx";
import { t } from "../text/mod.ts";

export default function Cluster() {
  const report = status.value?.cluster;
  return (
    <>
      <PageHead title={t.pages.cluster} lead={t.cluster.lead} />
      {report === undefined
        ? <Skeleton />
        : hasCluster.value
        ? <Report of={report} />
        : <Empty text={t.cluster.none} icon="server" />}
    </>
  );
}

/** Asks again with force where the first answer was that the condition fails. */
async function takeOver(way: "promote" | "demote", node: string): Promise<void> {
  const { title, text, force } = t.cluster[way];
  if (!await confirm(title, text, title, { word: node })) return;
  try {
    await call("POST", `cluster/${way}`, { body: { force: false } });
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 409)) throw error;
    if (
      !await confirm(title, `${visible(error.message)} ${force}`, t.cluster.anyway, { word: node })
    ) return;
    await call("POST", `cluster/${way}`, { body: { force: true } });
  }
  await readStatus();
  toast(t.cluster.done);
}

function Report({ of }: { of: ClusterReport }) {
  const leaderAt = of.members.find(({ state }) => state === "leader")?.matched;
  const remove = async (node: string) => {
    const title = t.cluster.remove(node);
    if (!await confirm(title, t.cluster.removeText, t.common.remove, { word: node })) return;
    await attempt(() => call("DELETE", `cluster/members/${encodeURIComponent(node)}`));
    await readStatus();
  };
  return (
    <>
      {of.problems.length > 0 && (
        <div class="error-box" role="alert">
          <Icon name="triangle-alert" />
          <ul>{of.problems.map((problem) => <li key={problem}>{visible(problem)}</li>)}</ul>
        </div>
      )}
      <Card title={t.cluster.state}>
        <dl class="facts">
          <div>
            <dt>{t.cluster.thisNode}</dt>
            <dd>
              <Name text={of.node} /> ({t.cluster.states[of.state]})
            </dd>
          </div>
          <div>
            <dt>{t.cluster.leader}</dt>
            <dd>{of.leader === null ? t.common.none : <Name text={of.leader} />}</dd>
          </div>
          <div>
            <dt>{t.cluster.term}</dt>
            <dd>{number(of.term)}</dd>
          </div>
          <div>
            <dt>{t.cluster.version}</dt>
            <dd>{`${of.config.epoch}.${of.config.version}`}</dd>
          </div>
          {of.sync.last_contact !== null && (
            <div>
              <dt>{t.cluster.contact}</dt>
              <dd>{ago(new Date(of.sync.last_contact), nowMs.value)}</dd>
            </div>
          )}
        </dl>
        {isAdmin.value && (
          <div class="row-actions section">
            <Button
              label={t.cluster.promote.title}
              onClick={() => void attempt(() => takeOver("promote", of.node))}
            />
            <Button
              label={t.cluster.demote.title}
              onClick={() => void attempt(() => takeOver("demote", of.node))}
            />
          </div>
        )}
      </Card>
      <h2 class="section">{t.cluster.members}</h2>
      <Table
        caption={t.cluster.members}
        rows={of.members}
        keyOf={({ node }) => node}
        columns={[
          {
            key: "node",
            title: t.common.name,
            card: "title",
            cell: ({ node, this_node, witness }) => (
              <span class="line">
                <Name text={node} />
                {this_node && <Tag kind="accent">{t.cluster.thisNode}</Tag>}
                {witness && <Tag>{t.cluster.witness}</Tag>}
              </span>
            ),
          },
          {
            key: "address",
            title: t.cluster.address,
            cell: ({ address }) => <Name mono text={address ?? ""} />,
          },
          {
            key: "membership",
            title: t.cluster.membership,
            cell: ({ membership }) => t.cluster.memberships[membership],
          },
          { key: "state", title: t.cluster.state, cell: ({ state }) => t.cluster.states[state] },
          {
            key: "reachable",
            title: t.cluster.reachable,
            cell: ({ reachable }) =>
              reachable
                ? <Tag kind="ok" icon="check">{t.cluster.yes}</Tag>
                : <Tag kind="danger" icon="triangle-alert">{t.cluster.no}</Tag>,
          },
          { key: "version", title: t.settings.node.version, cell: ({ version }) => version ?? "" },
          {
            key: "lag",
            title: t.cluster.lag,
            align: "end",
            cell: ({ matched }) =>
              matched === undefined || leaderAt === undefined
                ? ""
                : number(Math.max(0, leaderAt - matched)),
          },
          {
            key: "actions",
            title: t.common.actions,
            hideTitle: true,
            cell: ({ node, membership }) =>
              isAdmin.value && membership !== "configured" && (
                <Button
                  small
                  kind="quiet"
                  iconOnly
                  icon="trash"
                  label={t.cluster.remove(node)}
                  disabled={isReadOnly.value}
                  onClick={() => void remove(node)}
                />
              ),
          },
        ]}
      />
    </>
  );
}
