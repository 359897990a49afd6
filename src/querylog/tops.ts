/** The most frequent of each kind. */
import { OUTCOME_NAMES } from "../logqueue/mod.ts";
import { textHash } from "./byte_texts.ts";
import { listOf, type StoredEntry } from "./entry.ts";
import { type TopRow, TopSketch } from "./top_sketch.ts";

export const TOP_KINDS = ["names", "blocked", "clients", "blocked_clients", "lists"] as const;
type TopKind = typeof TOP_KINDS[number];
/** Rows of an answer. */
export const TOP_ROWS = 100;

export type Tops = Record<TopKind, TopSketch>;
export type TopLists = Record<TopKind, TopRow[]>;
/** What an earlier version wrote lacks some. */
export type StoredTops = Partial<TopLists>;
/** As an answer has them, the most frequent first. */
export type ShownTops = Readonly<Record<TopKind, readonly { name: string; count: number }[]>>;

/** A value for each kind of top. */
export function ofKinds<T>(make: (kind: TopKind) => T): Record<TopKind, T> {
  return Object.fromEntries(TOP_KINDS.map((kind) => [kind, make(kind)])) as Record<TopKind, T>;
}

export function sketches(capacity: number, rows: StoredTops | null = null): Tops {
  return ofKinds((kind) => new TopSketch(capacity, rows?.[kind] ?? []));
}

const BLOCKED = OUTCOME_NAMES.indexOf("blocked");

/** Counts an entry, of a client that is known as `client`; "": of nobody. */
export function countTops(
  tops: Tops,
  { name, outcome, rule }: StoredEntry,
  client: string,
  nameHash = textHash(name),
): void {
  tops.names.add(name, 1, nameHash);
  if (client !== "") tops.clients.add(client);
  if (outcome !== BLOCKED) return;
  tops.blocked.add(name, 1, nameHash);
  if (client !== "") tops.blocked_clients.add(client);
  const list = listOf(rule);
  if (list !== "") tops.lists.add(list);
}

export function listsOf(tops: Tops, n: number): TopLists {
  return ofKinds((kind) => tops[kind].top(n));
}

/** The rows of an answer. */
export function topsOf(tops: Tops): ShownTops {
  return ofKinds((kind) => tops[kind].top(TOP_ROWS).map(([name, count]) => ({ name, count })));
}
