/** Queries over time, stacked; drawn by uPlot, which is loaded when a chart is. */
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import type uPlot from "uplot";
import type { Outcome, Stats } from "../data/types.ts";
import { hrefOf, navigate, param, setParams } from "../router.ts";
import { language, t } from "../text/mod.ts";
import { isDark } from "../theme.ts";
import { Button } from "./basics.tsx";
import { compact, fullTime, moment, number, percent, tick } from "./format.ts";
import { type Band, BANDS, OUTCOME_NAMES, OUTCOMES, OutcomeTag } from "./outcome.tsx";
import { isPrinting } from "./printing.ts";

const HEIGHT_PX = 220;
const AXIS_PX = 48;
/** A bar and the line around it. */
const BAR_PX_MIN = 3;
/** The parameter of the page's address. */
const HIDDEN = "hidden";
const PAPER_POINTS = 30;
/** How many points next to each other are one on paper: an hour, some hours, or a day of them. */
const PAPER_STEPS = [1, 2, 3, 6, 12, 24, 48, 96];

interface Point {
  readonly time: Date;
  readonly end: Date;
  readonly bands: Readonly<Record<Band, number>>;
  readonly total: number;
}

/** What to draw of these outcomes. */
export function pointsOf(
  series: Stats["series"],
  outcomes: readonly Outcome[] = OUTCOME_NAMES,
): Point[] {
  return series.map((row, i) => {
    const bands: Record<Band, number> = { blocked: 0, asked: 0, ours: 0, failed: 0 };
    for (const outcome of outcomes) bands[OUTCOMES[outcome]] += row[outcome];
    const time = new Date(row.time);
    const next = series[i + 1]?.time;
    const stepMs = series.length > 1
      ? Date.parse(series[1].time) - Date.parse(series[0].time)
      : 3_600_000;
    const end = next === undefined ? new Date(time.getTime() + stepMs) : new Date(next);
    const total = BANDS.reduce((sum, band) => sum + bands[band], 0);
    return { time, end, bands, total };
  });
}

function cssColour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Lines or dots over a colour: what was blocked and what failed can be told without it. */
function patternOf(band: Band, colour: string, ground: string): CanvasPattern | string {
  if (band !== "blocked" && band !== "failed") return colour;
  const canvas = document.createElement("canvas");
  const size = 8 * devicePixelRatio;
  canvas.width = canvas.height = size;
  const context = canvas.getContext("2d");
  if (context === null) return colour;
  context.fillStyle = colour;
  context.fillRect(0, 0, size, size);
  context.strokeStyle = context.fillStyle = ground;
  context.globalAlpha = 0.35;
  if (band === "blocked") {
    context.lineWidth = 1.5 * devicePixelRatio;
    context.beginPath();
    for (const shift of [-size, 0, size]) {
      context.moveTo(shift, size);
      context.lineTo(shift + size, 0);
    }
    context.stroke();
  } else {
    context.beginPath();
    context.arc(size / 2, size / 2, size / 6, 0, 2 * Math.PI);
    context.fill();
  }
  return context.createPattern(canvas, "repeat") ?? colour;
}

