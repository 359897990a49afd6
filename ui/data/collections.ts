import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { t } from "../text/mod.ts";
import { toast } from "../parts/toasts.tsx";
import { ApiError, call, get } from "./api.ts";
import type { Collection, Resource, Specs } from "./types.ts";

/** A collection as it was last read, shared by all who show it. */
export interface Kept<C extends Collection> {
  readonly items: Signal<readonly Resource<C>[] | null>;
  readonly byId: ReadonlySignal<ReadonlyMap<string, Resource<C>>>;
  readonly error: Signal<unknown>;
  /** Resolves once there is an answer that was asked for behind this call. */
  readonly load: () => Promise<void>;
  /** Shows what a change came to before the whole is read again. */
  readonly alter: (change: (items: readonly Resource<C>[]) => readonly Resource<C>[]) => void;
}

const kept = new Map<Collection, Kept<Collection>>();

function keep<C extends Collection>(collection: C): Kept<C> {
  const items = signal<readonly Resource<C>[] | null>(null);
  const error = signal<unknown>(null);
  let loading: Promise<void> | null = null;
  let isAskedAgain = false;
  /** Changed since it was asked for: the answer on its way may be from before. */
  let isAltered = false;
  const read = async () => {
    do {
      isAskedAgain = false;
      isAltered = false;
      try {
        const answer = await get<{ items: readonly Resource<C>[] }>(collection);
        if (isAltered) continue;
        items.value = answer.items;
        error.value = null;
      } catch (failure) {
        error.value = failure;
      }
    } while (isAskedAgain);
    loading = null;
  };
  const load = () => {
    isAskedAgain = true;
    return loading ??= read();
  };
  return {
    items,
    byId: computed(() => new Map((items.value ?? []).map((item) => [item.id, item]))),
    error,
    load,
    alter: (change) => {
      if (items.value !== null) items.value = change(items.value);
      isAltered = true;
      void load();
    },
  };
}

/** The collection, without asking for it. */
export function keptOf<C extends Collection>(collection: C): Kept<C> {
  let one = kept.get(collection);
  if (one === undefined) {
    kept.set(collection, one = keep(collection) as unknown as Kept<Collection>);
  }
  return one as unknown as Kept<C>;
}

/**
 * All of the collection: what goes by those that are here already could leave some out.
 *
 * @throws What reading it fails with.
 */
export async function allOf<C extends Collection>(
  collection: C,
): Promise<readonly Resource<C>[]> {
  const { items, error, load } = keptOf(collection);
  if (items.value === null) await load();
  if (items.value === null) throw error.value;
  return items.value;
}

/** The collection, read when the page is opened and when it is looked at again. */
export function useCollection<C extends Collection>(collection: C): Kept<C> {
  const one = keptOf(collection);
  useEffect(() => {
    void one.load();
    const onLook = () => {
      if (document.visibilityState === "visible") void one.load();
    };
    document.addEventListener("visibilitychange", onLook);
    return () => document.removeEventListener("visibilitychange", onLook);
  }, [collection]);
  return one;
}

/** Reads again what a change of somebody else's touched, where a page shows it. */
export function reloadChanged(type: string): void {
  const collection = `${type}s`.replace(/ss$/, "s") as Collection;
  if (kept.has(collection)) void kept.get(collection)!.load();
}

/** Reads again all that pages show. */
export async function reloadAll(): Promise<void> {
  await Promise.all(Array.from(kept.values(), ({ load }) => load()));
}

/** Takes a changed resource over before the whole is read again. */
function takeOver<C extends Collection>(collection: C, resource: Resource<C>): void {
  keptOf(collection).alter((all) =>
    all.some(({ id }) => id === resource.id)
      ? all.map((one) => one.id === resource.id ? { ...one, ...resource } : one)
      : [...all, resource]
  );
}

/** What a toast says of a change; left out: it says nothing. */
export interface Said {
  readonly said?: string;
  /** Whether it can be taken back: not where that is what is being done. */
  readonly undo?: boolean;
}

/** Not where a secret would have to come back. */
function isUndoable(collection: Collection): boolean {
  return !["users", "tokens", "webhooks"].includes(collection);
}

/** What is sent of a user: neither the factor nor an empty password; of a webhook no empty key. */
function sent<C extends Collection>(collection: C, spec: Specs[C]): unknown {
  if (collection === "webhooks") {
    const { key, ...rest } = spec as Specs["webhooks"];
    return { ...rest, ...(key !== undefined && key !== "" && { key }) };
  }
  if (collection !== "users") return spec;
  const { otp: _, password, ...rest } = spec as Specs["users"];
  return { ...rest, ...(password !== undefined && password !== "" && { password }) };
}

export async function create<C extends Collection>(
  collection: C,
  spec: Specs[C],
  { said, undo = isUndoable(collection) }: Said = {},
): Promise<Resource<C>> {
  const made = await call<Resource<C>>("POST", collection, { body: sent(collection, spec) });
  takeOver(collection, made);
  if (said !== undefined) {
    toast(
      said,
      undo ? () => remove(collection, made, { undo: false, said: t.common.undone }) : null,
    );
  }
  return made;
}

/** Replaces a spec at the revision that was seen. @throws {ApiError} 412, if there is a newer one. */
export async function replace<C extends Collection>(
  collection: C,
  { id, revision, spec: before }: Resource<C>,
  spec: Specs[C],
  { said, undo = isUndoable(collection) }: Said = {},
): Promise<Resource<C>> {
  const made = await call<Resource<C>>("PUT", `${collection}/${id}`, {
    body: sent(collection, spec),
    ifMatch: revision,
  });
  takeOver(collection, made);
  if (said !== undefined) {
    const back = () => change(collection, id, () => before, { undo: false, said: t.common.undone });
    toast(said, undo ? back : null);
  }
  return made;
}

/** Changes a part of a spec: where somebody else was faster, the part of what they left. */
export async function change<C extends Collection>(
  collection: C,
  id: string,
  alter: (spec: Specs[C]) => Specs[C],
  said: Said = {},
): Promise<Resource<C>> {
  let current = keptOf(collection).byId.value.get(id) ??
    await call<Resource<C>>("GET", `${collection}/${id}`);
  for (;;) {
    try {
      return await replace(collection, current, alter(current.spec), said);
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 412)) throw error;
      current = await call<Resource<C>>("GET", `${collection}/${id}`);
    }
  }
}

export async function remove<C extends Collection>(
  collection: C,
  { id, spec }: Resource<C>,
  { said, undo = isUndoable(collection) }: Said = {},
): Promise<void> {
  await call("DELETE", `${collection}/${id}`);
  keptOf(collection).alter((all) => all.filter((one) => one.id !== id));
  if (said !== undefined) {
    const back = () => create(collection, spec, { undo: false, said: t.common.undone });
    toast(said, undo ? back : null);
  }
}
