import { SvcError } from "../../errors.ts";
import { decodeSpec, ID_PREFIX, shownText } from "../../model/mod.ts";
import { type Endpoint, endpoint } from "../endpoint.ts";
import {
  Directory,
  DirectoryDetails,
  PresetAnswer,
  PresetRequest,
  RecommendedCatalog,
  RecommendedSizes,
  Refresh,
  Services,
} from "../schemas/node.ts";
import { note } from "./node.ts";
import { change, shownEnvelope, specOf } from "./resources.ts";

/** What a list says of where it came from. */
const PRESET_COMMENT = "a recommended list";

/** Longest wait for downloads to end; what is not done by then goes on behind the answer. */
const REFRESH_WAIT_MS = 20_000;

/** Says whether `work` ended within the time. */
async function endsWithin(work: Promise<unknown>, waitMs: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), waitMs);
  });
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Beside the collection itself; these paths come before `/api/v1/lists/{id}`. */
export const listEndpoints: readonly Endpoint[] = [
  endpoint("POST /api/v1/lists/refresh", {
    operationId: "refreshLists",
    tag: "lists",
    summary: "Download every list that has a URL now, and wait up to 20 seconds for it",
    need: "admin",
    answer: Refresh,
    errors: ["unavailable"],
    handle: async (call) => {
      const { deps } = call;
      await note(call, "refresh", { type: "lists", id: null }, null);
      const { started, loading, done } = deps.lists.refresh();
      const finished = await endsWithin(done, REFRESH_WAIT_MS);
      const envelopes = [...deps.replicator.state.collections.lists.values()];
      const items = envelopes.map((envelope) => shownEnvelope(deps, "lists", envelope));
      return { body: { finished, started, loading, items } };
    },
  }),
  endpoint("POST /api/v1/lists/preset", {
    operationId: "changeListsByPreset",
    tag: "lists",
    summary: "Give groups the lists of a preset in place of other recommended ones, in one change",
    need: "admin",
    body: PresetRequest,
    answer: PresetAnswer,
    errors: ["conflict", "not_found", "unavailable"],
    handle: async (call) => {
      const { deps, body: { preset, groups } } = call;
      const { items, presets } = deps.lists.recommended();
      if (!presets.some(({ id }) => id === preset)) {
        throw new SvcError("not_found", `preset: ${shownText(preset)}: there is no such preset`);
      }
      const isIn = (one: typeof items[number]) => one.presets.includes(preset);
      const add = items.filter(isIn).map(({ name, url }) => ({
        id: deps.newId(ID_PREFIX.lists),
        spec: specOf(decodeSpec("lists", { name, url, comment: PRESET_COMMENT })),
      }));
      const without = items.filter((one) => !isIn(one)).map(({ url }) => url);
      const unique = [...new Set(groups)];
      await change(call, { type: "lists_preset", preset, add, without, groups: unique });
      const { collections } = deps.replicator.state;
      const urls = new Set(add.map(({ spec }) => spec.url));
      const lists = [...collections.lists.values()].filter(({ spec }) => urls.has(spec.url))
        .map((envelope) => shownEnvelope(deps, "lists", envelope));
      // One that somebody has removed meanwhile is not there any more.
      const changed = unique.flatMap((id) => collections.groups.get(id) ?? []);
      return { body: { lists, groups: changed } };
    },
  }),
  endpoint("GET /api/v1/lists/recommended", {
    operationId: "listRecommendedLists",
    tag: "lists",
    summary: "Recommended lists with their categories and presets",
    need: "viewer",
    answer: RecommendedCatalog,
    handle: ({ deps }) => ({ body: deps.lists.recommended() }),
  }),
  endpoint("GET /api/v1/lists/recommended/sizes", {
    operationId: "getRecommendedSizes",
    tag: "lists",
    summary: "How large the recommended lists are",
    need: "viewer",
    answer: RecommendedSizes,
    errors: ["unavailable"],
    handle: async ({ deps }) => ({ body: await deps.lists.sizes() }),
  }),
  endpoint("GET /api/v1/lists/directory", {
    operationId: "listDirectory",
    tag: "lists",
    summary: "The readable lists of the public directory",
    need: "viewer",
    answer: Directory,
    errors: ["not_found", "unavailable"],
    handle: async ({ deps }) => ({ body: await deps.lists.directory() }),
  }),
  endpoint("GET /api/v1/lists/directory/{id}", {
    operationId: "getDirectoryList",
    tag: "lists",
    summary: "A list of the public directory with its addresses",
    need: "viewer",
    answer: DirectoryDetails,
    errors: ["not_found", "unavailable"],
    handle: async ({ deps, param }) => ({ body: await deps.lists.directoryList(param) }),
  }),
  endpoint("GET /api/v1/services", {
    operationId: "listServices",
    tag: "lists",
    summary: "Services that groups can block, with their rules",
    need: "viewer",
    answer: Services,
    handle: ({ deps }) => ({ body: deps.lists.services() }),
  }),
];
