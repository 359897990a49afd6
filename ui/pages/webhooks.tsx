import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { call, get } from "../data/api.ts";
import { isAdmin } from "../data/session.ts";
import type { Delivery, Resource, Specs } from "../data/types.ts";
import { Button, Empty, Name, PageHead, Skeleton, Tag } from "../parts/basics.tsx";
import { Check, TextField } from "../parts/controls.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { attempt, ErrorBox } from "../parts/errors.tsx";
import { milliseconds, moment, visible } from "../parts/format.ts";
import { ResourcePage } from "../parts/resource_page.tsx";
import { Table } from "../parts/table.tsx";
import { toast } from "../parts/toasts.tsx";
import { t } from "../text/mod.ts";

/** What is answered to whoever adds one, and to nobody after, has the key. */
type Webhook = Resource<"webhooks"> & { readonly key?: string };

const NEW: Specs["webhooks"] = { name: "", url: "", events: [], enabled: true, key: "" };

function hostOf(url: string): string {
  return URL.parse(url)?.host ?? url;
}

export default function Webhooks() {
  if (!isAdmin.value) {
    return (
      <>
        <PageHead title={t.pages.webhooks} lead={t.webhooks.lead} />
        <Empty text={t.webhooks.adminsOnly} icon="zap" />
      </>
    );
  }
  return <WebhooksOfAdmins />;
}

function WebhooksOfAdmins() {
  const looking = useSignal<Webhook | null>(null);
  return (
    <>
      <ResourcePage
        collection="webhooks"
        words={t.webhooks}
        icon="zap"
        initial={NEW}
        isMuted={({ enabled }) => !enabled}
        tags={({ enabled }) => !enabled && <Tag kind="warning">{t.common.off}</Tag>}
        columns={[
          {
            key: "to",
            title: t.webhooks.to,
            sort: ({ spec }) => hostOf(spec.url),
            cell: ({ spec }) => <Name text={hostOf(spec.url)} mono />,
          },
          {
            key: "events",
            title: t.webhooks.events,
            cell: ({ spec }) => spec.events.map((one) => t.webhooks.kinds[one]).join(", "),
          },
        ]}
        more={(webhook) => (
          <Button
            small
            kind="quiet"
            iconOnly
            icon="scroll-text"
            label={`${t.webhooks.deliveries}: ${webhook.spec.name}`}
            onClick={() => looking.value = webhook}
          />
        )}
        fields={({ value, set, problem }, resource) => (
          <>
            <TextField
              label={t.webhooks.url}
              hint={t.webhooks.urlHint}
              error={problem("url")}
              autocomplete="off"
              autocapitalize="none"
              placeholder="https://…"
              value={value.url}
              onText={(url) => set({ url })}
            />
            <fieldset>
              <legend>{t.webhooks.events}</legend>
              {(Object.keys(t.webhooks.kinds) as Specs["webhooks"]["events"]).map((event) => (
                <Check
                  key={event}
                  isOn={value.events.includes(event)}
                  label={t.webhooks.kinds[event]}
                  onChange={(isOn) =>
                    set({
                      events: isOn
                        ? [...value.events, event]
                        : value.events.filter((one) => one !== event),
                    })}
                />
              ))}
              {problem("events") !== undefined && (
                <p class="problem" role="alert">{problem("events")}</p>
              )}
            </fieldset>
            <TextField
              label={t.webhooks.key}
              hint={resource === null ? t.webhooks.keyMade : t.webhooks.keyStays}
              error={problem("key")}
              optional
              autocomplete="off"
              autocapitalize="none"
              value={value.key ?? ""}
              onText={(key) => set({ key })}
            />
            <Check
              isOn={value.enabled}
              label={t.webhooks.enabled}
              onChange={(enabled) => set({ enabled })}
            />
          </>
        )}
        secret={{
          of: ({ key }: Webhook) => key,
          title: t.webhooks.made,
          text: t.webhooks.madeText,
        }}
      />
      {looking.value !== null && (
        <Deliveries
          webhook={looking.value}
          onClose={() => looking.value = null}
        />
      )}
    </>
  );
}

/** What this node sent it, and what came of that; with the button that tries it. */
function Deliveries({ webhook, onClose }: { webhook: Webhook; onClose: () => void }) {
  const path = `webhooks/${webhook.id}`;
  const items = useSignal<readonly Delivery[] | null>(null);
  const error = useSignal<unknown>(null);
  const isTesting = useSignal(false);
  const load = async () => {
    try {
      items.value = (await get<{ items: readonly Delivery[] }>(`${path}/deliveries`)).items;
      error.value = null;
    } catch (failure) {
      error.value = failure;
    }
  };
  useEffect(() => void load(), [path]);
  const test = async () => {
    isTesting.value = true;
    await attempt(async () => {
      const { state, error: why } = await call<Delivery>("POST", `${path}/test`);
      if (state === "delivered") toast(t.webhooks.isTested);
      else toast(t.webhooks.isRefused(visible(why ?? "")), null, "danger");
      await load();
    });
    isTesting.value = false;
  };
  const { states, columns } = t.webhooks;
  return (
    <Dialog title={`${t.webhooks.deliveries}: ${webhook.spec.name}`} onClose={onClose} wide>
      <div class="form-actions">
        <Button label={t.common.reload} icon="refresh-cw" onClick={() => void load()} />
        <Button
          kind="primary"
          label={t.webhooks.test}
          disabled={isTesting.value}
          onClick={() => void test()}
        />
      </div>
      {error.value !== null
        ? <ErrorBox error={error.value} onRetry={() => void load()} />
        : items.value === null
        ? <Skeleton />
        : items.value.length === 0
        ? <Empty text={t.webhooks.nothing} />
        : (
          <Table
            caption={t.webhooks.deliveries}
            rows={items.value}
            keyOf={({ id }) => id}
            columns={[
              {
                key: "time",
                title: columns.time,
                card: "title",
                cell: ({ created_at }) => moment(new Date(created_at)),
              },
              {
                key: "event",
                title: columns.event,
                cell: ({ event }) =>
                  (t.webhooks.kinds as Readonly<Record<string, string>>)[event] ?? t.webhooks.test,
              },
              {
                key: "state",
                title: columns.state,
                cell: ({ state }) => (
                  <Tag
                    kind={state === "delivered" ? "ok" : state === "waiting" ? "plain" : "danger"}
                  >
                    {states[state]}
                  </Tag>
                ),
              },
              {
                key: "outcome",
                title: columns.outcome,
                cell: ({ status, error: why, duration_ms }) => (
                  <>
                    {why === null ? status : visible(why)}
                    {duration_ms !== null && (
                      <span class="muted">{` · ${milliseconds(duration_ms)}`}</span>
                    )}
                  </>
                ),
              },
              {
                key: "next",
                title: columns.next,
                cell: ({ attempts, next_try_at }) =>
                  next_try_at === null
                    ? t.webhooks.tries(attempts)
                    : t.webhooks.nextTry(attempts, moment(new Date(next_try_at))),
              },
            ]}
          />
        )}
    </Dialog>
  );
}
