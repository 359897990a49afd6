/** Which groups use which lists: a list that is made joins none by itself. */
import { toast } from "../parts/toasts.tsx";
import { allOf, change, create, keptOf, remove } from "./collections.ts";
import type { Resource, Specs } from "./types.ts";

export function groupsUsing(list: string): Resource<"groups">[] {
  return (keptOf("groups").items.value ?? []).filter(({ spec }) =>
    spec.lists.some((one) => one.list === list)
  );
}

/** Has these groups use a list, and no others. */
export async function useListIn(list: string, groups: readonly string[]): Promise<void> {
  for (const { id, spec } of await allOf("groups")) {
    const uses = spec.lists.some((one) => one.list === list);
    if (uses === groups.includes(id)) continue;
    await change("groups", id, (now) => ({
      ...now,
      lists: uses ? now.lists.filter((one) => one.list !== list) : [...now.lists, { list }],
    }));
  }
}

/** Adds a list to the node and to groups. */
export async function addList(
  list: Pick<Specs["lists"], "name" | "url">,
  groups: readonly string[],
  said: string,
): Promise<void> {
  const spec = { ...list, enabled: true, comment: "", managed_by: "api" };
  const made = await create("lists", spec, { said, undo: false });
  await useListIn(made.id, groups);
}

/** Takes a list out of its groups and off the node. */
export async function dropList(list: Resource<"lists">, said: string): Promise<void> {
  await allOf("groups");
  const groups = groupsUsing(list.id).map(({ id }) => id);
  await useListIn(list.id, []);
  await remove("lists", list, { undo: false });
  toast(said, async () => {
    const made = await create("lists", list.spec, { undo: false });
    await useListIn(made.id, groups);
  });
}
