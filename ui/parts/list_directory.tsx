/** The public directory of lists, to look for one that is not recommended. */
import { get } from "../data/api.ts";
import { useCollection } from "../data/collections.ts";
import { useLoaded } from "../data/poll.ts";
import { isAdmin } from "../data/session.ts";
import type { Directory as Answer, DirectoryDetails } from "../data/types.ts";
import { hrefWith, param, setParams } from "../router.ts";
import { t } from "../text/mod.ts";
import { Button, Card, Empty, Name, Tag } from "./basics.tsx";
import { Select } from "./controls.tsx";
import { attempt, Shown } from "./errors.tsx";
import { Pieces } from "./pieces.tsx";
import { number, visible } from "./format.ts";
import type { NewList } from "./list_dialog.tsx";

const STEP = 50;

export function Directory({ onAdd }: { onAdd: (list: NewList) => void }) {
  const lists = useCollection("lists");
  const directory = useLoaded((signal) => get<Answer>("lists/directory", {}, signal), []);
  const words = param("q").toLowerCase();
  const tag = param("tag");
  const add = async (item: Answer["items"][number]) => {
    const url = item.url ??
      (await get<DirectoryDetails>(`lists/directory/${encodeURIComponent(item.id)}`)).urls[0] ?? "";
    onAdd({ name: item.name.slice(0, 128), url });
  };
  return (
    <Shown of={directory} rows={10}>
      {({ items }) => {
        const found = items.filter(({ name, description, tags }) =>
          (tag === "" || tags.includes(tag)) &&
          `${name} ${description} ${tags.join(" ")}`.toLowerCase().includes(words)
        );
        return (
          <Card
            title={t.lists.count(found.length)}
            actions={
              <Select
                aria-label={t.lists.tag}
                value={tag}
                onChange={(one) => setParams({ tag: one })}
                choices={[{ value: "", label: t.lists.allTags }, ...tagsOf(items)]}
              />
            }
          >
            {found.length === 0 && <Empty text={t.common.nothingFound} icon="search" />}
            <Pieces of={found} step={STEP}>
              {(some) => (
                <ul class="rows">
                  {some.map((item) => {
                    const isMine = item.url !== null &&
                      lists.items.value?.some(({ spec }) => spec.url === item.url);
                    return (
                      <li key={item.id}>
                        <div class="row-flat wide-row">
                          <span class="row-main">
                            <span class="line">
                              <Name text={item.name} />
                              {item.tags.slice(0, 3).map((one) => (
                                <a key={one} class="tag plain" href={hrefWith({ tag: one })}>
                                  {one}
                                </a>
                              ))}
                            </span>
                            <span class="muted small">{item.description}</span>
                          </span>
                          {isMine
                            ? <Tag kind="ok" icon="check">{t.lists.isMine}</Tag>
                            : isAdmin.value && (
                              <Button
                                small
                                label={t.common.add}
                                aria-label={`${t.common.add}: ${item.name}`}
                                onClick={() => void attempt(() => add(item))}
                              />
                            )}
                        </div>
                      </li>
                    );
                  })}
                </ul>
              )}
            </Pieces>
          </Card>
        );
      }}
    </Shown>
  );
}

/** The tags there are, each with how many lists have it. */
function tagsOf(items: Answer["items"]): { value: string; label: string }[] {
  const counts = new Map<string, number>();
  for (const { tags } of items) {
    for (const tag of tags) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  }
  return [...counts].sort(([a], [b]) => a.localeCompare(b))
    .map(([value, count]) => ({ value, label: `${visible(value)} (${number(count)})` }));
}
