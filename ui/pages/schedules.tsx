import { useSignal } from "@preact/signals";
import { useCollection } from "../data/collections.ts";
import { nowMs } from "../data/node.ts";
import type { Resource } from "../data/types.ts";
import { stretchesOf, windowsOf } from "../data/week.ts";
import { Empty, Name, PageHead, Tag } from "../parts/basics.tsx";
import { AddButton, Collected, removeNow, RowActions } from "../parts/collection.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { weekday } from "../parts/format.ts";
import { newSchedule, ScheduleForm } from "../parts/schedule_form.tsx";
import { scheduleState } from "../parts/schedule_words.ts";
import { DAYS } from "../data/week.ts";
import { navigate, useClosing } from "../router.ts";
import { t } from "../text/mod.ts";

export default function Schedules() {
  const schedules = useCollection("schedules");
  useCollection("groups");
  const isAdding = useSignal(false);
  return (
    <>
      <PageHead title={t.pages.schedules} lead={t.schedules.lead}>
        <AddButton label={t.schedules.add} onClick={() => isAdding.value = true} />
      </PageHead>
      <Collected of={schedules}>
        {(items) =>
          items.length === 0
            ? (
              <Empty text={t.schedules.empty} icon="calendar-clock">
                <AddButton label={t.schedules.add} onClick={() => isAdding.value = true} />
              </Empty>
            )
            : (
              <div class="group-cards">
                {items.map((schedule) => <ScheduleCard key={schedule.id} schedule={schedule} />)}
              </div>
            )}
      </Collected>
      {isAdding.value && <NewSchedule onClose={() => isAdding.value = false} />}
    </>
  );
}

/** The form of one to be made. */
function NewSchedule({ onClose }: { onClose: () => void }) {
  const close = useClosing(onClose);
  const leave = () => void close();
  return (
    <Dialog title={t.schedules.add} wide onClose={leave}>
      <ScheduleForm resource={null} initial={newSchedule()} onCancel={leave} onDone={onClose} />
    </Dialog>
  );
}

function ScheduleCard({ schedule }: { schedule: Resource<"schedules"> }) {
  const { id, spec } = schedule;
  const { isActive, text } = scheduleState(spec, nowMs.value);
  return (
    <section class="card group-card">
      <header class="card-head">
        <h2>
          <a href={`/schedules/${id}`}>
            <Name text={spec.name} />
          </a>
        </h2>
        <RowActions
          name={spec.name}
          onEdit={() => void navigate(`/schedules/${id}`)}
          onRemove={() => void removeNow("schedules", schedule, spec.name)}
        />
      </header>
      <p>
        <Tag kind={isActive ? "accent" : "plain"} icon={isActive ? "play" : "clock"}>{text}</Tag>
        {" "}
        <span class="muted small">{spec.time_zone}</span>
      </p>
      <ul class="window-list">
        {windowsOf(stretchesOf(spec.windows)).map((window, i) => (
          <li key={i}>
            <span class="muted">
              {window.days.map((day) => weekday(DAYS.indexOf(day))).join(" ")}
            </span>
            <span>{`${window.start}–${window.end}`}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
