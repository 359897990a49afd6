/** Moves here what AdGuard Home or Pi-hole has: looks first, and shows what would become of each thing. */
import type { ComponentChildren } from "preact";
import { useSignal } from "@preact/signals";
import { call } from "../data/api.ts";
import { isReadOnly } from "../data/node.ts";
import { isAdmin } from "../data/session.ts";
import type { MigrateBody, Migrated } from "../data/types.ts";
import { Button, Card, Copy, Empty, Name, PageHead, Tag } from "../parts/basics.tsx";
import { Field, Segmented, TextField } from "../parts/controls.tsx";
import { attempt } from "../parts/errors.tsx";
import { Form } from "../parts/form.tsx";
import { visible } from "../parts/format.ts";
import type { IconName } from "../parts/icon_names.ts";
import { Table } from "../parts/table.tsx";
import { toast } from "../parts/toasts.tsx";
import { t } from "../text/mod.ts";

/** The service reads for 20 s, and gives up by itself after half a minute. */
const ANSWER_MS_MAX = 40_000;
/** Rows that are drawn before somebody asks for more. */
const ROWS_SHOWN = 200;

type Source = Pick<MigrateBody, "product" | "url"> & { user: string; password: string };
type Item = Migrated["items"][number];

const OUTCOMES = ["added", "adapted", "there_already", "not_possible"] as const;
type Outcome = typeof OUTCOMES[number];
const LOOKS = {
  added: { icon: "plus", kind: "ok" },
  adapted: { icon: "pencil-line", kind: "accent" },
  there_already: { icon: "check", kind: "plain" },
  not_possible: { icon: "triangle-alert", kind: "warning" },
} as const satisfies Record<Outcome, { icon: IconName; kind: string }>;

async function ask({ product, url, user, password }: Source, isDry: boolean): Promise<Migrated> {
  return await call<Migrated>("POST", "migrate", {
    params: { dry_run: isDry },
    body: {
      product,
      url,
      user: product === "adguard" && user !== "" ? user : null,
      password: password === "" ? null : password,
    },
    timeoutMs: ANSWER_MS_MAX,
  });
}

export default function Move() {
  /** What was asked, with what came of it. */
  const seen = useSignal<{ readonly source: Source; readonly answer: Migrated } | null>(null);
  const isMoving = useSignal(false);
  if (!isAdmin.value) {
    return (
      <Page>
        <Empty text={t.move.adminsOnly} />
      </Page>
    );
  }
  const look = async (source: Source) => {
    seen.value = null;
    seen.value = { source, answer: await ask(source, true) };
  };
  const move = async () => {
    const { source } = seen.value!;
    isMoving.value = true;
    await attempt(async () => {
      const answer = await ask(source, false);
      seen.value = { source, answer };
      toast(t.move.moved, null, "plain", [{ href: "/audit", label: t.pages.audit }]);
    });
    isMoving.value = false;
  };
  return (
    <Page>
      <Card title={t.move.from}>
        <SourceForm onLook={look} />
      </Card>
      <div class="stack" aria-live="polite">
        {seen.value !== null && (
          <Result of={seen.value.answer} isMoving={isMoving.value} onMove={move} />
        )}
      </div>
    </Page>
  );
}

function Page({ children }: { children: ComponentChildren }) {
  return (
    <>
      <PageHead title={t.pages.move} lead={t.move.lead}>
        <a class="button quiet" href="/lists">{t.pages.lists}</a>
      </PageHead>
      <div class="stack">{children}</div>
    </>
  );
}