function draw(
  Plot: typeof uPlot,
  element: HTMLElement,
  points: readonly Point[],
  onPick: (from: Date, to: Date) => void,
  onHover: (index: number | null) => void,
): uPlot {
  const times = points.map(({ time }) => time.getTime() / 1_000);
  const sums = BANDS.map((_, upTo) =>
    points.map(({ bands }) => BANDS.slice(0, upTo + 1).reduce((sum, band) => sum + bands[band], 0))
  );
  const axis = cssColour("--muted");
  const grid = { stroke: cssColour("--hairline"), width: 1 };
  const [font, ground] = ["12px system-ui, sans-serif", cssColour("--surface")];
  // Narrow ones would be nothing but the line between them.
  const isRoomy = (element.clientWidth - AXIS_PX) / Math.max(points.length, 1) >= BAR_PX_MIN;
  const isLong = times.length > 0 && times.at(-1)! - times[0] > 2 * 86_400;
  // Drawn from the top down: each band hides what is below it.
  const order = [...BANDS.keys()].reverse();
  return new Plot(
    {
      width: Math.max(element.clientWidth, 200),
      height: HEIGHT_PX,
      legend: { show: false },
      padding: [8, 8, 0, 0],
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
      scales: { x: { time: true }, y: { range: (_u, _min, max) => [0, Math.max(max * 1.05, 4)] } },
      axes: [
        {
          stroke: axis,
          grid: { show: false },
          ticks: { show: false },
          font,
          values: (_u, values) => values.map((s) => tick(new Date(s * 1_000), isLong)),
          space: 64,
          size: 28,
        },
        {
          stroke: axis,
          grid,
          ticks: { show: false },
          font,
          size: AXIS_PX,
          values: (_u, values) => values.map((v) => Number.isInteger(v) ? compact(v) : ""),
        },
      ],
      series: [
        {},
        ...order.map((i) => {
          const colour = cssColour(`--band-${BANDS[i]}`);
          return {
            stroke: isRoomy ? ground : colour,
            width: isRoomy ? 1 : 0,
            fill: patternOf(BANDS[i], colour, ground),
            points: { show: false },
            ...(Plot.paths.bars !== undefined && isRoomy && {
              paths: Plot.paths.bars({ size: [0.9, 64], gap: 0 }),
            }),
            ...(Plot.paths.stepped !== undefined && !isRoomy && {
              paths: Plot.paths.stepped({ align: 1 }),
            }),
          };
        }),
      ],
      hooks: {
        setCursor: [(u) => onHover(u.cursor.idx ?? null)],
        setSelect: [(u) => {
          if (u.select.width < 4) return;
          const at = (px: number) => new Date(u.posToVal(px, "x") * 1_000);
          onPick(at(u.select.left), at(u.select.left + u.select.width));
        }],
      },
    },
    [times, ...order.map((i) => sums[i])],
    element,
  );
}

function logBetween(from: Date, to: Date): string {
  return hrefOf("/log", { since: from.toISOString(), until: to.toISOString() });
}

/** The chart, with its values for those who read or hear, and a table behind it. */
export function OverTime({ series }: { series: Stats["series"] }) {
  const ref = useRef<HTMLDivElement>(null);
  const at = useSignal<number | null>(null);
  const isTable = useSignal(false);
  // The table is of all: what is left out of it would be missing from its shares.
  const hidden = isTable.value || isPrinting.value ? [] : hiddenOutcomes();
  const shown = OUTCOME_NAMES.filter((outcome) => !hidden.includes(outcome));
  const bands = BANDS.filter((band) => shown.some((outcome) => OUTCOMES[outcome] === band));
  const points = pointsOf(series, shown);
  const key = `${isDark.value} ${language.value} ${
    JSON.stringify(points.map(({ bands }) => bands))
  }`;
  useEffect(() => {
    const element = ref.current;
    if (element === null || isTable.value) return;
    let plot: uPlot | null = null;
    let isGone = false;
    const resizing = new ResizeObserver(() => {
      plot?.setSize({ width: Math.max(element.clientWidth, 200), height: HEIGHT_PX });
    });
    const pick = (from: Date, to: Date) => void navigate(logBetween(from, to));
    void import("uplot").then(({ default: Plot }) => {
      if (isGone) return;
      plot = draw(Plot, element, points, pick, (index) => at.value = index);
      resizing.observe(element);
    });
    return () => {
      isGone = true;
      resizing.disconnect();
      plot?.destroy();
    };
  }, [key, isTable.value]);
  const point = at.value === null ? null : points[at.value] ?? null;
  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      const from = at.value ?? (step > 0 ? -1 : points.length);
      at.value = Math.min(points.length - 1, Math.max(0, from + step));
    } else if (event.key === "Enter" && point !== null) {
      void navigate(logBetween(point.time, point.end));
    }
  };
  return (
    <figure class="chart">
      {isPrinting.value && <ChartTable points={condensed(points)} />}
      {isTable.value ? !isPrinting.value && <ChartTable points={points} /> : (
        <div
          class="plot"
          ref={ref}
          tabIndex={0}
          role="group"
          aria-label={t.overview.chartHelp}
          onKeyDown={onKey}
        />
      )}
      <figcaption>
        <span class="legend" aria-live="polite">
          {point === null
            ? bands.map((band) => <Key key={band} band={band} text={t.bands[band]} />)
            : (
              <>
                <strong>{fullTime(point.time)}</strong>
                {bands.map((band) => (
                  <Key
                    key={band}
                    band={band}
                    text={`${t.bands[band]} ${number(point.bands[band])}`}
                  />
                ))}
              </>
            )}
        </span>
        <Button
          small
          kind="quiet"
          label={isTable.value ? t.overview.asChart : t.overview.asTable}
          onClick={() => isTable.value = !isTable.value}
        />
      </figcaption>
      {!isTable.value && <Switches hidden={hidden} />}
    </figure>
  );
}

