/** Who changed what: each change with what was before and what was after. */
import { useSignal } from "@preact/signals";
import { call, get } from "../data/api.ts";
import { change, keptOf, useCollection } from "../data/collections.ts";
import { changeSettings, isReadOnly } from "../data/node.ts";
import { joined, type Paged } from "../data/pages.ts";
import { useLoaded } from "../data/poll.ts";
import { isAdmin } from "../data/session.ts";
import type { AuditEntry, Collection, Settings, Specs } from "../data/types.ts";
import { Button, Empty, Name, PageHead, Tag } from "../parts/basics.tsx";
import { SearchBox } from "../parts/controls.tsx";
import { Difference } from "../parts/difference.tsx";
import { pageOf } from "../parts/error_text.ts";
import { attempt, Shown } from "../parts/errors.tsx";
import { day, fullTime, visible } from "../parts/format.ts";
import { toast } from "../parts/toasts.tsx";
import { param, setParams } from "../router.ts";
import { t } from "../text/mod.ts";

const PAGE = 200;
const COLLECTIONS: Readonly<Record<string, Collection>> = {
  list: "lists",
  rule: "rules",
  record: "records",
  group: "groups",
  client: "clients",
  schedule: "schedules",
};

export default function Audit() {
  useCollection("users");
  const pages = useSignal<Paged<AuditEntry> | null>(null);
  const audit = useLoaded(async (signal) => {
    const first = await get<Paged<AuditEntry>>("audit", { limit: PAGE }, signal);
    return pages.value = joined(pages.value, first);
  }, []);
  const onMore = () =>
    attempt(async () => {
      const next = pages.value?.next ?? null;
      const page = await get<Paged<AuditEntry>>("audit", { limit: PAGE, next });
      // Read again meanwhile, it may go on elsewhere.
      if (pages.value?.next !== next) return;
      pages.value = { items: [...pages.value.items, ...page.items], next: page.next };
    });
  const words = param("q").toLowerCase();
  return (
    <>
      <PageHead title={t.pages.audit} lead={t.audit.lead}>
        <SearchBox value={param("q")} label={t.common.search} onInput={(q) => setParams({ q })} />
      </PageHead>
      <Shown of={audit} rows={10}>
        {(first) => {
          const { items, next } = pages.value ?? first;
          const shown = items.filter((entry) =>
            JSON.stringify(entry).toLowerCase().includes(words)
          );
          const days = Map.groupBy(shown, ({ time }) => day(new Date(time)));
          return (
            <>
              {shown.length === 0 && <Empty text={t.common.nothingFound} icon="rotate-ccw-clock" />}
              {[...days].map(([name, entries]) => (
                <section key={name} class="audit-day">
                  <h2>{name}</h2>
                  <ul class="card rows">
                    {entries.map((entry) => (
                      <li key={entry.id}>
                        <Row entry={entry} onDone={() => void audit.reload()} />
                      </li>
                    ))}
                  </ul>
                </section>
              ))}
              {next !== null && <Button label={t.common.more} onClick={onMore} />}
            </>
          );
        }}
      </Shown>
    </>
  );
}

function word(words: Readonly<Record<string, string>>, key: string): string {
  return words[key] ?? key.replaceAll("_", " ");
}

/** What the entry is about, by the name that stands in it. */
function aboutOf({ before, after, resource }: AuditEntry): string {
  const spec = (after ?? before ?? {}) as Record<string, unknown>;
  const known = resource.type === "user" && resource.id !== null
    ? keptOf("users").byId.value.get(resource.id)?.spec.name
    : undefined;
  return String(spec.name ?? spec.rule ?? known ?? resource.id ?? "");
}

/** What says all without its object: who signs in is who did it. */
const ALONE = ["sign_in", "sign_out", "recovery"];

function Row({ entry, onDone }: { entry: AuditEntry; onDone: () => void }) {
  const isOpen = useSignal(false);
  const { actor, action, resource, before, after, time, node } = entry;
  const href = resource.id === null ? null : pageOf(resource.id);
  const isAlone = ALONE.includes(action) && actor.name !== null;
  const hasMore = before !== null || after !== null;
  const label = isOpen.value ? t.common.less : t.common.details;
  return (
    <div class="audit-row">
      <div class="row-flat">
        <span class="muted small audit-time" title={fullTime(new Date(time))}>
          {new Date(time).toTimeString().slice(0, 5)}
        </span>
        <span class="row-main audit-what">
          <span>
            <strong>
              <Name text={actor.name ?? word(t.audit.kinds, actor.kind)} />
            </strong>{" "}
            {word(t.audit.actions, action)} {!isAlone && word(t.audit.types, resource.type)}{" "}
            {isAlone ? null : href !== null && after !== null
              ? (
                <a href={href}>
                  <Name text={aboutOf(entry)} />
                </a>
              )
              : <Name text={aboutOf(entry)} />}
          </span>
          <span class="muted small">{[actor.address, node].filter(Boolean).join(" · ")}</span>
        </span>
        {hasMore && (
          <Button
            small
            kind="quiet"
            label={label}
            aria-label={[label, visible(aboutOf(entry))].filter(Boolean).join(": ")}
            aria-expanded={isOpen.value}
            onClick={() => isOpen.value = !isOpen.value}
          />
        )}
      </div>
      {isOpen.value && (
        <div class="audit-more">
          <Difference before={before} after={after} />
          {isAdmin.value && before !== null && <Revert entry={entry} onDone={onDone} />}
        </div>
      )}
    </div>
  );
}

/** Puts what was before back, where the thing is still there. */
function Revert(
  { entry: { resource, before, after }, onDone }: { entry: AuditEntry; onDone: () => void },
) {
  const isSettings = resource.type === "settings";
  const collection = COLLECTIONS[resource.type];
  // Of many at once the entry has no more than a part.
  if (!isSettings && (collection === undefined || resource.id === null)) {
    return <Tag>{t.audit.noWayBack}</Tag>;
  }
  const revert = async () => {
    if (isSettings) {
      await changeSettings(() => before as Settings, t.audit.reverted);
    } else if (after === null) {
      await call("POST", collection, { body: before });
      await keptOf(collection).load();
      toast(t.audit.reverted);
    } else {
      await change(collection, resource.id!, () => before as Specs[Collection], {
        said: t.audit.reverted,
      });
    }
    onDone();
  };
  return (
    <Button
      small
      icon="undo-2"
      label={t.audit.revert}
      disabled={isReadOnly.value}
      onClick={() => void attempt(revert)}
    />
  );
}
