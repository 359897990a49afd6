import { useSignal } from "@preact/signals";
import { useCollection } from "../data/collections.ts";
import type { Resource, Specs } from "../data/types.ts";
import { Empty, Name, PageHead } from "../parts/basics.tsx";
import { AddButton, Found, PageSearch, removeNow, ResourceDialog } from "../parts/collection.tsx";
import { Field, Select, TextField } from "../parts/controls.tsx";
import { actionsColumn, switchColumn } from "../parts/resource_columns.tsx";
import { Table } from "../parts/table.tsx";
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
/** What a value of each type may look like. */
const EXAMPLES = {
  A: "192.168.1.5",
  AAAA: "fd00::5",
  CNAME: "host.example",
  TXT: "v=spf1 -all",
  MX: "10 mail.home.arpa",
  SRV: "0 0 389 ldap.home.arpa",
  PTR: "nas.home.arpa",
  HTTPS: "1 . alpn=h2 port=8443",
  SVCB: "1 dns.home.arpa alpn=dot",
  CAA: "0 issue letsencrypt.org",
  SOA: "ns.home.arpa admin.home.arpa 1 3600 600 86400 300",
} as const satisfies Record<Specs["records"]["type"], string>;
const TYPES = Object.keys(EXAMPLES) as Specs["records"]["type"][];

export default function Records() {
  const records = useCollection("records");
  const editing = useSignal<Resource<"records"> | "new" | null>(null);
  return (
    <>
      <PageHead title={t.pages.records} lead={t.records.lead}>
        <PageSearch />
        <AddButton label={t.records.add} onClick={() => editing.value = "new"} />
      </PageHead>
      <Found
        of={records}
        textOf={({ name, value, comment }) => `${name} ${value} ${comment}`}
        empty={
          <Empty text={t.records.empty} icon="house">
            <AddButton label={t.records.add} onClick={() => editing.value = "new"} />
          </Empty>
        }
      >
        {(rows) => <RecordTable rows={rows} onEdit={(record) => editing.value = record} />}
      </Found>
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
        switchColumn("records", (spec) => spec.name),
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
        actionsColumn({
          nameOf: ({ spec }) => spec.name,
          onEdit,
          onRemove: (record) => void removeNow("records", record, record.spec.name),
        }),
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
          <TextField
            label={t.common.name}
            hint={t.records.nameHint}
            error={problem("name")}
            class="mono"
            value={value.name}
            placeholder="nas.home.arpa"
            onText={(name) => set({ name })}
          />
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
            <TextField
              label={t.records.value}
              error={problem("value")}
              class="mono"
              value={value.value}
              placeholder={EXAMPLES[value.type]}
              onText={(value) => set({ value })}
            />
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
          <TextField
            label={t.common.comment}
            error={problem("comment")}
            optional
            value={value.comment}
            onText={(comment) => set({ comment })}
          />
        </>
      )}
    </ResourceDialog>
  );
}
