import { useSignal } from "@preact/signals";
import { change, useCollection } from "../data/collections.ts";
import { isAdmin } from "../data/session.ts";
import type { Resource, Specs } from "../data/types.ts";
import { Empty, Name, PageHead } from "../parts/basics.tsx";
import {
  AddButton,
  Collected,
  removeNow,
  ResourceDialog,
  RowActions,
} from "../parts/collection.tsx";
import { Field, SearchBox, Select, Switch } from "../parts/controls.tsx";
import { Table } from "../parts/table.tsx";
import { param, setParams } from "../router.ts";
import { t } from "../text/mod.ts";

const NEW: Specs["records"] = {
  name: "",
  type: "A",
  value: "",
  ttl: 300,
  enabled: true,
  comment: "",
  managed_by: "api",
};
const TYPES = ["A", "AAAA", "CNAME"] as const;

export default function Records() {
  const records = useCollection("records");
  const editing = useSignal<Resource<"records"> | "new" | null>(null);
  const words = param("q").toLowerCase();
  return (
    <>
      <PageHead title={t.pages.records} lead={t.records.lead}>
        <SearchBox
          value={param("q")}
          label={t.common.search}
          onInput={(q) => setParams({ q })}
        />
        <AddButton label={t.records.add} onClick={() => editing.value = "new"} />
      </PageHead>
      <Collected of={records}>
        {(items) => {
          const shown = items.filter(({ spec }) =>
            `${spec.name} ${spec.value} ${spec.comment}`.toLowerCase().includes(words)
          );
          if (items.length === 0) {
            return (
              <Empty text={t.records.empty} icon="house">
                <AddButton label={t.records.add} onClick={() => editing.value = "new"} />
              </Empty>
            );
          }
          return shown.length === 0
            ? <Empty text={t.common.nothingFound} icon="search" />
            : <RecordTable rows={shown} onEdit={(record) => editing.value = record} />;
        }}
      </Collected>
      {editing.value !== null && (
        <RecordDialog
          resource={editing.value === "new" ? null : editing.value}
          onClose={() => editing.value = null}
        />
      )}
    </>
  );
}

function RecordTable(
  { rows, onEdit }: {
    rows: readonly Resource<"records">[];
    onEdit: (record: Resource<"records">) => void;
  },
) {
  return (
    <Table
      caption={t.pages.records}
      rows={rows}
      keyOf={({ id }) => id}
      isMuted={({ spec }) => !spec.enabled}
      columns={[
        {
          key: "on",
          title: t.common.on,
          hideTitle: true,
          cell: ({ id, spec }) => (
            <Switch
              isOn={spec.enabled}
              hideLabel
              label={spec.name}
              disabled={!isAdmin.value}
              onChange={(enabled) =>
                change("records", id, (one) => ({ ...one, enabled }), {
                  said: (enabled ? t.common.turnedOn : t.common.turnedOff)(spec.name),
                })}
            />
          ),
        },
        {
          key: "name",
          title: t.common.name,
          card: "title",
          sort: ({ spec }) => spec.name,
          cell: ({ spec }) => <Name mono text={spec.name} />,
        },
        {
          key: "type",
          title: t.records.type,
          sort: ({ spec }) => spec.type,
          cell: ({ spec }) => spec.type,
        },
        {
          key: "value",
          title: t.records.value,
          sort: ({ spec }) => spec.value,
          cell: ({ spec }) => <Name mono text={spec.value} />,
        },
        {
          key: "ttl",
          title: "TTL",
          align: "end",
          sort: ({ spec }) => spec.ttl,
          cell: ({ spec }) => spec.ttl,
        },
        {
          key: "comment",
          title: t.common.comment,
          cell: ({ spec }) => <Name text={spec.comment} />,
        },
        {
          key: "actions",
          title: t.common.actions,
          hideTitle: true,
          cell: (record) => (
            <RowActions
              name={record.spec.name}
              onEdit={() => onEdit(record)}
              onRemove={() => void removeNow("records", record, record.spec.name)}
            />
          ),
        },
      ]}
    />
  );
}

function RecordDialog(
  { resource, onClose }: { resource: Resource<"records"> | null; onClose: () => void },
) {
  return (
    <ResourceDialog
      title={resource === null ? t.records.add : t.records.edit}
      collection="records"
      resource={resource}
      initial={NEW}
      nameOf={({ name }) => name}
      onClose={onClose}
    >
      {({ value, set, problem }) => (
        <>
          <Field label={t.common.name} hint={t.records.nameHint} error={problem("name")}>
            {(ids) => (
              <input
                {...ids}
                class="mono"
                value={value.name}
                placeholder="nas.home.arpa"
                onInput={(event) => set({ name: event.currentTarget.value })}
              />
            )}
          </Field>
          <div class="fields">
            <Field label={t.records.type} error={problem("type")}>
              {(ids) => (
                <Select
                  {...ids}
                  value={value.type}
                  onChange={(type) => set({ type })}
                  choices={TYPES.map((type) => ({ value: type, label: t.records.types[type] }))}
                />
              )}
            </Field>
            <Field label={t.records.value} error={problem("value")}>
              {(ids) => (
                <input
                  {...ids}
                  class="mono"
                  value={value.value}
                  placeholder={{
                    A: "192.168.1.5",
                    AAAA: "fd00::5",
                    CNAME: "host.example",
                  }[value.type]}
                  onInput={(event) => set({ value: event.currentTarget.value })}
                />
              )}
            </Field>
            <Field label={t.records.ttl} error={problem("ttl")}>
              {(ids) => (
                <input
                  {...ids}
                  type="number"
                  min="0"
                  value={value.ttl}
                  onInput={(event) => set({ ttl: Number(event.currentTarget.value) })}
                />
              )}
            </Field>
          </div>
          <Field label={t.common.comment} error={problem("comment")} optional>
            {(ids) => (
              <input
                {...ids}
                value={value.comment}
                onInput={(event) => set({ comment: event.currentTarget.value })}
              />
            )}
          </Field>
        </>
      )}
    </ResourceDialog>
  );
}
