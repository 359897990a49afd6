/**
 * How long until the next multiple of a period, and no less than half of it. Whoever looks at
 * something now and then waits so: those whose periods go into each other have their turn in one
 * waking of the processor. Both are of one clock that only goes forward.
 */
export function untilBeat(periodMs: number, nowMs: number): number {
  const leftMs = periodMs - nowMs % periodMs;
  return leftMs < periodMs / 2 ? leftMs + periodMs : leftMs; // A timer may be early by a little.
}
