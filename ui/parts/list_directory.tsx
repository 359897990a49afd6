/** The public directory of lists, to look for one that is not recommended. */
import { useSignal } from "@preact/signals";
import { get } from "../data/api.ts";
import { useCollection } from "../data/collections.ts";
import { useLoaded } from "../data/poll.ts";
import { isAdmin } from "../data/session.ts";
import type { Directory as Answer, DirectoryDetails } from "../data/types.ts";
import { param } from "../router.ts";
import { t } from "../text/mod.ts";
import { Button, Card, Empty, Name, Tag } from "./basics.tsx";
import { attempt, Shown } from "./errors.tsx";
import type { NewList } from "./list_dialog.tsx";

const STEP = 50;

export function Directory({ onAdd }: { onAdd: (list: NewList) => void }) {
  const lists = useCollection("lists");
  const directory = useLoaded((signal) => get<Answer>("lists/directory", {}, signal), []);
  const shown = useSignal(STEP);
  const words = param("q").toLowerCase();
  const add = async (item: Answer["items"][number]) => {
    const url = item.url ??
      (await get<DirectoryDetails>(`lists/directory/${encodeURIComponent(item.id)}`)).urls[0] ?? "";
    onAdd({ name: item.name.slice(0, 128), url });
  };
  return (
    <Shown of={directory} rows={10}>
      {({ items }) => {
        const found = items.filter(({ name, description, tags }) =>
          `${name} ${description} ${tags.join(" ")}`.toLowerCase().includes(words)
        );
        if (found.length === 0) return <Empty text={t.common.nothingFound} icon="search" />;
        return (
          <Card title={t.lists.count(found.length)}>
            <ul class="rows">
              {found.slice(0, shown.value).map((item) => {
                const isMine = item.url !== null &&
                  lists.items.value?.some(({ spec }) => spec.url === item.url);
                return (
                  <li key={item.id}>
                    <div class="row-flat wide-row">
                      <span class="row-main">
                        <span class="line">
                          <Name text={item.name} />
                          {item.tags.slice(0, 3).map((tag) => <Tag key={tag}>{tag}</Tag>)}
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
            {found.length > shown.value && (
              <Button
                kind="quiet"
                label={t.common.more}
                onClick={() => shown.value += STEP}
              />
            )}
          </Card>
        );
      }}
    </Shown>
  );
}
