import type { ComponentChildren } from "preact";
import { useSignal } from "@preact/signals";
import { Icon } from "./icon.tsx";
import { Pieces } from "./pieces.tsx";

export interface Column<R> {
  readonly key: string;
  readonly title: string;
  /** A column without a title to read, such as that of buttons. */
  readonly hideTitle?: boolean;
  readonly cell: (row: R) => ComponentChildren;
  /** By what rows are sorted; left out: they are not. */
  readonly sort?: (row: R) => string | number;
  readonly align?: "end";
  /** How a phone's card shows it: as its heading, beside its name, or not at all. */
  readonly card?: "title" | "plain" | "none";
}

/** Rows of a collection: a table, or cards on a phone; the first of many. */
export function Table<R>(
  { columns, rows, keyOf, caption, sortBy, isMuted }: {
    columns: readonly Column<R>[];
    rows: readonly R[];
    keyOf: (row: R) => string;
    caption: string;
    sortBy?: string;
    isMuted?: (row: R) => boolean;
  },
) {
  const sorted = useSignal({ key: sortBy ?? "", isDown: false });
  const { key, isDown } = sorted.value;
  const by = columns.find((column) => column.key === key)?.sort;
  const shown = by === undefined ? rows : [...rows].sort((a, b) => {
    const [x, y] = [by(a), by(b)];
    const order = typeof x === "string" ? x.localeCompare(String(y)) : x - Number(y);
    return isDown ? -order : order;
  });
  const press = (column: Column<R>) => {
    const same = column.key === key;
    sorted.value = { key: column.key, isDown: same ? !isDown : false };
  };
  const draw = (some: readonly R[]) => (
    <table class="table">
      <caption class="for-ears">{caption}</caption>
      <thead>
        <tr>
          {columns.map((column) => (
            <th
              key={column.key}
              scope="col"
              class={column.align}
              aria-sort={column.key === key ? (isDown ? "descending" : "ascending") : undefined}
            >
              {column.sort !== undefined
                ? (
                  <button type="button" class="sort" onClick={() => press(column)}>
                    {column.title}
                    {column.key === key && (
                      <Icon name={isDown ? "chevron-down" : "chevron-up"} size={14} />
                    )}
                  </button>
                )
                : <span class={column.hideTitle ? "for-ears" : undefined}>{column.title}</span>}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {some.map((row) => (
          <tr key={keyOf(row)} class={isMuted?.(row) ? "off" : undefined}>
            {columns.map((column) => (
              <td
                key={column.key}
                class={`${column.align ?? ""} card-${column.card ?? "plain"}`}
                data-title={column.hideTitle ? undefined : column.title}
              >
                {column.cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
  return <Pieces of={shown}>{draw}</Pieces>;
}
