/** Places of the counters in a block. A counter goes up only; a reader takes differences. */
export const Counter = {
  /** Queries read, by transport. */
  QueriesUdp: 0,
  QueriesTcp: 1,
  /** Packets that got no answer: responses, fragments of a header. */
  Dropped: 2,
  FormErr: 3,
  NotImp: 4,
  /** Outcomes. */
  Local: 5,
  Blocked: 6,
  Cached: 7,
  Forwarded: 8,
  Refused: 9,
  Failed: 10,
  /** A cached answer past its expiry, sent because the upstreams were silent. */
  Stale: 11,
  /** A question that was already being asked. */
  Merged: 12,
  /** Queries that found the table of queries in flight full. */
  FlightsFull: 13,
  UpstreamSent: 14,
  UpstreamTimeouts: 15,
  /** Packets at an upstream socket that answer no question of ours. */
  UpstreamMismatched: 16,
  UpstreamTcp: 17,
  Prefetched: 18,
  /** Responses that the system did not take. */
  Unsent: 19,
  Truncated: 20,
  TcpConnections: 21,
  TcpRefused: 22,
  /** Times the filter failed and the query went on unfiltered. */
  FilterFailures: 23,
} as const;
export type Counter = typeof Counter[keyof typeof Counter];

/** Room for those above and some to come, so that a block's size is stable. */
const COUNTERS_MAX = 64;
export const COUNTERS_BYTES = COUNTERS_MAX * 8;

/** A block of counters with one writer; exact up to 2^53. */
export class CounterBlock {
  readonly values: Float64Array;
  constructor(memory: SharedArrayBuffer | ArrayBuffer) {
    this.values = new Float64Array(memory);
  }
  add(counter: Counter): void {
    this.values[counter]++;
  }
}

/** Adds up a counter over all blocks. */
export function sumCounters(blocks: readonly CounterBlock[], counter: Counter): number {
  return blocks.reduce((sum, block) => sum + block.values[counter], 0);
}
