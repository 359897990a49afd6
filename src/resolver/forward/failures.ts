/** Why queries can't be resolved, for who reads it here and for the client. */
import { Ede, Rcode } from "../../dns/mod.ts";
import { ownError } from "../extended_errors.ts";
import type { Failure } from "./flight.ts";
import { Fit, type ResponseReader } from "./response.ts";
import type { Upstream } from "./upstream.ts";

/** Why an upstream failed, behind its name. */
export const NO_ANSWER = "did not answer in time";
export const NOT_SENT = "can't be reached from here";

const RCODE_TEXT: Readonly<Record<number, string>> = {
  [Rcode.FormErr]: "FORMERR",
  [Rcode.ServFail]: "SERVFAIL",
  [Rcode.NotImp]: "NOTIMP",
  [Rcode.Refused]: "REFUSED",
};

export const NOBODY_SERVES = failure(Ede.NoReachableAuthority, "no upstream serves this name");
export const NOBODY_ANSWERED = failure(Ede.NoReachableAuthority, "no upstream answered");
export const TOO_MANY_CLIENTS = failure(Ede.Other, "too many clients wait for this name");
export const TOO_LARGE = failure(Ede.Other, "the answer is too large to handle");
export const NO_SOCKET = failure(
  Ede.Other,
  "no socket is left for queries to upstreams: raise the limit on open files",
);

/** A failure that this service tells of itself. */
function failure(code: number, text: string): Failure {
  return { text, errors: ownError(code, text) };
}

/** `names` are the upstreams that have no room for a further query. */
export function tooMany(names: string): Failure {
  return failure(Ede.Other, `too many queries wait for ${names}`);
}

/** A query to the upstream came back as one to this service. */
export function leadsBack({ spec: { address } }: Upstream): Failure {
  return failure(Ede.Other, `upstream ${address} leads back to this service`);
}

/** `reason` stands behind the upstream's address. */
export function unreachable({ spec: { address } }: Upstream, reason: string): Failure {
  return failure(Ede.NoReachableAuthority, `${address} ${reason}`);
}

/** What is wrong with the response that was read last; its own extended errors are relayed. */
export function unhelpful(
  { spec: { address } }: Upstream,
  fit: Fit,
  { rcode, errors }: ResponseReader,
): Failure {
  if (fit === Fit.Broken) {
    return failure(Ede.InvalidData, `${address} answered with a malformed message`);
  }
  if (fit === Fit.Endless) {
    return failure(Ede.Other, `${address} leads in a circle of CNAME records, or too far`);
  }
  const text = rcode === Rcode.NoError
    ? `${address} does not answer for this name`
    : `${address} answered ${RCODE_TEXT[rcode] ?? "an error"}`;
  if (errors.length > 0) return { text, errors: errors.copy() };
  return failure(Ede.NoReachableAuthority, text);
}
