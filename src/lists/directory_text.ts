import * as z from "zod";
import { SvcError } from "../errors.ts";
import { findListUrlProblem } from "../model/mod.ts";

/** A list of the public directory. */
export const DirectoryList = z.strictObject({
  id: z.string(),
  name: z.string(),
  description: z.string(),
  /** `null` where the directory tells it for one list at a time only. */
  url: z.string().nullable(),
  homepage: z.string().nullable(),
  tags: z.array(z.string()),
});
export type DirectoryList = Readonly<z.infer<typeof DirectoryList>>;

/** Most lists of a directory that are read. */
const LISTS_MAX = 10_000;
const NAME_LENGTH_MAX = 256;
const DESCRIPTION_LENGTH_MAX = 1_000;
const TAGS_MAX = 16;

/** Syntaxes of FilterLists that we read: hosts files, plain names, names in Adblock syntax. */
const READABLE_SYNTAXES: ReadonlySet<number> = new Set([1, 2, 14, 16, 28, 36, 37, 47, 48, 54]);
/** FilterLists' tag of lists that allow. */
const ALLOW_TAG = 10;
/** The registry's tag of lists that break things. */
const PROBLEMATIC_TAG = 111;

const text = z.string().nullish();
const numbers = z.array(z.int()).nullish();

/** FilterLists: `GET /lists`, and `GET /lists/{id}` with addresses. */
const FilterListsList = z.object({
  id: z.int(),
  name: z.string(),
  description: text,
  syntaxIds: numbers,
  tagIds: numbers,
  homeUrl: text,
  viewUrls: z.array(z.object({
    segmentNumber: z.int().nullish(),
    primariness: z.int().nullish(),
    url: z.string(),
  })).nullish(),
});
type FilterListsList = z.infer<typeof FilterListsList>;

/** HostlistsRegistry: one file. */
const RegistryList = z.object({
  filterKey: text,
  filterId: z.int(),
  groupId: z.int().nullish(),
  name: z.string(),
  description: text,
  deprecated: z.boolean().nullish(),
  homepage: text,
  downloadUrl: z.string(),
  tags: numbers,
});
const RegistryTag = z.object({ tagId: z.int(), keyword: z.string() });

/** Names by number: tags, say. */
export type Names = ReadonlyMap<number, string>;

/** Reads the `[{ id, name }]` of a small table; what can't be read has no name. */
export function decodeNames(json: unknown): Names {
  const entry = z.object({ id: z.int(), name: z.string() });
  const names = new Map<number, string>();
  for (const { id, name } of each(json, entry)) names.set(id, name.slice(0, NAME_LENGTH_MAX));
  return names;
}

/** The lists of a directory in the registry's shape, or `null` for another shape. */
export function decodeRegistry(json: unknown): DirectoryList[] | null {
  const whole = z.object({ filters: z.array(z.unknown()), tags: z.array(z.unknown()).nullish() })
    .safeParse(json);
  if (!whole.success) return null;
  const tagNames = new Map<number, string>();
  for (const { tagId, keyword } of each(whole.data.tags ?? [], RegistryTag)) {
    tagNames.set(tagId, keyword.slice(0, NAME_LENGTH_MAX));
  }
  return each(whole.data.filters, RegistryList).flatMap((list) => {
    const tags = list.tags ?? [];
    const url = fetchable(list.downloadUrl);
    if (list.deprecated === true || tags.includes(PROBLEMATIC_TAG) || url === null) return [];
    return [{
      id: list.filterKey ?? String(list.filterId),
      name: list.name.slice(0, NAME_LENGTH_MAX),
      description: (list.description ?? "").slice(0, DESCRIPTION_LENGTH_MAX),
      url,
      homepage: webPage(list.homepage),
      tags: namesOf(tags, tagNames),
    }];
  });
}

/** The readable lists of FilterLists' `/lists`, or `null` for another shape. */
export function decodeFilterLists(json: unknown, tagNames: Names): DirectoryList[] | null {
  if (!Array.isArray(json)) return null;
  return each(json, FilterListsList).filter(isReadable).map((list) => {
    const [url = null] = urlsOf(list);
    return entryOf(list, url, tagNames);
  });
}

/** FilterLists' `/lists/{id}` with its addresses: one, or those of its parts in order. */
export function decodeDetails(json: unknown): { readonly urls: string[]; homepage: string | null } {
  const list = FilterListsList.safeParse(json);
  if (!list.success) {
    throw new SvcError("unavailable", "the directory's answer about the list can't be read");
  }
  return { urls: urlsOf(list.data), homepage: webPage(list.data.homeUrl) };
}

function isReadable({ syntaxIds, tagIds }: FilterListsList): boolean {
  if (tagIds?.includes(ALLOW_TAG) === true) return false;
  return syntaxIds?.some((id) => READABLE_SYNTAXES.has(id)) === true;
}

function entryOf(list: FilterListsList, url: string | null, tagNames: Names): DirectoryList {
  return {
    id: String(list.id),
    name: list.name.slice(0, NAME_LENGTH_MAX),
    description: (list.description ?? "").slice(0, DESCRIPTION_LENGTH_MAX),
    url,
    homepage: webPage(list.homeUrl),
    tags: namesOf(list.tagIds ?? [], tagNames),
  };
}

/** The best address of each part of a list, the parts in order. */
function urlsOf({ viewUrls }: FilterListsList): string[] {
  const best = new Map<number, { readonly rank: number; readonly url: string }>();
  for (const { segmentNumber, primariness, url } of viewUrls ?? []) {
    const [segment, rank] = [segmentNumber ?? 1, primariness ?? Infinity];
    const known = best.get(segment);
    if (fetchable(url) !== null && (known === undefined || rank < known.rank)) {
      best.set(segment, { rank, url });
    }
  }
  return [...best].sort(([a], [b]) => a - b).map(([, { url }]) => url);
}

function namesOf(ids: readonly number[], names: Names): string[] {
  return ids.map((id) => names.get(id)).filter((name) => name !== undefined).slice(0, TAGS_MAX);
}

function fetchable(url: string): string | null {
  return findListUrlProblem(url) === null ? url : null;
}

/** A page to show; anything but a web address is none: it would be put behind a link. */
function webPage(url: string | null | undefined): string | null {
  const protocol = URL.parse(url ?? "")?.protocol;
  return protocol === "https:" || protocol === "http:" ? url ?? null : null;
}

/** The entries that have the shape; the others are passed over. */
function each<T extends z.ZodType>(json: unknown, shape: T): z.infer<T>[] {
  if (!Array.isArray(json)) return [];
  return json.slice(0, LISTS_MAX).flatMap((entry) => {
    const decoded = shape.safeParse(entry);
    return decoded.success ? [decoded.data] : [];
  });
}
