/** What a resolution did, step by step, for whoever asks why a name comes out as it does. */

import { formatName, qtypeName } from "../dns/mod.ts";
import type { Query } from "./query.ts";

/** Steps of one trace; what comes then is counted. */
export const STEPS_MAX = 256;

/** What happened. `validated` is of signatures and proofs, all others of asking. */
export type TraceEvent =
  | "asked"
  | "referral"
  | "answered"
  | "alias"
  | "failed"
  | "cached"
  | "local"
  | "validated";

/** A question as a trace shows it: `www.example A`. */
export function questionText({ packet, qname, qtype }: Query): string {
  return `${formatName(packet, qname)} ${qtypeName(qtype)}`;
}

/** What there is to say of a step; what does not apply is left out. */
export interface TraceNote {
  readonly event: TraceEvent;
  /** What was asked, minimised or whole, `www.example A`. */
  readonly question?: string;
  /** The zone whose servers are asked, or that a referral or a signature is of. */
  readonly zone?: string;
  /** The server by its address, and its name where it has one. */
  readonly server?: string;
  /** For people: the response code, why a server was left, which key failed. */
  readonly detail?: string;
}

export interface TraceStep extends TraceNote {
  /** Milliseconds since the question was asked. */
  readonly atMs: number;
  /** Questions above: 0 of the one that is traced, 1 of a name server's address or a key. */
  readonly depth: number;
}

/**
 * Records a resolution; every flight that takes part in it holds the same one. Where nobody traces
 * there is none: `flight.trace?.note(…)` makes nothing then, its argument included.
 */
export class Trace {
  readonly steps: TraceStep[] = [];
  /** Steps that found no room. */
  dropped = 0;
  readonly #nowMs: () => number;
  readonly #startedAtMs: number;

  /** `nowMs` is milliseconds of a monotonic clock. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#startedAtMs = nowMs();
  }

  /** Notes a step of a flight at `depth`. */
  note(depth: number, note: TraceNote): void {
    if (this.steps.length >= STEPS_MAX) {
      this.dropped++;
      return;
    }
    this.steps.push({ atMs: this.#nowMs() - this.#startedAtMs, depth, ...note });
  }
}
