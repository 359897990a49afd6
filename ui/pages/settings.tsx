import { useSignal } from "@preact/signals";
import { ApiError, call } from "../data/api.ts";
import { changeSettings, mayChange, putSettings, readSettings, status } from "../data/node.ts";
import type { KeptSettings } from "../data/node.ts";
import { useLoaded } from "../data/poll.ts";
import { isAdmin } from "../data/session.ts";
import type { NodeStatus, Settings, UpdateCheck } from "../data/types.ts";
import { BackupAndRestore } from "../parts/backup.tsx";
import { Button, Card, Name, PageHead } from "../parts/basics.tsx";
import { Field, Select, Switch } from "../parts/controls.tsx";
import { confirm } from "../parts/dialog.tsx";
import { attempt, Shown } from "../parts/errors.tsx";
import { Form, linesOf } from "../parts/form.tsx";
import { fullTime, number } from "../parts/format.ts";
import { toast } from "../parts/toasts.tsx";
import { UpstreamHealth } from "../parts/upstream_health.tsx";
import { t } from "../text/mod.ts";

const RESPONSES = ["null_ip", "nxdomain", "refused", "custom_ip"] as const;
const BLOCKING = ["block_response", "blocking_ipv4", "blocking_ipv6", "block_ttl"] as const;

export default function SettingsPage() {
  const settings = useLoaded(readSettings, []);
  return (
    <>
      <PageHead title={t.pages.settings} />
      <div class="settings">
        <Shown of={settings}>
          {(kept) => <Sections kept={kept} reload={settings.reload} />}
        </Shown>
        <Upstreams />
        <Node />
        <BackupAndRestore onRestored={settings.reload} />
      </div>
    </>
  );
}

interface SectionProps {
  readonly kept: KeptSettings;
  readonly reload: () => Promise<void>;
}

function Sections({ kept, reload }: SectionProps) {
  const { settings } = kept;
  const disabled = !mayChange.value;
  return (
    <>
      <Card title={t.settings.protection}>
        <Switch
          isOn={settings.protection}
          label={t.settings.protectionLabel}
          disabled={disabled}
          onChange={async (protection) => {
            await changeSettings(
              (one) => ({ ...one, protection }),
              protection ? t.pause.isOn : t.pause.off,
            );
            await reload();
          }}
        />
      </Card>
      <Card title={t.settings.blocking}>
        <Part kept={kept} reload={reload} fields={BLOCKING}>
          {({ value, set, problem }) => (
            <>
              <Field
                label={t.settings.response}
                hint={t.settings.responses[value.block_response][1]}
              >
                {(ids) => (
                  <Select
                    {...ids}
                    value={value.block_response}
                    disabled={disabled}
                    onChange={(block_response) => set({ block_response })}
                    choices={RESPONSES.map((one) => ({
                      value: one,
                      label: t.settings.responses[one][0],
                    }))}
                  />
                )}
              </Field>
              {value.block_response === "custom_ip" && (
                <div class="fields">
                  {(["blocking_ipv4", "blocking_ipv6"] as const).map((field) => (
                    <Field
                      key={field}
                      label={t.settings.addresses[field]}
                      error={problem(field)}
                      optional
                    >
                      {(ids) => (
                        <input
                          {...ids}
                          class="mono"
                          disabled={disabled}
                          value={value[field] ?? ""}
                          onInput={(event) =>
                            set({ [field]: event.currentTarget.value.trim() || null })}
                        />
                      )}
                    </Field>
                  ))}
                </div>
              )}
              <Field
                label={t.settings.blockTtl}
                hint={t.settings.blockTtlHint}
                error={problem("block_ttl")}
              >
                {(ids) => (
                  <input
                    {...ids}
                    type="number"
                    min="0"
                    disabled={disabled}
                    value={value.block_ttl}
                    onInput={(event) => set({ block_ttl: Number(event.currentTarget.value) })}
                  />
                )}
              </Field>
            </>
          )}
        </Part>
      </Card>
      <Card title={t.settings.lists}>
        <Part kept={kept} reload={reload} fields={["list_update_interval"]}>
          {({ value, set, problem }) => (
            <Field label={t.settings.interval} error={problem("list_update_interval")}>
              {(ids) => (
                <input
                  {...ids}
                  type="number"
                  min="1"
                  step="any"
                  disabled={disabled}
                  value={value.list_update_interval / 3_600}
                  onInput={(event) =>
                    set({
                      list_update_interval: Math.round(Number(event.currentTarget.value) * 3_600),
                    })}
                />
              )}
            </Field>
          )}
        </Part>
      </Card>
      <Card title={t.settings.access} id="access">
        <Part
          kept={kept}
          reload={reload}
          fields={["access"]}
          prepare={cleanAccess}
          check={checkAccess}
        >
          {({ value, set, problem }) => (
            <>
              <p class="muted">{t.settings.accessText}</p>
              {(["allowed", "disallowed"] as const).map((field) => (
                <Field
                  key={field}
                  label={t.settings.accessLists[field]}
                  hint={field === "allowed" ? t.settings.allowedHint : undefined}
                  error={problem(`access.${field}`)}
                >
                  {(ids) => (
                    <textarea
                      {...ids}
                      rows={field === "allowed" ? 6 : 3}
                      spellcheck={false}
                      disabled={disabled}
                      value={value.access[field].join("\n")}
                      onInput={(event) =>
                        set({
                          access: {
                            ...value.access,
                            [field]: event.currentTarget.value.split("\n"),
                          },
                        })}
                    />
                  )}
                </Field>
              ))}
            </>
          )}
        </Part>
      </Card>
    </>
  );
}

