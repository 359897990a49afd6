/** Lists that were looked at by people, and sets of them that go together. */
import { useSignal } from "@preact/signals";
import { get } from "../data/api.ts";
import { useCollection } from "../data/collections.ts";
import { addList, dropList } from "../data/list_use.ts";
import { isReadOnly, mayChange } from "../data/node.ts";
import { useLoaded } from "../data/poll.ts";
import { choosePreset, presetChanges } from "../data/presets.ts";
import { isAdmin } from "../data/session.ts";
import type { RecommendedCatalog, RecommendedSizes } from "../data/types.ts";
import { param } from "../router.ts";
import { t } from "../text/mod.ts";
import { Card, Empty, Name, Tag } from "./basics.tsx";
import { Switch } from "./controls.tsx";
import { confirm } from "./dialog.tsx";
import { attempt, Shown } from "./errors.tsx";
import { compact } from "./format.ts";
import { DEFAULT_GROUP } from "./names.ts";
import { toast } from "./toasts.tsx";

type Item = RecommendedCatalog["items"][number];

export function Recommended() {
  const lists = useCollection("lists");
  const catalog = useLoaded(
    (signal) => get<RecommendedCatalog>("lists/recommended", {}, signal),
    [],
  );
  const sizes = useLoaded(
    (signal) => get<RecommendedSizes>("lists/recommended/sizes", {}, signal),
    [],
  );
  const words = param("q").toLowerCase();
  const rulesOf = (id: string) =>
    sizes.data.value?.items.find((one) => one.id === id)?.rules ?? null;
  const mineOf = (url: string) => lists.items.value?.find(({ spec }) => spec.url === url) ?? null;
  return (
    <Shown of={catalog} rows={10}>
      {({ items, presets }) => {
        const shown = items.filter(({ name, description, category }) =>
          `${name} ${description} ${category}`.toLowerCase().includes(words)
        );
        const categories = Map.groupBy(shown, ({ category }) => category);
        return (
          <>
            {isAdmin.value && words === "" && <Presets presets={presets} />}
            {shown.length === 0 && <Empty text={t.common.nothingFound} icon="search" />}
            {[...categories].map(([category, some]) => (
              <Card key={category} title={categoryName(category)}>
                <ul class="rows">
                  {some.map((item) => (
                    <li key={item.id}>
                      <ListRow item={item} rules={rulesOf(item.id)} mine={mineOf(item.url)} />
                    </li>
                  ))}
                </ul>
              </Card>
            ))}
          </>
        );
      }}
    </Shown>
  );
}

function categoryName(category: string): string {
  return (t.lists.categories as Readonly<Record<string, string>>)[category] ?? category;
}

function ListRow(
  { item, rules, mine }: {
    item: Item;
    rules: number | null;
    mine: Parameters<typeof dropList>[0] | null;
  },
) {
  const onChange = (on: boolean) =>
    on
      ? addList(item, [DEFAULT_GROUP], t.lists.addedToDefault(item.name))
      : dropList(mine!, t.common.removed(item.name));
  return (
    <div class="row-flat wide-row">
      <Switch
        isOn={mine !== null}
        hideLabel
        label={item.name}
        disabled={!mayChange.value}
        onChange={onChange}
      />
      <span class="row-main">
        <span class="line">
          <Name text={item.name} />
          {item.non_commercial && <Tag kind="warning">{t.lists.nonCommercial}</Tag>}
        </span>
        <span class="muted small">{item.description}</span>
      </span>
      <span class="muted small end">
        {rules === null ? "–" : t.lists.rules(compact(rules))}
        <br />
        {item.homepage === null
          ? item.licence
          : <a href={item.homepage} target="_blank" rel="noreferrer">{item.licence}</a>}
      </span>
    </div>
  );
}

function Presets({ presets }: { presets: RecommendedCatalog["presets"] }) {
  const busy = useSignal<string | null>(null);
  const choose = async (id: string, name: string) => {
    const { add, remove } = await presetChanges(id);
    const text = [
      add.length > 0 ? t.lists.adds(add.join(", ")) : "",
      remove.length > 0 ? t.lists.removes(remove.join(", ")) : "",
    ].filter((one) => one !== "").join(" ");
    if (text === "") return toast(t.lists.isSo(name));
    if (!await confirm(name, text, t.lists.apply, { isDanger: false })) return;
    busy.value = id;
    if (await attempt(() => choosePreset(id))) toast(t.lists.applied(name));
    busy.value = null;
  };
  return (
    <div class="presets">
      {presets.map(({ id, name, description }) => {
        const [title, about] = t.presets[id as keyof typeof t.presets] ?? [name, description];
        return (
          <button
            key={id}
            type="button"
            class="preset"
            disabled={busy.value !== null || isReadOnly.value}
            aria-busy={busy.value === id || undefined}
            onClick={() => void attempt(() => choose(id, title))}
          >
            <strong>{title}</strong>
            <span class="muted small">{about}</span>
          </button>
        );
      })}
    </div>
  );
}
