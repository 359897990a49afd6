/** An order that is under way, or was placed and not heard of again. */
export interface PlacedOrder {
  /** `null`: it was about to be placed. */
  readonly url: string | null;
  readonly domains: readonly string[];
  /** Of the certificate to come, PEM. */
  readonly key: string;
  readonly csr: string;
}

/** What is kept of an authority between two starts. Secret: it holds keys. */
export interface AcmeState {
  readonly format: typeof FORMAT;
  /** The authority that all of it is for. */
  readonly directory: string;
  /** The account's key, PEM, and its URL; `null`: it is not made yet. */
  readonly accountKey: string;
  readonly account: string | null;
  readonly order: PlacedOrder | null;
  /** It has issued the certificate at hand. */
  readonly hasIssued: boolean;
  /** When orders were placed, in milliseconds since 1970. */
  readonly orderedAtMs: readonly number[];
  /** Attempts in a row that came to nothing, why the last one did, and when the next one is due. */
  readonly failures: number;
  readonly failure: string | null;
  readonly failedAtMs: number;
  readonly nextAtMs: number;
}

const FORMAT = 1;

/** The state of somebody who is new to an authority. */
export function newState(directory: string, accountKey: string): AcmeState {
  return {
    ...{ format: FORMAT, directory, accountKey, account: null, order: null, hasIssued: false },
    ...{ orderedAtMs: [], failures: 0, failure: null, failedAtMs: 0, nextAtMs: 0 },
  };
}

/** Reads a state that was written; `null`: it is none. */
export function readState(text: string): AcmeState | null {
  try {
    const state = JSON.parse(text) as AcmeState;
    const isState = state.format === FORMAT && typeof state.directory === "string" &&
      typeof state.accountKey === "string" && Array.isArray(state.orderedAtMs) &&
      state.orderedAtMs.every(Number.isFinite) && Number.isFinite(state.failures) &&
      Number.isFinite(state.failedAtMs) &&
      Number.isFinite(state.nextAtMs);
    return isState ? state : null;
  } catch {
    return null;
  }
}
