import { type Statistics, type StatisticsQuery, STEPS } from "../api/mod.ts";

/** Rows of a merged top list: as many as of one member's. */
const TOP_ROWS = 100;
/** Of an answer, which is one frame of the channel. */
const ANSWER_BYTES_MAX = 1 << 20;
/** Upstreams that members may have between them. */
const UPSTREAMS_MAX = 64;
/** Most characters of a name in an answer of a member, and of a client or group asked about. */
const NAME_LENGTH_MAX = 512;

/** What is counted, by whatever member. */
export type CountsQuery = Omit<StatisticsQuery, "scope">;
/** What one member counted. */
export type Counts = Omit<Statistics, "hours" | "nodes" | "scope" | "step" | "unreachable">;

/** Asks a member for what it counted. */
export function encodeQuestion({ hours, step, client, group }: CountsQuery): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ statistics: { hours, step, client, group } }));
}

/** What a question is about; `null`: it is another question. */
export function decodeQuestion(question: Uint8Array): CountsQuery | null {
  const statistics = get(parse(question), "statistics");
  const [hours, step] = [get(statistics, "hours"), get(statistics, "step")];
  const [client, group] = [get(statistics, "client"), get(statistics, "group")];
  if (!isStep(step)) return null;
  if (!isCount(hours) || hours < 1 || hours > STEPS[step].hoursMax) return null;
  return {
    ...{ hours, step },
    ...(isName(client) && { client }),
    ...(isName(group) && { group }),
  };
}

/** What a member answers: without upstreams where these make it longer than the channel carries. */
export function encodeCounts(counts: Counts): Uint8Array {
  const { outcomes, latency, previous, series, top, total, upstreams } = counts;
  const shown = { outcomes, latency, previous, series, top, total };
  const answer = new TextEncoder().encode(JSON.stringify({ ...shown, upstreams }));
  if (answer.length <= ANSWER_BYTES_MAX) return answer;
  return new TextEncoder().encode(JSON.stringify(shown));
}

/**
 * Adds what a member has answered to what this node has: step by step, and its top lists by name.
 * Outcomes that this node does not know are in the total alone; of percentiles, which do not add up,
 * those of the slower member stay. `null`: that is no answer.
 */
export function addCounts(own: Counts, answer: Uint8Array): Counts | null {
  const theirs = parse(answer);
  const series = get(theirs, "series");
  const points = own.series.length;
  if (!isCount(get(theirs, "total")) || !Array.isArray(series) || series.length > points + 1) {
    return null; // A member's clock may be a step ahead.
  }
  const tops = get(theirs, "top");
  return {
    ...addTotals(own, theirs),
    previous: own.previous === null ? null : addTotals(own.previous, get(theirs, "previous")),
    series: addSteps(own.series, series, addPoint),
    top: {
      names: addTops(own.top.names, get(tops, "names"), named),
      blocked: addTops(own.top.blocked, get(tops, "blocked"), named),
      clients: addTops(own.top.clients, get(tops, "clients"), clientOf),
      blocked_clients: addTops(own.top.blocked_clients, get(tops, "blocked_clients"), clientOf),
      lists: addTops(own.top.lists, get(tops, "lists"), named),
    },
    upstreams: addUpstreams(own, get(theirs, "upstreams")),
  };
}

type Totals = Pick<Counts, "latency" | "outcomes" | "total">;

function addTotals(own: Totals, theirs: unknown): Totals {
  return {
    total: own.total + countOf(theirs, "total"),
    outcomes: addNumbers(own.outcomes, get(theirs, "outcomes")),
    latency: slower(own.latency, get(theirs, "latency")),
  };
}

type Point = Counts["series"][number];

function addPoint({ time, date, latency, ...counts }: Point, theirs: unknown): Point {
  return {
    time,
    ...(date !== undefined && { date }),
    ...addNumbers(counts, theirs),
    latency: slower(latency, get(theirs, "latency")),
  };
}

/**
 * Adds steps of the same time, or day by the calendar, wherever that begins; those that this node has
 * not are left out.
 */
function addSteps<T extends { readonly time: string; readonly date?: string | undefined }>(
  own: readonly T[],
  theirs: readonly unknown[],
  add: (own: T, theirs: unknown) => T,
): T[] {
  const byTime = new Map<unknown, unknown>(
    theirs.map((step) => [get(step, "date") ?? get(step, "time"), step]),
  );
  return own.map((step) => add(step, byTime.get(step.date ?? step.time)));
}

type Upstream = Counts["upstreams"][number];
type UpstreamPoint = Upstream["series"][number];

function addUpstreams({ series, upstreams }: Counts, theirs: unknown): Upstream[] {
  const found = new Map(upstreams.map((one) => [one.address, one]));
  const nothing = series.map(({ time }): UpstreamPoint => ({
    ...{ time, queries: 0, failures: 0, p50_ms: null, p95_ms: null },
  }));
  for (const one of Array.isArray(theirs) ? theirs.slice(0, UPSTREAMS_MAX) : []) {
    const [address, steps] = [get(one, "address"), get(one, "series")];
    if (!isName(address) || !Array.isArray(steps) || steps.length > series.length + 1) continue;
    const known = found.get(address)?.series ?? nothing;
    found.set(address, { address, series: addSteps(known, steps, addUpstreamPoint) });
  }
  return [...found.values()].slice(0, UPSTREAMS_MAX);
}

function addUpstreamPoint(own: UpstreamPoint, theirs: unknown): UpstreamPoint {
  const { time, queries, failures, p50_ms, p95_ms } = own;
  return {
    time,
    ...addNumbers({ queries, failures }, theirs),
    ...slower({ p50_ms, p95_ms }, theirs),
  };
}

function addNumbers<T extends Record<string, number>>(own: T, theirs: unknown): T {
  const entries = Object.entries(own).map(([name, count]) => [name, count + countOf(theirs, name)]);
  return Object.fromEntries(entries) as T;
}

function slower<T extends Record<string, number | null>>(own: T, theirs: unknown): T {
  const entries = Object.entries(own).map(([name, ms]) => {
    const other = get(theirs, name);
    const isSlower = typeof other === "number" && Number.isFinite(other) && other > (ms ?? -1);
    return [name, isSlower ? other : ms];
  });
  return Object.fromEntries(entries) as T;
}

type Row = Counts["top"]["names"][number];
type ClientRow = Counts["top"]["clients"][number];

function named(_: unknown, name: string): Row {
  return { name, count: 0 };
}

function clientOf(row: unknown, name: string): ClientRow {
  const [client, address] = [get(row, "client"), get(row, "address")];
  return {
    ...{ name, count: 0 },
    client: isName(client) ? client : null,
    address: isName(address) ? address : null,
  };
}

function addTops<T extends Row>(
  own: readonly T[],
  theirs: unknown,
  make: (row: unknown, name: string) => T,
): T[] {
  const rows = new Map(own.map((row) => [row.name, row]));
  for (const row of Array.isArray(theirs) ? theirs.slice(0, TOP_ROWS) : []) {
    const [name, count] = [get(row, "name"), get(row, "count")];
    if (!isName(name) || !isCount(count)) continue;
    const known = rows.get(name) ?? make(row, name);
    rows.set(name, { ...known, count: known.count + count });
  }
  return [...rows.values()]
    .sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1)).slice(0, TOP_ROWS);
}

function isStep(value: unknown): value is keyof typeof STEPS {
  return typeof value === "string" && Object.hasOwn(STEPS, value);
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value.length <= NAME_LENGTH_MAX;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function countOf(value: unknown, key: string): number {
  const count = get(value, key);
  return isCount(count) ? count : 0;
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
