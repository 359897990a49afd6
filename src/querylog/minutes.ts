import { OUTCOME_NAMES } from "../logqueue/mod.ts";
import { kindFacts, type StoredEntry } from "./entry.ts";
import { LATENCY_COUNTS, latencyBucket } from "./latency.ts";

export const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const MINUTES = 60;
/** Behind the counts by outcome are those of times to answers. */
export const LATENCY_AT = OUTCOME_NAMES.length;
/** Behind an upstream's queries and failures are the counts of times. */
export const UPSTREAM_LATENCY_AT = 2;

/** Counts by outcome, and of times to answers. */
export function noCounts(): number[] {
  return Array.from({ length: LATENCY_AT + LATENCY_COUNTS }, () => 0);
}

export function noUpstreamCounts(): number[] {
  return Array.from({ length: UPSTREAM_LATENCY_AT + LATENCY_COUNTS }, () => 0);
}

const FAILED = OUTCOME_NAMES.indexOf("failed");

/** Adds an entry to counts of all, and of upstreams to those of its own. */
export function countEntry(
  { outcome, durationUs, kind }: StoredEntry,
  counts: number[],
  upstream: number[] | null,
): void {
  const bucket = latencyBucket(durationUs);
  counts[outcome]++;
  counts[LATENCY_AT + bucket]++;
  if (upstream === null) return;
  upstream[0]++;
  if (outcome === FAILED || kindFacts(kind).isServfail) upstream[1]++;
  upstream[UPSTREAM_LATENCY_AT + bucket]++;
}

/** Of one minute what is not 0: the minute, then pairs of a place in its counts and the count. */
export type MinuteRow = readonly number[];

/** What is stored of the minutes of an hour. */
export interface MinuteRows {
  readonly all: readonly MinuteRow[];
  readonly upstreams: Readonly<Record<string, readonly MinuteRow[]>>;
}

export const NO_MINUTES: MinuteRows = { all: [], upstreams: {} };

/** Adds a minute's counts to others. */
export function addRow(sums: number[], row: MinuteRow): void {
  for (let at = 1; at < row.length; at += 2) sums[row[at]] += row[at + 1];
}

/** All queries of some counts, and of a minute's. */
export function countOf(counts: readonly number[]): number {
  let sum = 0;
  for (let outcome = 0; outcome < LATENCY_AT; outcome++) sum += counts[outcome];
  return sum;
}

export function countOfRow(row: MinuteRow): number {
  let sum = 0;
  for (let at = 1; at < row.length; at += 2) if (row[at] < LATENCY_AT) sum += row[at + 1];
  return sum;
}

/** Counts of an hour, minute by minute; those without any take no room. */
export class Minutes {
  readonly #all: (number[] | undefined)[];
  readonly #upstreams: Map<string, (number[] | undefined)[]>;

  constructor({ all, upstreams }: MinuteRows = NO_MINUTES) {
    this.#all = dense(all, noCounts);
    this.#upstreams = new Map(
      Object.entries(upstreams).map(([address, rows]) => [address, dense(rows, noUpstreamCounts)]),
    );
  }

  /** Counts an entry of this hour. */
  add(entry: StoredEntry): void {
    const minute = Math.floor(entry.timeMs % HOUR_MS / MINUTE_MS);
    const { upstream } = kindFacts(entry.kind);
    const counts = upstream === "" ? null : this.ofUpstream(minute, upstream);
    countEntry(entry, this.of(minute), counts);
  }

  /** The counts of a minute, to be added to. */
  of(minute: number): number[] {
    return this.#all[minute] ??= noCounts();
  }

  /** The same of an upstream. */
  ofUpstream(minute: number, address: string): number[] {
    let minutes = this.#upstreams.get(address);
    if (minutes === undefined) this.#upstreams.set(address, minutes = dense([], noUpstreamCounts));
    return minutes[minute] ??= noUpstreamCounts();
  }

  rows(): MinuteRows {
    const upstreams = Array.from(
      this.#upstreams,
      ([address, minutes]) => [address, sparse(minutes)] as const,
    );
    return { all: sparse(this.#all), upstreams: Object.fromEntries(upstreams) };
  }
}

function dense(rows: readonly MinuteRow[], none: () => number[]): (number[] | undefined)[] {
  const minutes: (number[] | undefined)[] = Array.from({ length: MINUTES });
  for (const row of rows) addRow(minutes[row[0]] ??= none(), row);
  return minutes;
}

function sparse(minutes: readonly (number[] | undefined)[]): MinuteRow[] {
  return minutes.flatMap((counts, minute) => {
    if (counts === undefined) return [];
    const row = [minute];
    for (let at = 0; at < counts.length; at++) if (counts[at] > 0) row.push(at, counts[at]);
    return [row];
  });
}
