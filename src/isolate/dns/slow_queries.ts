import type { Query, Reply } from "../../resolver/mod.ts";
import { Counter } from "../../telemetry/mod.ts";

/** Sampled queries that wait to be told; what comes while as many wait is counted and let go. */
export const SLOW_QUERIES_MAX = 256;
const RCODE_OFFSET = 3;

/** Which queries that waited are told. */
export interface SlowSample {
  /** The share of them, 0 to 1. */
  readonly ratio: number;
  /** Whether with the names they asked for. */
  readonly withNames: boolean;
}

/** A query that waited for an upstream, as numbers of `resolver`. */
export interface SlowQuery {
  /** Milliseconds since 1970 at its arrival. */
  readonly startMs: number;
  readonly durationMs: number;
  readonly transport: number;
  readonly outcome: number;
  readonly qtype: number;
  readonly rcode: number;
  /** By its place in the configuration; -1 for none. */
  readonly upstream: number;
  /** QNAME in wire format; `null` where names are not told. */
  readonly name: Uint8Array | null;
}

/** Draws a sample of the queries that waited, for those who trace them. */
export class SlowQueries {
  readonly #sample: SlowSample;
  readonly #chance: () => number;
  readonly #counts: Float64Array;
  #waiting: SlowQuery[] = [];

  /** `chance` draws from 0 (included) to 1 (excluded). */
  constructor(sample: SlowSample, chance: () => number, counts: Float64Array) {
    this.#sample = sample;
    this.#chance = chance;
    this.#counts = counts;
  }

  /** Called with each query that waited and its response, which goes out at `epochMs`. */
  note(query: Query, reply: Reply, epochMs: number, tookMs: number): void {
    const { ratio, withNames } = this.#sample;
    if (this.#chance() >= ratio) return;
    if (this.#waiting.length >= SLOW_QUERIES_MAX) {
      this.#counts[Counter.TracesDropped]++;
      return;
    }
    const { transport, outcome, qtype, upstream, packet, qname, qnameLength } = query;
    this.#waiting.push({
      startMs: epochMs - tookMs,
      durationMs: tookMs,
      transport,
      outcome,
      qtype,
      rcode: reply.bytes[reply.offset + RCODE_OFFSET] & 0xf,
      upstream,
      name: withNames ? packet.slice(qname, qname + qnameLength) : null,
    });
  }

  /** What was drawn since the last call. */
  take(): SlowQuery[] {
    const taken = this.#waiting;
    this.#waiting = [];
    return taken;
  }
}
