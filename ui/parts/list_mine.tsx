import { keptOf, useCollection } from "../data/collections.ts";
import { dropList, groupsUsing } from "../data/list_use.ts";
import { nowMs } from "../data/node.ts";
import type { ListStatus, Resource } from "../data/types.ts";
import { hrefOf, param } from "../router.ts";
import { t } from "../text/mod.ts";
import { Empty, Name, Tag } from "./basics.tsx";
import { AddButton, Collected } from "./collection.tsx";
import { attempt } from "./errors.tsx";
import { ago, number, percent, visible } from "./format.ts";
import { actionsColumn, switchColumn } from "./resource_columns.tsx";
import { Table } from "./table.tsx";

type List = Resource<"lists">;

export function MyLists({ onEdit, onAdd }: { onEdit: (list: List) => void; onAdd: () => void }) {
  const lists = useCollection("lists");
  const words = param("q").toLowerCase();
  return (
    <Collected of={lists}>
      {(items) => {
        if (items.length === 0) {
          return (
            <Empty text={t.lists.empty} icon="list-checks">
              <div class="row-actions">
                <a class="button primary" href="/lists?tab=recommended">
                  {t.lists.tabs.recommended}
                </a>
                <AddButton label={t.lists.add} onClick={onAdd} />
              </div>
            </Empty>
          );
        }
        const shown = items.filter(({ spec }) =>
          `${spec.name} ${spec.url ?? spec.path ?? ""}`.toLowerCase().includes(words)
        );
        return shown.length === 0
          ? <Empty text={t.common.nothingFound} icon="search" />
          : <ListTable rows={shown} onEdit={onEdit} />;
      }}
    </Collected>
  );
}

function ListTable({ rows, onEdit }: { rows: readonly List[]; onEdit: (list: List) => void }) {
  return (
    <Table
      caption={t.pages.lists}
      rows={rows}
      keyOf={({ id }) => id}
      isMuted={({ spec }) => !spec.enabled}
      columns={[
        switchColumn("lists", (spec) => spec.name),
        {
          key: "name",
          title: t.common.name,
          card: "title",
          sort: ({ spec }) => spec.name,
          cell: ({ spec }) => (
            <span class="row-main">
              <Name text={spec.name} />
              {spec.allows === true && <Tag kind="ok" icon="shield-check">{t.lists.allows}</Tag>}
              <span class="muted small clip" title={spec.url ?? spec.path}>
                {spec.url ?? spec.path}
              </span>
            </span>
          ),
        },
        { key: "groups", title: t.pages.groups, cell: ({ id }) => <UsedBy list={id} /> },
        {
          key: "rules",
          title: t.pages.rules,
          align: "end",
          sort: ({ status }) => -(status?.rules ?? 0),
          cell: ({ id, status }) => (
            <a href={hrefOf("/log", { list: id })} title={t.lists.inLog}>
              {number(status?.rules ?? 0)}
            </a>
          ),
        },
        {
          key: "unread",
          title: t.lists.unread,
          align: "end",
          sort: ({ status }) => -(status?.unsupported ?? 0),
          cell: ({ status }) => number(status?.unsupported ?? 0),
        },
        {
          key: "state",
          title: t.lists.state,
          cell: ({ status }) => status && <State status={status} />,
        },
        actionsColumn({
          nameOf: ({ spec }) => spec.name,
          onEdit,
          onRemove: (list) => void attempt(() => dropList(list, t.common.removed(list.spec.name))),
        }),
      ]}
    />
  );
}

function UsedBy({ list }: { list: string }) {
  void keptOf("groups").items.value;
  const groups = groupsUsing(list);
  if (groups.length === 0) return <Tag kind="warning" icon="triangle-alert">{t.lists.unused}</Tag>;
  return (
    <span class="links">
      {groups.map(({ id, spec }) => (
        <a key={id} href={`/groups/${id}`}>
          <Name text={spec.name} />
        </a>
      ))}
    </span>
  );
}

const KINDS = { ok: "ok", pending: "plain", failed: "danger", skipped: "warning" } as const;
const ICONS = {
  ok: "check",
  pending: "clock",
  failed: "circle-alert",
  skipped: "triangle-alert",
} as const;

function State({ status }: { status: ListStatus }) {
  const { state, message, refreshed_at, downloading } = status;
  if (downloading) {
    const { bytes, total_bytes } = downloading;
    return (
      <Tag kind="accent" icon="download">
        {total_bytes === null ? t.lists.loading : percent(bytes, total_bytes, 0)}
      </Tag>
    );
  }
  return (
    <span class="state">
      <Tag kind={KINDS[state]} icon={ICONS[state]}>{t.lists.states[state]}</Tag>
      {refreshed_at !== null && (
        <span class="muted small">{ago(new Date(refreshed_at), nowMs.value)}</span>
      )}
      {message !== null && <span class="small danger-text">{visible(message)}</span>}
    </span>
  );
}
