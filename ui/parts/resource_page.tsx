/**
 * A page of who has something secret: users, tokens, webhooks. A table of them, a dialog that adds and
 * changes one, and a question before one goes, since what is secret of it can't be brought back.
 */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { remove, useCollection } from "../data/collections.ts";
import type { Resource, Specs } from "../data/types.ts";
import { t } from "../text/mod.ts";
import { CopyLine, Empty, Name, PageHead } from "./basics.tsx";
import { AddButton, Collected, ResourceDialog } from "./collection.tsx";
import { Field, Select, TextField } from "./controls.tsx";
import { confirm, Dialog } from "./dialog.tsx";
import { attempt } from "./errors.tsx";
import type { Draft } from "./form.tsx";
import type { IconName } from "./icon_names.ts";
import { actionsColumn } from "./resource_columns.tsx";
import { type Column, Table } from "./table.tsx";

type Secretive = "tokens" | "users" | "webhooks";

interface Words {
  readonly lead: string;
  readonly add: string;
  readonly edit: string;
  readonly empty: string;
  readonly nameHint?: string;
  /** What removing one is called, where it has a word of its own. */
  readonly revoke?: string;
  readonly removeTitle: (name: string) => string;
  readonly removeText: string;
}

export function ResourcePage<C extends Secretive>(
  {
    collection,
    words,
    icon,
    initial,
    isMuted,
    tags,
    columns,
    more,
    fields,
    secret,
    whereEmpty,
  }: {
    collection: C;
    words: Words;
    icon: IconName;
    initial: Specs[C];
    isMuted: (spec: Specs[C]) => boolean;
    /** Behind its name. */
    tags: (spec: Specs[C]) => ComponentChildren;
    /** Between its name and what is done to it. */
    columns: readonly Column<Resource<C>>[];
    /** What else is done to it. */
    more?: (one: Resource<C>) => ComponentChildren;
    /** Those behind its name. */
    fields: (draft: Draft<Specs[C]>, resource: Resource<C> | null) => ComponentChildren;
    /** What is told to whoever makes one, and to nobody after. */
    secret?: {
      readonly of: (made: Resource<C>) => string | undefined;
      readonly title: (name: string) => string;
      readonly text: string;
    };
    /** What is to be done where there is none; left out: to add one. */
    whereEmpty?: ComponentChildren;
  },
) {
  const kept = useCollection(collection);
  const editing = useSignal<Resource<C> | "new" | null>(null);
  const made = useSignal<Resource<C> | null>(null);
  const told = made.value === null ? undefined : secret?.of(made.value);
  const nameOf = ({ spec }: Resource<C>) => spec.name;
  const drop = async (one: Resource<C>) => {
    const name = nameOf(one);
    const { removeTitle, removeText, revoke = t.common.remove } = words;
    if (!await confirm(removeTitle(name), removeText, revoke)) return;
    await attempt(() => remove(collection, one, { said: t.common.removed(name) }));
  };
  const add = <AddButton label={words.add} onClick={() => editing.value = "new"} />;
  const resource = editing.value === "new" ? null : editing.value;
  return (
    <>
      <PageHead title={t.pages[collection]} lead={words.lead}>{add}</PageHead>
      <Collected of={kept}>
        {(items) =>
          items.length === 0
            ? <Empty text={words.empty} icon={icon}>{whereEmpty ?? add}</Empty>
            : (
              <Table
                caption={t.pages[collection]}
                rows={items}
                keyOf={({ id }) => id}
                isMuted={({ spec }) => isMuted(spec)}
                columns={[
                  {
                    key: "name",
                    title: t.common.name,
                    card: "title",
                    sort: nameOf,
                    cell: (one) => (
                      <span class="line">
                        <Name text={nameOf(one)} />
                        {tags(one.spec)}
                      </span>
                    ),
                  },
                  ...columns,
                  actionsColumn({
                    nameOf,
                    ...(more !== undefined && { more }),
                    onEdit: (one) => editing.value = one,
                    onRemove: (one) => void drop(one),
                  }),
                ]}
              />
            )}
      </Collected>
      {editing.value !== null && (
        <ResourceDialog
          title={resource === null ? words.add : words.edit}
          collection={collection}
          resource={resource}
          initial={initial}
          nameOf={({ name }) => name}
          onClose={() => editing.value = null}
          onDone={(one) => made.value = one}
        >
          {(draft) => (
            <>
              <TextField
                label={t.common.name}
                hint={words.nameHint}
                error={draft.problem("name")}
                autocomplete="off"
                value={draft.value.name}
                onText={(name) => draft.set({ name } as Partial<Specs[C]>)}
              />
              {fields(draft, resource)}
            </>
          )}
        </ResourceDialog>
      )}
      {made.value !== null && secret !== undefined && told !== undefined && (
        <ShownOnce
          title={secret.title(nameOf(made.value))}
          text={secret.text}
          secret={told}
          onClose={() => made.value = null}
        />
      )}
    </>
  );
}

/** What is secret, for whoever made it: it is shown this once. */
export function ShownOnce(
  { title, text, secret, onClose, children }: {
    title: string;
    text: string;
    secret: string;
    onClose: () => void;
    children?: ComponentChildren;
  },
) {
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{text}</p>
      <CopyLine label="" text={secret} />
      {children}
    </Dialog>
  );
}

type Role = "viewer" | "admin";

/** What who signs in, or sends a token, may do. */
export function RoleField(
  { value, hint, onChange }: { value: Role; hint?: string; onChange: (role: Role) => void },
) {
  return (
    <Field label={t.users.role} hint={hint}>
      {(ids) => (
        <Select
          {...ids}
          value={value}
          onChange={onChange}
          choices={(["viewer", "admin"] as const).map((role) => ({
            value: role,
            label: t.users.roles[role],
          }))}
        />
      )}
    </Field>
  );
}
