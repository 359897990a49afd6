import { useSignal } from "@preact/signals";
import { remove, useCollection } from "../data/collections.ts";
import type { Resource, Specs } from "../data/types.ts";
import { CopyLine, Empty, Name, PageHead, Tag } from "../parts/basics.tsx";
import { AddButton, Collected, ResourceDialog, RowActions } from "../parts/collection.tsx";
import { Field, Select, TextField } from "../parts/controls.tsx";
import { confirm, Dialog } from "../parts/dialog.tsx";
import { attempt } from "../parts/errors.tsx";
import { ago, moment } from "../parts/format.ts";
import { Table } from "../parts/table.tsx";
import { t } from "../text/mod.ts";

type Token = Resource<"tokens"> & { readonly last_used_at?: string | null };
/** What is answered to whoever makes one, and to nobody after. */
type NewToken = Token & { readonly token?: string };

const NEW: Specs["tokens"] = { name: "", role: "viewer", expires_at: null };
const DAY_MS = 86_400_000;

function hasEnded({ expires_at }: Specs["tokens"]): boolean {
  return expires_at !== null && Date.parse(expires_at) <= Date.now();
}

export default function Tokens() {
  const tokens = useCollection("tokens");
  const editing = useSignal<Token | "new" | null>(null);
  const made = useSignal<NewToken | null>(null);
  const revoke = async (token: Token) => {
    const { name } = token.spec;
    const { revokeTitle, revokeText } = t.tokens;
    if (!await confirm(revokeTitle(name), revokeText, t.tokens.revoke)) return;
    await attempt(() => remove("tokens", token, { said: t.common.removed(name) }));
  };
  return (
    <>
      <PageHead title={t.pages.tokens} lead={t.tokens.lead}>
        <AddButton label={t.tokens.add} onClick={() => editing.value = "new"} />
      </PageHead>
      <Collected of={tokens}>
        {(items) =>
          items.length === 0 ? <Empty text={t.tokens.empty} icon="key-round" /> : (
            <Table
              caption={t.pages.tokens}
              rows={items as readonly Token[]}
              keyOf={({ id }) => id}
              isMuted={({ spec }) => hasEnded(spec)}
              columns={[
                {
                  key: "name",
                  title: t.common.name,
                  card: "title",
                  sort: ({ spec }) => spec.name,
                  cell: ({ spec }) => (
                    <span class="line">
                      <Name text={spec.name} />
                      {hasEnded(spec) && <Tag kind="warning">{t.tokens.ended}</Tag>}
                    </span>
                  ),
                },
                {
                  key: "role",
                  title: t.users.role,
                  sort: ({ spec }) => spec.role,
                  cell: ({ spec }) => t.users.roles[spec.role],
                },
                {
                  key: "ends",
                  title: t.tokens.ends,
                  sort: ({ spec }) => spec.expires_at ?? "~",
                  cell: ({ spec }) =>
                    spec.expires_at === null
                      ? t.tokens.periods.forGood
                      : moment(new Date(spec.expires_at)),
                },
                {
                  key: "used",
                  title: t.tokens.used,
                  sort: ({ last_used_at }) => last_used_at ?? "",
                  cell: ({ last_used_at }) =>
                    last_used_at ? ago(new Date(last_used_at)) : t.tokens.never,
                },
                {
                  key: "actions",
                  title: t.common.actions,
                  hideTitle: true,
                  cell: (token) => (
                    <RowActions
                      name={token.spec.name}
                      onEdit={() => editing.value = token}
                      onRemove={() => void revoke(token)}
                    />
                  ),
                },
              ]}
            />
          )}
      </Collected>
      {editing.value !== null && (
        <TokenDialog
          resource={editing.value === "new" ? null : editing.value}
          onClose={() => editing.value = null}
          onDone={(token) => {
            if (token.token !== undefined) made.value = token;
          }}
        />
      )}
      {made.value?.token !== undefined && (
        <Dialog
          title={t.tokens.made(made.value.spec.name)}
          onClose={() => made.value = null}
        >
          <p>{t.tokens.madeText}</p>
          <CopyLine label="" text={made.value.token} />
        </Dialog>
      )}
    </>
  );
}

type Period = "stays" | "forGood" | "30" | "90" | "365";

function TokenDialog(
  { resource, onClose, onDone }: {
    resource: Token | null;
    onClose: () => void;
    onDone: (token: NewToken) => void;
  },
) {
  const period = useSignal<Period>(resource === null ? "forGood" : "stays");
  const before = resource?.spec.expires_at ?? null;
  const endOf = (chosen: Period) =>
    chosen === "stays"
      ? before
      : chosen === "forGood"
      ? null
      : new Date(Date.now() + Number(chosen) * DAY_MS).toISOString();
  const periods: Period[] = ["forGood", "30", "90", "365"];
  if (resource !== null) periods.unshift("stays");
  return (
    <ResourceDialog
      title={resource === null ? t.tokens.add : t.tokens.edit}
      collection="tokens"
      resource={resource}
      initial={NEW}
      nameOf={({ name }) => name}
      onClose={onClose}
      onDone={onDone}
    >
      {({ value, set, problem }) => (
        <>
          <TextField
            label={t.common.name}
            hint={t.tokens.nameHint}
            error={problem("name")}
            autocomplete="off"
            value={value.name}
            onText={(name) => set({ name })}
          />
          <Field label={t.users.role}>
            {(ids) => (
              <Select
                {...ids}
                value={value.role}
                onChange={(role) => set({ role })}
                choices={(["viewer", "admin"] as const).map((role) => ({
                  value: role,
                  label: t.users.roles[role],
                }))}
              />
            )}
          </Field>
          <Field label={t.tokens.endsIn} error={problem("expires_at")}>
            {(ids) => (
              <Select
                {...ids}
                value={period.value}
                onChange={(chosen) => {
                  period.value = chosen;
                  set({ expires_at: endOf(chosen) });
                }}
                choices={periods.map((one) => ({ value: one, label: t.tokens.periods[one] }))}
              />
            )}
          </Field>
        </>
      )}
    </ResourceDialog>
  );
}
