import { isLoopback } from "../addr/mod.ts";
import { Ede, Rcode } from "../dns/mod.ts";
import { NO_CLIENT, type Snapshot } from "../snapshot/mod.ts";
import { Counter, countOutcome } from "../telemetry/mod.ts";
import { Outcome } from "./outcome.ts";
import { type ClientAddress, type Query, Transport } from "./query.ts";
import type { RateLimiter } from "./rate_limit.ts";
import { type Reply, writeEmpty, writeTruncated } from "./reply.ts";
import { Verdict } from "./verdict.ts";

/** The first of the counters that each transport has one of, in the order of `Transport`. */
const REFUSED = Counter.AccessRefusedUdp;
const LIMITED = Counter.RateLimitedUdp;

/** Text of the extended error of a query over the limit. */
const LIMITED_TEXT = new TextEncoder().encode("over the rate limit");

/** Decides, before anything looks at a question, whether its client gets an answer at all. */
export class Admission {
  readonly #limits: RateLimiter | null;
  readonly #requireClientId: boolean;
  readonly #counts: Float64Array;

  /** `limits` is `null` where no client is limited. */
  constructor(limits: RateLimiter | null, requireClientId: boolean, counts: Float64Array) {
    this.#limits = limits;
    this.#requireClientId = requireClientId;
    this.#counts = counts;
  }

  /**
   * Says whether an address may connect over a transport, and counts one that may not: to be closed
   * before anything of it is read.
   */
  admitsConnection(transport: Transport, client: ClientAddress, snapshot: Snapshot): boolean {
    const { bytes, offset, lengthBytes } = client;
    const mayCarryId = isEncrypted(transport);
    if (snapshot.access.admitsConnection(bytes, offset, lengthBytes, mayCarryId)) return true;
    this.#counts[REFUSED + transport]++;
    return false;
  }

  /** Passes a query on, or answers or drops it. `isHealthCheck`: it asks how this node is. */
  admit(query: Query, reply: Reply, snapshot: Snapshot, isHealthCheck: boolean): Verdict {
    const { bytes, offset, lengthBytes, id } = query.address;
    const { transport } = query;
    const lacksId = this.#requireClientId &&
      (id === null || snapshot.clientWithId(id, 0, id.length) === NO_CLIENT) &&
      !(isHealthCheck && isOwnPlain(query)); // The node watches itself over plain DNS.
    if (lacksId || !snapshot.access.admits(bytes, offset, lengthBytes, id)) {
      this.#counts[REFUSED + transport]++;
      query.outcome = Outcome.Refused;
      // Silence over UDP: whoever forges addresses gets nobody answered through us.
      if (transport === Transport.Udp) return Verdict.Drop;
      countOutcome(this.#counts, transport, Outcome.Refused);
      writeEmpty(query, reply, Rcode.Refused, Ede.Prohibited);
      return Verdict.Send;
    }
    const limits = this.#limits;
    // Behind a proxy of oblivious clients stand many: its connections are limited, not they.
    if (limits === null || transport === Transport.Odoh) return Verdict.Next;
    if (limits.take(bytes, offset, lengthBytes)) return Verdict.Next;
    this.#counts[LIMITED + transport]++;
    query.outcome = Outcome.Refused;
    query.isLogged = false;
    if (transport === Transport.Udp) {
      // A client that is there asks again over TCP; one that is made up gets no more than it sent.
      writeTruncated(query, reply, Rcode.NoError, -1);
    } else {
      writeEmpty(query, reply, Rcode.Refused, Ede.Other, LIMITED_TEXT);
    }
    return Verdict.Send;
  }
}

function isOwnPlain({ transport, address: { bytes, offset, lengthBytes } }: Query): boolean {
  return !isEncrypted(transport) && isLoopback(bytes.subarray(offset, offset + lengthBytes));
}

function isEncrypted(transport: Transport): boolean {
  return transport >= Transport.Dot;
}