/** Outcomes that the address of the page leaves out of its chart. */
function hiddenOutcomes(): Outcome[] {
  const names = param(HIDDEN).split(",");
  return OUTCOME_NAMES.filter((outcome) => names.includes(outcome));
}

/** The legend's outcomes: each is in the chart or is not. */
function Switches({ hidden }: { hidden: readonly Outcome[] }) {
  const change = (outcome: Outcome) => {
    const next = OUTCOME_NAMES.filter((one) => hidden.includes(one) !== (one === outcome));
    setParams({ [HIDDEN]: next.join(",") });
  };
  return (
    <div class="legend-switches" role="group" aria-label={t.overview.legend}>
      {OUTCOME_NAMES.map((outcome) => (
        <button
          key={outcome}
          type="button"
          aria-pressed={!hidden.includes(outcome)}
          onClick={() => change(outcome)}
        >
          <OutcomeTag outcome={outcome} />
        </button>
      ))}
    </div>
  );
}

/** Few enough for paper: points next to each other, added up. */
function condensed(points: readonly Point[]): Point[] {
  const many = PAPER_STEPS.find((step) => points.length / step <= PAPER_POINTS) ??
    Math.ceil(points.length / PAPER_POINTS);
  return Array.from({ length: Math.ceil(points.length / many) }, (_, i) => {
    const some = points.slice(i * many, (i + 1) * many);
    const sum = (band: Band) => some.reduce((all, { bands }) => all + bands[band], 0);
    return {
      time: some[0].time,
      end: some[some.length - 1].end,
      bands: Object.fromEntries(BANDS.map((band) => [band, sum(band)])) as Point["bands"],
      total: some.reduce((all, { total }) => all + total, 0),
    };
  });
}

function Key({ band, text }: { band: Band; text: string }) {
  return (
    <span class="key">
      <span class={`swatch ${band}`} aria-hidden="true" />
      {text}
    </span>
  );
}

function ChartTable({ points }: { points: readonly Point[] }) {
  return (
    <div class="chart-table" tabIndex={0} role="region" aria-label={t.overview.asTable}>
      <table class="plain-table">
        <thead>
          <tr>
            <th scope="col">{t.common.time}</th>
            {BANDS.map((band) => <th key={band} scope="col" class="end">{t.bands[band]}</th>)}
            <th scope="col" class="end">{t.overview.blockedShare}</th>
          </tr>
        </thead>
        <tbody>
          {points.map((point) => (
            <tr key={point.time.getTime()}>
              <th scope="row">
                <a href={logBetween(point.time, point.end)}>{moment(point.time)}</a>
              </th>
              {BANDS.map((band) => <td key={band} class="end">{number(point.bands[band])}</td>)}
              <td class="end">{percent(point.bands.blocked, point.total)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The run of a number, as a line beside it. */
export function Sparkline({ values }: { values: readonly number[] }) {
  if (values.length < 2) return null;
  const max = Math.max(...values, 1);
  const points = values.map((value, i) =>
    `${(i / (values.length - 1) * 100).toFixed(1)},${(23 - value / max * 22).toFixed(1)}`
  ).join(" ");
  return (
    <svg class="sparkline" viewBox="0 0 100 24" preserveAspectRatio="none" aria-hidden="true">
      <polygon points={`0,24 ${points} 100,24`} />
      <polyline points={points} vector-effect="non-scaling-stroke" />
    </svg>
  );
}
