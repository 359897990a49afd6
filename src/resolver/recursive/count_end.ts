/** Counts how the iterations of clients' questions end. */
import { Counter, countRecursion } from "../../telemetry/mod.ts";
import type { FailureCode, ResolveFailure } from "../failure.ts";

/** What failures count as; those of validation are counted there. */
const COUNTERS: { readonly [code in FailureCode]?: Counter } = {
  timeout: Counter.RecursionTimeout,
  unreachable: Counter.RecursionUnreachable,
  unhelpful: Counter.RecursionUnhelpful,
  malformed: Counter.RecursionMalformed,
  circle: Counter.RecursionCircle,
  overWork: Counter.RecursionOverWork,
  overload: Counter.RecursionOverload,
  noSocket: Counter.RecursionNoSocket,
};

/** One that has sent so many queries has ended, with an answer or with a failure. */
export function countEnd(
  counts: Float64Array,
  sent: number,
  tookMs: number,
  failure: ResolveFailure | null,
): void {
  countRecursion(counts, sent, tookMs);
  const counter = failure === null ? undefined : COUNTERS[failure.code];
  if (counter !== undefined) counts[counter]++;
}
