/** A week of half hours: paint by dragging, or by keys; what is painted runs past midnight too. */
import { useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { clockOf, DAY_MINUTES, DAYS, onDay, paint, type Stretch } from "../data/week.ts";
import { t } from "../text/mod.ts";
import { weekday } from "./format.ts";

const STEP = 30;
const STEPS = DAY_MINUTES / STEP;

interface Cell {
  readonly day: number;
  readonly step: number;
}

function stretchOf(day: number, a: number, b: number): Stretch {
  const begin = day * DAY_MINUTES;
  return [begin + Math.min(a, b) * STEP, begin + (Math.max(a, b) + 1) * STEP];
}

export function WeekGrid(
  { value, onChange, disabled = false }: {
    value: readonly Stretch[];
    onChange: (next: Stretch[]) => void;
    disabled?: boolean;
  },
) {
  const at = useSignal<Cell>({ day: 0, step: 16 });
  const drag = useRef<{ from: Cell; isOn: boolean; before: readonly Stretch[] } | null>(null);
  const anchor = useRef<Cell | null>(null);
  const copied = useRef<readonly Stretch[] | null>(null);
  const ref = useRef<HTMLDivElement>(null);
  const isOn = ({ day, step }: Cell) => {
    const minute = day * DAY_MINUTES + step * STEP;
    return value.some(([from, to]) => minute >= from && minute < to);
  };
  /** From the first cell to this one: the same hours of every day between. */
  const paintTo = (to: Cell) => {
    const { from, isOn: on, before } = drag.current!;
    let next: Stretch[] = [...before];
    for (let day = Math.min(from.day, to.day); day <= Math.max(from.day, to.day); day++) {
      next = paint(next, stretchOf(day, from.step, to.step), on);
    }
    onChange(next);
  };
  const cellAt = (event: PointerEvent): Cell | null => {
    const cell = document.elementFromPoint(event.clientX, event.clientY)?.closest<HTMLElement>(
      "[data-step]",
    );
    if (!cell || !ref.current?.contains(cell)) return null;
    return { day: Number(cell.dataset.day), step: Number(cell.dataset.step) };
  };
  const begin = (from: Cell) => {
    drag.current = { from, isOn: !isOn(from), before: value };
    paintTo(from);
  };
  const focus = (cell: Cell) => {
    at.value = cell;
    requestAnimationFrame(() => ref.current?.querySelector<HTMLElement>('[tabindex="0"]')?.focus());
  };
  const onKey = (event: KeyboardEvent) => {
    const { day, step } = at.value;
    const move = {
      ArrowLeft: { day, step: Math.max(0, step - 1) },
      ArrowRight: { day, step: Math.min(STEPS - 1, step + 1) },
      ArrowUp: { day: Math.max(0, day - 1), step },
      ArrowDown: { day: Math.min(6, day + 1), step },
      Home: { day, step: 0 },
      End: { day, step: STEPS - 1 },
    }[event.key];
    if (move !== undefined) {
      event.preventDefault();
      if (event.shiftKey && !disabled) {
        if (anchor.current === null) {
          anchor.current = at.value;
          // What the first cell is, the others become.
          drag.current = { from: at.value, isOn: isOn(at.value), before: value };
        }
        paintTo(move);
      } else anchor.current = null;
      focus(move);
    } else if (disabled) return;
    else if (event.key === " ") {
      event.preventDefault();
      begin(at.value);
    } else if (event.key === "Delete") {
      onChange(paint(value, stretchOf(day, 0, STEPS - 1), false));
    } else if (event.key === "c" && (event.ctrlKey || event.metaKey)) {
      copied.current = onDay(value, day);
    } else if (event.key === "v" && (event.ctrlKey || event.metaKey) && copied.current !== null) {
      let next = paint(value, stretchOf(day, 0, STEPS - 1), false);
      for (const [from, to] of copied.current) {
        next = paint(next, [day * DAY_MINUTES + from, day * DAY_MINUTES + to], true);
      }
      onChange(next);
    }
  };
  return (
    <div
      class="week"
      role="grid"
      aria-label={t.schedules.week}
      aria-readonly={disabled}
      ref={ref}
      onKeyDown={onKey}
      onPointerDown={(event) => {
        const cell = disabled ? null : cellAt(event);
        if (cell === null || event.pointerType === "touch") return;
        event.preventDefault();
        begin(cell);
        focus(cell);
      }}
      onPointerMove={(event) => {
        if (drag.current === null || event.buttons !== 1 || anchor.current !== null) return;
        const cell = cellAt(event);
        if (cell !== null) paintTo(cell);
      }}
      onPointerUp={() => drag.current = null}
      onClick={(event) => {
        // A tap of a finger; dragging with one scrolls.
        const cell = (event.target as HTMLElement).closest<HTMLElement>("[data-step]");
        if (
          cell === null || disabled || (event as unknown as PointerEvent).pointerType !== "touch"
        ) return;
        begin({ day: Number(cell.dataset.day), step: Number(cell.dataset.step) });
      }}
    >
      <div class="week-row week-hours" role="row">
        <span class="week-day" role="columnheader">
          <span class="for-ears">{t.schedules.day}</span>
        </span>
        {Array.from(
          { length: 12 },
          (_, i) => (
            <span key={i} class="week-hour" role="columnheader" aria-colspan={4}>{i * 2}</span>
          ),
        )}
      </div>
      {DAYS.map((_, day) => (
        <div key={day} class="week-row" role="row">
          <span class="week-day" role="rowheader">{weekday(day)}</span>
          {Array.from({ length: STEPS }, (_, step) => {
            const on = isOn({ day, step });
            return (
              <span
                key={step}
                role="gridcell"
                data-day={day}
                data-step={step}
                class={`week-cell ${on ? "on" : ""} ${step % 4 === 0 ? "hour" : ""}`}
                tabIndex={at.value.day === day && at.value.step === step ? 0 : -1}
                aria-selected={on}
                aria-label={`${weekday(day, "long")} ${clockOf(step * STEP)}`}
              />
            );
          })}
        </div>
      ))}
    </div>
  );
}
