/** Columns that tables of several collections have alike. */
import type { ComponentChildren } from "preact";
import { change } from "../data/collections.ts";
import { mayChange } from "../data/node.ts";
import type { Resource, Specs } from "../data/types.ts";
import { t } from "../text/mod.ts";
import { RowActions } from "./collection.tsx";
import { Switch } from "./controls.tsx";
import type { Column } from "./table.tsx";

/** Turns each on and off; `nameOf` is what it is called. */
export function switchColumn<C extends "lists" | "records" | "rules">(
  collection: C,
  nameOf: (spec: Specs[C]) => string,
): Column<Resource<C>> {
  return {
    key: "on",
    title: t.common.on,
    hideTitle: true,
    cell: ({ id, spec }) => (
      <Switch
        isOn={spec.enabled}
        hideLabel
        label={nameOf(spec)}
        disabled={!mayChange.value}
        onChange={(enabled) =>
          change(collection, id, (one) => ({ ...one, enabled }), {
            said: (enabled ? t.common.turnedOn : t.common.turnedOff)(nameOf(spec)),
          })}
      />
    ),
  };
}

/** Edits and removes each; `more` is what else is done to it. */
export function actionsColumn<R>(
  { nameOf, more, onEdit, onRemove }: {
    nameOf: (row: R) => string;
    more?: (row: R) => ComponentChildren;
    onEdit: (row: R) => void;
    onRemove: (row: R) => void;
  },
): Column<R> {
  return {
    key: "actions",
    title: t.common.actions,
    hideTitle: true,
    cell: (row) => (
      <RowActions
        name={nameOf(row)}
        onEdit={() => onEdit(row)}
        onRemove={() => onRemove(row)}
      >
        {more?.(row)}
      </RowActions>
    ),
  };
}
