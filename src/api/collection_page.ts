import type { PersistentMap } from "../model/mod.ts";
import type { CollectionQuery } from "./schemas/common.ts";

/** A cursor is the place of the last one in the order of creation, which never changes. */
const CURSOR_BASE = 36;

/** Some of a collection, oldest first. */
export interface CollectionPage<E> {
  readonly items: readonly E[];
  /** Where the next page starts; `null` where there is none. */
  readonly next: string | null;
}

/** The resources with a text in a field of theirs, behind a cursor, and as many as are asked for. */
export function pageOf<E extends { readonly id: string; readonly spec: unknown }>(
  all: PersistentMap<E>,
  { q, limit = Infinity, next }: CollectionQuery,
): CollectionPage<E> {
  const wanted = q?.toLowerCase();
  const after = next === undefined ? -1 : parseInt(next, CURSOR_BASE);
  const items: E[] = [];
  for (const [id, envelope] of all.entries()) {
    if (all.placeOf(id)! <= after) continue;
    if (wanted !== undefined && id !== wanted && !holds(envelope.spec, wanted)) continue;
    if (items.length < limit) items.push(envelope);
    else return { items, next: all.placeOf(items[items.length - 1].id)!.toString(CURSOR_BASE) };
  }
  return { items, next: null };
}

/** Says whether a text anywhere in a value has `wanted`, which is in lower case, in it. */
function holds(value: unknown, wanted: string): boolean {
  if (typeof value === "string") return value.toLowerCase().includes(wanted);
  if (typeof value !== "object" || value === null) return false;
  for (const [name, field] of Object.entries(value)) {
    if (name !== "managed_by" && holds(field, wanted)) return true;
  }
  return false;
}
