/** Places of the counters in a block. A counter goes up only; a reader takes differences. */
export const Counter = {
  /** Queries read, by transport. */
  QueriesUdp: 0,
  QueriesTcp: 1,
  /** Packets that got no answer: responses, fragments of a header. */
  Dropped: 2,
  FormErr: 3,
  NotImp: 4,
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
  /** Queries read over encrypted transports. */
  QueriesDot: 27,
  QueriesDoh: 28,
  QueriesDoq: 29,
  QueriesOdoh: 30,
  /** Connections taken and refused, by transport; those of DoH carry ODoH as well. */
  DotConnections: 31,
  DotRefused: 32,
  DohConnections: 33,
  DohRefused: 34,
  DoqConnections: 35,
  DoqRefused: 36,
  /** Handshakes of every encrypted transport that did not come to an end. */
  TlsHandshakeFailures: 37,
  /** Requests to an encrypted listener that are no query: another path, method or type. */
  HttpsRejected: 38,
  /** Queries and connections that access control refused, in the order of `Transport`. */
  AccessRefusedUdp: 39,
  AccessRefusedTcp: 40,
  AccessRefusedDot: 41,
  AccessRefusedDoh: 42,
  AccessRefusedDoq: 43,
  AccessRefusedOdoh: 44,
  /** Queries over the limit of their client, in the same order. */
  RateLimitedUdp: 45,
  RateLimitedTcp: 46,
  RateLimitedDot: 47,
  RateLimitedDoh: 48,
  RateLimitedDoq: 49,
  /** Questions that the cache knew, and those it did not. */
  CacheHits: 50,
  CacheMisses: 51,
  /** Answers that were validated, by what came of it (RFC 4035 §4.3). */
  DnssecSecure: 52,
  DnssecInsecure: 53,
  DnssecBogus: 54,
  DnssecIndeterminate: 55,
  /** Slow queries that were sampled for a trace and found no room to wait for it. */
  TracesDropped: 56,
  /** Times an upstream could not be asked because too many queries wait for it. */
  UpstreamFull: 70,
  /** Times an upstream could not be asked because the process has no socket left. */
  NoSocket: 71,
  /** Names that name servers brought no answer for, by the reason. */
  RecursionTimeout: 80,
  RecursionUnreachable: 81,
  RecursionUnhelpful: 82,
  RecursionMalformed: 83,
  RecursionCircle: 84,
  RecursionOverWork: 85,
  RecursionOverload: 86,
  RecursionNoSocket: 87,
  /** Signatures that were not checked because too many wait; each ends a validation. */
  ChecksRefused: 90,
  /** Questions answered by what was proven before (RFC 8198). */
  Deduced: 91,
  /** AAAA records made of A records (RFC 6147), by the answers they are in. */
  Dns64Synthesized: 92,
  /** Questions that were not asked, or whose answers were not looked at, for their zone is failing. */
  FailingRefused: 93,
} as const;
export type Counter = typeof Counter[keyof typeof Counter];

/** Room for those above and some to come. */
export const COUNTERS_MAX = 96;

/** Transports and outcomes there is room for; `resolver` numbers them. */
export const TRANSPORTS_MAX = 6;
export const OUTCOMES_MAX = 9;

/** Upper bounds of the classes of the time to an answer, in milliseconds; one more has the rest. */
export const LATENCY_BOUNDS_MS: readonly number[] = [
  ...[0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500],
  ...[1_000, 2_500, 5_000],
];
const LATENCY_CLASSES = LATENCY_BOUNDS_MS.length + 1;

/** Upper bounds of the classes of the queries sent for one answer; one more has the rest. */
export const SENT_BOUNDS: readonly number[] = [0, 1, 2, 3, 4, 6, 8, 12, 20, 50, 100];
const SENT_CLASSES = SENT_BOUNDS.length + 1;

