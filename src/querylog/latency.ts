/** Times to answers as counts by their length: few numbers, from which percentiles are read. */

/** Upper bounds of all but the last count, in microseconds. */
export const LATENCY_BOUNDS_US = [
  ...[50, 100, 200, 300, 500, 700, 1_000, 1_500, 2_000, 3_000, 5_000, 7_000, 10_000, 15_000],
  ...[20_000, 30_000, 50_000, 70_000, 100_000, 150_000, 200_000, 300_000, 500_000, 1_000_000],
  ...[2_000_000, 5_000_000],
] as const;
/** Counts of one span of time. */
export const LATENCY_COUNTS = LATENCY_BOUNDS_US.length + 1;

const US_PER_MS = 1_000;

/** Percentiles in milliseconds; `null` where nothing was counted. */
export interface Latency {
  readonly p50_ms: number | null;
  readonly p95_ms: number | null;
  readonly p99_ms: number | null;
}

/** Which count a time belongs to. */
export function latencyBucket(durationUs: number): number {
  let bucket = 0;
  while (bucket < LATENCY_BOUNDS_US.length && durationUs > LATENCY_BOUNDS_US[bucket]) bucket++;
  return bucket;
}

/** Percentiles of what was counted from `at` on, as exact as the bounds are close to each other. */
export function latencyOf(counts: readonly number[], at = 0): Latency {
  let total = 0;
  for (let i = 0; i < LATENCY_COUNTS; i++) total += counts[at + i] ?? 0;
  const percentile = (part: number) => total === 0 ? null : quantileMs(counts, at, total * part);
  return { p50_ms: percentile(0.5), p95_ms: percentile(0.95), p99_ms: percentile(0.99) };
}

/** Where the `wanted`th time lies, as if those of a count were spread evenly between its bounds. */
function quantileMs(counts: readonly number[], at: number, wanted: number): number {
  let before = 0;
  for (let i = 0; i < LATENCY_COUNTS; i++) {
    const count = counts[at + i] ?? 0;
    if (count === 0 || before + count < wanted) {
      before += count;
      continue;
    }
    const low = i === 0 ? 0 : LATENCY_BOUNDS_US[i - 1];
    const high = LATENCY_BOUNDS_US.at(i) ?? low;
    const us = low + (high - low) * (wanted - before) / count;
    return Math.round(us) / US_PER_MS;
  }
  return LATENCY_BOUNDS_US[LATENCY_BOUNDS_US.length - 1] / US_PER_MS;
}
