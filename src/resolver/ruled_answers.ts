import { Ede, Qtype, Rcode } from "../dns/mod.ts";
import { BlockForm, type Decision, NO_RCODE, type Snapshot } from "../snapshot/mod.ts";
import { writeAddresses, writeAnswer, writeNegative } from "./own_answers.ts";
import type { Query } from "./query.ts";
import { type Reply, writeEmpty } from "./reply.ts";

/** Writes what a blocked query is answered with, by the settings; `query.rule` has decided. */
export function writeBlocked(query: Query, reply: Reply, snapshot: Snapshot): void {
  const text = query.edns ? snapshot.blockedText(query.rule) : undefined;
  const ttl = snapshot.blockTtl;
  if (snapshot.blockForm === BlockForm.Refused) {
    writeEmpty(query, reply, Rcode.Refused, Ede.Blocked, text);
  } else if (snapshot.blockForm === BlockForm.NxDomain) {
    writeNegative(query, reply, Rcode.NXDomain, ttl, Ede.Blocked, text);
  } else if (query.qtype === Qtype.A) {
    writeAnswer(query, reply, Qtype.A, ttl, snapshot.blockIpv4, Ede.Blocked, text);
  } else if (query.qtype === Qtype.AAAA) {
    writeAnswer(query, reply, Qtype.AAAA, ttl, snapshot.blockIpv6, Ede.Blocked, text);
  } else {
    writeNegative(query, reply, Rcode.NoError, ttl, Ede.Blocked, text);
  }
}

/**
 * Writes what a rewrite or hosts lines answer: a response code, or all addresses of QTYPE's family;
 * without one that is NODATA.
 */
export function writeRuled(query: Query, reply: Reply, decision: Decision, ttl: number): void {
  const { rcode } = decision;
  if (rcode === NO_RCODE) writeAddresses(query, reply, decision, ttl);
  else if (rcode === Rcode.NoError || rcode === Rcode.NXDomain) {
    writeNegative(query, reply, rcode, ttl);
  } else {
    writeEmpty(query, reply, rcode);
  }
}
