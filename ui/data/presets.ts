import { ApiError, call, get } from "./api.ts";
import { change, create, keptOf } from "./collections.ts";
import type { RecommendedCatalog } from "./types.ts";
import { DEFAULT_GROUP } from "../parts/names.ts";

/** Gives a group the lists of a preset: in one change, or list by list where the node has no such. */
export async function choosePreset(preset: string, group = DEFAULT_GROUP): Promise<void> {
  try {
    await call("POST", "lists/preset", { body: { preset, groups: [group] } });
  } catch (error) {
    if (!(error instanceof ApiError && (error.status === 404 || error.status === 405))) throw error;
    await byHand(preset, group);
  }
  await Promise.all([keptOf("lists").load(), keptOf("groups").load()]);
}

/** The recommended lists of a preset, and which of the node's own lists are recommended ones. */
export async function presetChanges(preset: string): Promise<{ add: string[]; remove: string[] }> {
  const { items } = await get<RecommendedCatalog>("lists/recommended");
  const mine = new Map(
    (keptOf("lists").items.value ?? []).map(({ spec }) => [spec.url, spec.name]),
  );
  const wanted = items.filter(({ presets }) => presets.includes(preset));
  const known = new Set(items.map(({ url }) => url));
  const wantedUrls = new Set(wanted.map(({ url }) => url));
  return {
    add: wanted.filter(({ url }) => !mine.has(url)).map(({ name }) => name),
    remove: [...mine].filter(([url]) => url !== undefined && known.has(url) && !wantedUrls.has(url))
      .map(([, name]) => name),
  };
}

async function byHand(preset: string, group: string): Promise<void> {
  const { items } = await get<RecommendedCatalog>("lists/recommended");
  await keptOf("lists").load();
  const mine = keptOf("lists").items.value ?? [];
  const recommended = new Set(items.map(({ url }) => url));
  const wanted: string[] = [];
  for (const { name, url } of items.filter(({ presets }) => presets.includes(preset))) {
    const there = mine.find(({ spec }) => spec.url === url);
    const list = there ??
      await create("lists", { name, url, enabled: true, comment: "", managed_by: "api" });
    wanted.push(list.id);
  }
  const stays = new Set(
    mine.filter(({ spec }) => spec.url === undefined || !recommended.has(spec.url)).map(({ id }) =>
      id
    ),
  );
  await change("groups", group, (spec) => {
    const kept = spec.lists.filter(({ list }) => stays.has(list) || wanted.includes(list));
    const has = new Set(kept.map(({ list }) => list));
    return {
      ...spec,
      lists: [...kept, ...wanted.filter((list) => !has.has(list)).map((list) => ({ list }))],
    };
  });
}
