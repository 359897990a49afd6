/** What clients asked, of what was counted of each as it came. */
import { OUTCOME_NAMES } from "../logqueue/mod.ts";
import type { ClientDays } from "./client_days.ts";
import { DAYS_KEPT } from "./client_days.ts";
import type { ClientHour, ClientHours } from "./client_hours.ts";
import { clientKey } from "./entry.ts";
import { DAY_MS, type LocalDays } from "./local_days.ts";
import { type LogStatistics, stepOf, totalsOf } from "./log_statistics.ts";
import { addRow, countOf, countOfRow, MINUTE_MS, noCounts, noUpstreamCounts } from "./minutes.ts";
import { addTo, entryOf, HOURS_KEPT, type Statistics, type StepCounts } from "./statistics.ts";
import { sketches, TOP_ROWS, type TopLists, type Tops, topsOf } from "./tops.ts";

const HOUR_MS = 3_600_000;
const HOURS_PER_DAY = 24;
/** Names and clients that are told apart. */
const SKETCH_CAPACITY = 2_000;
const BLOCKED = OUTCOME_NAMES.indexOf("blocked");

/** Says whether a client's text is of those that are asked for. */
export type ClientTest = (client: string) => boolean;

/** What is kept of each client. */
export interface Shares {
  readonly hours: ClientHours;
  readonly days: ClientDays;
  readonly calendar: LocalDays;
}

export interface ClientSteps extends StepCounts {
  /** Of the hours that lie within the window as a whole. */
  readonly tops: Tops;
}

/** Counts of a window by steps of whole minutes, as `Statistics.steps`, of the clients that pass. */
export function* clientSteps(
  hours: ClientHours,
  test: ClientTest,
  isAnonymized: boolean,
  window: { readonly startMs: number; readonly endMs: number; readonly stepMs: number },
): Generator<undefined, ClientSteps> {
  const { startMs, endMs, stepMs } = window;
  const beginMs = startMs - (endMs - startMs);
  const partEndMs = Math.ceil(startMs / HOUR_MS) * HOUR_MS;
  const series = new Map<number, number[]>();
  const upstreams = new Map<string, Map<number, number[]>>();
  const previous = noCounts();
  const tops = sketches(SKETCH_CAPACITY);
  let part = 0;
  const stepAt = (timeMs: number) => Math.floor(timeMs / stepMs) * stepMs;
  const found = yield* hours.find(test, hourOf(beginMs), hourOf(endMs - 1));
  for (const one of found) {
    const timeOf = (minute: number) => one.hour * HOUR_MS + minute * MINUTE_MS;
    for (const row of one.minutes.all) {
      const timeMs = timeOf(row[0]);
      if (timeMs < beginMs || timeMs >= endMs) continue;
      if (timeMs < startMs) addRow(previous, row);
      else addRow(entryOf(series, stepAt(timeMs), noCounts), row);
      if (timeMs >= startMs && timeMs < partEndMs) part += countOfRow(row);
    }
    if (one.hour * HOUR_MS >= startMs) addTops(tops, one, isAnonymized);
    for (const [address, rows] of Object.entries(one.minutes.upstreams)) {
      for (const row of rows) {
        const timeMs = timeOf(row[0]);
        if (timeMs < startMs || timeMs >= endMs) continue;
        const byTime = entryOf(upstreams, address, () => new Map<number, number[]>());
        addRow(entryOf(byTime, stepAt(timeMs), noUpstreamCounts), row);
      }
    }
  }
  return { series, upstreams, previous, part, tops };
}

function addTops(tops: Tops, { client, minutes, tops: own }: ClientHour, isAnonymized: boolean) {
  for (const kind of ["names", "blocked", "lists"] as const) tops[kind].merge(own[kind]);
  const key = clientKey(client, isAnonymized);
  if (key === "") return;
  const sums = noCounts();
  for (const row of minutes.all) addRow(sums, row);
  tops.clients.merge([[key, countOf(sums)]]);
  if (sums[BLOCKED] > 0) tops.blocked_clients.merge([[key, sums[BLOCKED]]]);
}

/**
 * A year by day at most, of all or of the clients that pass. Names and lists are of the last 30 days:
 * longer nobody keeps what was asked for.
 */
export function* countDays(
  { hours, days, calendar }: Shares,
  statistics: Statistics,
  wanted: { readonly hours: number; readonly test: ClientTest | null },
  isAnonymized: boolean,
  nowMs: number,
): Generator<undefined, LogStatistics> {
  const { test } = wanted;
  const count = Math.ceil(wanted.hours / HOURS_PER_DAY);
  const last = calendar.dayOf(nowMs);
  const first = last - count + 1;
  const { series, clients, blockedClients } = days.find(first, last, test);
  const before = 2 * count > DAYS_KEPT ? null : days.find(first - count, first - 1, test);
  const lastHour = hourOf(nowMs);
  const firstHour = Math.max(hourOf(calendar.startMs(first)), lastHour - HOURS_KEPT + 1);
  let named: Pick<TopLists, "names" | "blocked" | "lists">;
  if (test === null) named = statistics.tops(firstHour, lastHour);
  else {
    const tops = sketches(SKETCH_CAPACITY);
    for (const one of yield* hours.find(test, firstHour, lastHour)) {
      addTops(tops, one, isAnonymized);
    }
    const { names, blocked, lists } = tops;
    const most = TOP_ROWS;
    named = { names: names.top(most), blocked: blocked.top(most), lists: lists.top(most) };
  }
  const sumOf = (all: Iterable<readonly number[]>) => {
    const sums = noCounts();
    for (const counts of all) addTo(sums, counts);
    return totalsOf(sums);
  };
  return {
    ...sumOf(series.values()),
    series: Array.from({ length: count }, (_, i) => ({
      ...stepOf(calendar.startMs(first + i), series.get(first + i) ?? []),
      date: new Date((first + i) * DAY_MS).toISOString().slice(0, 10),
    })),
    previous: before === null ? null : sumOf(before.series.values()),
    top: topsOf(
      sketches(SKETCH_CAPACITY, {
        ...named,
        clients: [...clients],
        blocked_clients: [...blockedClients],
      }),
    ),
    upstreams: [],
  };
}

function hourOf(timeMs: number): number {
  return Math.floor(timeMs / HOUR_MS);
}
