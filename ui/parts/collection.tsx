/** What pages of a collection have in common: what is there, what is added, changed and removed. */
import type { ComponentChildren } from "preact";
import { type Kept, remove } from "../data/collections.ts";
import { isReadOnly } from "../data/node.ts";
import { isAdmin } from "../data/session.ts";
import type { Collection, Resource, Specs } from "../data/types.ts";
import { param, setParams, useClosing } from "../router.ts";
import { t } from "../text/mod.ts";
import { Button, Empty, Skeleton } from "./basics.tsx";
import { SearchBox } from "./controls.tsx";
import { Dialog } from "./dialog.tsx";
import { attempt, ErrorBox } from "./errors.tsx";
import { type Draft, ResourceForm } from "./form.tsx";

/** Shows a collection once it is there; where it can't be read, why. */
export function Collected<C extends Collection>(
  { of, children }: {
    of: Kept<C>;
    children: (items: readonly Resource<C>[]) => ComponentChildren;
  },
) {
  const items = of.items.value;
  if (items !== null) return <>{children(items)}</>;
  if (of.error.value !== null) {
    return <ErrorBox error={of.error.value} onRetry={() => void of.load()} />;
  }
  return <Skeleton rows={8} />;
}

/** Searches the page's collection; the words stand in the URL. */
export function PageSearch() {
  return <SearchBox value={param("q")} label={t.common.search} onInput={(q) => setParams({ q })} />;
}

/** What the page's search finds of a collection; `empty`, where there is nothing at all. */
export function Found<C extends Collection>(
  { of, textOf, empty, children }: {
    of: Kept<C>;
    textOf: (spec: Specs[C]) => string;
    empty?: ComponentChildren;
    children: (rows: readonly Resource<C>[]) => ComponentChildren;
  },
) {
  const words = param("q").toLowerCase();
  return (
    <Collected of={of}>
      {(items) => {
        if (items.length === 0 && empty !== undefined) return empty;
        const found = items.filter(({ spec }) => textOf(spec).toLowerCase().includes(words));
        return found.length === 0
          ? <Empty text={t.common.nothingFound} icon="search" />
          : children(found);
      }}
    </Collected>
  );
}

/** The button that adds, for whoever may. */
export function AddButton({ label, onClick }: { label: string; onClick: () => void }) {
  if (!isAdmin.value) return null;
  return (
    <Button
      kind="primary"
      icon="plus"
      label={label}
      disabled={isReadOnly.value}
      onClick={onClick}
    />
  );
}

/** At the end of a row: what changes it and what removes it. */
export function RowActions(
  { name, onEdit, onRemove, children }: {
    name: string;
    onEdit?: () => void;
    onRemove?: (() => void) | undefined;
    children?: ComponentChildren;
  },
) {
  if (!isAdmin.value) return null;
  return (
    <span class="cell-actions">
      {children}
      {onEdit !== undefined && (
        <Button
          small
          kind="quiet"
          iconOnly
          icon="pencil"
          label={`${t.common.edit}: ${name}`}
          onClick={onEdit}
        />
      )}
      {onRemove !== undefined && (
        <Button
          small
          kind="quiet"
          iconOnly
          icon="trash"
          label={`${t.common.remove}: ${name}`}
          disabled={isReadOnly.value}
          onClick={onRemove}
        />
      )}
    </span>
  );
}

/** Removes at once, with a way back. */
export function removeNow<C extends Collection>(
  collection: C,
  resource: Resource<C>,
  name: string,
): Promise<boolean> {
  return attempt(() => remove(collection, resource, { said: t.common.removed(name) }));
}

/** A resource's form in a dialog; `resource` is `null` for one to be made. */
export function ResourceDialog<C extends Collection>(
  { title, collection, resource, initial, nameOf, onClose, onDone, prepare, children, wide }: {
    title: string;
    collection: C;
    resource: Resource<C> | null;
    initial: Specs[C];
    nameOf: (spec: Specs[C]) => string;
    onClose: () => void;
    onDone?: (made: Resource<C>) => void;
    prepare?: (spec: Specs[C]) => Specs[C];
    children: (draft: Draft<Specs[C]>) => ComponentChildren;
    wide?: boolean;
  },
) {
  const close = useClosing(onClose);
  return (
    <Dialog title={title} onClose={() => void close()} {...(wide !== undefined && { wide })}>
      <ResourceForm
        collection={collection}
        resource={resource}
        initial={resource?.spec ?? initial}
        said={(spec) => (resource === null ? t.common.added : t.common.saved)(nameOf(spec))}
        onDone={(made) => {
          onClose();
          onDone?.(made);
        }}
        onCancel={() => void close()}
        {...(prepare !== undefined && { prepare })}
      >
        {children}
      </ResourceForm>
    </Dialog>
  );
}