type Access = Pick<Settings, "access">;

function cleanAccess({ access: { allowed, disallowed } }: Access): Access {
  return {
    access: { allowed: linesOf(allowed.join("\n")), disallowed: linesOf(disallowed.join("\n")) },
  };
}

/** Nobody opens a resolver to the whole world by emptying a field. */
async function checkAccess({ access }: Access): Promise<boolean> {
  if (access.allowed.length > 0) return true;
  return await confirm(t.settings.openTitle, t.settings.openText, t.settings.openYes);
}

/**
 * A part of the settings, of these fields; what GET gave goes back whole, with them changed. What is
 * typed in one part stays when another one is saved.
 */
function Part<K extends keyof Settings>(
  { kept, reload, fields, children, prepare = (one) => one, check }: SectionProps & {
    fields: readonly K[];
    children: Parameters<typeof Form<Pick<Settings, K>>>[0]["children"];
    prepare?: (part: Pick<Settings, K>) => Pick<Settings, K>;
    check?: (part: Pick<Settings, K>) => Promise<boolean>;
  },
) {
  const { settings, revision } = kept;
  const initial = partOf(settings, fields);
  const submit = async (value: Pick<Settings, K>) => {
    const next = prepare(value);
    if (check !== undefined && !await check(next)) return;
    try {
      await putSettings({ ...settings, ...next }, revision);
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 412)) throw error;
      // Somebody else changed another field: this one is put on top of theirs.
      await changeSettings((theirs) => ({ ...theirs, ...changed(initial, next) }), null);
    }
    toast(t.common.saved(t.pages.settings), async () => {
      await changeSettings((now) => ({ ...now, ...changed(next, initial) }), t.common.undone);
      await reload();
    });
    await reload();
  };
  if (!isAdmin.value) {
    return (
      <div class="form">
        {children({
          value: initial,
          set: () => undefined,
          problem: () => undefined,
        })}
      </div>
    );
  }
  return <Form key={JSON.stringify(initial)} initial={initial} submit={submit}>{children}</Form>;
}

function partOf<K extends keyof Settings>(
  settings: Settings,
  fields: readonly K[],
): Pick<Settings, K> {
  return Object.fromEntries(fields.map((field) => [field, settings[field]])) as Pick<Settings, K>;
}

