/** What is told of what was counted: sums, series, percentiles. */
import { OUTCOME_NAMES } from "../logqueue/mod.ts";
import type { OutcomeName } from "./entry.ts";
import { type Latency, latencyOf } from "./latency.ts";
import { LATENCY_AT, noUpstreamCounts, UPSTREAM_LATENCY_AT } from "./minutes.ts";
import type { ShownTops } from "./tops.ts";

export type OutcomeCounts = Readonly<Record<OutcomeName, number>>;

/** What was asked within a number of hours, the present one among them. */
export interface LogStatistics extends Totals {
  /** One a step, the oldest first. */
  readonly series: readonly (
    & {
      readonly time: string;
      /** Of a day, by the calendar. */
      readonly date?: string;
      readonly latency: Latency;
    }
    & OutcomeCounts
  )[];
  /** The same number of hours before; `null` where they are not all kept. */
  readonly previous: Totals | null;
  /** The most frequent first; approximate. */
  readonly top: ShownTops;
  readonly upstreams: readonly UpstreamSeries[];
}

/** What was asked within some time. */
export interface Totals {
  readonly total: number;
  readonly outcomes: OutcomeCounts;
  readonly latency: Latency;
}

/** What an upstream answered, step by step. */
export interface UpstreamSeries {
  readonly address: string;
  readonly series: readonly {
    readonly time: string;
    readonly queries: number;
    /** Of them, those that failed. */
    readonly failures: number;
    readonly p50_ms: number | null;
    readonly p95_ms: number | null;
  }[];
}

export function totalsOf(sums: readonly number[]): Totals {
  const outcomes = sums.slice(0, LATENCY_AT);
  return {
    total: outcomes.reduce((sum, count) => sum + count, 0),
    outcomes: byName(outcomes),
    latency: latencyOf(sums, LATENCY_AT),
  };
}

/** A row of the series. */
export function stepOf(timeMs: number, counts: readonly number[]): LogStatistics["series"][number] {
  const time = new Date(timeMs).toISOString();
  return { time, ...byName(counts), latency: latencyOf(counts, LATENCY_AT) };
}

/** The series of upstreams, the one that answered most first. */
export function upstreamsOf(
  found: ReadonlyMap<string, ReadonlyMap<number, readonly number[]>>,
  timesMs: readonly number[],
): UpstreamSeries[] {
  const none = noUpstreamCounts();
  const all = Array.from(found, ([address, byTime]) => ({
    address,
    series: timesMs.map((timeMs) => {
      const counts = byTime.get(timeMs) ?? none;
      const { p50_ms, p95_ms } = latencyOf(counts, UPSTREAM_LATENCY_AT);
      const time = new Date(timeMs).toISOString();
      return { time, queries: counts[0], failures: counts[1], p50_ms, p95_ms };
    }),
  }));
  const queriesOf = ({ series }: UpstreamSeries) =>
    series.reduce((sum, one) => sum + one.queries, 0);
  return all.sort((a, b) => queriesOf(b) - queriesOf(a) || (a.address < b.address ? -1 : 1));
}

function byName(counts: readonly number[]): OutcomeCounts {
  return Object.fromEntries(
    OUTCOME_NAMES.map((name, i) => [name, counts[i] ?? 0]),
  ) as OutcomeCounts;
}