function SourceForm({ onLook }: { onLook: (source: Source) => Promise<void> }) {
  const initial: Source = { product: "adguard", url: "", user: "", password: "" };
  return (
    <Form initial={initial} submit={onLook} saveLabel={t.move.look} warns={false}>
      {({ value, set, problem }) => (
        <>
          <Segmented
            label={t.move.product}
            value={value.product}
            choices={[
              { value: "adguard", label: "AdGuard Home" },
              { value: "pihole", label: "Pi-hole" },
            ]}
            onChange={(product) => set({ product })}
          />
          <Field label={t.move.url} hint={t.move.urlHint} error={problem("url")}>
            {(ids) => (
              <input
                {...ids}
                type="url"
                class="mono"
                required
                value={value.url}
                placeholder={value.product === "adguard"
                  ? "http://192.168.1.2:3000"
                  : "http://192.168.1.2/admin"}
                onInput={(event) => set({ url: event.currentTarget.value.trim() })}
              />
            )}
          </Field>
          {value.product === "adguard" && (
            <TextField
              label={t.move.user}
              optional
              error={problem("user")}
              value={value.user}
              autocomplete="off"
              autocapitalize="none"
              onText={(user) => set({ user })}
            />
          )}
          <Field
            label={t.move.password}
            optional
            hint={value.product === "pihole" ? t.move.appPassword : t.move.passwordHint}
            error={problem("password")}
          >
            {(ids) => (
              <input
                {...ids}
                type="password"
                autocomplete="off"
                value={value.password}
                onInput={(event) => set({ password: event.currentTarget.value })}
              />
            )}
          </Field>
        </>
      )}
    </Form>
  );
}

function Result(
  { of: answer, isMoving, onMove }: {
    of: Migrated;
    isMoving: boolean;
    onMove: () => Promise<void>;
  },
) {
  const { done, source, counts, items, fragment } = answer;
  const shown = useSignal<Outcome | "all">("all");
  const isWhole = useSignal(false);
  const of = items.filter(({ outcome }) => shown.value === "all" || outcome === shown.value);
  const rows = isWhole.value ? of : of.slice(0, ROWS_SHOWN);
  const choices = [
    { value: "all" as const, label: `${t.common.all} ${items.length}` },
    ...OUTCOMES.map((outcome) => ({
      value: outcome,
      label: `${t.move.outcomes[outcome]} ${counts[outcome]}`,
    })),
  ];
  return (
    <>
      <Card title={visible(source)}>
        <p role="status">{done ? t.move.isMoved : t.move.isLooked}</p>
        <p class="muted">{done ? t.move.wayBack : t.move.backupFirst}</p>
        {!done && (
          <div class="form-actions">
            <Button
              kind="primary"
              icon="download"
              label={t.move.move}
              isBusy={isMoving}
              disabled={isReadOnly.value}
              onClick={onMove}
            />
          </div>
        )}
      </Card>
      <Card title={t.move.found}>
        <div class="stack">
          <Segmented
            wrap
            label={t.move.outcome}
            value={shown.value}
            choices={choices}
            onChange={(outcome) => shown.value = outcome}
          />
          {of.length === 0 ? <Empty text={t.common.nothingFound} icon="search" /> : (
            <Table
              caption={t.move.found}
              rows={rows.map((item, i) => ({ item, i }))}
              keyOf={({ i }) => `${shown.value} ${i}`}
              columns={[
                {
                  key: "outcome",
                  title: t.move.outcome,
                  cell: ({ item }) => <OutcomeTag outcome={item.outcome} />,
                },
                { key: "type", title: t.move.type, cell: ({ item }) => typeName(item.type) },
                {
                  key: "name",
                  title: t.common.name,
                  card: "title",
                  cell: ({ item }) => <Name text={item.name} />,
                },
                {
                  key: "detail",
                  title: t.common.details,
                  cell: ({ item }) =>
                    item.detail !== null && <span class="muted small">{visible(item.detail)}</span>,
                },
              ]}
            />
          )}
          {rows.length < of.length && (
            <Button
              label={t.move.showAll(of.length)}
              onClick={() => isWhole.value = true}
            />
          )}
        </div>
      </Card>
      <Card title={t.move.file} actions={<Copy text={fragment} />}>
        <p class="muted">{t.move.fileHint}</p>
        <pre
          class="mono"
          tabIndex={0}
          aria-label={t.move.file}
        >{fragment.split("\n").map(visible).join("\n")}</pre>
      </Card>
    </>
  );
}

function isOutcome(text: string): text is Outcome {
  return Object.hasOwn(LOOKS, text);
}

function OutcomeTag({ outcome }: Pick<Item, "outcome">) {
  if (!isOutcome(outcome)) return <Tag>{visible(outcome)}</Tag>;
  return <Tag kind={LOOKS[outcome].kind} icon={LOOKS[outcome].icon}>{t.move.outcomes[outcome]}
  </Tag>;
}

function typeName(type: string): string {
  const names: Readonly<Record<string, string>> = t.move.types;
  return Object.hasOwn(names, type) ? names[type] : visible(type);
}
