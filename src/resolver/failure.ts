/** Why queries can't be resolved, and what that means to the client (RFC 8914). */
import { Ede, Rcode } from "../dns/mod.ts";
import { ownError } from "./extended_errors.ts";

/** What each failure means: the response code, and the code of the extended error. */
const MEANINGS = {
  /** Nobody is asked for names like this one. */
  unserved: { rcode: Rcode.ServFail, ede: Ede.NoReachableAuthority },
  /** Nobody answered in time. */
  timeout: { rcode: Rcode.ServFail, ede: Ede.NoReachableAuthority },
  unreachable: { rcode: Rcode.ServFail, ede: Ede.NoReachableAuthority },
  /** Who was asked answered, and not with an answer. */
  unhelpful: { rcode: Rcode.ServFail, ede: Ede.NoReachableAuthority },
  malformed: { rcode: Rcode.ServFail, ede: Ede.InvalidData },
  /** Validation failed, which asking elsewhere would only hide. */
  bogus: { rcode: Rcode.ServFail, ede: Ede.DnssecBogus },
  /** It failed for so many names of a zone that no more of them are asked for. */
  failing: { rcode: Rcode.ServFail, ede: Ede.DnssecBogus },
  /** What is needed to validate could not be had. */
  indeterminate: { rcode: Rcode.ServFail, ede: Ede.DnssecIndeterminate },
  /** A chain of names, or of servers, that leads back to where it began. */
  circle: { rcode: Rcode.ServFail, ede: Ede.Other },
  tooLarge: { rcode: Rcode.ServFail, ede: Ede.Other },
  /** A bound on the work for one query. */
  overWork: { rcode: Rcode.ServFail, ede: Ede.Other },
  /** As many wait as may. */
  overload: { rcode: Rcode.ServFail, ede: Ede.Other },
  /** The same for upstreams, which are there for every name. */
  crowded: { rcode: Rcode.ServFail, ede: Ede.Other },
  noSocket: { rcode: Rcode.ServFail, ede: Ede.Other },
  /** The filter failed, and what it failed at must not be answered. */
  unchecked: { rcode: Rcode.ServFail, ede: Ede.Other },
} as const;
export type FailureCode = keyof typeof MEANINGS;

/** Why a query can't be resolved. It counts as `Outcome.Failed`: see `Pipeline.fail`. */
export class ResolveFailure {
  /** For the client: extended errors as they are kept, those of who was asked unchanged. */
  readonly errors: Uint8Array;

  /** `text` is for whoever reads it here; `errors` are those to relay in place of one of ours. */
  constructor(readonly code: FailureCode, readonly text: string, errors?: Uint8Array) {
    this.errors = errors ?? ownError(MEANINGS[code].ede, text);
  }

  get rcode(): number {
    return MEANINGS[this.code].rcode;
  }

  /** It is room that is missing here, which there may be in a moment, or a zone's: nothing to remember. */
  get isPassing(): boolean {
    return this.code === "crowded" || this.code === "noSocket" || this.code === "failing";
  }
}

export const UNCHECKED: ResolveFailure = new ResolveFailure("unchecked", "the filter failed");
export const OWN_CIRCLE: ResolveFailure = new ResolveFailure(
  "circle",
  "local CNAME records lead in a circle, or too far",
);
export const NO_IPV4: ResolveFailure = new ResolveFailure(
  "timeout",
  "no answer came for A, which AAAA is made of",
);
export const TOO_MANY_WAIT: ResolveFailure = new ResolveFailure(
  "overload",
  "too many queries wait",
);
export const TOO_MANY_OF_CLIENT: ResolveFailure = new ResolveFailure(
  "overload",
  "too many queries of this client wait",
);
export const TOO_MANY_CLIENTS: ResolveFailure = new ResolveFailure(
  "overload",
  "too many clients wait for this name",
);
export const TOO_LARGE: ResolveFailure = new ResolveFailure(
  "tooLarge",
  "the answer is too large to handle",
);
