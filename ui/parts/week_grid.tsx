/**
 * A week of half hours. Dragging paints, takes a stretch elsewhere, or, at its ends, makes it longer or
 * shorter; a day dropped on another is copied. All of it goes by keys as well.
 */
import { useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import {
  clockOf,
  copyDay,
  DAY_MINUTES,
  DAYS,
  exchange,
  paint,
  type Stretch,
  stretchAt,
  withEnd,
} from "../data/week.ts";
import { t } from "../text/mod.ts";
import { Segmented } from "./controls.tsx";
import { weekday } from "./format.ts";
import { useMedia } from "./use_media.ts";

const STEP = 30;
const STEPS = DAY_MINUTES / STEP;
/** How near to the end of a stretch it is taken by that. */
const END_PX = 6;

interface Cell {
  readonly day: number;
  readonly step: number;
}

/** What a drag does with the cell that it has come to, and with what was there before it began. */
type Drag = (to: Cell) => readonly Stretch[];

function minuteOf({ day, step }: Cell): number {
  return day * DAY_MINUTES + step * STEP;
}

function stretchOf(day: number, a: number, b: number): Stretch {
  const begin = day * DAY_MINUTES;
  return [begin + Math.min(a, b) * STEP, begin + (Math.max(a, b) + 1) * STEP];
}

export function WeekGrid(
  { value, onChange, onMinutes, disabled = false }: {
    value: readonly Stretch[];
    onChange: (next: Stretch[]) => void;
    /** The minutes of the stretch at this minute of the week are to be typed. */
    onMinutes?: (minute: number) => void;
    disabled?: boolean;
  },
) {
  const at = useSignal<Cell>({ day: 0, step: 16 });
  const drag = useRef<{ readonly work: Drag; hasMoved: boolean; readonly onClick: Drag } | null>(
    null,
  );
  const painting = useRef<{ readonly from: Cell; readonly work: Drag } | null>(null);
  const copied = useRef<number | null>(null);
  const ref = useRef<HTMLDivElement>(null);
  const isPhone = useMedia("(max-width: 639px)");
  const isOn = ({ day, step }: Cell) => stretchAt(value, minuteOf({ day, step })) !== null;
  const change = (next: readonly Stretch[]) => onChange([...next]);

  /** From the first cell on: the same hours of every day between become what it becomes. */
  const painter = (from: Cell): Drag => {
    const before = value;
    const on = !isOn(from);
    return (to) => {
      let next = before;
      for (let day = Math.min(from.day, to.day); day <= Math.max(from.day, to.day); day++) {
        next = paint(next, stretchOf(day, from.step, to.step), on);
      }
      return next;
    };
  };
  const mover = (from: Cell, stretch: Stretch): Drag => {
    const before = value;
    return (to) => {
      const by = minuteOf(to) - minuteOf(from);
      return exchange(before, stretch, [stretch[0] + by, stretch[1] + by]);
    };
  };
  const resizer = (stretch: Stretch, end: "from" | "to"): Drag => {
    const before = value;
    return (to) => {
      const minute = minuteOf(to) + (end === "to" ? STEP : 0);
      return exchange(before, stretch, withEnd(stretch, end, minute, STEP));
    };
  };
  const copier = (from: number): Drag => {
    const before = value;
    return ({ day }) => day === from ? before : copyDay(before, from, day);
  };

  const cellAt = (event: PointerEvent): Cell | null => {
    const found = document.elementFromPoint(event.clientX, event.clientY)
      ?.closest<HTMLElement>("[data-day]");
    if (!found || !ref.current?.contains(found)) return null;
    return { day: Number(found.dataset.day), step: Number(found.dataset.step ?? 0) };
  };
  const begin = (cell: Cell, event: PointerEvent): void => {
    const target = event.target as HTMLElement;
    const stretch = stretchAt(value, minuteOf(cell));
    const onClick = painter(cell);
    let work = onClick;
    if (target.dataset.step === undefined) work = copier(cell.day);
    else if (stretch !== null) {
      const { classList, offsetWidth } = target;
      if (classList.contains("from") && event.offsetX < END_PX) work = resizer(stretch, "from");
      else if (classList.contains("to") && event.offsetX > offsetWidth - END_PX) {
        work = resizer(stretch, "to");
      } else work = mover(cell, stretch);
    }
    // What is painted shows at once; what is taken elsewhere was perhaps but clicked on.
    const isPainting = work === onClick;
    if (isPainting) change(work(cell));
    drag.current = { work, hasMoved: isPainting, onClick };
  };
  const focus = (cell: Cell) => {
    at.value = cell;
    requestAnimationFrame(() => ref.current?.querySelector<HTMLElement>('[tabindex="0"]')?.focus());
  };

  /** Moves the stretch at the cell, or the end of it that is nearer. */
  const shift = (cell: Cell, by: Cell, isEnd: boolean): void => {
    const minute = minuteOf(cell);
    const stretch = stretchAt(value, minute);
    if (stretch === null) return;
    const minutes = by.day * DAY_MINUTES + by.step * STEP;
    if (isEnd) {
      const place = minute < stretch[0] ? minute + 7 * DAY_MINUTES : minute;
      const isFrom = place - stretch[0] < stretch[1] - STEP - place;
      const moved = withEnd(
        stretch,
        isFrom ? "from" : "to",
        stretch[isFrom ? 0 : 1] + minutes,
        STEP,
      );
      change(exchange(value, stretch, moved));
    } else change(exchange(value, stretch, [stretch[0] + minutes, stretch[1] + minutes]));
    const next = minute + minutes + 7 * DAY_MINUTES;
    if (!isEnd || minutes !== 0) {
      focus({
        day: Math.floor(next / DAY_MINUTES) % 7,
        step: Math.floor(next % DAY_MINUTES / STEP),
      });
    }
  };
  const onKey = (event: KeyboardEvent) => {
    const { day, step } = at.value;
    const by = {
      ArrowLeft: { day: 0, step: -1 },
      ArrowRight: { day: 0, step: 1 },
      ArrowUp: { day: -1, step: 0 },
      ArrowDown: { day: 1, step: 0 },
      Home: { day: 0, step: -STEPS },
      End: { day: 0, step: STEPS },
    }[event.key];
    if (by !== undefined) {
      event.preventDefault();
      if ((event.ctrlKey || event.altKey) && !disabled) return shift(at.value, by, event.shiftKey);
      const to = {
        day: Math.min(6, Math.max(0, day + by.day)),
        step: Math.min(STEPS - 1, Math.max(0, step + by.step)),
      };
      if (event.shiftKey && !disabled) {
        painting.current ??= { from: at.value, work: painter(at.value) };
        change(painting.current.work(to));
      } else painting.current = null;
      return focus(to);
    }
    const isCommand = event.ctrlKey || event.metaKey;
    if (disabled) return;
    if (event.key === " ") {
      event.preventDefault();
      const work = painter(at.value);
      painting.current = { from: at.value, work };
      change(work(at.value));
    } else if (event.key === "Enter" && isOn(at.value)) {
      event.preventDefault();
      onMinutes?.(minuteOf(at.value));
    } else if (event.key === "Delete") change(paint(value, stretchOf(day, 0, STEPS - 1), false));
    else if (event.key === "c" && isCommand) copied.current = day;
    else if (event.key === "v" && isCommand && copied.current !== null) {
      change(copier(copied.current)(at.value));
    }
  };
  const cellOf = (day: number, step: number) => {
    const on = isOn({ day, step });
    const isFrom = on && (step === 0 || !isOn({ day, step: step - 1 }));
    const isTo = on && (step === STEPS - 1 || !isOn({ day, step: step + 1 }));
    return (
      <span
        key={step}
        role="gridcell"
        data-day={day}
        data-step={step}
        class={`week-cell ${on ? "on" : ""} ${step % 4 === 0 ? "hour" : ""} ${
          isFrom ? "from" : ""
        } ${isTo ? "to" : ""}`}
        tabIndex={at.value.day === day && at.value.step === step ? 0 : -1}
        aria-selected={on}
        aria-label={`${weekday(day, "long")} ${clockOf(step * STEP)}`}
        data-hour={step % 2 === 0 ? step / 2 : undefined}
      />
    );
  };
  const days = isPhone ? [at.value.day] : DAYS.map((_, day) => day);
  return (
    <>
      {isPhone && (
        <div class="strip-days">
          <Segmented
            label={t.schedules.day}
            value={String(at.value.day)}
            onChange={(day) => at.value = { ...at.value, day: Number(day) }}
            choices={DAYS.map((_, day) => ({ value: String(day), label: weekday(day) }))}
          />
        </div>
      )}
      <div
        class={isPhone ? "week strip" : "week"}
        role="grid"
        aria-label={t.schedules.week}
        aria-readonly={disabled}
        ref={ref}
        onKeyDown={onKey}
        onPointerDown={(event) => {
          const cell = disabled ? null : cellAt(event);
          if (cell === null || event.pointerType === "touch") return;
          event.preventDefault();
          painting.current = null;
          begin(cell, event);
          if ((event.target as HTMLElement).dataset.step !== undefined) focus(cell);
        }}
        onPointerMove={(event) => {
          const now = drag.current;
          if (now === null || event.buttons !== 1) return;
          const cell = cellAt(event);
          if (cell === null) return;
          // A hand that shakes within a cell has not gone anywhere.
          const { day, step } = at.value;
          if (!now.hasMoved && cell.day === day && cell.step === step) return;
          now.hasMoved = true;
          change(now.work(cell));
        }}
        onPointerUp={(event) => {
          const now = drag.current;
          drag.current = null;
          const cell = cellAt(event);
          const isCell = (event.target as HTMLElement).dataset.step !== undefined;
          if (now !== null && !now.hasMoved && cell !== null && isCell) change(now.onClick(cell));
        }}
        onClick={(event) => {
          // A tap of a finger; dragging with one scrolls.
          const cell = (event.target as HTMLElement).closest<HTMLElement>("[data-step]");
          const isTap = (event as unknown as PointerEvent).pointerType === "touch";
          if (cell === null || disabled || !isTap) return;
          const from = { day: Number(cell.dataset.day), step: Number(cell.dataset.step) };
          at.value = from;
          change(painter(from)(from));
        }}
      >
        {!isPhone && (
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
        )}
        {days.map((day) => (
          <div key={day} class="week-row" role="row">
            <span
              class={disabled ? "week-day" : "week-day drags"}
              role="rowheader"
              data-day={day}
              title={disabled ? undefined : t.schedules.copyDay}
            >
              {weekday(day)}
            </span>
            {Array.from({ length: STEPS }, (_, step) => cellOf(day, step))}
          </div>
        ))}
      </div>
    </>
  );
}
