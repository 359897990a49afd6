import type { Resource, Specs } from "../data/types.ts";
import { type Day, DAYS, stretchAt, stretchesOf, type Window, windowsOf } from "../data/week.ts";
import { t } from "../text/mod.ts";
import { Button } from "./basics.tsx";
import { Field, TextField } from "./controls.tsx";
import { type Draft, ResourceForm } from "./form.tsx";
import { weekday } from "./format.ts";
import { Picker } from "./picker.tsx";
import { useMedia } from "./use_media.ts";
import { WeekGrid } from "./week_grid.tsx";

export function newSchedule(): Specs["schedules"] {
  const time_zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return { name: "", time_zone, windows: [] };
}

const ZONES = Intl.supportedValuesOf("timeZone").map((zone) => ({ value: zone, label: zone }));

export function ScheduleForm(
  { resource, initial, onDone, onCancel }: {
    resource: Resource<"schedules"> | null;
    initial: Specs["schedules"];
    onDone: (made: Resource<"schedules">) => void;
    onCancel: () => void;
  },
) {
  return (
    <ResourceForm
      collection="schedules"
      resource={resource}
      initial={initial}
      said={({ name }) => (resource === null ? t.common.added : t.common.saved)(name)}
      onDone={onDone}
      onCancel={onCancel}
    >
      {(draft) => <ScheduleFields {...draft} />}
    </ResourceForm>
  );
}

function ScheduleFields({ value, set, problem }: Draft<Specs["schedules"]>) {
  const isPhone = useMedia("(max-width: 639px)");
  const setWindow = (index: number, changes: Partial<Window>) =>
    set({ windows: value.windows.map((one, i) => i === index ? { ...one, ...changes } : one) });
  return (
    <>
      <div class="fields">
        <TextField
          label={t.common.name}
          error={problem("name")}
          value={value.name}
          onText={(name) => set({ name })}
        />
        <Field label={t.schedules.zone} error={problem("time_zone")}>
          {(ids) => (
            <Picker
              ids={ids}
              free
              value={value.time_zone}
              options={ZONES}
              onPick={(time_zone) => set({ time_zone })}
            />
          )}
        </Field>
      </div>
      <div class="field">
        <p class="label">{t.schedules.week}</p>
        <WeekGrid
          value={stretchesOf(value.windows)}
          onChange={(stretches) => set({ windows: windowsOf(stretches) })}
          onMinutes={(minute) => toMinutes(value.windows, minute)}
        />
        <p class="hint">{isPhone ? t.schedules.weekTap : t.schedules.weekHint}</p>
      </div>
      <ul class="windows">
        {value.windows.map((window, i) => (
          <li key={i} class="window">
            <Days of={window} onChange={(days) => setWindow(i, { days })} index={i} />
            <span class="window-times">
              <input
                type="time"
                aria-label={t.schedules.start(i + 1)}
                value={window.start}
                onChange={(event) => setWindow(i, { start: event.currentTarget.value })}
              />
              <span aria-hidden="true">–</span>
              <input
                type="time"
                aria-label={t.schedules.end(i + 1)}
                aria-invalid={problem(`windows[${i}]`) !== undefined ||
                  problem(`windows[${i}].end`) !== undefined || undefined}
                value={window.end === "24:00" ? "00:00" : window.end}
                onChange={(event) => setWindow(i, { end: endOf(event.currentTarget.value) })}
              />
              <Button
                small
                kind="quiet"
                iconOnly
                icon="trash"
                label={t.schedules.removeWindow(i + 1)}
                onClick={() => set({ windows: value.windows.filter((_, at) => at !== i) })}
              />
            </span>
            {problem(`windows[${i}].end`) !== undefined && (
              <p class="problem" role="alert">{problem(`windows[${i}].end`)}</p>
            )}
          </li>
        ))}
      </ul>
      {problem("windows") !== undefined && <p class="problem" role="alert">{problem("windows")}</p>}
      <Button
        small
        icon="plus"
        class="add-window"
        label={t.schedules.addWindow}
        onClick={() =>
          set({ windows: [...value.windows, { days: [...DAYS], start: "21:00", end: "06:00" }] })}
      />
    </>
  );
}

/** Puts the focus to the times of the window that holds at a minute of the week. */
function toMinutes(windows: readonly Window[], minute: number): void {
  const index = windows.findIndex((window) => stretchAt(stretchesOf([window]), minute) !== null);
  document.querySelectorAll<HTMLElement>(".window input[type=time]")[2 * index]?.focus();
}

/** Midnight as an end is that of the same day. */
function endOf(clock: string): string {
  return clock === "00:00" ? "24:00" : clock;
}

function Days(
  { of: { days }, onChange, index }: { of: Window; onChange: (days: Day[]) => void; index: number },
) {
  return (
    <span class="days" role="group" aria-label={t.schedules.daysOf(index + 1)}>
      {DAYS.map((day, i) => {
        const isOn = days.includes(day);
        return (
          <button
            key={day}
            type="button"
            aria-pressed={isOn}
            title={weekday(i, "long")}
            onClick={() => onChange(DAYS.filter((one) => one === day ? !isOn : days.includes(one)))}
          >
            {weekday(i)}
          </button>
        );
      })}
    </span>
  );
}
