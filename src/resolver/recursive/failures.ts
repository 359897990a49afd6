/** Why name servers bring no answer, and which bound was reached. */
import { rcodeName } from "../../dns/mod.ts";
import { ResolveFailure } from "../failure.ts";
import { FLIGHT_MS, FLIGHTS_MAX } from "../flights/mod.ts";
import {
  LOOKUP_DEPTH_MAX,
  LOOKUPS_ALL_MAX,
  LOOKUPS_MAX,
  QUERIES_MAX,
  REFERRALS_MAX,
  SERVER_OPEN_MAX,
  STEP_QUERIES_MAX,
  ZONE_FLIGHTS_MAX,
} from "./limits.ts";

export const NO_SOCKET = new ResolveFailure(
  "noSocket",
  "no socket is left for queries to name servers: raise the limit on open files",
);
export const TOO_MANY_QUERIES = new ResolveFailure(
  "overWork",
  `the name takes more than ${QUERIES_MAX} queries (QUERIES_MAX)`,
);
export const TOO_MANY_REFERRALS = new ResolveFailure(
  "overWork",
  `the name takes more than ${REFERRALS_MAX} referrals (REFERRALS_MAX)`,
);
export const TOO_MANY_LOOKUPS = new ResolveFailure(
  "overWork",
  `more than ${LOOKUPS_ALL_MAX} addresses of name servers are to be looked up (LOOKUPS_ALL_MAX)`,
);
export const TOO_DEEP = new ResolveFailure(
  "overWork",
  `more than ${LOOKUP_DEPTH_MAX} look-ups of name servers wait for each other (LOOKUP_DEPTH_MAX)`,
);
export const ALL_FULL = new ResolveFailure(
  "overload",
  `no more than ${FLIGHTS_MAX} questions can be asked at a time (FLIGHTS_MAX)`,
);
export const ENDLESS = new ResolveFailure(
  "circle",
  "the name leads in a circle of CNAME records, or too far (ALIASES_MAX)",
);

/** Says whether another question to the same servers would not change it. */
export function isHopeless({ code }: ResolveFailure): boolean {
  return code === "overWork" || code === "noSocket" || code === "unreachable";
}

/** As many questions wait for a zone as may. */
export function zoneFull(zone: string): ResolveFailure {
  const text = `more than ${ZONE_FLIGHTS_MAX} questions wait for the servers of ${zone}`;
  return new ResolveFailure("overload", `${text} (ZONE_FLIGHTS_MAX)`);
}

/** More addresses would have to be looked up for one zone than are. */
export function tooManyLookups(zone: string): ResolveFailure {
  const text = `more than ${LOOKUPS_MAX} addresses of servers of ${zone} are to be looked up`;
  return new ResolveFailure("overWork", `${text} (LOOKUPS_MAX)`);
}

/** As many queries are on their way to a server as may. */
export function serverFull(zone: string, server: string, open: number): ResolveFailure {
  const bound = open >= SERVER_OPEN_MAX ? "SERVER_OPEN_MAX" : "OPEN_MAX";
  const text = `no more queries can be on their way to ${server}, a server of ${zone}`;
  return new ResolveFailure("overload", `${text} (${bound})`);
}

/** The same failure where further servers could have been asked. */
export function afterAll({ code, text }: ResolveFailure): ResolveFailure {
  const why = `no more than ${STEP_QUERIES_MAX} queries are sent for it (STEP_QUERIES_MAX)`;
  return new ResolveFailure(code, `${text}; ${why}`);
}

/** The same failure where time is over. */
export function outOfTime({ code, text }: ResolveFailure): ResolveFailure {
  return new ResolveFailure(code, `${text}; a query has ${FLIGHT_MS / 1_000} s (FLIGHT_MS)`);
}

/** The name that an alias leads to could not be resolved of late (RFC 9520). */
export function failedBefore(name: string): ResolveFailure {
  return new ResolveFailure("unhelpful", `${name}, which the name leads to, has failed of late`);
}

export function nobodyAnswered(zone: string): ResolveFailure {
  return new ResolveFailure("timeout", `no server of ${zone} answered`);
}

/** No address of a zone's servers is to be had. */
export function noAddress(zone: string): ResolveFailure {
  return new ResolveFailure("unreachable", `no server of ${zone} has an address that can be asked`);
}

export function lame(zone: string, server: string): ResolveFailure {
  return new ResolveFailure("unhelpful", `${server} does not serve ${zone}`);
}

export function refused(zone: string, server: string, rcode: number): ResolveFailure {
  const text = `${server}, asked for a name of ${zone}, answered ${rcodeName(rcode)}`;
  return new ResolveFailure("unhelpful", text);
}

export function malformed(zone: string, server: string): ResolveFailure {
  const text = `${server}, asked for a name of ${zone}, answered with a malformed message`;
  return new ResolveFailure("malformed", text);
}

export function unreachable(zone: string, server: string, reason: string): ResolveFailure {
  return new ResolveFailure("unreachable", `${server}, a server of ${zone}, ${reason}`);
}
