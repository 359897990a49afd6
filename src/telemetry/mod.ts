/**
 * Counters in shared memory: each isolate writes its own block, anyone reads the sum.
 * Scope: none. @module
 */
export { Counter, CounterBlock, COUNTERS_BYTES, sumCounters } from "./counters.ts";
