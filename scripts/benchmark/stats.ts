/** The few figures that a series of measurements comes down to. */

/**
 * The value that a share of `values` does not exceed, by nearest rank: 0.5 is the median, 0.99 the
 * 99th percentile. NaN of an empty series, which tables show as a dash.
 */
export function percentile(values: readonly number[], share: number): number {
  if (values.length === 0) return NaN;
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

/** The middle value; of an even number of values, the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  if (values.length === 0) return NaN;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/**
 * The median of `a[i] / b[i]`, where both were measured in the same round: what the machine was
 * busy with besides cancels, as it does not in a ratio of medians.
 */
export function medianRatio(a: readonly number[], b: readonly number[]): number {
  return median(a.slice(0, b.length).map((value, i) => value / b[i]));
}
