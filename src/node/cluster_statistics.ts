import type { Statistics } from "../api/mod.ts";
import { HOURS_KEPT } from "../querylog/mod.ts";

/** Rows of a merged top list: as many as of one member's. */
const TOP_ROWS = 100;
/** Most characters of a name in a top list of a member. */
const NAME_LENGTH_MAX = 512;

/** What one member counted. */
export type Counts = Pick<Statistics, "outcomes" | "series" | "top" | "total">;

/** Asks a member for what it counted in so many hours. */
export function encodeQuestion(hours: number): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ statistics: { hours } }));
}

/** The hours that a question is about; `null`: it is another question. */
export function decodeQuestion(question: Uint8Array): number | null {
  const hours = get(get(parse(question), "statistics"), "hours");
  return isCount(hours) && hours >= 1 && hours <= HOURS_KEPT ? hours : null;
}

export function encodeCounts({ outcomes, series, top, total }: Counts): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ outcomes, series, top, total }));
}

/**
 * Adds what a member has answered to what this node has: hour by hour, and its top lists by name.
 * Outcomes that this node does not know are in the total alone. `null`: that is no answer.
 */
export function addCounts(own: Counts, answer: Uint8Array): Counts | null {
  const theirs = parse(answer);
  const total = get(theirs, "total");
  const series = get(theirs, "series");
  if (!isCount(total) || !Array.isArray(series) || series.length > HOURS_KEPT) return null;
  const outcomes = addOutcomes(own.outcomes, get(theirs, "outcomes"));
  const hours = new Map<unknown, unknown>(series.map((hour) => [get(hour, "time"), hour]));
  const tops = get(theirs, "top");
  return {
    total: own.total + total,
    outcomes,
    series: own.series.map(({ time, ...counts }) => ({
      time,
      ...addOutcomes(counts, hours.get(time)),
    })),
    top: {
      names: addTops(own.top.names, get(tops, "names")),
      blocked: addTops(own.top.blocked, get(tops, "blocked")),
      clients: addTops(own.top.clients, get(tops, "clients")),
    },
  };
}

function addOutcomes(own: Counts["outcomes"], theirs: unknown): Counts["outcomes"] {
  const entries = Object.entries(own).map(([outcome, count]) => {
    const more = get(theirs, outcome);
    return [outcome, count + (isCount(more) ? more : 0)];
  });
  return Object.fromEntries(entries) as Counts["outcomes"];
}

type Top = Counts["top"]["names"];

function addTops(own: Top, theirs: unknown): Top {
  const counts = new Map(own.map(({ name, count }) => [name, count]));
  for (const row of Array.isArray(theirs) ? theirs.slice(0, TOP_ROWS) : []) {
    const [name, count] = [get(row, "name"), get(row, "count")];
    if (typeof name !== "string" || name.length > NAME_LENGTH_MAX || !isCount(count)) continue;
    counts.set(name, (counts.get(name) ?? 0) + count);
  }
  return Array.from(counts, ([name, count]) => ({ name, count }))
    .sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1)).slice(0, TOP_ROWS);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function get(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, key)
    ? (value as Record<string, unknown>)[key]
    : undefined;
}

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return null;
  }
}
