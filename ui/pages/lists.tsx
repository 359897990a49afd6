import { useComputed, useSignal } from "@preact/signals";
import { call } from "../data/api.ts";
import { keptOf, useCollection } from "../data/collections.ts";
import { isAdmin } from "../data/session.ts";
import type { Resource } from "../data/types.ts";
import { Button, PageHead } from "../parts/basics.tsx";
import { AddButton } from "../parts/collection.tsx";
import { SearchBox, Tabs } from "../parts/controls.tsx";
import { attempt } from "../parts/errors.tsx";
import { ListDialog, type NewList } from "../parts/list_dialog.tsx";
import { Directory } from "../parts/list_directory.tsx";
import { MyLists } from "../parts/list_mine.tsx";
import { Recommended } from "../parts/list_recommended.tsx";
import { toast } from "../parts/toasts.tsx";
import { hrefOf, param, setParams } from "../router.ts";
import { t } from "../text/mod.ts";

const POLL_MS = 2_000;
type Tab = "mine" | "recommended" | "directory";

/** Has every list downloaded; asks on while some still are. */
async function refresh(): Promise<void> {
  const { finished } = await call<{ finished: boolean }>("POST", "lists/refresh");
  const { load, items } = keptOf("lists");
  await load();
  const isLoading = () => (items.value ?? []).some(({ status }) => status?.downloading);
  for (let tries = 0; !finished && tries < 60 && isLoading(); tries++) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    await load();
  }
}

export default function Lists() {
  const lists = useCollection("lists");
  useCollection("groups");
  const adding = useSignal<NewList | null>(null);
  const editing = useSignal<Resource<"lists"> | null>(null);
  const isRefreshing = useSignal(false);
  const count = useComputed(() => lists.items.value?.length ?? null);
  const asked = param("tab");
  const tab: Tab = asked === "recommended" || asked === "directory" ? asked : "mine";
  const tabs = (["mine", "recommended", "directory"] as const).map((value) => ({
    value,
    label: t.lists.tabs[value],
    href: hrefOf("/lists", { tab: value === "mine" ? null : value }),
    ...(value === "mine" && { count: count.value }),
  }));
  const onRefresh = async () => {
    isRefreshing.value = true;
    if (await attempt(refresh)) toast(t.lists.refreshed);
    isRefreshing.value = false;
  };
  const add = (list: NewList) => adding.value = list;
  return (
    <>
      <PageHead title={t.pages.lists} lead={t.lists.lead}>
        <SearchBox value={param("q")} label={t.common.search} onInput={(q) => setParams({ q })} />
        {isAdmin.value && (
          <Button
            icon="refresh-cw"
            label={t.lists.refresh}
            isBusy={isRefreshing.value}
            onClick={onRefresh}
          />
        )}
        {isAdmin.value && <a class="button plain" href="/lists/move">{t.pages.move}</a>}
        <AddButton label={t.lists.add} onClick={() => add({ name: "", url: "" })} />
      </PageHead>
      <Tabs label={t.pages.lists} value={tab} tabs={tabs} />
      {tab === "mine" && (
        <MyLists
          onEdit={(list) => editing.value = list}
          onAdd={() => add({ name: "", url: "" })}
        />
      )}
      {tab === "recommended" && <Recommended />}
      {tab === "directory" && <Directory onAdd={add} />}
      {adding.value !== null && (
        <ListDialog
          resource={null}
          initial={adding.value}
          onClose={() => adding.value = null}
        />
      )}
      {editing.value !== null && (
        <ListDialog
          resource={editing.value}
          initial={{ name: "", url: "" }}
          onClose={() => editing.value = null}
        />
      )}
    </>
  );
}
