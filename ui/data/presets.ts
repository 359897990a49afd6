import { call, get } from "./api.ts";
import { allOf, keptOf } from "./collections.ts";
import type { RecommendedCatalog } from "./types.ts";
import { DEFAULT_GROUP } from "../parts/names.ts";

/** Gives a group the lists of a preset, in one change. */
export async function choosePreset(preset: string, group = DEFAULT_GROUP): Promise<void> {
  await call("POST", "lists/preset", { body: { preset, groups: [group] } });
  await Promise.all([keptOf("lists").load(), keptOf("groups").load()]);
}

/** The recommended lists of a preset, and which of the node's own lists are recommended ones. */
export async function presetChanges(preset: string): Promise<{ add: string[]; remove: string[] }> {
  const { items } = await get<RecommendedCatalog>("lists/recommended");
  const mine = new Map((await allOf("lists")).map(({ spec }) => [spec.url, spec.name]));
  const wanted = items.filter(({ presets }) => presets.includes(preset));
  const known = new Set(items.map(({ url }) => url));
  const wantedUrls = new Set(wanted.map(({ url }) => url));
  return {
    add: wanted.filter(({ url }) => !mine.has(url)).map(({ name }) => name),
    remove: [...mine].filter(([url]) => url !== undefined && known.has(url) && !wantedUrls.has(url))
      .map(([, name]) => name),
  };
}
