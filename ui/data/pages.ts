/** Pages of what grows at its start, as they are loaded one behind the other. */
export interface Paged<T> {
  readonly items: readonly T[];
  /** Where the next page begins; `null`: there is none. */
  readonly next: string | null;
}

/**
 * The first page, read again, with what was loaded behind it. Where the two do not meet, somebody would
 * take the hole between them for nothing: then what was loaded goes.
 */
export function joined<T extends { readonly id: string }>(
  known: Paged<T> | null,
  first: Paged<T>,
): Paged<T> {
  const ids = new Set(first.items.map(({ id }) => id));
  const older = (known?.items ?? []).filter(({ id }) => !ids.has(id));
  const meets = known !== null && older.length < known.items.length;
  return meets ? { items: [...first.items, ...older], next: known.next } : first;
}
