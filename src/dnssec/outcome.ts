/** What validation comes to. */
import { Ede } from "../dns/mod.ts";
import { describeLimit, type Limit } from "./limits.ts";

/** RFC 4035 §4.3; ascending, so that the greatest of an answer's parts is the answer's. */
export const Security = { Secure: 0, Insecure: 1, Indeterminate: 2, Bogus: 3 } as const;
export type Security = typeof Security[keyof typeof Security];

/** What was found about a record set, a zone or an answer. */
export interface Finding {
  readonly security: Security;
  /** Extended error (RFC 8914): 6 to 12 for bogus, 5 indeterminate, 1, 2 or 27 insecure; else `null`. */
  readonly ede: number | null;
  /** What failed, or why nothing is signed, for people; "" where all is secure. */
  readonly reason: string;
  /** The bound that was reached, where that is what failed. */
  readonly limit: Limit | null;
  /**
   * A trust anchor's own keys failed by the time alone. If that is so of the root, the clock is
   * wrong.
   */
  readonly clockSuspect: boolean;
}

const CLEAR = { ede: null, reason: "", limit: null, clockSuspect: false } as const;

/** The one finding that proves. */
export const SECURE: Finding = { ...CLEAR, security: Security.Secure };

export function insecure(reason: string, ede: Ede | null = null): Finding {
  return { ...CLEAR, security: Security.Insecure, ede, reason };
}

/** Records that are needed could not be had; asking again later may help. */
export function indeterminate(reason: string): Finding {
  return {
    ...CLEAR,
    security: Security.Indeterminate,
    ede: Ede.DnssecIndeterminate,
    reason,
  };
}

export function bogus(reason: string, ede: Ede = Ede.DnssecBogus): Finding {
  return { ...CLEAR, security: Security.Bogus, ede, reason };
}

/** Bogus because a bound was reached before anything was proven. */
export function overLimit(limit: Limit, place: string): Finding {
  const reason = `${place}: ${describeLimit(limit)}`;
  return { ...CLEAR, security: Security.Bogus, ede: Ede.DnssecBogus, reason, limit };
}

/** The weaker of two findings; of equals the first. */
export function weaker(a: Finding, b: Finding): Finding {
  return b.security > a.security ? b : a;
}
