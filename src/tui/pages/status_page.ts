import { type Canvas, Style } from "../canvas.ts";
import type { Key } from "../keys.ts";
import type { NodeData } from "../node_data.ts";
import { clusterLines, filteringText, upstreamText } from "../status_text.ts";
import { ago, counted, milliseconds, percent, sparkline } from "../text.ts";
import { type Area, Cursor, type Page } from "../ui.ts";

interface Line {
  readonly text: string;
  readonly style: Style;
}

/** Rows of each table of the most frequent. */
const TOP_ROWS = 5;
/** Columns before a sparkline and behind it. */
const SPARK_MARGIN = 30;

/** The node at a glance. */
export class StatusPage implements Page {
  readonly title = "Status";
  readonly hints = "p pause  P resume  u undo  r refresh  ? help";
  readonly #scroll = new Cursor();
  readonly #node: NodeData;
  #count = 0;
  #height = 1;

  constructor(node: NodeData) {
    this.#node = node;
  }

  draw(canvas: Canvas, area: Area): void {
    const lines = this.#lines(area.width, canvas.abilities.unicode);
    this.#count = Math.max(1, lines.length - area.height + 1);
    this.#height = area.height;
    this.#scroll.index = Math.min(this.#scroll.index, this.#count - 1);
    for (const [i, { text, style }] of lines.slice(this.#scroll.index).entries()) {
      if (i < area.height) canvas.put(area.x, area.y + i, text, style, area.width);
    }
  }

  onKey(key: Key): boolean {
    return this.#scroll.move(key, this.#count, this.#height);
  }

  #lines(width: number, unicode: boolean): Line[] {
    const { status, day, hour } = this.#node;
    if (status === null || day === null || hour === null) {
      return [{ text: "reading the status ...", style: Style.Dim }];
    }
    const nowMs = this.#node.now.getTime();
    const plain = (text: string): Line => ({ text, style: Style.Plain });
    const head = (text: string): Line[] => [plain(""), { text, style: Style.Bold }];
    const filtering = filteringText(status, nowMs);
    const spark = Math.max(10, Math.min(60, width - SPARK_MARGIN));
    const bars = (label: string, values: readonly number[], behind: string) =>
      plain(`  ${label.padEnd(15)} ${sparkline(values, spark, unicode)} ${behind}`);
    const sums = hour.series.map((one) => totalOf(one));
    const blocked = percent(day.outcomes.blocked, day.total);
    const top = day.top;
    return [
      {
        text: `${filtering}, ${status.problems.length === 0 ? "no problems" : "degraded"}, up ${
          ago(nowMs - Date.parse(status.started_at))
        }`,
        style: filtering === "filtering" && status.problems.length === 0
          ? Style.Green
          : Style.Yellow,
      },
      ...status.problems.map((text) => ({ text: `! ${text}`, style: Style.Red })),
      ...head(
        `24 hours: ${counted(day.total)} queries, ${blocked} blocked, median ${
          milliseconds(day.latency.p50_ms)
        }`,
      ),
      bars("queries, 24 h", day.series.map((one) => totalOf(one)), counted(day.total)),
      bars("blocked, 24 h", day.series.map((one) => one.blocked), counted(day.outcomes.blocked)),
      bars("queries, 1 h", sums, counted(hour.total)),
      bars("blocked, 1 h", hour.series.map((one) => one.blocked), counted(hour.outcomes.blocked)),
      ...head("Upstreams"),
      ...status.upstreams.map((one) => ({
        text: `  ${upstreamText(one)}`,
        style: one.healthy ? Style.Plain : Style.Red,
      })),
      ...status.upstreams.length === 0
        ? [plain(status.recursion.enabled ? "  none: names are resolved here" : "  none")]
        : [],
      ...this.#cluster(head),
      ...head("Blocked most"),
      ...top.blocked.slice(0, TOP_ROWS).map(({ name, count }) => plain(topText(name, count))),
      ...head("Clients that asked most"),
      ...top.clients.slice(0, TOP_ROWS).map(({ name, count }) => plain(topText(name, count))),
      ...head("Service"),
      plain(`  svc ${status.version}, ${counted(status.filter.rules)} rules`),
      plain(
        `  cache: ${counted(status.cache.entries)} answers, ${
          percent(status.cache.hits, status.cache.hits + status.cache.misses)
        } of queries`,
      ),
      plain(`  log: ${counted(status.querylog.entries)} entries`),
    ];
  }

  #cluster(head: (text: string) => Line[]): Line[] {
    const lines = this.#node.status === null ? [] : clusterLines(this.#node.status);
    if (lines.length === 0) return [];
    return [
      ...head("Cluster"),
      ...lines.map(({ text, isWell }) => ({
        text: `  ${text}`,
        style: isWell ? Style.Plain : Style.Red,
      })),
    ];
  }
}

function topText(name: string, count: number): string {
  return `  ${counted(count).padStart(9)}  ${name}`;
}

/** Queries of a step, whatever became of them. */
function totalOf(step: Readonly<Record<string, unknown>>): number {
  return Object.values(step).reduce<number>(
    (sum, value) => sum + (typeof value === "number" ? value : 0),
    0,
  );
}
