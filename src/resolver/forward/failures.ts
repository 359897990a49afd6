/** Why queries can't be resolved, for who reads it here and for the client. */
import { Rcode } from "../../dns/mod.ts";
import { ResolveFailure } from "../failure.ts";
import type { ResponseReader } from "../ask/mod.ts";
import type { Upstream } from "./upstream.ts";

/** Why an upstream failed, behind its name. */
export const NO_ANSWER = "did not answer in time";

const RCODE_TEXT: Readonly<Record<number, string>> = {
  [Rcode.FormErr]: "FORMERR",
  [Rcode.ServFail]: "SERVFAIL",
  [Rcode.NotImp]: "NOTIMP",
  [Rcode.Refused]: "REFUSED",
};

export const NOBODY_SERVES = new ResolveFailure("unserved", "no upstream serves this name");
export const NOBODY_ANSWERED = new ResolveFailure("timeout", "no upstream answered");
export const NO_GROUP_UPSTREAM = new ResolveFailure(
  "unserved",
  "this node has none of the upstreams that the group names",
);
export const NO_DOMAIN_UPSTREAM = new ResolveFailure(
  "unserved",
  "the upstream for this domain can't be used: see the status of the node",
);
export const NO_SOCKET = new ResolveFailure(
  "noSocket",
  "no socket is left for queries to upstreams: raise the limit on open files",
);

/** `names` are the upstreams that have no room for a further query. */
export function tooMany(names: string): ResolveFailure {
  return new ResolveFailure("crowded", `too many queries wait for ${names}`);
}

/** A query to the upstream came back as one to this service. */
export function leadsBack({ spec: { address } }: Upstream): ResolveFailure {
  return new ResolveFailure("circle", `upstream ${address} leads back to this service`);
}

/** `reason` stands behind the upstream's address. */
export function unreachable({ spec: { address } }: Upstream, reason: string): ResolveFailure {
  return new ResolveFailure("unreachable", `${address} ${reason}`);
}

/** The upstream's answer can't be read. */
export function malformed({ spec: { address } }: Upstream): ResolveFailure {
  return new ResolveFailure("malformed", `${address} answered with a malformed message`);
}

/** The upstream's answer is a chain without an end. */
export function endless({ spec: { address } }: Upstream): ResolveFailure {
  const text = `${address} leads in a circle of CNAME records, or too far`;
  return new ResolveFailure("circle", text);
}

/** The response that was read last holds no answer; its own extended errors are relayed. */
export function unhelpful(
  { spec: { address } }: Upstream,
  { rcode, errors, bogus }: ResponseReader,
): ResolveFailure {
  const text = rcode === Rcode.NoError
    ? `${address} does not answer for this name`
    : `${address} answered ${RCODE_TEXT[rcode] ?? "an error"}`;
  const relayed = errors.length > 0 ? errors.copy() : undefined;
  return new ResolveFailure(bogus ? "bogus" : "unhelpful", text, relayed);
}
