/** Allow or block where it is looked at: what, for whom, how long, in one step. */
import { useComputed, useSignal } from "@preact/signals";
import { type Decided, type Elsewhere, remedyFor } from "../../src/client/remedy.ts";
import { decide, pauseService } from "../data/decide.ts";
import { isReadOnly } from "../data/node.ts";
import { endOf, type Period, PERIODS } from "../data/periods.ts";
import { isAdmin } from "../data/session.ts";
import { t } from "../text/mod.ts";
import { Button } from "./basics.tsx";
import { Segmented, Select } from "./controls.tsx";
import { attempt } from "./errors.tsx";
import { lowered, moment } from "./format.ts";
import { groupName, parentsOf, serviceName } from "./names.ts";

export interface PanelProps {
  readonly name: string;
  readonly type: string;
  readonly decider: Decided;
  /** The client that asked, where it is known by an ID; what it is called. */
  readonly client: {
    readonly id: string | null;
    readonly label: string;
    readonly ask: string | null;
  };
  readonly group: string | null;
  /** The entry of the log that it is about, if it is about one. */
  readonly entry?: string;
  readonly onDone?: () => void;
}

type Who = "client" | "group" | "all";

/** Where people change what no rule lifts. */
function pageOf(what: Elsewhere, group: string | null): string {
  if (what === "record") return "/records";
  if (what === "settings") return "/settings";
  return group === null ? "/groups" : `/groups/${group}`;
}

export function Panel({ name, type, decider, client, group, entry, onDone }: PanelProps) {
  const isBlocked = decider.outcome === "blocked" || decider.outcome === "rewritten";
  const action = isBlocked ? "allow" : "block";
  const remedy = remedyFor(decider);
  const scope = useSignal("this");
  const who = useSignal<Who>(isBlocked && client.id !== null ? "client" : "all");
  const period = useSignal<Period>(isBlocked ? "hour" : "ever");
  const isBusy = useSignal(false);
  const whom = useComputed(() =>
    who.value === "client"
      ? client.label
      : who.value === "group"
      ? groupName(group)
      : lowered(t.panel.everybody)
  );
  if (!isAdmin.value) return null;
  if (isBlocked && remedy.kind === "service") {
    return <ServicePanel service={remedy.service} group={group} entry={entry} />;
  }
  if (remedy.kind === "elsewhere" && decider.outcome !== "refused") {
    return (
      <p class="panel-note">
        {t.panel.elsewhere[remedy.what]} <a href={pageOf(remedy.what, group)}>{t.panel.goThere}</a>
      </p>
    );
  }
  const onSubmit = async () => {
    isBusy.value = true;
    const done = await attempt(() =>
      decide(
        {
          action,
          name: scope.value === "this" || scope.value === "below" ? name : scope.value,
          isBelow: scope.value !== "this",
          who: who.value === "client" && client.id !== null
            ? { kind: "client", id: client.id, name: client.label }
            : who.value === "group" && group !== null
            ? { kind: "group", id: group, name: groupName(group) }
            : { kind: "all" },
          period: period.value,
        },
        remedy,
        { type, client: client.ask, entry: entry ?? null },
      )
    );
    isBusy.value = false;
    if (done) onDone?.();
  };
  const label = action === "allow" ? t.panel.allow : t.panel.block;
  return (
    <form
      class="panel"
      onSubmit={(event) => {
        event.preventDefault();
        void onSubmit();
      }}
    >
      <Select
        aria-label={t.panel.what}
        value={scope.value}
        onChange={(value) => scope.value = value}
        choices={[
          { value: "this", label: t.panel.thisName },
          { value: "below", label: t.panel.allBelow(name) },
          ...parentsOf(name).map((parent) => ({ value: parent, label: t.panel.allBelow(parent) })),
        ]}
      />
      <Segmented
        label={t.panel.forWhom}
        value={who.value}
        onChange={(value) => who.value = value}
        wrap
        choices={[
          ...(client.id !== null ? [{ value: "client" as const, label: client.label }] : []),
          ...(group !== null
            ? [{ value: "group" as const, label: t.panel.group(groupName(group)) }]
            : []),
          { value: "all", label: t.panel.everybody },
        ]}
      />
      <Segmented
        label={t.panel.howLong}
        value={period.value}
        onChange={(value) => period.value = value}
        wrap
        choices={PERIODS.map((one) => ({ value: one, label: t.panel.periods[one] }))}
      />
      <Button
        kind={action === "allow" ? "primary" : "danger"}
        type="submit"
        class="panel-go"
        data-action={action}
        icon={action === "allow" ? "shield-check" : "ban"}
        label={label(whom.value, lowered(t.panel.periods[period.value]))}
        isBusy={isBusy.value}
        disabled={isReadOnly.value}
      />
    </form>
  );
}

/** No rule lifts a blocked service: it is paused in the group. */
function ServicePanel(
  { service, group, entry }: {
    service: string;
    group: string | null;
    entry: string | undefined;
  },
) {
  const label = serviceName(service);
  const pause = (period: Period) => {
    const until = endOf(period);
    return attempt(() =>
      pauseService(group!, service, until, t.groups.serviceAllowed(label, moment(until!)), entry)
    );
  };
  return (
    <div class="panel">
      <p class="panel-note">{t.panel.service(label, groupName(group))}</p>
      {group !== null && (
        <div class="row-actions">
          <Button
            kind="primary"
            label={t.groups.allowHour(label)}
            disabled={isReadOnly.value}
            onClick={() => pause("hour")}
          />
          <Button
            label={t.panel.periods.today}
            disabled={isReadOnly.value}
            onClick={() => pause("today")}
          />
          <a class="button plain" href={`/groups/${group}?tab=services`}>{t.panel.goThere}</a>
        </div>
      )}
    </div>
  );
}