/** The fields that differ. */
function changed<P extends Partial<Settings>>(before: P, after: P): Partial<Settings> {
  return Object.fromEntries(
    Object.entries(after).filter(([key, value]) =>
      JSON.stringify(value) !== JSON.stringify(before[key as keyof P])
    ),
  );
}

function Upstreams() {
  const { upstreams = [], recursion, forwarding, dns64 = null } = status.value ?? {};
  return (
    <Card title={t.overview.upstreams} id="upstreams">
      <p class="muted">{recursion?.enabled ? t.overview.recursing : t.settings.fileOwns}</p>
      {forwarding !== undefined && <p class="muted">{t.overview.strategies[forwarding.strategy]}
      </p>}
      <ul class="rows">
        {upstreams.map(({ address, name, healthy, latency_ms, failures }) => (
          <li key={address}>
            <div class="row-flat">
              <span class="row-main">
                <Name text={address} mono />
                {name !== null && (
                  <span class="muted small">
                    <Name text={name} />
                  </span>
                )}
              </span>
              <span class="muted small">{t.overview.failures(failures, number(failures))}</span>
              <UpstreamHealth latencyMs={latency_ms} isHealthy={healthy} />
            </div>
          </li>
        ))}
      </ul>
      {dns64 !== null && <p class="muted">{t.overview.dns64(dns64.prefix)}</p>}
    </Card>
  );
}

/** The certificate that the service gets by itself: its names, and how it stands, a line each. */
function certificateText(acme: NonNullable<NodeStatus["acme"]>): string {
  const { domains, certificate, ordering, not_after, next_try, error } = acme;
  const next = fullTime(new Date(next_try));
  const state = ordering
    ? t.settings.ordering
    : certificate === "issued" && not_after !== null
    ? t.settings.issued(fullTime(new Date(not_after)), next)
    : t.settings.standIn(next);
  return [domains.join(", "), state, ...(error === null ? [] : [error])].join("\n");
}

function Node() {
  const update = useSignal<UpdateCheck | null>(null);
  const now = status.value;
  if (now === null) return null;
  const check = () =>
    attempt(async () => update.value = await call<UpdateCheck>("POST", "update/check"));
  const flush = () =>
    attempt(async () => {
      await call("POST", "cache/flush");
      toast(t.settings.flushed);
    });
  const facts: readonly (readonly [string, string])[] = [
    [t.settings.node.name, now.node],
    [t.settings.node.version, now.version],
    [t.settings.node.started, fullTime(new Date(now.started_at))],
    [
      t.settings.node.listeners,
      now.listeners.map(({ protocol, address }) => `${protocol} ${address}`).join("\n"),
    ],
    ...(now.acme ? [[t.settings.node.certificate, certificateText(now.acme)] as const] : []),
    [t.settings.node.rules, number(now.filter.rules)],
    [t.settings.node.cache, t.settings.cached(number(now.cache.entries))],
    [
      t.settings.node.log,
      t.settings.logged(number(now.querylog.entries), number(now.querylog.dropped)),
    ],
  ];
  return (
    <Card title={t.settings.node.title} id="node">
      <dl class="facts">
        {facts.map(([title, text]) => (
          <div key={title}>
            <dt>{title}</dt>
            <dd>
              {text.split("\n").map((line) => (
                <div key={line}>
                  <Name text={line} />
                </div>
              ))}
            </dd>
          </div>
        ))}
      </dl>
      {isAdmin.value && (
        <div class="row-actions section">
          <Button label={t.settings.flush} onClick={flush} />
          <Button label={t.settings.checkUpdate} onClick={check} />
          {now.api_docs && (
            <a class="button quiet" href="/api/docs" target="_blank">{t.settings.docs}</a>
          )}
        </div>
      )}
      {update.value !== null && (
        <p role="status">
          {update.value.latest === null
            ? t.settings.noReleases
            : update.value.newer
            ? t.settings.newer(update.value.latest)
            : t.settings.newest}
          {update.value.url !== null && (
            <>
              {" "}
              <a href={update.value.url} target="_blank" rel="noreferrer">{t.common.details}</a>
            </>
          )}
        </p>
      )}
    </Card>
  );
}
