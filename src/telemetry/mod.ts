/**
 * Counters and latencies in shared memory: each isolate writes its own block, anyone reads the sum;
 * and what a family of metrics is, whatever form it is told in. Scope: none. @module
 */
export {
  Counter,
  CounterBlock,
  COUNTERS_BYTES,
  countLatency,
  countOutcome,
  countRecursion,
  type Latencies,
  LATENCY_BOUNDS_MS,
  OUTCOMES_MAX,
  SENT_BOUNDS,
  sumCounters,
  sumLatencies,
  sumOutcome,
  sumRecursion,
  TRANSPORTS_MAX,
} from "./counters.ts";
export type { HistogramSample, Labels, MetricFamily, Sample } from "./family.ts";
