/** One's own rules, and what they come to: the trial beside them tells before anything is saved. */
import { useSignal } from "@preact/signals";
import { ApiError, call } from "../data/api.ts";
import { create, keptOf, useCollection } from "../data/collections.ts";
import { nowMs } from "../data/node.ts";
import { endOf, isPeriod } from "../data/periods.ts";
import { isAdmin } from "../data/session.ts";
import type { Resource, Specs } from "../data/types.ts";
import { Card, Empty, Name, PageHead, Tag } from "../parts/basics.tsx";
import { clientOptions, whomOptions } from "../parts/choices.ts";
import { Found, PageSearch, removeNow, ResourceDialog } from "../parts/collection.tsx";
import { Field, Select, TextField } from "../parts/controls.tsx";
import { type Draft, Form } from "../parts/form.tsx";
import { moment } from "../parts/format.ts";
import { Picker } from "../parts/picker.tsx";
import { ruleWords } from "../parts/rule_words.ts";
import { actionsColumn, switchColumn } from "../parts/resource_columns.tsx";
import { Table } from "../parts/table.tsx";
import { toast } from "../parts/toasts.tsx";
import { Trial } from "../parts/trial.tsx";
import { t } from "../text/mod.ts";

type Rule = Resource<"rules">;

const NEW: Specs["rules"] = {
  rule: "",
  enabled: true,
  comment: "",
  managed_by: "api",
  expires_at: null,
  groups: [],
  clients: [],
};

export default function Rules() {
  const rules = useCollection("rules");
  useCollection("groups");
  useCollection("clients");
  const draft = useSignal("");
  const editing = useSignal<Rule | null>(null);
  return (
    <>
      <PageHead title={t.pages.rules} lead={t.rules.lead} />
      <div class="grid two-one rules-top">
        {isAdmin.value && (
          <Card title={t.rules.add}>
            <AddRule onDraft={(text) => draft.value = text} />
          </Card>
        )}
        <Card title={t.rules.try}>
          <Trial draft={draft.value} clients={clientOptions()} />
        </Card>
      </div>
      <div class="toolbar section">
        <PageSearch />
      </div>
      <Found
        of={rules}
        textOf={({ rule, comment }) => `${rule} ${comment}`}
        empty={<Empty text={t.rules.empty} icon="list-filter" />}
      >
        {(rows) => <RuleTable rows={rows.toReversed()} onEdit={(rule) => editing.value = rule} />}
      </Found>
      {editing.value !== null && (
        <ResourceDialog
          title={t.rules.edit}
          collection="rules"
          resource={editing.value}
          initial={editing.value.spec}
          nameOf={({ rule }) => rule}
          onClose={() => editing.value = null}
        >
          {(form) => <RuleFields {...form} />}
        </ResourceDialog>
      )}
    </>
  );
}

/** For whom: nobody named is everybody. */
function whomOf({ groups, clients }: Specs["rules"]): string {
  return groups[0] ?? clients[0] ?? "";
}

function forWhom(id: string): Pick<Specs["rules"], "groups" | "clients"> {
  return { groups: id.startsWith("gr_") ? [id] : [], clients: id.startsWith("cl_") ? [id] : [] };
}

function RuleFields({ value, set, problem }: Draft<Specs["rules"]>) {
  const many = value.groups.length + value.clients.length > 1;
  return (
    <>
      <TextField
        label={t.rules.rule}
        hint={ruleWords(value.rule)}
        error={problem("rule")}
        class="mono"
        value={value.rule}
        onText={(rule) => set({ rule })}
      />
      {!many && (
        <Field label={t.panel.forWhom}>
          {(ids) => (
            <Picker
              ids={ids}
              value={whomOf(value)}
              options={whomOptions()}
              onPick={(id) => set(forWhom(id))}
            />
          )}
        </Field>
      )}
      <TextField
        label={t.common.comment}
        error={problem("comment")}
        optional
        value={value.comment}
        onText={(comment) => set({ comment })}
      />
    </>
  );
}

interface Line {
  readonly rule: string;
  /** From 1, as people count. */
  readonly number: number;
}

function linesIn(text: string): Line[] {
  return text.split("\n").map((line, i) => ({ rule: line.trim(), number: i + 1 }))
    .filter(({ rule }) => rule !== "");
}

/** What is wrong with rules of a batch, by the lines that they were typed in. */
function atLines(error: unknown, lines: readonly Line[]): unknown {
  if (!(error instanceof ApiError)) return error;
  const { status, code, message } = error;
  const details = error.details.map((one) => {
    const [, index, path] = /^add\[(\d+)\]\.(.+)$/.exec(one.path) ?? [];
    const line = lines[Number(index)];
    if (line === undefined) return one;
    return { path, message: `${t.rules.atLine(line.number, line.rule)}: ${one.message}` };
  });
  return new ApiError(status, code, message, details);
}

