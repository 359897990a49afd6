import { keptOf, useCollection } from "../data/collections.ts";
import { nowMs } from "../data/node.ts";
import { isAdmin } from "../data/session.ts";
import type { Resource } from "../data/types.ts";
import { stretchesOf } from "../data/week.ts";
import { Card, Empty, Name, PageHead, Tag } from "../parts/basics.tsx";
import { Collected } from "../parts/collection.tsx";
import { ScheduleForm } from "../parts/schedule_form.tsx";
import { scheduleState } from "../parts/schedule_words.ts";
import { WeekGrid } from "../parts/week_grid.tsx";
import { navigate, route } from "../router.ts";
import { t } from "../text/mod.ts";

export default function SchedulePage() {
  const schedules = useCollection("schedules");
  useCollection("groups");
  const { id } = route.value;
  return (
    <Collected of={schedules}>
      {(items) => {
        const schedule = items.find((one) => one.id === id);
        return schedule === undefined
          ? (
            <>
              <PageHead title={t.schedules.gone} />
              <Empty text={t.schedules.gone}>
                <a class="button primary" href="/schedules">{t.pages.schedules}</a>
              </Empty>
            </>
          )
          : <One key={schedule.id} schedule={schedule} />;
      }}
    </Collected>
  );
}

function One({ schedule }: { schedule: Resource<"schedules"> }) {
  const { isActive, text } = scheduleState(schedule.spec, nowMs.value);
  const back = () => void navigate("/schedules");
  return (
    <>
      <PageHead title={<Name text={schedule.spec.name} />}>
        <Tag kind={isActive ? "accent" : "plain"} icon={isActive ? "play" : "clock"}>{text}</Tag>
      </PageHead>
      <UsedBy id={schedule.id} />
      <Card>
        {isAdmin.value
          ? (
            <ScheduleForm
              resource={schedule}
              initial={schedule.spec}
              onDone={back}
              onCancel={back}
            />
          )
          : (
            <WeekGrid
              value={stretchesOf(schedule.spec.windows)}
              onChange={() => undefined}
              disabled
            />
          )}
      </Card>
    </>
  );
}

function UsedBy({ id }: { id: string }) {
  const groups = (keptOf("groups").items.value ?? []).filter(({ spec }) =>
    [...spec.lists, ...spec.blocked_services].some((one) => one.schedule === id)
  );
  return (
    <p class="lead-line links">
      <span class="muted">{groups.length === 0 ? t.schedules.unused : t.schedules.usedBy}</span>
      {groups.map((group) => (
        <a key={group.id} href={`/groups/${group.id}`}>
          <Name text={group.spec.name} />
        </a>
      ))}
    </p>
  );
}