// Where the parts of a block begin, in places of eight bytes.
const QUERIES_AT = COUNTERS_MAX;
const LATENCY_AT = QUERIES_AT + TRANSPORTS_MAX * OUTCOMES_MAX;
const LATENCY_SUM_AT = LATENCY_AT + TRANSPORTS_MAX * LATENCY_CLASSES;
// Of recursion: queries sent for an answer, and the time to it.
const SENT_AT = LATENCY_SUM_AT + TRANSPORTS_MAX;
const RECURSED_AT = SENT_AT + SENT_CLASSES + 1;
export const COUNTERS_BYTES = (RECURSED_AT + LATENCY_CLASSES + 1) * 8;

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

/** Counts what became of a query: transport and outcome as `resolver` numbers them. */
export function countOutcome(values: Float64Array, transport: number, outcome: number): void {
  values[QUERIES_AT + transport * OUTCOMES_MAX + outcome]++;
}

/** Counts a question that name servers were asked for: the queries sent, and the time it took. */
export function countRecursion(values: Float64Array, queries: number, tookMs: number): void {
  let place = 0;
  while (place < SENT_BOUNDS.length && queries > SENT_BOUNDS[place]) place++;
  values[SENT_AT + place]++;
  values[SENT_AT + SENT_CLASSES] += queries;
  place = 0;
  while (place < LATENCY_BOUNDS_MS.length && tookMs > LATENCY_BOUNDS_MS[place]) place++;
  values[RECURSED_AT + place]++;
  values[RECURSED_AT + LATENCY_CLASSES] += tookMs;
}

/** Counts the time that an answer took. Leaves no garbage. */
export function countLatency(values: Float64Array, transport: number, tookMs: number): void {
  let place = 0;
  while (place < LATENCY_BOUNDS_MS.length && tookMs > LATENCY_BOUNDS_MS[place]) place++;
  values[LATENCY_AT + transport * LATENCY_CLASSES + place]++;
  values[LATENCY_SUM_AT + transport] += tookMs;
}

/** Adds up a counter over all blocks. */
export function sumCounters(
  blocks: readonly CounterBlock[],
  counter: Counter,
): number {
  return sumPlace(blocks, counter);
}

/** Adds up the queries of an outcome over all blocks, of one transport or of all. */
export function sumOutcome(
  blocks: readonly CounterBlock[],
  outcome: number,
  transport: number | null = null,
): number {
  if (transport !== null) {
    return sumPlace(blocks, QUERIES_AT + transport * OUTCOMES_MAX + outcome);
  }
  let sum = 0;
  for (let i = 0; i < TRANSPORTS_MAX; i++) sum += sumOutcome(blocks, outcome, i);
  return sum;
}

/** How long the queries of one transport took. */
export interface Latencies {
  /** Queries in each class of `LATENCY_BOUNDS_MS`, and last those above all bounds. */
  readonly counts: readonly number[];
  readonly sumMs: number;
}

/** Adds up the times of a transport over all blocks. */
export function sumLatencies(blocks: readonly CounterBlock[], transport: number): Latencies {
  const first = LATENCY_AT + transport * LATENCY_CLASSES;
  return {
    counts: Array.from({ length: LATENCY_CLASSES }, (_, i) => sumPlace(blocks, first + i)),
    sumMs: sumPlace(blocks, LATENCY_SUM_AT + transport),
  };
}

/** What recursion took for its answers, over all blocks. */
export function sumRecursion(blocks: readonly CounterBlock[]): {
  /** Questions in each class of `SENT_BOUNDS`, and last those above all bounds. */
  readonly sent: { readonly counts: readonly number[]; readonly sum: number };
  readonly took: Latencies;
} {
  const from = (first: number, length: number) =>
    Array.from({ length }, (_, i) => sumPlace(blocks, first + i));
  return {
    sent: { counts: from(SENT_AT, SENT_CLASSES), sum: sumPlace(blocks, SENT_AT + SENT_CLASSES) },
    took: {
      counts: from(RECURSED_AT, LATENCY_CLASSES),
      sumMs: sumPlace(blocks, RECURSED_AT + LATENCY_CLASSES),
    },
  };
}

function sumPlace(blocks: readonly CounterBlock[], place: number): number {
  return blocks.reduce((sum, { values }) => sum + values[place], 0);
}