/** Adds one line, or many at once. */
function AddRule({ onDraft }: { onDraft: (text: string) => void }) {
  const turn = useSignal(0);
  const submit = async (
    { text, whom, period, comment }: {
      text: string;
      whom: string;
      period: string;
      comment: string;
    },
  ) => {
    const end = isPeriod(period) ? endOf(period) : null;
    const lines = linesIn(text);
    const specs = lines.map(({ rule }): Specs["rules"] => ({
      ...NEW,
      rule,
      comment,
      ...forWhom(whom),
      expires_at: end?.toISOString() ?? null,
    }));
    if (specs.length > 1) {
      const { added } = await call<{ added: readonly Rule[] }>("POST", "rules/batch", {
        body: { add: specs },
      }).catch((error) => {
        throw atLines(error, lines);
      });
      void keptOf("rules").load();
      const undo = async () => {
        await call("POST", "rules/batch", { body: { remove: added.map(({ id }) => id) } });
        await keptOf("rules").load();
      };
      toast(t.rules.addedMany(added.length), undo);
    } else {
      const [spec = { ...NEW, rule: text }] = specs;
      await create("rules", spec, { said: t.common.added(spec.rule) });
    }
    onDraft("");
    turn.value++;
  };
  return (
    <Form
      key={turn.value}
      initial={{ text: "", whom: "", period: "ever", comment: "" }}
      submit={submit}
      saveLabel={t.common.add}
    >
      {({ value, set, problem }) => {
        const lines = linesIn(value.text);
        return (
          <>
            <Field
              label={t.rules.rule}
              hint={lines.length > 1
                ? t.rules.lines(lines.length)
                : ruleWords(value.text) || t.rules.hint}
              error={problem("rule")}
            >
              {(ids) => (
                <textarea
                  {...ids}
                  rows={2}
                  class="rule-input"
                  spellcheck={false}
                  placeholder="||ads.example^"
                  value={value.text}
                  onInput={(event) => {
                    set({ text: event.currentTarget.value });
                    onDraft(event.currentTarget.value);
                  }}
                />
              )}
            </Field>
            <div class="fields">
              <Field label={t.panel.forWhom}>
                {(ids) => (
                  <Picker
                    ids={ids}
                    value={value.whom}
                    options={whomOptions()}
                    onPick={(whom) => set({ whom })}
                  />
                )}
              </Field>
              <Field label={t.panel.howLong}>
                {(ids) => (
                  <Select
                    {...ids}
                    value={value.period}
                    onChange={(period) => set({ period })}
                    choices={(["ever", "hour", "today"] as const)
                      .map((one) => ({ value: one, label: t.panel.periods[one] }))}
                  />
                )}
              </Field>
              <TextField
                label={t.common.comment}
                optional
                value={value.comment}
                onText={(comment) => set({ comment })}
              />
            </div>
          </>
        );
      }}
    </Form>
  );
}

function nameOfId(id: string): string {
  const one = id.startsWith("gr_")
    ? keptOf("groups").byId.value.get(id)
    : keptOf("clients").byId.value.get(id);
  return one?.spec.name ?? id;
}

function RuleTable({ rows, onEdit }: { rows: readonly Rule[]; onEdit: (rule: Rule) => void }) {
  return (
    <Table
      caption={t.pages.rules}
      rows={rows}
      keyOf={({ id }) => id}
      isMuted={({ spec }) => !spec.enabled}
      columns={[
        switchColumn("rules", (spec) => spec.rule),
        {
          key: "rule",
          title: t.rules.rule,
          card: "title",
          sort: ({ spec }) => spec.rule,
          cell: ({ spec }) => (
            <span class="rule-cell">
              <code class="rule">
                <Name text={spec.rule} />
              </code>
              <span class="muted small">{ruleWords(spec.rule)}</span>
            </span>
          ),
        },
        {
          key: "whom",
          title: t.panel.forWhom,
          cell: ({ spec: { groups, clients } }) =>
            groups.length + clients.length === 0
              ? <span class="muted">{t.panel.everybody}</span>
              : <Name text={[...groups, ...clients].map(nameOfId).join(", ")} />,
        },
        {
          key: "end",
          title: t.rules.ends,
          sort: ({ spec }) => spec.expires_at ?? "z",
          cell: ({ spec: { expires_at } }) =>
            !expires_at
              ? <span class="muted">{t.common.never}</span>
              : Date.parse(expires_at) > nowMs.value
              ? <Tag kind="accent" icon="clock">{moment(new Date(expires_at))}</Tag>
              : <Tag>{t.rules.over}</Tag>,
        },
        {
          key: "comment",
          title: t.common.comment,
          cell: ({ spec }) => <Name text={spec.comment} />,
        },
        actionsColumn({
          nameOf: ({ spec }) => spec.rule,
          onEdit,
          onRemove: (rule) => void removeNow("rules", rule, rule.spec.rule),
        }),
      ]}
    />
  );
}
