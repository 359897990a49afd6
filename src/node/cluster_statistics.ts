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
    // Percentiles can't be added: they are this node's.
    series: own.series.map(({ time, latency, ...counts }) => ({
      time,
      ...addOutcomes(counts, hours.get(time)),
      latency,
    })),
    top: {
      names: addTops(own.top.names, get(tops, "names")),
      blocked: addTops(own.top.blocked, get(tops, "blocked")),
      clients: addClients(own.top.clients, get(tops, "clients")),
      blocked_clients: addClients(own.top.blocked_clients, get(tops, "blocked_clients")),
      lists: addTops(own.top.lists, get(tops, "lists")),
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

type Clients = Counts["top"]["clients"];

function addTops(own: Top, theirs: unknown): Top {
  const rows = rowsOf(theirs).map(({ name, count }) => ({ name, count }));
  return add(own, rows, ({ name }) => name);
}

/** By what a client is: members share their clients, and an address is the same everywhere. */
function addClients(own: Clients, theirs: unknown): Clients {
  const rows = rowsOf(theirs).map((row) => ({
    name: row.name,
    count: row.count,
    client: textOrNull(get(row, "client")),
    address: textOrNull(get(row, "address")),
  }));
  return add(own, rows, ({ client, name }) => client ?? name);
}

function add<R extends Top[number]>(
  own: readonly R[],
  theirs: readonly R[],
  keyOf: (row: R) => string,
) {
  const found = new Map(own.map((row) => [keyOf(row), row]));
  for (const row of theirs) {
    const known = found.get(keyOf(row));
    found.set(keyOf(row), known === undefined ? row : { ...known, count: known.count + row.count });
  }
  return [...found.values()]
    .sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1)).slice(0, TOP_ROWS);
}

/** The rows of a member's answer that are some. */
function rowsOf(theirs: unknown): Top[number][] {
  const rows: unknown[] = Array.isArray(theirs) ? theirs.slice(0, TOP_ROWS) : [];
  return rows.filter((row): row is Top[number] => {
    const name = get(row, "name");
    return typeof name === "string" && name.length <= NAME_LENGTH_MAX && isCount(get(row, "count"));
  });
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" && value.length <= NAME_LENGTH_MAX ? value : null;
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
